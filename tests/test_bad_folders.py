#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders with one thing wrong: `run` names the thing and the value, in one line, and ends with the right code.
tests/test_bad_folders.py PROGRAM"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
FOLDER = pathlib.Path(__file__).resolve().parent / "goldens" / "hf_folder"  # a tiny Qwen3
INDEX = "model.safetensors.index.json"
ROPE = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": 32}

# field of config.json, value, exit code, words of the message; code 0: the model runs
CONFIGS = [
    ("num_attention_heads", 3, 2, "num_attention_heads 3 is no multiple of num_key_value_heads 2"),
    ("num_attention_heads", 0, 2, "num_attention_heads is 0, below 1"),
    ("num_attention_heads", 4.5, 2, "num_attention_heads is 4.5, expected an integer"),
    ("num_key_value_heads", 8, 2, "num_attention_heads 4 is no multiple of num_key_value_heads 8"),
    ("head_dim", 0, 2, "head_dim is 0, below 1"),
    ("head_dim", 15, 2, "head_dim 15 is odd"),
    ("head_dim", 10**12, 2, "head_dim is 1000000000000, too large"),
    ("head_dim", None, 2, "q_proj.weight is f32[64, 32] in the file, the config asks for f32[32, 32]"),
    ("hidden_size", None, 2, "hidden_size"),
    ("hidden_size", 64, 2, "embed_tokens.weight is f32[96, 32] in the file, the config asks for f32[96, 64]"),
    ("vocab_size", 97, 2, "embed_tokens.weight is f32[96, 32] in the file, the config asks for f32[97, 32]"),
    ("num_hidden_layers", 3, 2, "no tensor model.layers.2."),
    ("num_hidden_layers", 0, 2, "num_hidden_layers is 0, below 1"),
    ("num_hidden_layers", 10**9, 2, "num_hidden_layers is 1000000000, above 10000"),
    ("rms_norm_eps", -1, 2, "rms_norm_eps is -1, expected 0 to 1"),
    ("rms_norm_eps", 1e300, 2, "rms_norm_eps is 1e+300, expected 0 to 1"),
    ("rms_norm_eps", "x", 2, 'rms_norm_eps is "x", expected a number'),
    ("tie_word_embeddings", "yes", 2, 'tie_word_embeddings is "yes", expected true or false'),
    ("tie_word_embeddings", True, 0, ""),  # the file's lm_head is left alone
    ("attention_bias", True, 2, "no tensor model.layers.0.self_attn.q_proj.bias"),
    ("hidden_act", "gelu", 2, "hidden_act 'gelu' is not silu"),
    ("rope_parameters", [1], 2, "rope_parameters is [1], expected an object"),
    ("rope_scaling", "linear", 2, 'rope_scaling is "linear", expected an object'),
    ("rope_parameters", dict(ROPE, rope_type="banana"), 3, "rope_type 'banana' is none of default"),
    ("rope_parameters", dict(ROPE, rope_theta=-1), 2, "rope_theta is -1, not above 1"),
    ("rope_parameters", dict(ROPE, factor=0), 2, "factor 0 is below 1"),
    ("architectures", ["Foo"], 3, "architectures is"),
    ("architectures", [], 3, "architectures is '[]'"),
    ("eos_token_id", -5, 2, "eos_token_id is -5, neither a token id"),
    ("eos_token_id", [2, "x"], 2, 'eos_token_id is [2,"x"], neither a token id'),
    ("quantization_config", {"quant_method": "fp8"}, 3, "quant_method 'fp8'"),
    ("sliding_window", None, 0, ""),
    ("layer_types", ["x"], 3, "layer_types[0] is 'x'"),
]


def run(folder, *args):
    return subprocess.run([PROGRAM, "run", "--model", folder, "--device", "cpu", "--prompt-ids", "3,17,94", "--max-tokens", "1", "-q", *args],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + length]), data[8 + length:]


