#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench and capture from outside: each defect of the example candidates gets its status, every planned case one record.
tests/test_bench.py PROGRAM SOURCE_DIR"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = EXAMPLES = SOURCE = None


def run(*args, env=None, cwd=None):
    return subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900,
                          env=dict(os.environ, **(env or {})), cwd=cwd)


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.results = os.path.join(self.folder, "results.json")

    def bench(self, *args, env=None, min_time="20"):
        """Exit code, records and summary; the JSON stream and the result file say the same."""
        result = run("bench", "--device", "cpu", "-o", self.results, "--min-time-ms", min_time, "--json", "-q", *args, env=env)
        stream = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertTrue(stream, result.stderr)
        summary = stream[-1]["summary"]
        records = stream[:-1]
        self.assertEqual(len(records), summary["planned"], "every planned case ends in one record")
        self.assertEqual(len({r["key"] for r in records}), len(records))
        self.assertEqual(summary["planned"], sum(summary[k] for k in ("passed", "failed", "skipped", "not_run")))
        return result.returncode, records, summary

    def refuse(self, args, code, *words, env=None):
        result = run(*args, env=env, cwd=self.folder)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def candidate(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class Defects(InFolder):
    def judge(self, defect, *args, **options):
        code, records, _ = self.bench("--candidates", os.path.join(EXAMPLES, "bad", defect), *args, **options)
        calls = [r for r in records if "[0," not in r["shapes"]]  # an empty call shows no defect
        self.assertTrue(calls)
        return code, calls, collections.Counter(r["status"] for r in calls)

    def test_wrong(self):
        code, records, statuses = self.judge("wrong")
        self.assertEqual((code, set(statuses)), (1, {"INCORRECT_NUMERICAL"}))
        mismatch = records[0]["mismatches"][0]
        self.assertEqual(mismatch["tensor"], "result")
        self.assertNotEqual(mismatch["expected"], mismatch["found"])
        self.assertEqual(len(mismatch["index"]), 2)

    def test_wrong_in_half_a_percent(self):
        code, records, statuses = self.judge("wrong_rarely")
        large = [r for r in records if r["shapes"] == "[2, 28672]"]
        self.assertEqual((code, large[0]["status"]), (1, "INCORRECT_NUMERICAL"))
        self.assertGreater(large[0]["matched_ratio"], 0.99)

    def test_wrong_for_odd_sizes(self):
        code, records, statuses = self.judge("wrong_for_odd_sizes", "--ops", "silu_and_mul", "--case", "T=2 D=16; T=3 D=15; T=5 D=17")
        by_shape = {r["shapes"]: r["status"] for r in records}
        self.assertEqual(code, 1)
        self.assertEqual(by_shape["[2, 32]"], "PASSED")
        self.assertEqual(by_shape["[3, 30]"], "INCORRECT_NUMERICAL")
        self.assertEqual(by_shape["[5, 34]"], "INCORRECT_NUMERICAL")

    def test_out_of_bounds(self):
        code, records, statuses = self.judge("out_of_bounds")
        self.assertEqual(code, 1)
        self.assertLessEqual(set(statuses), {"RUNTIME_ERROR", "CRASHED"})
        self.assertTrue(any("out of bounds" in r["detail"] for r in records), records[0]["detail"])

    def test_crashes(self):
        code, records, statuses = self.judge("crashes")
        self.assertEqual((code, set(statuses)), (1, {"CRASHED"}))
        self.assertIn("signal", records[0]["detail"])

    def test_hangs(self):
        code, records, statuses = self.judge("hangs", "--ops", "silu_and_mul", "--case", "T=2 D=16; T=3 D=15", env={"FK_BENCH_TIMEOUT_SEC": "1"})
        self.assertEqual((code, set(statuses)), (1, {"TIMEOUT"}))

    def test_does_not_compile(self):
        code, records, statuses = self.judge("does_not_compile")
        self.assertEqual((code, set(statuses)), (1, {"COMPILE_ERROR"}))
        self.assertIn("error:", records[0]["detail"])

    def test_slower(self):
        code, records, statuses = self.judge("slower", "--ops", "silu_and_mul", "--case", "T=3 D=15; T=7 D=1536", "--threads", "1", env={"FK_BENCH_TIMEOUT_SEC": "60"})
        self.assertEqual((code, set(statuses)), (0, {"PASSED"}), "slow is no failure")
        large = [r for r in records if r["shapes"] == "[7, 3072]"][0]
        self.assertEqual(large["verdict"], "SLOWER")
        self.assertLess(large["ci_high"], 1)


class Judging(InFolder):
    def test_good_candidates(self):
        code, records, summary = self.bench("--candidates", os.path.join(EXAMPLES, "good"))
        self.assertEqual((code, summary["failed"]), (0, 0), [r for r in records if r["status"] != "PASSED"])
        self.assertEqual({r["op"] for r in records}, {"rms_norm", "silu_and_mul", "rotary_emb", "llama_mlp"})

    def test_self_test(self):
        code, records, summary = self.bench("--self-test", "--ops", "rms_norm,silu_and_mul", min_time="100")
        self.assertEqual((code, summary["failed"]), (0, 0))
        ratios = sorted(r["speedup"] for r in records if r["speedup"])
        self.assertTrue(0.8 < ratios[len(ratios) // 2] < 1.25, ratios)  # this machine may be busy
        for record in records:
            if record["speedup"]:
                self.assertLessEqual(record["ci_low"], record["ci_high"])
                self.assertGreater(record["timed_calls"], 0)
                self.assertGreater(record["timed_golden"], 0)

    def test_input_is_not_the_candidates_to_change(self):
        path = self.candidate("silu_and_mul.c", '#include <fk/candidate.h>\nFK_CANDIDATE(silu_and_mul)\n{\n'
                              '    if (fk_tensor_numel(a->input)) ((char *)a->input->data)[0] ^= 1;\n    return 0;\n}\n')
        code, records, _ = self.bench("--candidates", path)
        self.assertEqual(code, 1)
        self.assertTrue(any("modifies the input input" in r["detail"] for r in records))

    def test_unwritten_output_is_told(self):
        path = self.candidate("silu_and_mul.c", "#include <fk/candidate.h>\nFK_CANDIDATE(silu_and_mul)\n{\n    (void)a;\n    return 0;\n}\n")
        code, records, _ = self.bench("--candidates", path)
        self.assertTrue(any(m.get("unwritten") for r in records for m in r["mismatches"]))

    def test_cached_result_is_caught(self):
        """Right in the first call, the same values ever after."""
        path = self.candidate("silu_and_mul.c", """#include <fk/candidate.h>
#include <stdlib.h>
FK_CANDIDATE(silu_and_mul)
{
    static float *kept;
    static int64_t count;
    int64_t rows, d, n = fk_tensor_numel(a->result);
    fk_rows_cols(a->result, &rows, &d);
    if (!n) return 0;
    float *y = FK_PTR(float, a->result);
    const float *x = FK_PTR(const float, a->input);
    if (kept && count == n) return memcpy(y, kept, (size_t)n * 4) == NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) y[r * d + i] = x[2 * r * d + i] / (1 + expf(-x[2 * r * d + i])) * x[2 * r * d + d + i];
    kept = malloc((size_t)n * 4);
    count = n;
    memcpy(kept, y, (size_t)n * 4);
    return 0;
}
""")
        code, records, _ = self.bench("--candidates", path)
        self.assertEqual({r["status"] for r in records if "[0," not in r["shapes"]}, {"INCORRECT_NUMERICAL"})

    def test_exit_is_a_crash(self):
        path = self.candidate("silu_and_mul.c", "#include <fk/candidate.h>\n#include <stdlib.h>\nFK_CANDIDATE(silu_and_mul)\n{\n"
                              "    if (fk_tensor_numel(a->input)) exit(0);\n    return 0;\n}\n")
        code, records, _ = self.bench("--candidates", path)
        self.assertEqual(code, 1)
        self.assertTrue(any(r["status"] == "CRASHED" and "exit code 0" in r["detail"] for r in records))

    def test_raised_error_is_shown(self):
        path = self.candidate("silu_and_mul.c", '#include <fk/candidate.h>\nFK_CANDIDATE(silu_and_mul)\n{\n    (void)a;\n'
                              '    return fk_candidate_error("not today");\n}\n')
        code, records, _ = self.bench("--candidates", path)
        self.assertTrue(all(r["status"] == "RUNTIME_ERROR" and "not today" in r["detail"] for r in records))

    def test_seed_repeats(self):
        args = ("--candidates", os.path.join(EXAMPLES, "bad", "wrong"), "--seed", "7")
        first, second = self.bench(*args)[1], self.bench(*args)[1]
        self.assertEqual([r["mismatches"] for r in first], [r["mismatches"] for r in second])
        other = self.bench("--candidates", os.path.join(EXAMPLES, "bad", "wrong"))[1]
        self.assertNotEqual([r["mismatches"] for r in first], [r["mismatches"] for r in other])

    def test_correctness_alone(self):
        args = ("--candidates", os.path.join(EXAMPLES, "good", "silu_and_mul.c"), "--ops", "silu_and_mul", "--case", "T=2 D=16")
        code, (record,), _ = self.bench(*args, "--no-timing")
        self.assertEqual((code, record["status"], record["verdict"], record["speedup"]), (0, "PASSED", None, None))
        self.assertEqual((record["rounds"], record["timed_calls"], record["detail"]), (3, 0, "not timed"))
        again = self.bench(*args, "--no-timing", "--resume")[1][0]
        self.assertEqual(again["seconds"], record["seconds"], "it was finished")
        timed = self.bench(*args, "--resume")[1][0]
        self.assertGreater(timed["timed_calls"], 0, "an untimed case is no timed one")
        wrong = self.bench("--candidates", os.path.join(EXAMPLES, "bad", "wrong"), *args[2:], "--no-timing")[1][0]
        self.assertEqual(wrong["status"], "INCORRECT_NUMERICAL")

    def test_fuzz(self):
        code, records, summary = self.bench("--candidates", os.path.join(EXAMPLES, "good", "rms_norm.c"), "--fuzz", "3")
        self.assertEqual(code, 0)
        self.assertEqual(sum(r["source"] == "fuzz" for r in records), 3)


class Files(InFolder):
    def test_resume(self):
        args = ("--candidates", os.path.join(EXAMPLES, "bad", "crashes/"))
        self.bench(*args)
        before = [line for line in lines_of(self.results) if "op" in line]
        for record in before:  # says whose they are, and no error of outputs that nobody saw
            self.assertEqual(record["candidate"], args[1] + "silu_and_mul.c")
            self.assertEqual([record[k] for k in ("max_abs_error", "max_rel_error", "matched_ratio")], [None] * 3)
        self.bench(*args, "--resume")
        after = [line for line in lines_of(self.results) if "op" in line]
        self.assertEqual(before, after, "finished cases are not judged again")

    def test_interrupt_keeps_finished_cases(self):
        process = subprocess.Popen([PROGRAM, "bench", "--device", "cpu", "--self-test", "-q", "-o", self.results, "--min-time-ms", "200"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.time() + 120
        while time.time() < deadline and not (os.path.exists(self.results) and os.path.getsize(self.results) > 0):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertTrue(any(line.get("status") == "PASSED" for line in lines_of(self.results)))

    def test_bad_input(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        self.refuse(["bench", "--device", "cpu", "--candidates", "empty"], 2, "no candidates", "empty")
        self.refuse(["bench", "--device", "cpu", "--candidates", "nowhere"], 2, "nowhere")
        path = self.candidate("rms_nrm.c", "")
        self.refuse(["bench", "--device", "cpu", "--candidates", path], 2, "'rms_nrm'", "did you mean 'rms_norm'")
        self.refuse(["bench", "--device", "cpu", "--self-test", "--ops", "silu"], 2, "'silu'")
        for dtype in ("f64", "f8_e4m3", "i32"):
            self.refuse(["bench", "--device", "cpu", "--self-test", "--dtype", dtype], 2, "--dtype " + dtype, "f32, f16, bf16")
        self.refuse(["bench", "--device", "cpu", "--self-test", "--baseline", "scalr"], 2, "'scalr'", "did you mean 'scalar'")
        good = os.path.join(EXAMPLES, "good", "silu_and_mul.c")
        self.refuse(["bench", "--device", "cpu", "--candidates", good, "--ops", "rms_norm"], 2, "no candidate of rms_norm in " + good)
        self.refuse(["bench", "--device", "cpu", "--self-test", "--captures", "nowhere"], 2, "nowhere")
        self.refuse(["bench", "--device", "cpu", "--self-test", "--ops", "rms_norm", "-o", "/dev/null/x"], 2, "/dev/null/x")

    def test_missing_compiler(self):
        path = self.candidate("rms_norm.c", "#include <fk/candidate.h>\n/* " + self.folder + " */\n")
        self.refuse(["bench", "--device", "cpu", "--candidates", path], 3, "/nowhere/cc", env={"CC": "/nowhere/cc"})

    def test_compiler_of_several_words(self):
        """As make takes it: "ccache gcc"."""
        path = self.candidate("rms_norm.c", "#include <fk/candidate.h>\n#ifndef SPOKEN\n#error not that compiler\n#endif\n"
                              "FK_CANDIDATE(rms_norm)\n{\n    (void)a;\n    return 0;\n}\n")
        build = ["bench", "--device", "cpu", "--build-only", "--candidates", path]
        for compiler, code in (("env cc -DSPOKEN", 0), ("  cc\t-DSPOKEN ", 0), ("env cc", 1), (" ", 1)):
            self.assertEqual(run(*build, env={"CC": compiler}).returncode, code, compiler)
        self.refuse(build, 3, "no compiler no_such_program", env={"CC": "no_such_program cc"})
        self.refuse(build, 2, "CC 'x x", "more than 16 words", env={"CC": "x " * 17})

    def test_build_only(self):
        result = run("bench", "--device", "cpu", "--build-only", "--candidates", os.path.join(EXAMPLES, "good"))
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run("bench", "--device", "cpu", "--build-only", "--candidates", os.path.join(EXAMPLES, "bad", "does_not_compile"))
        self.assertEqual(result.returncode, 1)

    @unittest.skipUnless(shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc"), "no nvcc")
    def test_cuda_examples_build_without_a_device(self):
        if "asan" in PROGRAM:
            self.skipTest("nvcc is not instrumented; the release build has this test")
        for folder in ("good", "bad/hangs", "bad/does_not_compile"):  # the other bad ones differ in a line
            result = run("bench", "--device", "cuda", "--build-only", "--candidates", os.path.join(EXAMPLES, folder))
            self.assertEqual(result.returncode, int(folder.endswith("does_not_compile")), folder + result.stdout + result.stderr)

    def test_watch(self):
        for name in ("silu_and_mul.c", "rms_norm.c"):
            shutil.copy(os.path.join(EXAMPLES, "good", name), self.folder)
        path = os.path.join(self.folder, "silu_and_mul.c")
        with open(path) as file:
            source = file.read()
        watching = subprocess.Popen([PROGRAM, "bench", "--device", "cpu", "--watch", "--no-timing", "--json", "-q", "--candidates", self.folder],
                                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(watching.kill)

        def one_round():
            records = []
            for line in watching.stdout:
                record = json.loads(line)
                if "summary" in record:
                    return {r["op"] for r in records}, record["summary"]
                records.append(record)
            self.fail("it ended")

        operators, summary = one_round()
        self.assertEqual((operators, summary["failed"]), ({"rms_norm", "silu_and_mul"}, 0))
        with open(path, "w") as file:
            file.write("this is no C")
        operators, summary = one_round()
        self.assertEqual((operators, summary["passed"]), ({"silu_and_mul"}, 0), "only what changed is judged again")
        with open(path + ".new", "w") as file:  # as editors save
            file.write(source)
        os.rename(path + ".new", path)
        operators, summary = one_round()
        self.assertEqual((operators, summary["failed"]), ({"silu_and_mul"}, 0))
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=30)
        self.assertEqual(watching.returncode, 130)
        self.refuse(["bench", "--watch", "--self-test"], 2, "--self-test")
        self.refuse(["bench", "--device", "cpu", "--watch", "--candidates", "nowhere"], 2, "nowhere")


class Captures(InFolder):
    def capture(self, *args):
        return run("capture", "--device", "cpu", "--scenario", "tiny", "-o", os.path.join(self.folder, "c"), "--json", "-q", *args)

    def test_capture_and_bench(self):
        result = self.capture("--max-requests", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        facts = json.loads(result.stdout)
        self.assertTrue(facts["verified"] and facts["complete"])
        self.assertGreater(facts["operators"], 10)
        with open(os.path.join(self.folder, "c", "rotary_emb.json")) as file:
            rotary = json.load(file)
        self.assertTrue(all("values" in c["tensors"]["positions"] for c in rotary["cases"]), "integers are always kept")
        self.assertEqual(sum(c["count"] for c in rotary["cases"]), rotary["calls"])
        code, records, summary = self.bench("--captures", os.path.join(self.folder, "c"), "--candidates",
                                            os.path.join(EXAMPLES, "good"), "--max-cases", "1")
        self.assertEqual((code, summary["failed"]), (0, 0), [r["detail"] for r in records])
        self.assertTrue(all(r["source"].startswith("capture ") for r in records))

    def test_without_budget_only_integers(self):
        self.assertEqual(self.capture("--max-requests", "1", "--max-bytes", "0").returncode, 0)
        with open(os.path.join(self.folder, "c", "rotary_emb.json")) as file:
            tensors = json.load(file)["cases"][0]["tensors"]
        self.assertIn("values", tensors["positions"])
        self.assertNotIn("values", tensors["query"])
        self.assertGreater(tensors["query"]["std"], 0)

    def test_resume_and_damage(self):
        self.assertEqual(self.capture("--max-requests", "1").returncode, 0)
        path = os.path.join(self.folder, "c", "silu_and_mul.json")
        before = os.stat(path).st_mtime_ns
        again = self.capture("--max-requests", "1", "--resume")
        self.assertEqual(again.returncode, 0)
        self.assertTrue(json.loads(again.stdout)["complete"])
        self.assertEqual(os.stat(path).st_mtime_ns, before)
        bench = ["bench", "--device", "cpu", "--self-test", "--ops", "silu_and_mul", "--captures", os.path.join(self.folder, "c")]
        with open(path) as file:
            good = json.load(file)
        for damage, word in (({"op": "linear"}, "no capture of silu_and_mul"), ({"signature": "other"}, "signature")):
            with open(path, "w") as file:
                json.dump(dict(good, **damage), file)
            self.refuse(bench, 2, word)
        for damage, word in (({"dtype": "i64"}, "input cannot have the dtype i64"), ({"values": "nothing"}, "'nothing'")):
            other = json.loads(json.dumps(good))
            other["cases"][0]["tensors"]["input"].update(damage)
            with open(path, "w") as file:
                json.dump(other, file)
            self.refuse(bench, 2, word)
        good["cases"][0]["tensors"]["input"]["shape"][-1] += 1
        with open(path, "w") as file:
            json.dump(good, file)
        self.refuse(bench, 2, "case 0")
        with open(path, "w") as file:
            file.write('{"op": ')
        self.refuse(bench, 2, "silu_and_mul.json")

    def test_bad_input(self):
        self.refuse(["capture", "--scenario", "tinny"], 2, "'tinny'", "did you mean 'tiny'")
        self.refuse(["capture"], 2, "--scenario")
        self.refuse(["capture", "--device", "cpu", "--scenario", "tiny", "-o", "/dev/null/x"], 2, "/dev/null")


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


class Stubs(InFolder):
    def create(self, *args):
        result = run("create-stubs", "--json", "-q", *args, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def names(self, outcome):
        return sorted(os.path.splitext(os.path.basename(path))[0] for path in outcome["written"])

    def compile(self, paths, include):
        """Without a warning, in one call of the compiler a language."""
        cuda = paths[0].endswith(".cu")
        flags = ["nvcc", "-O0", "-std=c++17", "-arch=sm_90a", "-Xcompiler", "-fPIC,-Wall,-Wextra,-Werror", "-Werror", "all-warnings", "-c", "-t2"] if cuda else \
            [*os.environ.get("CC", "cc").split(), "-std=gnu17", "-O0", *STRICT, "-fsyntax-only"]
        made = subprocess.run([*flags, f"-I{include}", f"-I{include}/ops", f"-I{include}/../ops", *paths], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
        self.assertEqual(made.returncode, 0, made.stdout)

    def test_every_operator_gets_a_stub_and_complete_ones_are_right(self):
        outcome = self.create("-o", "stubs")
        operators = json.loads(run("list", "operators", "--json").stdout)["operators"]
        self.assertEqual(self.names(outcome), sorted(o["name"] for o in operators))
        self.assertEqual(outcome["skipped"], [])
        complete = set(self.names(outcome)) - set(outcome["incomplete"])
        self.assertGreaterEqual(len(complete), 21)
        self.compile(outcome["written"], os.path.join(SOURCE, "include"))
        code, records, summary = self.bench("--candidates", os.path.join(self.folder, "stubs"), "--ops", ",".join(sorted(complete)),
                                            "--threads", "1", "--no-timing")
        self.assertEqual((code, summary["failed"]), (0, 0), [r["detail"] for r in records if r["status"] != "PASSED"])
        self.assertEqual({r["op"] for r in records}, complete)

    def test_an_incomplete_stub_says_so(self):
        name = self.create("attention", "-o", "stubs")["incomplete"]
        self.assertEqual(name, ["attention"])
        code, records, _ = self.bench("--candidates", os.path.join(self.folder, "stubs"), "--no-timing")
        self.assertEqual((code, {r["status"] for r in records}), (1, {"RUNTIME_ERROR"}))
        self.assertTrue(all("no body yet" in r["detail"] for r in records), records[0]["detail"])

    @unittest.skipUnless(shutil.which("nvcc"), "no nvcc")
    def test_cuda_stubs_compile(self):
        """One of each kind: own kernel, lower calls, no body."""
        self.compile(self.create("silu_and_mul", "llama_mlp", "attention", "--lang", "cuda", "-o", "stubs")["written"],
                     os.path.join(SOURCE, "include"))

    def test_task_folder_is_self_contained(self):
        outcome = self.create("rms_norm", "--task-dir", "tasks")
        self.assertEqual(outcome["written"], ["tasks/rms_norm/rms_norm.c"])
        task = os.path.join(self.folder, "tasks", "rms_norm")
        self.compile([os.path.join(task, "rms_norm.c")], os.path.join(task, "include"))
        with open(os.path.join(task, "TASK.md")) as file:
            text = file.read()
        for word in ("epsilon", "a->weight", "|difference| <=", "fastkernels bench --candidates rms_norm.c", "_C::rms_norm"):
            self.assertIn(word, text)
        self.assertEqual(self.create("rms_norm", "--task-dir", "tasks")["skipped"], [{"op": "rms_norm", "why": "tasks/rms_norm exists"}])
        self.refuse(["create-stubs", "rms_norm", "--task-dir", "t", "-o", "o"], 2, "exclude")

    def test_model_and_level_choose(self):
        of_model = {o["name"] for o in json.loads(run("list", "operators", "--model", "llama", "--level", "L1", "--json").stdout)["operators"]}
        self.assertEqual(set(self.names(self.create("--model", "llama", "--level", "L1", "-o", "stubs"))), of_model)
        self.assertIn("rms_norm", of_model)
        why = self.create("rms_norm", "--level", "L2", "-o", "stubs")["skipped"]
        self.assertEqual(why, [{"op": "rms_norm", "why": "it is L1"}])
        self.refuse(["create-stubs", "--model", "lama"], 2, "llama")

    def test_files_are_never_overwritten(self):
        path = self.candidate("rms_norm.c", "mine")
        result = run("create-stubs", "rms_norm", "-o", self.folder, "--json", "-q")
        self.assertEqual(json.loads(result.stdout)["skipped"][0]["why"], f"{self.folder}/rms_norm.c exists")
        with open(path) as file:
            self.assertEqual(file.read(), "mine")
        self.refuse(["create-stubs", "rms_nrm"], 2, "did you mean 'rms_norm'")
        self.refuse(["create-stubs", "rms_norm", "--lang", "rust"], 2, "'rust'")
        self.refuse(["create-stubs", "--from", self.folder], 2, self.folder)
        self.refuse(["create-stubs", "rms_norm", "-o", "/proc/stubs"], 2, "/proc/stubs")
        self.refuse(["create-stubs", "rms_norm", "--task-dir", "/proc/stubs"], 2, "/proc/stubs")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    SOURCE = os.path.abspath(sys.argv.pop(1))
    EXAMPLES = os.path.join(SOURCE, "examples", "candidates")
    unittest.main(verbosity=2)
