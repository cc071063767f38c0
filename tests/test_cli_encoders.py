#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoders from outside: run --embed and --search, capture, eval. tests/test_cli_encoders.py PROGRAM SOURCE_DIR

What needs a real vocabulary needs the asset minilm-l6; without it those cases are skipped, and say so."""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = SOURCE = None
TINY = ["--model", "colbertv2:tiny", "--device", "cpu"]
REAL = ["--model", "minilm-l6", "--device", "cpu"]

WRONG = """#include <fk/candidate.h>
FK_CANDIDATE(add)
{
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++)
        ((float *)a->output->data)[i] = ((const float *)a->self->data)[i] + 1.001f * ((const float *)a->other->data)[i];
    return 0;
}
"""


def run(*args, **options):
    return subprocess.run([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          stdin=options.pop("stdin", subprocess.DEVNULL), **options)


class Command(unittest.TestCase):
    def json(self, *args, code=0):
        result = run(*args, "--json")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def refused(self, text, *args, code=2):
        result = run(*args)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)


class Tiny(Command):
    """The seeded tiny ColBERT: ids in, a vector a token out."""

    def test_embed(self):
        result = self.json("run", *TINY, "--embed", "--prompt-ids", "7,8,9,10")
        self.assertEqual(result["prompt_ids"], [7, 8, 9, 10])
        vectors = result["embedding"]
        self.assertEqual([len(v) for v in vectors], [32] * 4)
        for vector in vectors:
            self.assertAlmostEqual(math.hypot(*vector), 1, places=5)
        reference = self.json("run", *TINY, "--embed", "--prompt-ids", "7,8,9,10", "--references-only")["embedding"]
        other = self.json("run", *TINY, "--embed", "--prompt-ids", "7,8,9,11")["embedding"]
        self.assertLess(max(abs(a - b) for x, y in zip(vectors, reference) for a, b in zip(x, y)), 1e-5)
        self.assertGreater(max(abs(a - b) for x, y in zip(vectors, other) for a, b in zip(x, y)), 1e-2)

    def test_bad_input(self):
        self.refused("has no tokenizer", "run", *TINY, "--embed", "--prompt", "words")
        self.refused("text 1: id 512 at position 1 is outside the vocabulary of 512", "run", *TINY, "--embed", "--prompt-ids", "1,512")
        self.refused("text 1 has 129 tokens; colbertv2:tiny has positions for 128", "run", *TINY, "--embed", "--prompt-ids", ",".join(["1"] * 129))
        self.refused("is an encoder: it gives vectors, not text", "run", *TINY, "--prompt-ids", "1,2")
        self.refused("is no encoder: it gives tokens, not vectors", "run", "--model", "llama:tiny", "--device", "cpu", "--embed", "--prompt-ids", "1")
        self.refused("--temperature has no place with --embed", "run", *TINY, "--embed", "--prompt-ids", "1", "--temperature", "1")
        self.refused("not both", "run", *TINY, "--embed", "--search", "x", "--prompt-ids", "1")

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "trace.json")
            self.json("run", *TINY, "--embed", "--prompt-ids", "1,2,3", "--trace", str(path))
            names = {e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"}
            self.assertLessEqual({"bert_model", "bert_layer", "flash_attn_varlen"}, {name.split()[0] for name in names})

    def test_capture(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.json("capture", "--scenario", "encoder-tiny", "--device", "cpu", "-o", folder)
            self.assertTrue(result["complete"])
            for op in ["bert_layer", "colbertv2_max_sim", "colbertv2_token_mask"]:
                self.assertTrue(pathlib.Path(folder, op + ".json").exists(), op)

    def test_eval_self(self):
        record = self.json("eval", "--scenario", "encoder-tiny", "--device", "cpu", "--self-test", "--pairs", "4", "--time-budget-s", "1")
        self.assertEqual(record["status"], "PASSED")
        self.assertNotIn("tokens_equal", record)
        self.assertEqual(record["metric"]["name"], "cosine")
        self.assertGreaterEqual(record["metric"]["value"], record["metric"]["threshold"])
        self.assertGreater(record["metric"]["threshold"], 1 - 1e-9)

    def test_eval_wrong(self):
        """A thousandth off in the residual additions: every direction is off by more than float32 explains."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "add.c").write_text(WRONG)
            record = self.json("eval", "--scenario", "encoder-tiny", "--device", "cpu", "--candidates", folder, "--pairs", "4", code=1)
            self.assertEqual(record["status"], "INCORRECT_NUMERICAL", record["detail"])
            self.assertLess(record["metric"]["value"], record["metric"]["threshold"])
            self.assertGreater(record["reached"]["add"], 0)

    def test_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "chat.yaml")
            path.write_text("model: colbertv2:tiny\nrequests:\n  - prompt: words\n    system: be brief\n")
            self.refused("colbertv2:tiny is an encoder", "eval", "--scenario", str(path), "--device", "cpu", "--self-test")


