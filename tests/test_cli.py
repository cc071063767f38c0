#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The frame of the command line from outside: exit codes, messages, JSON, streams. tests/test_cli.py PROGRAM"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
COMMON = {"schema", "commit", "device", "environment", "command"}


def run(*args, **options):
    env = dict(os.environ, **options.pop("env", {}))
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, *args], stderr=subprocess.PIPE, text=True, timeout=120, env=env, **options)


def has_gpu():
    return run("list", "--device", "cuda").returncode == 0


class BadInput(unittest.TestCase):
    """Each is refused with the right code and a message that names the thing and the value."""

    def refuse(self, args, code, *words, **options):
        result = run(*args, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_unknown_command(self):
        self.refuse(["lst"], 2, "'lst'", "did you mean 'list'")
        self.refuse(["xyzzy"], 2, "'xyzzy'", "--help")
        self.refuse(["__runer"], 2, "'__runer'")
        self.refuse(["help", "docter"], 2, "did you mean 'doctor'")

    def test_no_command(self):
        self.refuse([], 2, "usage: fastkernels COMMAND")

    def test_unknown_option(self):
        self.refuse(["list", "--lvel", "L1"], 2, "'--lvel'", "did you mean '--level'")
        self.refuse(["list", "-z"], 2, "'-z'")
        self.refuse(["list", "--bogus"], 2, "'--bogus'", "'fastkernels list --help' lists them")  # like nothing that there is
        self.refuse(["doctor", "--mesure=1"], 2, "'--mesure'", "did you mean '--measure'")

    def test_values_of_options(self):
        self.refuse(["list", "--level"], 2, "--level needs a value")
        self.refuse(["list", "--level", "--json"], 2, "--level needs a value")
        self.refuse(["list", "--quiet=yes"], 2, "--quiet takes no value", "'yes'")
        self.refuse(["list", "--level", "L9"], 2, "--level", "'L9'")
        self.refuse(["list", "--level", "L1,"], 2, "'L1,'")
        self.refuse(["list", "--level", ""], 2, "--level", "''")
        self.refuse(["list", "--device", ""], 2, "--device ''")
        self.refuse(["list", "--seed", "9223372036854775807"], 2, "'9223372036854775807'", "to 1000000000000000000")
        self.refuse(["list", "--threads", "two"], 2, "--threads", "'two'")
        self.refuse(["list", "--threads=-1"], 2, "--threads", "'-1'")
        self.refuse(["list", "--seed", "99999999999999999999"], 2, "--seed", "'99999999999999999999'")

    def test_unexpected_argument(self):
        self.refuse(["list", "operators", "models"], 2, "'models'", "usage:")

    def test_unknown_names(self):
        self.refuse(["list", "oprators"], 2, "'oprators'", "did you mean 'operators'")
        self.refuse(["list", "--model", "lama"], 2, "unknown model 'lama'", "did you mean 'llama'")
        self.refuse(["list", "models", "--model", "zzzzzz"], 2, "unknown model 'zzzzzz'", "list models")
        self.refuse(["list", "models", "--family", "visoin"], 2, "'visoin'", "did you mean 'vision'")
        self.refuse(["list", "--scenario", "dmeo"], 2, "unknown scenario 'dmeo'", "did you mean 'demo'")
        self.refuse(["list", "--model", "smollm2-134m"], 2, "did you mean 'smollm2-135m'")
        self.refuse(["list", "--family", "nrom"], 2, "'nrom'", "did you mean 'norm'")

    def test_devices(self):
        self.refuse(["list", "--device", "foo"], 2, "'foo'", "cpu, cuda")
        self.refuse(["list", "--device", "cuda:x"], 2, "'cuda:x'")
        self.refuse(["list", "--device", "cuda:99"], 2, "'cuda:99'")
        if not has_gpu():
            self.refuse(["list", "--device", "cuda"], 3, "CUDA")
            self.refuse(["doctor", "--device", "cuda", "--measure"], 3, "CUDA")

    def test_missing_files(self):
        self.refuse(["list", "candidates", "--candidates", "/no/such"], 2, "'/no/such'", "No such file")
        self.refuse(["list", "--json=/no/such/file"], 2, "/no/such/file", "No such file")

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            self.assert_full(run("list", stdout=full), "stdout")
            self.assert_full(run("list", "--json", stdout=full), "stdout")
        self.assert_full(run("list", "--json=/dev/full"), "/dev/full")

    def assert_full(self, result, where):
        self.assertEqual(result.returncode, 2)
        self.assertIn(where, result.stderr)
        self.assertIn("No space left", result.stderr)

    def test_read_only_cache(self):
        with tempfile.NamedTemporaryFile() as plain_file:
            result = run("doctor", "--measure", "--device=cpu", "--cache", plain_file.name + "/below")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(plain_file.name, result.stderr)

    def test_arguments_that_are_no_utf8(self):
        bad = b"\xff\xfe".decode("utf-8", "surrogateescape")
        result = subprocess.run([PROGRAM, "list", "--model", bad], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 2)
        result = subprocess.run([PROGRAM, "list", "--cache", bad, "--json"], stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0)
        self.assertIn("\ufffd", json.loads(result.stdout.decode("utf-8"))["command"])


class Streams(unittest.TestCase):
    def test_reader_goes_away(self):
        process = subprocess.Popen([PROGRAM, "list", "models"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)

    def test_stdout_closed(self):
        result = subprocess.run(["sh", "-c", '"$0" list >&-', PROGRAM], stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot write to stdout", result.stderr)

    def test_interrupt(self):
        with tempfile.TemporaryDirectory() as cache:
            process = subprocess.Popen([PROGRAM, "doctor", "--measure", "--device", "cpu", "--cache", cache],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while "measuring" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)

    def test_no_color(self):
        self.assertNotIn("\033", run("list").stdout)  # not a terminal

    def test_json_file_leaves_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            result = run("list", "families", f"--json={path}")
            self.assertIn("FAMILY", result.stdout)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)["families"]), 8)


