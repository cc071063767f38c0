#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench where something is wrong around the kernel: libraries that do not fit, candidates that talk to the judge, disks that
are full, interruptions. Each time every planned case has one record, with all its fields. tests/test_judge.py PROGRAM BUILD_DIR"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = BUILD = None

# What the contract promises of each line.
FIELDS = """op level case dtype shapes status verdict speedup ci_low ci_high candidate_ms baseline_ms roofline_fraction max_abs_error
max_rel_error matched_ratio mismatches detail seed sandbox schema commit device environment command""".split()
STATUSES = """PASSED INCORRECT_NUMERICAL INCORRECT_SHAPE INCORRECT_DTYPE RUNTIME_ERROR REWARD_HACK SKIPPED COMPILE_ERROR TIMEOUT
CRASHED NOT_RUN IMPLAUSIBLE""".split()

RIGHT = """
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    const float *x = FK_PTR(const float, a->input);
    float *y = FK_PTR(float, a->result);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) y[r * d + i] = x[r * 2 * d + i] / (1 + expf(-x[r * 2 * d + i])) * x[r * 2 * d + d + i];
"""


def run(*args, cwd=None, env=None):
    return subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, cwd=cwd,
                          env=dict(os.environ, **(env or {})))


def has_gpu():
    return run("list", "--device", "cuda").returncode == 0


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.results = os.path.join(self.folder, "results.json")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def candidate(self, body, before="", name="silu_and_mul.c"):
        with open(self.path(name), "w") as file:
            file.write(f"#include <fk/candidate.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{before}\n"
                       f"FK_CANDIDATE(silu_and_mul)\n{{{body}\n    return 0;\n}}\n")
        return self.path(name)

    def bench(self, *args, env=None):
        """Exit code and records, which are looked at: one a planned case, complete, the same on stdout and on disk."""
        result = run("bench", "--device", "cpu", "--min-time-ms", "5", "--json", "-q", "-o", self.results, *args, env=env)
        stream = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertTrue(stream, result.stderr)
        records, summary = stream[:-1], stream[-1]["summary"]
        self.check_records(records, summary)
        self.assertEqual([r["key"] for r in records], [r["key"] for r in lines_of(self.results) if "op" in r])
        return result.returncode, records

    def check_records(self, records, summary):
        self.assertEqual(len(records), summary["planned"])
        self.assertEqual(len({(r["op"], r["case"]) for r in records}), len(records))
        self.assertEqual(summary["planned"], sum(summary[k] for k in ("passed", "failed", "skipped", "not_run")))
        for record in records:
            self.assertEqual([f for f in FIELDS if f not in record], [])
            self.assertIn(record["status"], STATUSES)
            if record["verdict"] is None:
                continue
            self.assertEqual(record["status"], "PASSED")
            self.assertLessEqual(record["ci_low"], record["speedup"])
            self.assertLessEqual(record["speedup"], record["ci_high"])


class Libraries(InFolder):
    """Shared libraries that are no candidates for the operator they are named after."""

    def judge(self, library):
        shutil.copy(os.path.join(BUILD, f"candidate_{library}.so"), self.path("silu_and_mul.so"))
        code, records = self.bench("--candidates", self.path("silu_and_mul.so"))
        return code, {r["status"] for r in records}, records[0]["detail"]

    def refuse(self, library, *words):
        code, statuses, detail = self.judge(library)
        self.assertEqual((code, statuses), (1, {"RUNTIME_ERROR"}), detail)
        for word in words:
            self.assertIn(word, detail)

    def test_good(self):
        code, statuses, detail = self.judge("good")
        self.assertEqual((code, statuses), (0, {"PASSED"}), detail)

    def test_wrong_abi(self):
        self.refuse("wrong_abi", "silu_and_mul.so", "ABI 999", "has 1")

    def test_wrong_signature(self):
        self.refuse("wrong_signature", "another signature of silu_and_mul", "input", "values")

    def test_wrong_symbol(self):
        self.refuse("no_symbol", "no symbol __tvm_ffi_silu_and_mul", "it has __tvm_ffi_rms_norm")

    def test_undefined_symbol(self):
        self.refuse("undefined_symbol", "no_such_function_anywhere")

    def test_calls_itself(self):
        code, statuses, detail = self.judge("calls_itself")
        self.assertEqual((code, statuses), (1, {"RUNTIME_ERROR"}), detail)
        self.assertIn("lower operators only", detail)

    def test_no_library_at_all(self):
        with open(self.path("silu_and_mul.so"), "w") as file:
            file.write("not ELF")
        code, records = self.bench("--candidates", self.path("silu_and_mul.so"))
        self.assertEqual((code, {r["status"] for r in records}), (1, {"RUNTIME_ERROR"}))
        self.assertIn("cannot load", records[0]["detail"])

    def test_of_another_processor_or_cut_off(self):
        with open(os.path.join(BUILD, "candidate_good.so"), "rb") as file:
            whole = file.read()
        for data, word in ((whole[:18] + bytes([244]) + whole[19:], "another processor"), (whole[:-100], "cut off"), (whole[:5000], "cut off")):
            with open(self.path("silu_and_mul.so"), "wb") as file:
                file.write(data)
            code, records = self.bench("--candidates", self.path("silu_and_mul.so"), "--ops", "silu_and_mul", "--case", "T=2 D=8")
            self.assertEqual((code, records[0]["status"]), (1, "RUNTIME_ERROR"))
            self.assertIn(word, records[0]["detail"])


