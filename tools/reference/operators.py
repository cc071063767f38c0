# SPDX-License-Identifier: Apache-2.0
"""Single operators as PyTorch computes them, where their rules are easy to get wrong: masks, rounding, scales.

    python tools/reference/operators.py        writes tests/goldens/operators.safetensors

A tensor's name is "operator|case|field": the case in the form of core/case.h, the field as the .def names it. Inputs and
outputs stand side by side; tests/test_op_goldens.c gives the inputs to the operator and compares its outputs.
"""
import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

import golden

TENSORS = {}


def to_numpy(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if tensor.dtype == torch.float8_e4m3fn:
        return tensor.contiguous().view(torch.uint8).numpy().view(ml_dtypes.float8_e4m3fn)
    return tensor.contiguous().numpy()


def record(operator, case, **fields):
    for name, tensor in fields.items():
        TENSORS[f"{operator}|{case}|{name}"] = to_numpy(tensor)


def dense_attention(random):
    def call(B, H, K, T, U, E, mask=None, is_causal=False, scale=None):
        q, k, v = (torch.randn(B, heads, n, E, generator=random) for heads, n in ((H, T), (K, U), (K, U)))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=H != K)
        M, N, R = mask.shape[:3] if mask is not None else (1, 1, 1)
        kind = "absent" if mask is None else "bool" if mask.dtype == torch.bool else "f32"
        case = f"B={B} H={H} K={K} T={T} U={U} E={E} M={M} N={N} R={R} attn_mask={kind} is_causal={is_causal} " \
               f"scale={scale or 0} enable_gqa={H != K}"
        record("dense_attention", case, query=q, key=k, value=v, output=out, **({} if mask is None else {"attn_mask": mask}))

    call(2, 2, 2, 5, 9, 16)
    call(1, 2, 2, 5, 9, 16, is_causal=True)  # counted from the first key
    call(1, 2, 2, 9, 5, 16, is_causal=True)
    call(2, 4, 2, 6, 7, 8, scale=0.7)
    seen = torch.rand(2, 1, 6, 9, generator=random) > 0.4
    seen[1, 0, 3] = False  # a query that sees nothing
    call(2, 4, 2, 6, 9, 8, mask=seen)
    added = torch.randn(1, 4, 1, 9, generator=random)
    added[0, 1, 0, 4:] = -torch.inf
    added[0, 2] = -torch.inf
    call(2, 4, 4, 6, 9, 8, mask=added)


def main():
    random = torch.Generator().manual_seed(17)
    dense_attention(random)
    golden.write("operators.safetensors", "tools/reference/operators.py", "single operators; names are operator|case|field",
                 ["torch"], TENSORS)


if __name__ == "__main__":
    main()
