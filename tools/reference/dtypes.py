# SPDX-License-Identifier: Apache-2.0
"""Conversions between float32 and the 16-bit floats, as numpy (f16) and ml_dtypes (bf16) do them.

    python tools/reference/dtypes.py        writes tests/goldens/dtypes.safetensors

For T = f16, bf16 and every 16-bit pattern p, value(p) is the exact value; block b holds the patterns 256 b .. 256 b + 255.

widen.T [256]   FNV-1a over the 256 float32 value(p) of a block (little-endian), a NaN written as 0x7fc00000.
round.T [256]   FNV-1a over the 4 * 256 16-bit results of rounding, to nearest even, for each p of a block in order
                    value(p), below, middle, above
                where middle is the float32 half way between value(p) and the next larger magnitude of the same sign (exact
                in float32; the magnitude after the largest finite one is 2^16 for f16, 2^128 for bf16, so that this middle
                is the overflow threshold), and below and above are middle's float32 neighbours of smaller and larger
                magnitude. If p is infinite or NaN, all four inputs are value(p). A NaN result is written as 0x7e00 (f16),
                0x7fc0 (bf16). Hashes are 64-bit, their bits stored as int64.
hard.f32 [N]    single inputs: limits, denormals, ties, double-rounding traps, random bits;
hard.f16, hard.bf16 [N]  their results. For a NaN input any NaN is right.
"""
import ml_dtypes
import numpy as np

import golden

DTYPES = {"f16": (np.dtype(np.float16), 0x7E00, 2.0**16), "bf16": (np.dtype(ml_dtypes.bfloat16), 0x7FC0, 2.0**128)}
PATTERNS = np.arange(65536, dtype=np.uint16)


