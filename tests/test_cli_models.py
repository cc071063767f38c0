#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run, tokenize and detokenize from outside. tests/test_cli_models.py PROGRAM

What needs a real vocabulary needs the asset smollm2-135m; without it those cases are skipped, and say so."""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
TINY = ["--model", "llama:tiny", "--device", "cpu"]
REAL = ["--model", "smollm2-135m"]


def run(*args, text=True, **options):
    return subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text, timeout=300,
                          stdin=options.pop("stdin", subprocess.DEVNULL), **options)


class Tiny(unittest.TestCase):
    """The seeded tiny model: ids in, ids out."""

    def ids(self, *args):
        result = run("run", *TINY, "--json", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_json(self):
        result = self.ids("--prompt-ids", "1,2,3", "--max-tokens", "6", "--logits", "512")
        self.assertEqual(result["schema"], "fastkernels/run/1")
        self.assertEqual(result["prompt_ids"], [1, 2, 3])
        self.assertEqual(len(result["ids"]), 6)
        self.assertEqual(result["finish_reason"], "length")
        self.assertEqual(set(result["timings"]), {"load_ms", "prefill_ms", "decode_tok_s"})
        ranks = result["top_logits"]
        self.assertEqual(sorted(pair[0] for pair in ranks), list(range(512)))
        self.assertEqual(ranks, sorted(ranks, key=lambda pair: -pair[1]))
        self.assertEqual(ranks[0][0], result["ids"][0])

    def test_logprobs(self):
        result = self.ids("--prompt-ids", "1,2,3", "--max-tokens", "4", "--logprobs", "512", "--logits", "512")
        self.assertEqual([entry["id"] for entry in result["logprobs"]], result["ids"])
        for entry in result["logprobs"]:
            top = entry["top"]
            self.assertEqual(len(top), 512)
            self.assertAlmostEqual(sum(math.exp(value) for _, value in top), 1, places=6)
            self.assertEqual(top[0], [entry["id"], entry["logprob"]])  # greedy
        difference = {round(logit - value, 4) for (_, logit), (_, value) in zip(result["top_logits"], result["logprobs"][0]["top"])}
        self.assertEqual(len(difference), 1)
        alone = self.ids("--prompt-ids", "1,2,3", "--max-tokens", "4", "--logprobs", "0", "--repetition-penalty", "1.5")
        self.assertEqual([entry["top"] for entry in alone["logprobs"]], [[]] * 4)
        self.assertEqual(alone["logprobs"][0]["logprob"],
                         dict(result["logprobs"][0]["top"])[alone["ids"][0]])  # of the model, before penalties

    def test_penalties(self):
        args = ["--prompt-ids", "5 6 7", "--max-tokens", "12"]
        plain = self.ids(*args)["ids"]
        self.assertEqual(plain, self.ids(*args, "--repetition-penalty", "1", "--presence-penalty", "0", "--frequency-penalty", "0")["ids"])
        strict = self.ids(*args, "--presence-penalty", "2", "--frequency-penalty", "2", "--repetition-penalty", "10")["ids"]
        self.assertEqual(len(set(strict)), 12)
        self.assertEqual(strict, self.ids(*args, "--presence-penalty", "2", "--frequency-penalty", "2", "--repetition-penalty", "10",
                                          "--references-only")["ids"])

    def test_same_and_other_runs(self):
        args = ["--prompt-ids", "5 6 7", "--max-tokens", "12"]
        greedy = self.ids(*args)["ids"]
        self.assertEqual(greedy, self.ids(*args, "--threads", "1")["ids"])
        self.assertEqual(greedy, self.ids(*args, "--references-only")["ids"])
        drawn = self.ids(*args, "--temperature", "1.5", "--seed", "0")["ids"]
        self.assertNotEqual(greedy, drawn)
        self.assertEqual(drawn, self.ids(*args, "--temperature", "1.5", "--seed", "0")["ids"])
        self.assertEqual(greedy, self.ids(*args, "--temperature", "1.5", "--top-k", "1")["ids"])
        self.assertNotEqual(greedy, self.ids(*args, "--seed", "1")["ids"])  # other weights

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "trace.json")
            result = run("run", *TINY, "--prompt-ids", "1,2,3", "--max-tokens", "3", "--trace", str(path))
            self.assertEqual(result.returncode, 0, result.stderr)
            events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        steps = [e for e in events if e["cat"] == "step"]
        self.assertEqual([e["name"] for e in steps], ["prefill", "decode", "decode"])
        layers = [e for e in events if e["name"] == "llama_decoder"]
        self.assertEqual([e["args"]["path"] for e in layers], ["model.layers.0", "model.layers.1"] * 3)
        norms = [e for e in events if e["name"] == "fused_add_rms_norm"]
        self.assertTrue(all(e["args"]["implementation"] and "[" in e["args"]["tensors"] for e in norms))

        def inside(inner, outer):
            slack = 1e-3
            return outer["ts"] - slack <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + slack

        for event in events:
            if event["cat"] == "L1":  # nested: each L1 call lies in one step
                self.assertEqual(sum(inside(event, step) for step in steps), 1)

    def refuse(self, code, words, *args, **options):
        result = run(*args, **options)
        message = result.stderr if isinstance(result.stderr, str) else result.stderr.decode()
        self.assertEqual(result.returncode, code, message)
        self.assertEqual(len(result.stdout), 0)
        self.assertEqual(message.count("\n"), 1, message)
        for word in words:
            self.assertIn(word, message)

    def test_bad_input(self):
        self.refuse(2, ["--model"], "run", "--prompt", "x")
        self.refuse(2, ["'smolm2-135m'", "did you mean 'smollm2-135m'"], "run", "--model", "smolm2-135m", "--prompt", "x")
        self.refuse(2, ["'llama:tny'", "tiny"], "run", "--model", "llama:tny", "--prompt-ids", "1")
        self.refuse(2, ["llama:tiny has no tokenizer"], "run", *TINY, "--prompt", "x")
        self.refuse(2, ["601 tokens", "512"], "run", *TINY, "--prompt-ids", ",".join(["1"] * 601))
        self.refuse(2, ["id 512", "position 1"], "run", *TINY, "--prompt-ids", "1,512")
        self.refuse(2, ["'x'"], "run", *TINY, "--prompt-ids", "1,x")
        self.refuse(2, ["'-1'"], "run", *TINY, "--prompt-ids", "-1")
        self.refuse(2, ["comma"], "run", *TINY, "--prompt-ids", "1,")
        self.refuse(2, ["--temperature", "'-1'"], "run", *TINY, "--prompt-ids", "1", "--temperature", "-1")
        self.refuse(2, ["--presence-penalty", "'3'"], "run", *TINY, "--prompt-ids", "1", "--presence-penalty", "3")
        self.refuse(2, ["--repetition-penalty", "'0'"], "run", *TINY, "--prompt-ids", "1", "--repetition-penalty", "0")
        self.refuse(2, ["--logprobs", "'-1'"], "run", *TINY, "--prompt-ids", "1", "--logprobs", "-1")
        self.refuse(2, ["--dtype 'f99'"], "run", *TINY, "--prompt-ids", "1", "--dtype", "f99")
        self.refuse(2, ["one of --prompt"], "run", *TINY, "--prompt-ids", "1", "--prompt", "x")
        self.refuse(2, ["/nowhere/out"], "run", *TINY, "--prompt-ids", "1", "-o", "/nowhere/out")
        result = run("run", *TINY, "--prompt-ids", "1", "--max-tokens", "1", "--trace", "/nowhere/trace")
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nowhere/trace", result.stderr)
        self.refuse(2, ["no tokenizer"], "tokenize", *TINY[:2], "--text", "x")
        self.refuse(3, ["/nowhere.gguf"], "run", "--model", "/nowhere.gguf", "--prompt", "x")

    def test_folder_tokenizer(self):
        """tokenize, detokenize and run with the tokenizer.json of a folder; one that does not fit is refused."""
        pieces = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["\u0120", "th", "the", "\u0120the", "<s>"]
        pieces += [chr(c) for c in range(33, 127) if not chr(c).islower()][:96 - len(pieces)]  # one a row of the model's embedding
        tokenizer = {"added_tokens": [{"id": 30, "content": "<s>", "special": True}],
                     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
                     "model": {"type": "BPE", "vocab": {p: i for i, p in enumerate(pieces) if p != "<s>"},
                               "merges": ["t h", ["th", "e"], "\u0120 the"]}}
        tokenizer["post_processor"] = {"type": "TemplateProcessing", "special_tokens": {"<s>": {"id": "<s>", "ids": [30], "tokens": ["<s>"]}},
                                       "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}
        golden = pathlib.Path(__file__).parent / "goldens" / "hf_folder"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "tokenizer.json")
            self.refuse(2, ["no tokenizer.json"], "tokenize", "--model", folder, "--text", "x")
            file.write_text(json.dumps(tokenizer))
            result = run("tokenize", "--model", folder, "--text", "in the <s>", "--parse-special")
            self.assertEqual((result.returncode, result.stdout), (0, "30 8 13 29 26 30\n"), result.stderr)
            result = run("detokenize", "--model", folder, "--text", "30 8 13 29", "--no-special")
            self.assertEqual((result.returncode, result.stdout), (0, "in the\n"), result.stderr)
            for path in golden.iterdir():
                shutil.copy(path, folder)
            result = run("run", "--model", folder, "--device", "cpu", "--prompt", "in the", "--raw", "--max-tokens", "3", "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            record = json.loads(result.stdout)
            self.assertEqual(record["prompt_ids"], [30, 8, 13, 29])
            self.assertEqual(len(record["ids"]), 3)
            tokenizer["added_tokens"].append({"id": 96, "content": "<far>"})
            file.write_text(json.dumps(tokenizer))
            self.refuse(2, ["does not fit", "'<far>'", "96"], "run", "--model", folder, "--device", "cpu", "--prompt", "a", "--raw")
            file.write_text("{\"model\": {\"type\": \"Runes\"}}")
            self.refuse(3, ["tokenizer.json", "Runes"], "tokenize", "--model", folder, "--text", "x")

    def test_wordpiece_folder(self):
        """tokenize and detokenize with the vocabulary of a BERT."""
        pieces = ["[UNK]", "[CLS]", "[SEP]", "hello", "word", "##s", "!"]
        tokenizer = {"added_tokens": [{"id": 1, "content": "[CLS]", "special": True}, {"id": 2, "content": "[SEP]", "special": True}],
                     "normalizer": {"type": "BertNormalizer", "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
                     "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
                     "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
                     "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                               "vocab": {p: i for i, p in enumerate(pieces)}}}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(tokenizer))
            for args, ids in [(["--text", "H\u00e9llo words!"], "1 3 4 5 6 2"), (["--text", "h\u00e9llo x", "--no-special"], "3 0"),
                              (["--text", "words[SEP]", "--parse-special"], "1 4 5 2 2")]:
                result = run("tokenize", "--model", folder, *args)
                self.assertEqual((result.returncode, result.stdout), (0, ids + "\n"), result.stderr)
            for args, text in [([], "[CLS] hello words! [SEP]"), (["--no-special"], "hello words!")]:
                result = run("detokenize", "--model", folder, "--text", "1 3 4 5 6 2", *args)
                self.assertEqual((result.returncode, result.stdout), (0, text + "\n"), result.stderr)

    def test_sentencepiece(self):
        """A tokenizer.model by its path, and in a folder without a tokenizer.json."""
        goldens = pathlib.Path(__file__).parent / "goldens"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(goldens / "sentencepiece_llama.model", pathlib.Path(folder, "tokenizer.model"))
            made = [run("tokenize", "--model", str(model), "--text", "The sky is blue.") for model in (goldens / "sentencepiece_llama.model", folder)]
            self.assertEqual([m.returncode for m in made], [0, 0], made[1].stderr)
            self.assertEqual(made[0].stdout, made[1].stdout)
            self.assertTrue(made[0].stdout.startswith("1 "))
            back = run("detokenize", "--model", folder, "--text", made[0].stdout.strip(), "--no-special")
            self.assertEqual((back.returncode, back.stdout), (0, "The sky is blue.\n"), back.stderr)
            pathlib.Path(folder, "tokenizer.model").write_bytes(b"\x0a\x7fabc")
            self.refuse(2, ["tokenizer.model", "ends within a field"], "tokenize", "--model", folder, "--text", "x")

    def test_rank_file(self):
        """A rank file of tiktoken, whose name says which encoding it is of."""
        ranks = pathlib.Path(__file__).parent / "goldens" / "ranks.tiktoken"
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(ranks, pathlib.Path(folder, "cl100k_base.tiktoken"))
            made = run("tokenize", "--model", path, "--text", "The sky<|endoftext|>", "--parse-special")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertTrue(made.stdout.endswith(" 100257\n"))
            back = run("detokenize", "--model", path, "--text", made.stdout.strip())
            self.assertEqual((back.returncode, back.stdout), (0, "The sky<|endoftext|>\n"), back.stderr)
        self.refuse(3, ["ranks.tiktoken", "cl100k_base"], "tokenize", "--model", str(ranks), "--text", "x")

    def test_missing_asset(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(3, ["smollm2-135m", "fetch-assets"], "run", *REAL, "--prompt", "x", "--cache", folder)

    def test_broken_pipe(self):
        process = subprocess.Popen([PROGRAM, "run", *TINY, "--prompt-ids", "1", "--max-tokens", "200"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(60), 0)


class Eval(unittest.TestCase):
    """eval on the tiny model, with the example candidates."""

    EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples" / "candidates"

    def eval(self, code, *args):
        result = run("eval", "--scenario", "tiny", "--device", "cpu", "--time-budget-s", "1", "--pairs", "4", "--json", *args)
        self.assertEqual(result.returncode, code, result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual(record["schema"], "fastkernels/eval/1")
        self.assertEqual((record["model"], record["workload"]), ("llama:tiny", "tiny"))
        return record

    def bad(self, name, code=1):
        return self.eval(code, "--candidates", str(self.EXAMPLES / "bad" / name))

    def test_self(self):
        record = self.eval(0, "--self-test")
        self.assertEqual(record["status"], "PASSED")
        self.assertTrue(record["tokens_equal"])
        self.assertEqual(record["pairs"], 4)
        self.assertLessEqual(record["ci_low"], record["factor"])
        self.assertLessEqual(record["factor"], record["ci_high"])
        for side in ("baseline", "candidate"):
            self.assertTrue(all(record[side][key] > 0 for key in ("tok_s", "req_s", "ttft_ms", "tpot_ms")), record[side])

    def test_limits(self):
        record = self.eval(0, "--self-test", "--max-requests", "2", "--max-layers", "1")
        self.assertEqual((record["requests"], record["tokens"]), (2, 24))

    def test_good(self):
        record = self.eval(0, "--candidates", str(self.EXAMPLES / "good"))
        self.assertEqual(record["status"], "PASSED")
        self.assertGreater(record["reached"]["llama_mlp"], 0)
        self.assertGreater(record["reached"]["rotary_emb"], 0)
        self.assertGreater(record["reached"]["rms_norm"], 0)
        # Decode steps of llama_mlp gate inside it, prefills through the operator below.
        self.assertGreater(record["reached"]["silu_and_mul"], 0)
        self.assertEqual(record["covered_by"], {})

    def test_wrong(self):
        record = self.bad("wrong")
        self.assertEqual(record["status"], "INCORRECT_NUMERICAL")
        self.assertFalse(record["tokens_equal"])
        first = record["first_divergence"]
        self.assertFalse(first["near_tie"])
        self.assertGreater(max(first["logit_gap"], first["candidate_logit_gap"]), first["threshold"])

    def test_broken(self):
        record = self.bad("crashes")
        self.assertEqual(record["status"], "CRASHED")
        self.assertIn("silu_and_mul", record["detail"])
        record = self.bad("does_not_compile")
        self.assertEqual(record["status"], "COMPILE_ERROR")
        self.assertIn("undeclared_variable", record["detail"])

    def test_not_reached(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(self.EXAMPLES / "good" / "rms_norm.c", folder)
            (pathlib.Path(folder) / "replicated_linear.c").write_text(
                "#include <fk/candidate.h>\nFK_CANDIDATE(replicated_linear)\n{\n    (void)a;\n    return 0;\n}\n")
            record = self.eval(1, "--candidates", folder)  # a Llama has no replicated layer: one candidate was not judged
        self.assertEqual(record["reached"]["replicated_linear"], 0)
        self.assertGreater(record["reached"]["rms_norm"], 0)
        self.assertIn("no call reached", record["detail"])

    def test_bad_input(self):
        def refuse(words, *args):
            result = run("eval", "--device", "cpu", *args)
            self.assertEqual(result.returncode, 2, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)

        refuse(["--candidates", "--self-test"], "--scenario", "tiny")
        refuse(["'tny'", "did you mean 'tiny'"], "--scenario", "tny", "--self-test")
        refuse(["unknown model 'lama:tiny'", "llama:tiny"], "--scenario", "tiny", "--model", "lama:tiny", "--self-test")
        refuse(["--max-requests", "'0'"], "--scenario", "tiny", "--self-test", "--max-requests", "0")
        with tempfile.TemporaryDirectory() as folder:
            refuse([folder], "--scenario", "tiny", "--candidates", folder)
            endless = pathlib.Path(folder) / "endless.yaml"
            endless.write_text("model: llama:tiny\nrequests: [{random_ids: 16777216, count: 100000}]\n")
            refuse(["16777216 random_ids", "llama:tiny", "512"], "--scenario", str(endless), "--self-test")


class Real(unittest.TestCase):
    """SmolLM2's vocabulary and weights."""

    @classmethod
    def setUpClass(cls):
        known = run("tokenize", *REAL, "--text", "a")
        if known.returncode != 0:
            raise unittest.SkipTest(known.stderr.strip())

    def test_round_trip(self):
        lines = ["The sky is blue.", "", "  42 \t x   1", "日本の首都は 🍕", "a\u0301 naïve"]
        encoded = subprocess.run([PROGRAM, "tokenize", *REAL], input="\n".join(lines) + "\n", capture_output=True, text=True,
                                 timeout=60)
        self.assertEqual(encoded.returncode, 0, encoded.stderr)
        self.assertEqual(encoded.stdout.splitlines()[0], "504 6376 314 4461 30")
        decoded = subprocess.run([PROGRAM, "detokenize", *REAL], input=encoded.stdout, capture_output=True, text=True, timeout=60)
        self.assertEqual(decoded.stdout, "\n".join(lines) + "\n")

    def test_special_tokens(self):
        plain = run("tokenize", *REAL, "--text", "<|im_end|>").stdout.split()
        parsed = run("tokenize", *REAL, "--text", "<|im_end|>", "--parse-special").stdout.split()
        self.assertEqual(parsed, ["2"])
        self.assertGreater(len(plain), 1)
        self.assertEqual(run("detokenize", *REAL, "--text", "2").stdout, "<|im_end|>\n")
        self.assertEqual(run("detokenize", *REAL, "--text", "2", "--no-special").stdout, "\n")

    def test_no_utf8(self):
        for args in (["run", *REAL, "--prompt", b"a\xff"], ["tokenize", *REAL, "--text", b"a\xff"]):
            result = subprocess.run([PROGRAM, *args], capture_output=True, timeout=60)
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"0xFF at offset 1", result.stderr)

    def test_answer(self):
        result = run("run", *REAL, "--prompt", "The capital of France is", "--raw", "--max-tokens", "4", "--json")
        answer = json.loads(result.stdout)
        self.assertIn("Paris", answer["text"])
        streamed = run("run", *REAL, "--prompt", "The capital of France is", "--raw", "--max-tokens", "4", "--stop", "aris")
        self.assertEqual(streamed.stdout.strip(), answer["text"][:answer["text"].index("aris")].strip())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