class TalkingCandidates(InFolder):
    """What comes out of a candidate's process is evidence, never a verdict."""

    def test_fake_results_on_stdout(self):
        fake = r'{\"op\": \"silu_and_mul\", \"status\": \"PASSED\", \"speedup\": 99, \"summary\": {\"passed\": 99}}'
        path = self.candidate("    (void)a;\n    say();", before=f'static void say(void)\n{{\n    puts("{fake}");\n    fprintf(stderr, "{fake}\\n");\n'
                              "    fflush(stdout);\n}\n__attribute__((constructor)) static void begin(void) { say(); }\n"
                              "__attribute__((destructor)) static void end(void) { say(); }")
        code, records = self.bench("--candidates", path)
        self.assertEqual(code, 1)
        self.assertEqual({r["status"] for r in records if "[0," not in r["shapes"]}, {"INCORRECT_NUMERICAL"})

    def test_words_steer_no_terminal(self):
        """Nor do bytes that are no UTF-8 cost the rest of the message."""
        path = self.candidate('    (void)a;\n    return fk_candidate_error("before \\x1b[31m \\xff\\xc2\\x9b after");')
        code, records = self.bench("--candidates", path, "--ops", "silu_and_mul", "--case", "T=2 D=8")
        self.assertIn("before ?[31m ??? after", records[0]["detail"])

    def test_writes_into_the_connection(self):
        path = self.candidate(f'    if (fk_tensor_numel(a->result) && write(3, "{"PASSED " * 32}", 224) < 0) return 1;' + RIGHT)
        code, records = self.bench("--candidates", path)
        self.assertEqual(code, 1)
        self.assertEqual({r["status"] for r in records if "[0," not in r["shapes"]}, {"REWARD_HACK"})

    def test_closes_the_connection(self):
        path = self.candidate("    for (int fd = 3; fd < 64; fd++) close(fd);" + RIGHT)
        code, records = self.bench("--candidates", path)
        self.assertEqual((code, {r["status"] for r in records}), (1, {"CRASHED"}))

    def test_constructor_ends_the_process(self):
        path = self.candidate("    (void)a;", before="__attribute__((constructor)) static void begin(void) { _exit(0); }")
        code, records = self.bench("--candidates", path)
        self.assertEqual((code, {r["status"] for r in records}), (1, {"CRASHED"}))

    def test_constructor_hangs(self):
        path = self.candidate("    (void)a;", before="__attribute__((constructor)) static void begin(void) { for (;;) pause(); }")
        code, records = self.bench("--candidates", path, "--ops", "silu_and_mul", "--case", "T=2 D=8",
                                   env={"FK_BENCH_TIMEOUT_SEC": "1"})
        self.assertEqual((code, {r["status"] for r in records}), (1, {"TIMEOUT"}))

    def test_leaves_no_process(self):
        """A candidate's children go with it."""
        path = self.candidate(f'    static int done;\n    if (!done++ && fork() == 0) {{\n        char *argv[] = {{"sleep", "{os.getpid()}9", NULL}};\n'
                              f'        execvp("sleep", argv);\n    }}' + RIGHT)
        self.bench("--candidates", path)
        processes = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertNotIn(f"sleep {os.getpid()}9", processes)


    def test_nothing_is_left_behind(self):
        """Children in sessions of their own, whose parents are gone, end with the case."""
        path = self.candidate(f'    static int done;\n    if (!done++ && fork() == 0) {{\n        setsid();\n        if (fork()) _exit(0);\n'
                              f'        char *argv[] = {{"sleep", "{os.getpid()}8", NULL}};\n        execvp("sleep", argv);\n    }}\n'
                              + RIGHT)
        self.bench("--candidates", path, "--ops", "silu_and_mul", "--case", "T=2 D=8")
        processes = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertNotIn(f"sleep {os.getpid()}8", processes)

    def test_disk_is_not_filled(self):
        path = self.candidate("    static char words[1 << 20];\n    memset(words, 'x', sizeof words);\n"
                              "    for (int i = 0; i < 200; i++)\n        if (write(1, words, sizeof words) < 0) return 1;" + RIGHT)
        code, records = self.bench("--candidates", path, "--ops", "silu_and_mul", "--case", "T=2 D=8")
        self.assertEqual((code, records[0]["status"]), (1, "CRASHED"))
        self.assertIn("File size limit", records[0]["detail"])

    def test_cannot_interrupt_the_judge(self):
        path = self.candidate("    kill(getppid(), SIGTERM);" + RIGHT, before="#include <signal.h>")
        code, records = self.bench("--candidates", path, "--ops", "silu_and_mul", "--case", "T=2 D=8")
        self.assertEqual((code, records[0]["status"]), (0, "PASSED"), records[0]["detail"])


