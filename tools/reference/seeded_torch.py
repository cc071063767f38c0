# SPDX-License-Identifier: Apache-2.0
"""Seeded values (see seeded.py) computed by torch on any device, for models too large for numpy.

    python tools/reference/seeded_torch.py [DEVICE]     compares it with seeded.py, bit for bit
"""
import math
import sys

import numpy as np
import torch

import golden
import seeded

CHUNK = 1 << 26                                        # elements at a time: about 2 GB of int64 temporaries
TORCH_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def signed(value):
    """A uint64 as the int64 with the same bits: torch has no uint64 arithmetic, int64 wraps just as well."""
    value %= 2**64
    return value - 2**64 if value >= 2**63 else value


def shift_right(z, count):
    return (z >> count) & (2**(64 - count) - 1)        # torch shifts the sign in; the mask takes it out


def mix64(z):
    z = (z ^ shift_right(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shift_right(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shift_right(z, 31)


def values(seed, name, shape, dtype=torch.float32, device="cpu"):
    key = signed(int(seeded.mix64(np.array([seed ^ golden.fnv1a64(name.encode())], np.uint64))[0]))
    offset, exponent = seeded.scale(name, shape)
    result = torch.empty(math.prod(shape), dtype=dtype, device=device)
    for start in range(0, result.numel(), CHUNK):
        index = torch.arange(start + 1, min(start + CHUNK, result.numel()) + 1, dtype=torch.int64, device=device)
        h = mix64(index * signed(0x9E3779B97F4A7C15) + key)
        s = (h & 0xFFFF) + (shift_right(h, 16) & 0xFFFF) + (shift_right(h, 32) & 0xFFFF) + shift_right(h, 48) - 131070
        result[start:start + CHUNK] = (offset + s.float() * 2.0**exponent).to(dtype)
    return result.view(shape)


def fill_parameters(model, seed):
    """Give every parameter of a torch model its seeded values, rounded to its dtype, in place."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values(seed, name, tuple(parameter.shape), parameter.dtype, parameter.device))


def main(device="cpu"):
    for seed, name, *_ in seeded.CASES:
        for shape in ((1000,), (300, 7), (64, 3, 5, 5), (1, 4096)):
            for label, dtype in TORCH_DTYPES.items():
                expected = seeded.values(seed, name, shape).astype(seeded.DTYPES[label])
                got = values(seed, name, shape, dtype, device).cpu()
                assert np.array_equal(got.float().numpy(), expected.astype(np.float32)), (seed, name, shape, label)
    print(f"seeded values on {device}: equal to numpy's")


if __name__ == "__main__":
    main(*sys.argv[1:])
