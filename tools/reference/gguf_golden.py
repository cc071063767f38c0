#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of the GGUF reader, made by the `gguf` and `safetensors` packages.

gguf_golden.py                 writes tests/goldens/gguf_small.gguf, a file with every kind of metadata and the tensor
                               types in use, and tests/goldens/gguf_small.safetensors, its values as float32
gguf_golden.py --model FILE    writes tests/goldens/<FILE's stem>.hashes.tsv: one hash per tensor of a real file
"""
import argparse
import importlib.metadata
import pathlib

import gguf
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Value

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "goldens"
HASH_BASE = 0x100000001B3
DEQUANTIZED = (Type.F32, Type.F16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K, Type.Q6_K,
               Type.BF16)
# The half-precision scales of a block, and whether they stand at its end.
HALVES = {Type.Q4_0: 1, Type.Q4_1: 2, Type.Q5_0: 1, Type.Q5_1: 2, Type.Q8_0: 1, Type.Q4_K: 2, Type.Q5_K: 2, Type.Q6_K: 1}
SCALES_LAST = (Type.Q6_K,)


def polynomial_hash(values):
    """h = h * HASH_BASE + word over the float32 bit patterns, modulo 2^64: any changed word changes it."""
    words = np.ascontiguousarray(values, dtype=np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
    h = 0
    with np.errstate(over="ignore"):
        for start in range(0, len(words), 1 << 20):
            chunk = words[start:start + (1 << 20)]
            powers = np.full(len(chunk), HASH_BASE, dtype=np.uint64)
            powers[0] = 1
            powers = np.multiply.accumulate(powers)[::-1]
            h = (h * pow(HASH_BASE, len(chunk), 1 << 64) + int((chunk * powers).sum(dtype=np.uint64))) % (1 << 64)
    return h


def random_blocks(rng, rows, blocks, halves, payload):
    """Blocks with scales of every magnitude (subnormal too) and both signs, all finite, and random payloads."""
    scales = rng.integers(0, 0x7C00, size=(rows, blocks, halves), dtype=np.uint16)
    scales |= rng.integers(0, 2, size=scales.shape, dtype=np.uint16) << 15
    body = rng.integers(0, 256, size=(rows, blocks, payload), dtype=np.uint8)
    return np.concatenate([scales.view(np.uint8), body], axis=-1).reshape(rows, -1)


def special_halves():
    """Zeros, subnormals, normals, infinities and quiet NaNs of both signs."""
    low = np.array([0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7E00], dtype=np.uint16)
    return np.concatenate([low, low | np.uint16(0x8000)]).view(np.float16).reshape(2, 3, 4)


def special_blocks(rng, kind, rows):
    """Random payloads under every scale of special_halves, infinities and NaNs included."""
    size, halves = gguf.GGML_QUANT_SIZES[kind][1], HALVES[kind]
    scales = rng.choice(special_halves().reshape(-1).view(np.uint16), size=(rows, 2, halves))
    return join_blocks(kind, scales, rng.integers(0, 256, size=(rows, 2, size - 2 * halves), dtype=np.uint8))


def extreme_blocks(rng, kind, rows):
    """Random payloads under finite scales of every magnitude."""
    size, halves = gguf.GGML_QUANT_SIZES[kind][1], HALVES[kind]
    scales = rng.integers(0, 0x7C00, size=(rows, 1, halves), dtype=np.uint16)
    scales |= rng.integers(0, 2, size=scales.shape, dtype=np.uint16) << 15
    return join_blocks(kind, scales, rng.integers(0, 256, size=(rows, 1, size - 2 * halves), dtype=np.uint8))


def join_blocks(kind, scales, body):
    parts = [scales.view(np.uint8), body]
    return np.concatenate(parts[::-1] if kind in SCALES_LAST else parts, axis=-1).reshape(len(body), -1)


def write_small():
    rng = np.random.default_rng(20)
    path = GOLDENS / "gguf_small.gguf"
    w = gguf.GGUFWriter(path, "golden")
    w.add_custom_alignment(64)
    scalars = [("u8", Value.UINT8, 200), ("i8", Value.INT8, -100), ("u16", Value.UINT16, 60000),
               ("i16", Value.INT16, -30000), ("u32", Value.UINT32, 4000000000), ("i32", Value.INT32, -2000000000),
               ("u64", Value.UINT64, 2**64 - 1), ("i64", Value.INT64, -2**63), ("f32", Value.FLOAT32, 0.1),
               ("f64", Value.FLOAT64, 0.1), ("true", Value.BOOL, True), ("false", Value.BOOL, False),
               ("string", Value.STRING, "grüße, 世界"), ("empty", Value.STRING, "")]
    for name, kind, value in scalars:
        w.add_key_value(f"golden.{name}", value, kind)
    for name, kind, values in [("u8s", Value.UINT8, [0, 255]), ("i8s", Value.INT8, [-128, 127]),
                               ("u16s", Value.UINT16, [1, 65535]), ("i16s", Value.INT16, [-32768, 5]),
                               ("u32s", Value.UINT32, [7, 2**32 - 1]), ("i32s", Value.INT32, [-2**31, 2**31 - 1]),
                               ("u64s", Value.UINT64, [3, 2**63]), ("i64s", Value.INT64, [-2**63, 2**63 - 1]),
                               ("f32s", Value.FLOAT32, [0.5, -3.0]), ("f64s", Value.FLOAT64, [0.1, 1e300]),
                               ("bools", Value.BOOL, [True, False, True]),
                               ("strings", Value.STRING, ["a", "", "äöü", "x" * 70])]:
        w.add_key_value(f"golden.{name}", values, Value.ARRAY, sub_type=kind)
    w.add_array("golden.nested", [[1, 2], [3]])

    w.add_tensor("plain.f32", rng.standard_normal((3, 5), dtype=np.float32))
    w.add_tensor("vector.f32", rng.standard_normal(7, dtype=np.float32))
    w.add_tensor("special.f16", special_halves())
    normal = rng.standard_normal((6, 64), dtype=np.float32)
    for kind in (Type.Q4_1, Type.Q8_0):
        w.add_tensor(f"normal.{kind.name.lower()}", gguf.quantize(normal, kind), raw_dtype=kind)
    w.add_tensor("extreme.q4_1", random_blocks(rng, 7, 3, 2, 16), raw_dtype=Type.Q4_1)
    w.add_tensor("extreme.q8_0", random_blocks(rng, 7, 3, 1, 32), raw_dtype=Type.Q8_0)
    cube = gguf.quantize(rng.standard_normal((2, 3, 32), dtype=np.float32), Type.Q8_0)
    w.add_tensor("cube.q8_0", cube, raw_dtype=Type.Q8_0)
    w.add_tensor("other.q2_k", np.zeros((2, 84), dtype=np.uint8), raw_dtype=Type.Q2_K)
    w.add_tensor("other.i32", np.arange(-3, 3, dtype=np.int32).reshape(2, 3))
    for kind in (Type.Q4_0, Type.Q5_0, Type.Q5_1):
        w.add_tensor(f"normal.{kind.name.lower()}", gguf.quantize(normal, kind), raw_dtype=kind)
    for kind in HALVES:
        rows = 12 if gguf.GGML_QUANT_SIZES[kind][0] == 32 else 3
        if kind not in (Type.Q4_1, Type.Q8_0):
            w.add_tensor(f"extreme.{kind.name.lower()}", extreme_blocks(rng, kind, rows), raw_dtype=kind)
        w.add_tensor(f"special.{kind.name.lower()}", special_blocks(rng, kind, rows), raw_dtype=kind)
    patterns = np.concatenate([rng.integers(0, 65536, 58), [0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x7F81]]).astype(np.uint16)
    w.add_tensor("special.bf16", patterns.view(np.uint8).reshape(2, 64), raw_dtype=Type.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()

    values = {}
    for t in gguf.GGUFReader(path).tensors:
        if t.tensor_type in DEQUANTIZED:
            shape = tuple(int(d) for d in reversed(t.shape))
            values[t.name] = np.ascontiguousarray(gguf.dequantize(t.data, t.tensor_type)).reshape(shape)
    safetensors.numpy.save_file(values, GOLDENS / "gguf_small.safetensors",
                                {"gguf": importlib.metadata.version("gguf"),
                                 "safetensors": importlib.metadata.version("safetensors")})


def write_hashes(model):
    lines = [f"# {model.name}: hash of each tensor's float32 values, gguf {importlib.metadata.version('gguf')}"]
    for t in gguf.GGUFReader(model).tensors:
        h = polynomial_hash(gguf.dequantize(t.data, t.tensor_type))
        shape = "x".join(str(int(d)) for d in reversed(t.shape))
        lines.append(f"{t.name}\t{t.tensor_type.name}\t{shape}\t{h:016x}")
    (GOLDENS / f"{model.stem}.hashes.tsv").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path)
    model = parser.parse_args().model
    if model:
        write_hashes(model)
    else:
        write_small()


if __name__ == "__main__":
    main()
