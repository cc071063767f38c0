# SPDX-License-Identifier: Apache-2.0
"""Floats of at most 8 bits and packed integers, as ml_dtypes converts them.

    python tools/reference/small_floats.py        writes tests/goldens/small_floats.safetensors

For T = f8_e4m3, f8_e5m2, f4_e2m1, e8m0:
widen.T [P]     float32 values of all patterns 0 .. P - 1
input.T [N]     float32: every value, every middle of two neighbouring values with its float32 neighbours, the overflow
                threshold likewise, limits of float32, and random bits
narrow.T [N]    their patterns
For T = int4x2, int2x4: unpack.T [256 * k], the k integers of each byte from 0 to 255, low bits first.
"""
import ml_dtypes
import numpy as np

import golden

FLOATS = {"f8_e4m3": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2, "f4_e2m1": ml_dtypes.float4_e2m1fn,
          "e8m0": ml_dtypes.float8_e8m0fnu}


def inputs(values):
    finite = np.unique(values[np.isfinite(values)]).astype(np.float64)
    beyond = finite[-1] * np.array([1.03125, 1.0625, 1.125, 1.16666667, 1.1875, 1.25, 1.5, 2.0])
    middles = np.concatenate([(finite[1:] + finite[:-1]) / 2, beyond, -beyond]).astype(np.float32)
    near = np.concatenate([middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))])
    limits = np.array([0, np.inf, np.nan, 1e-45, 2**-126, 3.4028235e38, 1, 0.1], np.float32)
    random = np.random.default_rng(7).integers(0, 2**32, 400, dtype=np.uint32).view(np.float32)
    moderate = np.random.default_rng(8).standard_normal(400).astype(np.float32) * 4
    return np.concatenate([values, near, limits, -limits, random, moderate]).astype(np.float32)


def main():
    tensors = {}
    np.seterr(all="ignore")
    for label, dtype in FLOATS.items():
        values = np.arange(16 if label == "f4_e2m1" else 256, dtype=np.uint8).view(dtype).astype(np.float32)
        given = inputs(values)
        tensors[f"widen.{label}"] = values
        tensors[f"input.{label}"] = given
        tensors[f"narrow.{label}"] = given.astype(dtype).view(np.uint8)
    for label, dtype, width in [("int4x2", ml_dtypes.int4, 4), ("int2x4", ml_dtypes.int2, 2)]:
        fields = np.arange(256, dtype=np.uint8)[:, None] >> np.arange(0, 8, width, dtype=np.uint8) & np.uint8(2**width - 1)
        tensors[f"unpack.{label}"] = fields.reshape(-1).view(np.int8).astype(dtype).astype(np.int32)
    about = __doc__.split("safetensors\n", 1)[1]
    # float32 tensors first: each stands on a multiple of 4.
    ordered = dict(sorted(tensors.items(), key=lambda item: item[1].dtype.itemsize, reverse=True))
    golden.write("small_floats.safetensors", "tools/reference/small_floats.py", about, ["numpy", "ml_dtypes"], ordered)


if __name__ == "__main__":
    main()
