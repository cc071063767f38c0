# SPDX-License-Identifier: Apache-2.0
"""Seeded values: a tensor's value as a pure function of (seed, checkpoint name, index).

    python tools/reference/seeded.py        writes tests/goldens/seeded.safetensors

The definition (C and CUDA implement the same, bit for bit):

    mix64(z)  z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb; z ^= z >> 31   (mod 2^64)
    key       mix64(seed ^ fnv1a64(name as UTF-8))
    h         mix64(key + (index + 1) * 0x9e3779b97f4a7c15)     index: flat, row-major, of the checkpoint's tensor
    s         sum of h's four 16-bit lanes - 131070             integer in [-131070, 131070], near normal, deviation 37837
    value     NORM       1 + s * 2^-19
              BIAS       s * 2^-21
              EMBEDDING  s * 2^-15
              MATRIX     s * 2^-15 * 2^-k,  k = floor((floor(log2(fan_in)) + 1) / 2), so 2^-k is about 1 / sqrt(fan_in)
    fan_in    product of all dims but the first

Every value is exact in float32 and is then rounded once, to nearest even, to the tensor's dtype. The role follows from
name and shape: name ends with "bias": BIAS; else fewer than two dims: NORM; else name contains "embed_tokens",
"embeddings" or "wte": EMBEDDING; else MATRIX.
"""
import math

import ml_dtypes
import numpy as np

import golden

DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def mix64(z):
    """z: array of uint64 (numpy wraps mod 2^64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def role(name, shape):
    if name.endswith("bias"):
        return "BIAS"
    if len(shape) < 2:
        return "NORM"
    if any(part in name for part in ("embed_tokens", "embeddings", "wte")):
        return "EMBEDDING"
    return "MATRIX"


def scale(name, shape):
    """(offset, exponent) of value = offset + s * 2^exponent."""
    if role(name, shape) == "MATRIX":
        fan_in = math.prod(shape[1:])
        return 0, -15 - fan_in.bit_length() // 2       # bit_length = floor(log2) + 1
    return {"NORM": (1, -19), "BIAS": (0, -21), "EMBEDDING": (0, -15)}[role(name, shape)]


def values(seed, name, shape, start=0, count=None):
    """float32 values of the elements start .. start + count - 1 (default: all, in the given shape)."""
    key = mix64(np.array([seed ^ golden.fnv1a64(name.encode())], np.uint64))
    whole = count is None
    count = math.prod(shape) if whole else count
    index = np.arange(count, dtype=np.uint64) + np.uint64(start)
    h = mix64(key + (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    s = sum(((h >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64) for shift in (0, 16, 32, 48)) - 131070
    offset, exponent = scale(name, shape)
    result = np.float32(offset) + s.astype(np.float32) * np.float32(2.0**exponent)
    return result.reshape(shape) if whole else result


# (seed, name, shape, index of the second group of 64): every role, fan-ins around powers of two, seeds with the top bit
CASES = [
    (0, "model.embed_tokens.weight", (2**20, 2**13), 2**32 - 32),
    (1234, "model.layers.0.self_attn.q_proj.weight", (2**21, 4096), 2**32 + 7),
    (1234, "model.layers.0.self_attn.k_proj.weight", (2**21, 4095), 2**32 - 1),
    (1234, "model.layers.31.mlp.down_proj.weight", (2**20, 14336), 2**33 + 12345),
    (1234, "model.layers.0.input_layernorm.weight", (2**34,), 2**33 - 5),
    (1234, "model.layers.0.self_attn.q_proj.bias", (2**34,), 2**34 - 64),
    (2**64 - 1, "lm_head.weight", (2**24, 2**23), 2**46 + 2**32),
    (2**63, "transformer.wte.weight", (2**30, 8), 2**32 + 2**31),
    (42, "vision.embeddings.patch_embedding.weight", (2**22, 3, 14, 14), 2**31 + 2**32),
    (42, "conv1.weight", (2**31, 3, 3, 3), 2**35),
    (7, "experts.gate_up_proj", (2**31, 2), 2**32),
    (7, "scale", (2**33, 1), 2**32 + 1),
    (99, "", (2**33, 3), 2**33),
    (99, "größe.weight", (2**32, 16), 2**36 - 64),
]
HASH_COUNT = 10**6


def main():
    tensors = {"seed": np.array([case[0] for case in CASES], np.uint64).view(np.int64),
               "high_index": np.array([case[3] for case in CASES], np.int64)}
    first = np.stack([values(*case[:3], 0, 64) for case in CASES])
    high = np.stack([values(*case[:3], case[3], 64) for case in CASES])
    million = np.stack([values(*case[:3], 0, HASH_COUNT) for case in CASES])
    assert np.array_equal(first, million[:, :64]) and not np.array_equal(first, high)
    for label, dtype in DTYPES.items():
        tensors[f"first.{label}"] = first.astype(dtype)
        tensors[f"high.{label}"] = high.astype(dtype)
        tensors[f"hash.{label}"] = golden.fnv1a64_rows(million.astype(dtype))
    golden.write(
        "seeded.safetensors", "tools/reference/seeded.py",
        """Seeded values of each case: first.T [case, 64] from index 0, high.T [case, 64] from high_index[case], and
        hash.T[case], the 64-bit FNV-1a (bits in an int64) over the little-endian bytes of the first hash_count values, for
        T = f32, bf16, f16. seed[case] holds the bits of the uint64 seed. Values are a function of the index alone once the
        shape has given role and fan-in, so an index may be beyond the tensor's end.""",
        ["numpy", "ml_dtypes"], tensors, hash_count=HASH_COUNT,
        cases=[{"seed": str(seed), "name": name, "shape": shape, "role": role(name, shape), "high_index": high_index}
               for seed, name, shape, high_index in CASES])


if __name__ == "__main__":
    main()