class Real(Command):
    """all-MiniLM-L6-v2."""

    @classmethod
    def setUpClass(cls):
        at_hand = subprocess.run([pathlib.Path(SOURCE, "tools", "fetch-assets"), "--print", "minilm-l6"], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL)
        if at_hand.returncode != 0:
            raise unittest.SkipTest("SKIPPED: the asset minilm-l6 is not at hand")
        cls.folder = at_hand.stdout.strip()

    def test_search(self):
        lines = ["A man is eating a piece of bread.", "The girl is carrying a baby.", "Stocks fell after the bank raised its rates.",
                 "A cheetah runs behind its prey."]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "lines.txt")
            path.write_text("\n".join(lines) + "\n")
            result = self.json("run", *REAL, "--search", str(path), "--prompt", "Someone is having a meal.")
            self.assertEqual((result["passages"], result["matches"][0]["text"], result["matches"][0]["line"]), (4, lines[0], 1))
            self.assertEqual(sorted((m["score"] for m in result["matches"]), reverse=True), [m["score"] for m in result["matches"]])
            path.write_text("\n\n".join("\n".join(["word " * 150] * 3) + f"\nThe end of {i}." for i in range(2)) + "\n\nMoney and markets\n" + lines[2])
            result = run("run", *REAL, "--search", str(path), "--prompt", "finance", "--best", "1")
            self.assertIn("Money and markets Stocks fell", result.stdout)
            self.assertIn("2 of 3 passages are longer than the 256 tokens", result.stderr)
            path.write_text("\n \n\t\n")
            self.refused("has no text to search", "run", *REAL, "--search", str(path), "--prompt", "x")
            path.write_bytes(b"good\n\xff\n")
            self.refused("is no UTF-8", "run", *REAL, "--search", str(path), "--prompt", "x")
        self.refused("cannot open", "run", *REAL, "--search", "/nowhere", "--prompt", "x")

    def test_long_text(self):
        result = run("run", *REAL, "--embed", "--prompt", "word " * 400, "--json")
        self.assertEqual(result.returncode, 0)
        self.assertIn("the text has 402 tokens; minilm-l6 reads the first 256", result.stderr)
        self.assertEqual(len(json.loads(result.stdout)["prompt_ids"]), 256)

    def copy(self, folder):
        """The model's folder with a config that can be changed; the weights are a link."""
        for name in ["config.json", "tokenizer.json", "sentence_bert_config.json", "1_Pooling/config.json"]:
            target = pathlib.Path(folder, name)
            target.parent.mkdir(exist_ok=True)
            shutil.copy(pathlib.Path(self.folder, name), target)
        pathlib.Path(folder, "model.safetensors").symlink_to(pathlib.Path(self.folder, "model.safetensors"))

    def change(self, folder, name, **fields):
        path = pathlib.Path(folder, name)
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    def test_folder(self):
        same = self.json("run", *REAL, "--embed", "--prompt", "A text.")["embedding"]
        with tempfile.TemporaryDirectory() as folder:
            args = ["run", "--model", folder, "--device", "cpu", "--embed", "--prompt", "A text."]
            self.copy(folder)
            self.assertEqual(self.json(*args)["embedding"], same)
            self.change(folder, "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
            self.assertNotEqual(self.json(*args)["embedding"], same)
            self.change(folder, "1_Pooling/config.json", pooling_mode_cls_token=False, pooling_mode_max_tokens=True)
            self.refused("pooling_mode_max_tokens", *args, code=3)
            self.copy_again(folder, "1_Pooling/config.json")
            for field, value, text in [("hidden_act", "relu", "hidden_act is 'relu'"), ("num_attention_heads", 7, "no multiple of num_attention_heads 7"),
                                       ("num_hidden_layers", 7, "no tensor encoder.layer.6."), ("vocab_size", 30000, "has id 30521, the embedding has 30000 rows"),
                                       ("max_position_embeddings", 300, "embeddings.position_embeddings.weight"),
                                       ("intermediate_size", 1500, "encoder.layer.0.intermediate.dense.weight")]:
                self.change(folder, "config.json", **{field: value})
                self.refused(text, *args, code=3 if field == "hidden_act" else 2)
                self.copy_again(folder, "config.json")

    def copy_again(self, folder, name):
        shutil.copy(pathlib.Path(self.folder, name), pathlib.Path(folder, name))


if __name__ == "__main__":
    SOURCE = sys.argv.pop(2)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