def to_bits(values, dtype, nan):
    """Bits of float32 values rounded to dtype, NaNs canonical."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isnan(values), np.uint16(nan), values.astype(dtype).view(np.uint16))


def rounding_inputs(dtype, beyond):
    """[65536, 4] float32: value(p), below, middle, above."""
    value = PATTERNS.view(dtype).astype(np.float32)
    finite = np.isfinite(value)
    with np.errstate(invalid="ignore"):
        following = (PATTERNS + np.uint16(1)).view(dtype).astype(np.float64)     # sign and magnitude: + 1 is away from zero
        following = np.where(np.isinf(following), np.copysign(np.float64(beyond), value), following)
        exact = np.where(finite, (value.astype(np.float64) + following) / 2, value)
    middle = exact.astype(np.float32)
    assert np.array_equal(middle[finite].astype(np.float64), exact[finite])
    bits = middle.view(np.uint32)
    below, above = (bits - np.uint32(1)).view(np.float32), (bits + np.uint32(1)).view(np.float32)
    infinity = np.copysign(np.float32(np.inf), value)
    assert np.array_equal(below[finite], np.nextafter(middle, np.float32(0))[finite])
    assert np.array_equal(above[finite], np.nextafter(middle, infinity)[finite])
    return np.stack([value, *(np.where(finite, v, value) for v in (below, middle, above))], axis=1)


def check_rule(results, dtype):
    """What rounding to nearest even must give for a finite p, without asking a library: p, p, the even one, p + 1."""
    finite = np.isfinite(PATTERNS.view(dtype).astype(np.float32))
    p = PATTERNS[finite]
    even = p + (p & np.uint16(1))
    assert np.array_equal(results[finite], np.stack([p, p, even, p + np.uint16(1)], axis=1))


def hard_inputs():
    two = lambda exponent: 2.0**exponent
    exact = [0.0, 1.0, 0.1, 1 / 3, 2 / 3, np.pi, np.e, 100.0, 255.0, 256.0, 257.0, 1e-3, 1e-5, 1e-7, 1e-8, 1e4, 1e5, 1e10, 1e30, 1e38]
    # f16: ties and their neighbourhood at 1, at the denormals, at the smallest normal, at overflow
    exact += [1 + two(-11), 1 + 3 * two(-11), 1 + two(-11) + two(-23), 1 + two(-11) - two(-23), 2048.0, 2049.0, 2050.0, 2051.0,
              two(-24), two(-25), two(-25) + two(-48), two(-25) - two(-49), 1.5 * two(-24), 2.5 * two(-24), two(-26), two(-14),
              two(-14) - two(-24), two(-14) - two(-25), two(-14) - two(-26), two(-14) + two(-25), two(-15), 1023.5 * two(-24),
              65504.0, 65519.0, 65519.99609375, 65520.0, 65520.0078125, 65535.0, 65536.0, 131008.0]
    # bf16: the same
    exact += [1 + two(-8), 1 + 3 * two(-8), 1 + two(-8) + two(-23), 1 + two(-8) - two(-23), 256.0, 257.0, 258.0, 259.0,
              two(-126), two(-126) - two(-133), two(-126) - two(-134), two(-133), two(-134), two(-134) + two(-149),
              two(-134) - two(-149), 1.5 * two(-133), two(-149), two(-148), two(-140), two(-127), 3 * two(-135),
              two(128) - two(120), two(128) - two(119), two(128) - two(119) - two(104), two(128) - two(119) + two(104),
              two(128) - two(104), two(127)]
    # double rounding: through bf16, or through an 11-bit normal in the denormal range, the wrong neighbour comes out
    exact += [1 + two(-8) + two(-12), 1 + two(-9) + two(-11), 1 + two(-11) + two(-12), 1 + two(-8) - two(-11), 1.0009765625 + two(-12),
              (1 + two(-10)) * two(-15) - two(-36), (3 + two(-9)) * two(-25), (1 + two(-9)) * two(-25), (5 - two(-9)) * two(-26),
              (1 + two(-11)) * two(-20), (1 + two(-5) + two(-6)) * two(-19)]
    # special bit patterns: infinity, NaNs (the last two lose their payload when the low bits are cut off)
    special = np.array([0x7F800000, 0x7FC00000, 0x7FFFFFFF, 0x7F800001, 0x7F80FFFF], np.uint32).view(np.float32)
    # random bits over all exponents, and over the exponents that f16 has
    i = np.arange(1, 17, dtype=np.uint64)
    random = i * np.uint64(0x9E3779B97F4A7C15)
    random ^= random >> np.uint64(29)
    mantissa = (random & np.uint64(0x7FFFFF)).astype(np.uint32)
    anywhere = (random >> np.uint64(24)).astype(np.uint32) % np.uint32(255) << np.uint32(23) | mantissa
    in_f16 = (np.uint32(127 - 25) + (random >> np.uint64(40)).astype(np.uint32) % np.uint32(42)) << np.uint32(23) | mantissa
    positive = np.concatenate([np.array(exact, np.float64).astype(np.float32), special, anywhere.view(np.float32), in_f16.view(np.float32)])
    assert np.array_equal(np.array(exact[20:], np.float64), np.array(exact[20:], np.float64).astype(np.float32).astype(np.float64))
    return np.concatenate([positive, (positive.view(np.uint32) | np.uint32(0x80000000)).view(np.float32)])


def main():
    tensors = {}
    hard = hard_inputs()
    tensors["hard.f32"] = hard
    for label, (dtype, nan, beyond) in DTYPES.items():
        value = PATTERNS.view(dtype).astype(np.float32)
        bits = np.where(np.isnan(value), np.uint32(0x7FC00000), value.view(np.uint32))
        results = to_bits(rounding_inputs(dtype, beyond), dtype, nan)
        check_rule(results, dtype)
        tensors[f"widen.{label}"] = golden.fnv1a64_rows(bits.reshape(256, 256))
        tensors[f"round.{label}"] = golden.fnv1a64_rows(results.reshape(256, 1024))
        tensors[f"hard.{label}"] = to_bits(hard, dtype, nan).view(dtype)
    about = __doc__.split("safetensors\n", 1)[1]
    golden.write("dtypes.safetensors", "tools/reference/dtypes.py", about, ["numpy", "ml_dtypes"], tensors)


if __name__ == "__main__":
    main()