class Help(unittest.TestCase):
    def test_every_command(self):
        listing = run("--help").stdout
        names = re.findall(r"^  ([a-z-]+)  +\S", listing.split("commands:")[1].split("common options:")[0], re.M)
        self.assertIn("list", names)
        for name in names:
            for words in ([name, "--help"], [name, "-h"], ["help", name]):
                result = run(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
            examples = result.stdout.split("examples:\n")[1].strip().splitlines()
            self.assertGreaterEqual(len(examples), 2, name)
            for example in examples:
                self.assertTrue(example.strip().startswith(f"fastkernels {name}"), example)
        self.assertIn("130", listing)

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^fastkernels \d+\.\d+\.\d+ \(([0-9a-f]{12}(-modified)?|unknown)\)$")


class List(unittest.TestCase):
    def one(self, *args):
        result = run("list", *args, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 1)
        record = json.loads(lines[0])
        self.assertLessEqual(COMMON, record.keys())
        self.assertIn("fastkernels list", record["command"])
        return record

    def test_operators(self):
        operators = self.one("operators")["operators"]
        self.assertEqual(self.one()["operators"], operators)
        norm = next(op for op in operators if op["name"] == "rms_norm")
        self.assertEqual((norm["level"], norm["family"], norm["mirrors"]), ("L1", "norm", "vllm _C::rms_norm"))
        self.assertEqual([f["name"] for f in norm["inputs"]], ["input", "weight"])
        self.assertEqual([f["name"] for f in norm["outputs"]], ["result"])
        self.assertEqual([f["name"] for f in norm["attrs"]], ["epsilon"])
        self.assertIn("llama", norm["used_by"])
        self.assertIn("reference", [i["name"] for i in norm["implementations"]])
        for op in operators:
            self.assertTrue(op["used_by"], f"{op['name']} has no row in ops/operators.tsv")

    def test_filters(self):
        self.assertEqual({op["level"] for op in self.one("--level", "L1")["operators"]}, {"L1"})
        self.assertEqual({op["family"] for op in self.one("--family", "norm")["operators"]}, {"norm"})
        for op in self.one("--model", "whisper")["operators"]:
            self.assertIn("whisper", op["used_by"])

    def test_planned(self):
        operators = self.one("operators", "--planned")["operators"]
        names = [op["name"] for op in operators]
        self.assertIn("gaussian_rasterize", names)
        self.assertNotIn("parallel_embedding_", names)
        built = self.one("operators")["operators"]
        self.assertGreaterEqual(len(operators), 380)
        planned = [op for op in operators if op["name"] not in {b["name"] for b in built}]
        self.assertTrue(all(op["implementations"] == [] for op in planned))
        self.assertIn("not built yet", run("list", "--help").stdout)

    def test_models(self):
        models = self.one("models")["models"]
        self.assertEqual(len(models), 47)
        for model in models:
            self.assertLessEqual({"name", "family", "checkpoint", "dtype", "tp", "workloads", "reference", "stage"},
                                 model.keys())
            self.assertTrue(model["workloads"])
        self.assertEqual(len({m["name"] for m in models}), 47)
        self.assertEqual([m["name"] for m in self.one("models", "--model", "llama:8b")["models"]], ["llama"])

    def test_families_and_workloads(self):
        self.assertEqual(sum(len(f["models"]) for f in self.one("families")["families"]), 47)
        workloads = {w["name"]: w["models"] for w in self.one("workloads")["workloads"]}
        self.assertIn("llama", workloads["LLM.mixed"])

    def test_scenarios(self):
        scenarios = {s["name"]: s for s in self.one("scenarios")["scenarios"]}
        self.assertEqual(scenarios["demo"]["model"], "smollm2-135m")
        self.assertTrue(all(s["description"] and not s["error"] for s in scenarios.values()))
        self.assertEqual([s["name"] for s in self.one("scenarios", "--scenario", "demo")["scenarios"]], ["demo"])
        self.assertEqual(self.one("--scenario", "demo")["operators"], self.one("--model", "llama")["operators"])
        self.assertEqual([m["name"] for m in self.one("models", "--scenario", "demo")["models"]], ["llama"])

    def test_map(self):
        lines = run("list", "--map", "--planned").stdout.splitlines()
        row = next(line for line in lines if line.startswith("L1  rms_norm "))
        self.assertEqual(len(re.findall("[●○·]", row)), 47)

    def test_candidates(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("rms_norm.c", "nothing.cu", "notes.txt"):
                open(os.path.join(folder, name), "w").close()
            candidates = self.one("candidates", "--candidates", folder)["candidates"]
        self.assertEqual([(c["op"], c["kind"], c["known"]) for c in candidates],
                         [("nothing", "cu", False), ("rms_norm", "c", True)])


class Doctor(unittest.TestCase):
    def test_measure_and_keep(self):
        with tempfile.TemporaryDirectory() as cache:
            before = json.loads(run("doctor", "--device=cpu", "--json", "--cache", cache).stdout)
            self.assertIsNone(before["roofline"])
            measured = json.loads(run("doctor", "--device=cpu", "--measure", "--json", env={"FK_CACHE": cache}).stdout)
            kept = json.loads(run("doctor", "--device=cpu", "--json", "--cache", cache).stdout)
        self.assertLessEqual(COMMON | {"checks", "roofline"}, measured.keys())
        self.assertGreater(measured["roofline"]["copy_gb_s"], 0.1)
        self.assertGreater(measured["roofline"]["fp32_gflops"], 0.1)
        for key, value in measured["roofline"].items():
            if value is not None:
                self.assertAlmostEqual(kept["roofline"][key] / value, 1, places=5)
        for check in kept["checks"]:
            self.assertLessEqual({"name", "ok", "detail"}, check.keys())
            self.assertIsInstance(check["ok"], bool)

    def test_hostile_cache(self):
        with tempfile.TemporaryDirectory() as cache:
            run("doctor", "--device=cpu", "--measure", "--cache", cache)
            folder = os.path.join(cache, "roofline")
            path = os.path.join(folder, os.listdir(folder)[0])
            for text in ("", "[" * 100000, '{"roofline": {"copy_gb_s": "fast"}}', '{"roofline": 7}', "\xff"):
                with open(path, "w", encoding="latin-1") as file:
                    file.write(text)
                result = run("doctor", "--device=cpu", "--cache", cache)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(path, result.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_cli.py PROGRAM [unittest options]")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