def write(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class BadFolders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "model")
        shutil.copytree(FOLDER, self.folder)

    def expect(self, code, words, *args):
        result = run(str(self.folder), *args)
        self.assertEqual(result.returncode, code, result.stderr)
        if code:
            self.assertIn(words, result.stderr)
            self.assertEqual((result.stderr.count("\n"), result.stdout), (1, ""), result.stderr)

    def edit(self, name, change):
        path = self.folder / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    def test_as_it_is(self):
        self.expect(0, "")

    def test_config(self):
        for field, value, code, words in CONFIGS:
            with self.subTest(field=field, value=value):
                shutil.copy(FOLDER / "config.json", self.folder)
                self.edit("config.json", lambda config: config.update({field: value}))
                self.expect(code, words)

    def test_sliding_window(self):
        for value, code, words in ((0, 2, "sliding_window is 0, below 1"), (-3, 2, "sliding_window is -3, below 1"), (2, 0, ""), (None, 0, "")):
            with self.subTest(value=value):
                self.edit("config.json", lambda config: config.update(use_sliding_window=True, max_window_layers=0, sliding_window=value))
                self.expect(code, words)

    def test_context(self):
        self.edit("config.json", lambda config: config.update(max_position_embeddings=2, rope_parameters={"rope_type": "default", "rope_theta": 1e4}))
        self.expect(2, "3 tokens")

    def test_config_file(self):
        for text, words in (("{", "config.json: bad JSON"), ("[]", "config.json is no JSON object"), ("", "config.json")):
            (self.folder / "config.json").write_text(text)
            self.expect(2, words)
        os.remove(self.folder / "config.json")
        self.expect(3, "config.json")

    def test_index(self):
        name = "model.embed_tokens.weight"
        shards = json.loads((FOLDER / INDEX).read_text())["weight_map"]
        other = next(shard for shard in shards.values() if shard != shards[name])
        for shard, code, words in (("../x.safetensors", 2, "shard '../x.safetensors' is not a file name in the folder"),
                                   ("/etc/passwd", 2, "shard '/etc/passwd' is not a file name in the folder"),
                                   ("nope.safetensors", 3, "nope.safetensors"), (3, 2, "is no string"),
                                   (other, 2, f"tensor '{name}' is not in shard '{other}'")):
            with self.subTest(shard=shard):
                shutil.copy(FOLDER / INDEX, self.folder)
                self.edit(INDEX, lambda index: index["weight_map"].update({name: shard}))
                self.expect(code, words)
        shutil.copy(FOLDER / INDEX, self.folder)
        self.edit(INDEX, lambda index: (index["weight_map"].pop(name), index.pop("metadata")))
        self.expect(2, name)
        self.edit(INDEX, lambda index: index.pop("weight_map"))
        self.expect(2, "no weight_map")
        os.remove(self.folder / INDEX)
        self.expect(3, "neither model.safetensors nor model.safetensors.index.json")

    def test_shards(self):
        shards = json.loads((FOLDER / INDEX).read_text())["weight_map"]
        name, twice = "model.embed_tokens.weight", "model.layers.1.input_layernorm.weight"
        path = self.folder / shards[name]
        header, data = read(path)
        other, other_data = read(self.folder / shards[twice])
        begin, end = other[twice]["data_offsets"]

        def one(words, header, data=data):
            with self.subTest(words=words):
                write(path, header, data)
                self.expect(2, words)

        one("size mismatch", dict(header, **{name: dict(header[name], dtype="F32")}))
        one("is f32[32, 96] in the file", dict(header, **{name: dict(header[name], shape=[32, 96])}))
        one("is not in shard", {key: value for key, value in header.items() if key != name} | {"renamed": header[name]})
        one("occurs in shards", dict(header, **{twice: dict(other[twice], data_offsets=[len(data), len(data) + end - begin])}),
            data + other_data[begin:end])
        one("truncated", header, data[:-10])
        write(path, dict(header, extra={"dtype": "BF16", "shape": [2], "data_offsets": [len(data), len(data) + 4]}), data + bytes(4))
        self.expect(0, "")  # checkpoints hold tensors that a model has no use for

    def test_no_numbers(self):
        """Weights that are not numbers end a run as bad input, not as a bug."""
        path = self.folder / json.loads((FOLDER / INDEX).read_text())["weight_map"]["model.norm.weight"]
        header, data = read(path)
        begin, end = header["model.norm.weight"]["data_offsets"]
        write(path, header, data[:begin] + b"\xff\x7f" * ((end - begin) // 2) + data[end:])
        self.expect(2, "NaN")

    def test_ids_and_text(self):
        self.expect(2, "id 96 at position 0 is outside the vocabulary of 96", "--prompt-ids", "96")
        result = subprocess.run([PROGRAM, "run", "--model", str(self.folder), "--device", "cpu", "--prompt", "x"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("has no tokenizer", result.stderr)

    def test_tokenizer_of_another_model(self):
        vocabulary = {chr(97 + i // 10) + str(i % 10): i for i in range(200)}
        tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": []}
        (self.folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        self.expect(2, "id 199, the embedding has 96 rows")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