class WholeModels(InFolder):
    """eval and run, where candidates share the model's process: it may end in any way, the command does not."""

    def whole(self, body, code, status, *words, before="", env=None):
        path = self.candidate(body + RIGHT, before="#include <signal.h>\n" + before)
        result = run("eval", "--device", "cpu", "--scenario", "tiny", "--max-requests", "1", "--time-budget-s", "0", "--candidates", path,
                     "--json", "-q", env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual((record["status"], record["model"], record["workload"]), (status, "llama:tiny", "tiny"))
        for word in words:
            self.assertIn(word, record["detail"])
        result = run("run", "--device", "cpu", "--model", "llama:tiny", "--prompt-ids", "1", "--max-tokens", "2", "--candidates", path, "-q",
                     env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_ends_the_process(self):
        self.whole("    exit(0);", 1, "CRASHED", "silu_and_mul", "exit code 0")
        self.whole("    _exit(0);", 1, "CRASHED", "silu_and_mul", "exit code 0")
        self.whole("    raise(SIGKILL);", 1, "CRASHED", "silu_and_mul", "signal 9")
        self.whole("", 1, "CRASHED", "silu_and_mul", "exit code 0", before="__attribute__((constructor)) static void begin(void) { _exit(0); }")

    def test_hangs(self):
        self.whole("    raise(SIGSTOP);", 1, "TIMEOUT", "silu_and_mul", "did not return", env={"FK_BENCH_TIMEOUT_SEC": "1"})
        self.whole("    for (;;) pause();", 1, "TIMEOUT", "silu_and_mul", "did not return", env={"FK_BENCH_TIMEOUT_SEC": "1"})

    def test_prints(self):
        """Not into the JSON, nor into the answer."""
        self.whole('    puts("{\\"status\\": \\"PASSED\\"}");\n    fflush(stdout);', 0, "PASSED")
        result = run("run", "--device", "cpu", "--model", "llama:tiny", "--prompt-ids", "1", "--max-tokens", "2", "-q", "--candidates", self.folder)
        self.assertRegex(result.stdout, r"^\d+ \d+\s*$")

    def test_signals(self):
        self.whole("    kill(getppid(), SIGTERM);\n    kill(0, SIGINT);", 0, "PASSED")

    def test_library_cut_off(self):
        with open(os.path.join(BUILD, "candidate_good.so"), "rb") as file:
            whole = file.read()
        with open(self.path("silu_and_mul.so"), "wb") as file:
            file.write(whole[: len(whole) // 3])
        for command in (["eval", "--scenario", "tiny"], ["run", "--model", "llama:tiny", "--prompt-ids", "1"]):
            result = run(*command, "--device", "cpu", "--candidates", self.path("silu_and_mul.so"))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("silu_and_mul", result.stderr)

    def test_interrupt(self):
        process = subprocess.Popen([PROGRAM, "eval", "--device", "cpu", "--scenario", "tiny", "--pairs", "1000", "--time-budget-s", "60",
                                    "--candidates", self.candidate(RIGHT), "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=30)[1]
        self.assertEqual((process.returncode, message), (130, "fastkernels eval: interrupted\n"))


class Files(InFolder):
    """Names of candidates that are no regular files are refused at once, not read to an end that never comes."""

    def test_no_regular_files(self):
        for name, make in (("silu_and_mul.c", os.mkfifo), ("silu_and_mul.so", os.mkfifo), ("rms_norm.c", os.mkdir),
                           ("linear.c", lambda path: os.symlink("/dev/zero", path)), ("rotary_emb.c", lambda path: os.symlink(path, path)),
                           ("embedding.c", lambda path: os.symlink("/no/such/file", path))):
            folder = self.path("in_" + name)
            os.mkdir(folder)
            path = os.path.join(folder, name)
            make(path)
            for command in (["bench", "-o", self.results], ["eval", "--scenario", "tiny"], ["run", "--model", "llama:tiny", "--prompt-ids", "1"]):
                result = subprocess.run([PROGRAM, *command, "--device", "cpu", "--candidates", folder], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, timeout=20)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(path, result.stderr)
        self.assertFalse(os.path.exists(self.results))

    def test_a_roofline_below_the_baseline_condemns_nobody(self):
        """Measured beside other programs a roofline may be far too low; it counts as far as the baseline keeps to it."""
        cache = self.path("cache")
        self.assertEqual(run("doctor", "--device", "cpu", "--measure", "--cache", cache).returncode, 0)
        (name,) = os.listdir(os.path.join(cache, "roofline"))
        with open(os.path.join(cache, "roofline", name)) as file:
            measured = json.load(file)
        # Built as the baseline is, with a sanitizer or without: a candidate faster than the baseline is no question of the roofline.
        shutil.copy(os.path.join(BUILD, "candidate_good.so"), self.path("silu_and_mul.so"))
        args = ("--candidates", self.folder, "--cache", cache, "--case", "T=64 D=3072", "--ops", "silu_and_mul")

        measured["roofline"].update(copy_gb_s=1e-3, read_gb_s=1e-3)  # a thousandth of what any machine moves
        with open(os.path.join(cache, "roofline", name), "w") as file:
            json.dump(measured, file)
        _, (record,) = self.bench(*args)
        self.assertEqual(record["status"], "PASSED", record["detail"])
        self.assertGreater(record["roofline_fraction"], 3)

    def test_one_missing_compiler_leaves_the_others(self):
        """Each planned case has its record, and the message is the first failure's own."""
        shutil.copy(os.path.join(BUILD, "candidate_good.so"), self.path("silu_and_mul.so"))
        with open(self.path("rms_norm.c"), "w") as file:
            file.write("#include <fk/candidate.h>\nFK_CANDIDATE(rms_norm)\n{\n    (void)a;\n    return 0;\n}\n")
        result = run("bench", "--device", "cpu", "--candidates", self.folder, "--cache", self.path("cache"), "--min-time-ms", "5",
                     "--case", "T=2 D=8; T=3 D=8", "--ops", "silu_and_mul", "-q", "-o", self.results, env={"CC": "/nowhere/cc"})
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run("bench", "--candidates", self.folder, "--cache", self.path("cache"), "--min-time-ms", "5", "--ops",
                     "silu_and_mul,rms_norm", "-q", "-o", self.results, env={"CC": "/nowhere/cc"})
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("no compiler /nowhere/cc", result.stderr)
        *records, last = lines_of(self.results)
        self.check_records(records, last["summary"])
        self.assertEqual({r["status"] for r in records if r["op"] == "rms_norm"}, {"NOT_RUN"})
        self.assertEqual({r["status"] for r in records if r["op"] == "silu_and_mul"}, {"PASSED"})


class Cases(InFolder):
    def test_case_that_cannot_run(self):
        """Is no success."""
        folder = self.path("capture")
        self.assertEqual(run("capture", "--device", "cpu", "--scenario", "tiny", "--max-requests", "1", "-o", folder, "-q").returncode, 0)
        path = os.path.join(folder, "silu_and_mul.json")
        with open(path) as file:
            capture = json.load(file)
        capture["cases"] = [{"count": 1, "scalars": {}, "tensors": {"input": {"dtype": "f32", "shape": [4, 8], "strides": [1 << 37, 1]}}}]
        with open(path, "w") as file:
            json.dump(capture, file)
        result = run("bench", "--device", "cpu", "--self-test", "--ops", "silu_and_mul", "--captures", folder, "-q", "-o", self.results,
                     env={"ASAN_OPTIONS": "allocator_may_return_null=1"})
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("1 of 1 cases could not be run; the first: out of memory", result.stderr)
        self.assertEqual([r["status"] for r in lines_of(self.results) if "op" in r], ["NOT_RUN"])

    def test_given_cases(self):
        code, records = self.bench("--self-test", "--ops", "rms_norm", "--case", "T=2x3 D=40 epsilon=1e-5 dtype=bf16; T=4 D=8 epsilon=0.5",
                                   "--case", "T=1 D=7 epsilon=1e-5 weight=absent")
        self.assertEqual(code, 0, [(r["case"], r["status"], r["detail"]) for r in records])
        self.assertEqual({(r["dtype"], r["shapes"], r["source"]) for r in records},
                         {("bf16", "[2, 3, 40] [40]", "given"), ("f32", "[4, 8] [8]", "given"), ("f32", "[1, 7]", "given")})

    def test_cases_that_do_not_fit(self):
        for case, *words in (("T=2 D=8 Q=3 epsilon=1e-5", "rms_norm", "Q"), ("T=2 D=8", "epsilon is missing"),
                             ("T=2 D=-8 epsilon=1", "D=-8"), ("T=2 D=8 epsilon=1 dtype=f8", "dtype=f8"), ("T=2 D", "'D'")):
            result = run("bench", "--device", "cpu", "--self-test", "--ops", "rms_norm", "--case", case, cwd=self.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)
        result = run("bench", "--device", "cpu", "--self-test", "--case", "T=2 D=8", cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--ops", result.stderr)


class Surroundings(InFolder):
    def test_no_gpu(self):
        if has_gpu():
            self.skipTest("a GPU is here")
        for what in (["--self-test"], ["--candidates", self.folder]):
            result = run("bench", "--device", "cuda", *what, cwd=self.folder)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("CUDA", result.stderr)

    def test_build_only(self):
        path = self.candidate(RIGHT)
        cache = self.path("cache")
        result = run("bench", "--device", "cpu", "--build-only", "--candidates", path, "--cache", cache, "--json", "-q")
        line = json.loads(result.stdout)
        self.assertEqual((result.returncode, line["op"], line["status"]), (0, "silu_and_mul", "BUILT"))
        self.assertTrue(os.path.exists(line["detail"]))
        self.assertEqual(os.listdir(os.path.join(cache, "candidates")), [os.path.basename(line["detail"])], "nothing is left beside it")
        self.candidate("    oops")
        result = run("bench", "--device", "cpu", "--build-only", "--candidates", path, "--cache", cache, "--json", "-q")
        line = json.loads(result.stdout)
        self.assertEqual((result.returncode, line["status"]), (1, "COMPILE_ERROR"))
        self.assertIn("oops", line["detail"])

    def mount(self, options):
        """A file system of its own, or a loud skip."""
        where = self.path("mounted")
        os.mkdir(where)
        result = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", where], stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            self.skipTest(f"cannot mount a tmpfs: {result.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", where])
        return where

    def self_test(self, *args):
        return run("bench", "--device", "cpu", "--self-test", "--ops", "silu_and_mul", "--min-time-ms", "5", *args, cwd=self.folder)

    def test_full_device(self):
        result = self.self_test("-o", "/dev/full")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("/dev/full", result.stderr)
        self.assertIn("No space left", result.stderr)

    def test_full_disk(self):
        where = os.path.join(self.mount("size=8k"), "results.json")
        result = self.self_test("-o", where)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(where, result.stderr)
        self.assertIn("No space left", result.stderr)
        with open(where) as file:
            whole = [line for line in file if line.endswith("}\n")]
        self.assertGreater(len(whole), 0)
        for line in whole:
            json.loads(line)

    def test_read_only_folder(self):
        where = self.mount("ro")
        result = self.self_test("-o", os.path.join(where, "results.json"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(os.path.join(where, "results.json"), result.stderr)
        result = run("bench", "--device", "cpu", "--self-test", "--ops", "silu_and_mul", cwd=where)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("results", result.stderr)
        self.assertIn("Read-only", result.stderr)

    def test_full_cache_is_no_fault_of_the_candidate(self):
        where = self.mount("size=4k")
        result = run("bench", "--device", "cpu", "--candidates", self.candidate(RIGHT), "--cache", where, "-o", self.results)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("No space left", result.stderr)


class TwoAtOnce(InFolder):
    def start(self, *args):
        return subprocess.Popen([PROGRAM, "bench", "--device", "cpu", "--self-test", "--ops", "rms_norm", "-q", *args], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def test_same_file(self):
        first = self.start("--min-time-ms", "100", "-o", self.results)
        while not (os.path.exists(self.results) and os.path.getsize(self.results)):
            self.assertIsNone(first.poll())
            time.sleep(0.02)
        for more in ([], ["--resume"]):
            second = self.start("-o", self.results, *more)
            self.assertIn(f"another bench is writing {self.results}", second.communicate(timeout=60)[1])
            self.assertEqual(second.returncode, 2)
        self.assertEqual((first.communicate(timeout=120)[1], first.returncode), ("", 0))
        *records, last = lines_of(self.results)
        self.check_records(records, last["summary"])

    def test_same_second(self):
        processes = [self.start("--min-time-ms", "5", "--case", "T=1 D=8 epsilon=1") for _ in range(3)]
        self.assertEqual([(p.communicate(timeout=120)[1], p.returncode) for p in processes], [("", 0)] * 3)
        paths = [os.path.join(where, name) for where, _, names in os.walk(self.path("results")) for name in names]
        self.assertEqual(len(paths), 3)
        for path in paths:
            self.assertEqual(len(lines_of(path)), 2)


class Interruption(InFolder):
    def test_ctrl_c_and_resume(self):
        ops = ["bench", "--device", "cpu", "--self-test", "--ops", "rms_norm,silu_and_mul", "--min-time-ms", "30", "-q", "-o", self.results]
        process = subprocess.Popen([PROGRAM, *ops], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while time.time() < deadline and not (os.path.exists(self.results) and os.path.getsize(self.results) > 5000):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, message)
        *records, last = lines_of(self.results)
        self.check_records(records, last["summary"])
        finished = {r["key"]: r for r in records if r["status"] == "PASSED"}
        self.assertGreater(len(finished), 0)
        self.assertGreater(last["summary"]["not_run"], 0, "the interruption came too late to show anything")
        with open(self.results, "a") as file:
            file.write('{"key": "cut off, as by a power fai')
        result = run(*ops, "--resume", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        *again, last = lines_of(self.results)
        self.check_records(again, last["summary"])
        self.assertEqual({r["status"] for r in again}, {"PASSED"})
        self.assertEqual({r["key"]: r for r in again if r["key"] in finished}, finished, "finished cases are not judged again")

    def compile_for_long(self):
        """A bench whose compiler is at work and has a file open."""
        with open(self.path("silu_and_mul.c"), "w") as file:
            file.write("#define A(...)" + 10 * " __VA_ARGS__" + "\nint a[] = {A(A(A(A(A(A(A(1,)))))))};\n")
        process = subprocess.Popen([PROGRAM, "bench", "--device", "cpu", "--candidates", self.path("silu_and_mul.c"), "--cache",
                                    self.path("cache"), "-q", "-o", self.results, "--ops", "silu_and_mul", "--case", "T=2 D=8"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(process.kill)
        deadline = time.time() + 60
        while not any(name.endswith(".s") for name in os.listdir(self.folder)):
            self.assertLess(time.time(), deadline, "no compiler began")
            time.sleep(0.02)
        return process

    def check_folder(self):
        """Nothing but what belongs there."""
        self.assertEqual(os.listdir(self.path("cache", "candidates")), [])
        self.assertEqual(sorted(os.listdir(self.folder)), ["cache", "results.json", "silu_and_mul.c"])

    def test_ctrl_c_while_compiling(self):
        """Ends the compiler and its files too; every case is NOT_RUN."""
        process = self.compile_for_long()
        begin = time.time()
        process.send_signal(signal.SIGHUP)
        message = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, message)
        self.assertLess(time.time() - begin, 10)
        self.assertEqual([r["status"] for r in lines_of(self.results) if "op" in r], ["NOT_RUN"])
        self.check_folder()

    def test_no_compiler_outlives_a_killed_judge(self):
        """All of it, with its files, although nobody is left who could end it."""
        process = self.compile_for_long()
        process.kill()
        process.communicate(timeout=60)
        deadline = time.time() + 10
        while time.time() < deadline and self.compilers():
            time.sleep(0.02)
        self.assertEqual(self.compilers(), [])
        self.check_folder()

    def compilers(self):
        processes = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        return [line for line in processes if self.folder in line]

    def test_a_changed_candidate_is_judged_again(self):
        path = self.candidate(RIGHT)
        args = ("--candidates", path, "--ops", "silu_and_mul", "--case", "T=4 D=8")
        self.assertEqual(self.bench(*args)[0], 0)
        self.candidate("    (void)a;")
        result = run("bench", "--device", "cpu", "--min-time-ms", "5", "-q", "-o", self.results, *args, "--resume")
        self.assertEqual(result.returncode, 1, result.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
