# SPDX-License-Identifier: Apache-2.0
"""Single operators as PyTorch computes them, where their rules are easy to get wrong: masks, rounding, scales.

    python tools/reference/operators.py        writes tests/goldens/operators.safetensors

A tensor's name is "operator|case|field": the case in the form of core/case.h, the field as the .def names it; what becomes of one that is changed in place is "field.after". Inputs and
outputs stand side by side; tests/test_op_goldens.c gives the inputs to the operator and compares its outputs.
"""
import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F
import transformers

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


def tree_attn_prefill(random):
    """Two sequences of 5 and 3 drafts with 9 and 4 tokens before them; the tree's rows say which drafts each sees."""
    H, K, E, S, parents = 4, 2, 16, 4, [-1, 0, 0, 1, 2, 1]
    bias = torch.full((6, 6), -torch.inf)
    for i in range(6):
        at = i
        while at >= 0:
            bias[i, at] = 0.25 * at  # any bias may be added, not only a mask
            at = parents[at]
    k, v = torch.randn(7, S, K, E, generator=random), torch.randn(7, S, K, E, generator=random)
    q = torch.randn(8, H, E, generator=random)
    table = torch.tensor([[3, 0, 6, 2], [5, 1, 0, 0]], dtype=torch.int32)
    starts, lengths = torch.tensor([0, 5, 8], dtype=torch.int32), torch.tensor([14, 7], dtype=torch.int32)
    for causal in (False, True):
        out = torch.empty_like(q)
        for b in range(2):
            start, stop, length = int(starts[b]), int(starts[b + 1]), int(lengths[b])
            n = stop - start
            keys, values = (cache[table[b].long()].reshape(-1, K, E)[:length].permute(1, 0, 2) for cache in (k, v))
            mask = torch.cat([torch.zeros(n, length - n), bias[:n, :n]], 1)
            if causal:
                mask = mask.masked_fill(torch.ones(n, length).tril(length - n) == 0, -torch.inf)
            out[start:stop] = F.scaled_dot_product_attention(q[start:stop].permute(1, 0, 2), keys, values, attn_mask=mask, scale=0.3,
                                                             enable_gqa=True).permute(1, 0, 2)
        case = f"T=8 B=2 H={H} K={K} E={E} N=7 S={S} M=4 Q=6 max_seqlen_q=5 max_seqlen_k=14 softmax_scale=0.3 causal={causal} softcap=0"
        record("tree_attn_prefill", case, q=q, k=k, v=v, cu_seqlens_q=starts, seqused_k=lengths, block_table=table, qq_bias=bias, out=out)


def quantize(x, group, power_of_two=False):
    """fp8 and scales of groups along the last dim, in float32 throughout, as vLLM's kernel does it (per_token_group_quant.cu);
    a last group may be smaller."""
    x = x.float()
    groups = [x[:, i:i + group] for i in range(0, x.shape[1], group)]
    scales = torch.stack([part.abs().amax(1).clamp(min=1e-10) / 448 for part in groups], 1)
    if power_of_two:
        scales = torch.exp2(torch.ceil(torch.log2(scales.clamp(min=1e-10).double()))).float()
    q = torch.cat([(part / scales[:, i:i + 1]).clamp(-448, 448).to(torch.float8_e4m3fn) for i, part in enumerate(groups)], 1)
    return q, scales


def dequantize(q, scales, rows=1):
    full = scales.repeat_interleave(rows, 0)[:q.shape[0]].repeat_interleave(128, 1)[:, :q.shape[1]]
    return q.double() * full.double()


def per_token_group_quant_fp8(random):
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        for group, power_of_two in ((64, False), (128, True)):
            x = (torch.randn(6, 256, generator=random) * torch.logspace(-12, 4, 6)[:, None]).to(dtype)
            x[2, :128] = 0
            x[3, 5] = 448.0 * 2**-3  # a largest magnitude that makes the scale a power of two
            x[3, :5] = x[3, 6:] = 0.1
            q, scales = quantize(x, group, power_of_two)
            case = f"T=6 D=256 input={kind} group_size={group} eps=1e-10 fp8_min=-448 fp8_max=448 scale_ue8m0={power_of_two}"
            record("per_token_group_quant_fp8", case, input=x, output_q=q, output_s=scales)


def fp8_weight(random, features, depth):
    weight = (torch.randn(features, depth, generator=random) * 60).clamp(-448, 448).to(torch.float8_e4m3fn)
    scales = torch.rand((features + 127) // 128, (depth + 127) // 128, generator=random) * 0.01 + 0.001
    return weight, scales


def fp8_linear(random):
    for dtype, kind, rows, depth, features in ((torch.float32, "f32", 3, 200, 140), (torch.bfloat16, "bf16", 5, 256, 20)):
        x = torch.randn(rows, depth, generator=random).to(dtype)
        weight, scales = fp8_weight(random, features, depth)
        out = dequantize(*quantize(x, 128)) @ dequantize(weight, scales, 128).T
        record("fp8_linear", f"T={rows} D={depth} O={features} input={kind}", input=x, weight=weight, weight_scale=scales, out=out.to(dtype))


def fp8_grouped_gemm_contiguous(random):
    experts, depth, features = 3, 200, 20
    q, scales = quantize(torch.randn(7, depth, generator=random), 128)
    weights, weight_scales = zip(*(fp8_weight(random, features, depth) for _ in range(experts)))
    indices = torch.tensor([0, 0, -1, 2, 2, 2, -1], dtype=torch.int32)
    out = torch.zeros(7, features, dtype=torch.float64)
    for t, expert in enumerate(indices.tolist()):
        if expert >= 0:
            out[t] = dequantize(weights[expert], weight_scales[expert], 128) @ dequantize(q, scales)[t]
    record("fp8_grouped_gemm_contiguous", f"T=7 D={depth} O={features} X={experts}", a=q, b=torch.stack([w.view(torch.uint8) for w in weights])
           .view(torch.float8_e4m3fn), a_scale=scales, b_scale=torch.stack(weight_scales), m_indices=indices, out=out.bfloat16())


def apply_penalties(random):
    """Repetition as transformers' logits processor does it, then frequency and presence by counts of the answer."""
    batch, vocabulary, prompts, answers = 4, 50, 12, 20
    logits = torch.randn(batch, vocabulary, generator=random) * 3
    prompt = torch.randint(0, vocabulary, (batch, prompts), generator=random)
    answer = torch.randint(0, 12, (batch, answers), generator=random)
    presence, frequency = torch.tensor([0, 0.7, -0.3, 1.5]), torch.tensor([0, 0.2, 0.9, -0.4])
    repetition = torch.tensor([1.3, 1, 0.8, 2])
    out = torch.stack([transformers.RepetitionPenaltyLogitsProcessor(float(r))(torch.cat([p, a])[None], x[None].clone())[0]
                       for x, p, a, r in zip(logits, prompt, answer, repetition)])
    counts = torch.stack([torch.bincount(a, minlength=vocabulary) for a in answer])
    out = out - frequency[:, None] * counts - presence[:, None] * (counts > 0)
    padding = torch.full((batch, 3), vocabulary)
    record("apply_penalties", f"B={batch} V={vocabulary} P={prompts + 3} O={answers + 3}", logits=logits,
           prompt_tokens_tensor=torch.cat([prompt, padding], 1), output_tokens_tensor=torch.cat([answer, padding], 1),
           presence_penalties=presence, frequency_penalties=frequency, repetition_penalties=repetition, **{"logits.after": out})


def main():
    random = torch.Generator().manual_seed(17)
    dense_attention(random)
    tree_attn_prefill(random)
    per_token_group_quant_fp8(random)
    fp8_linear(random)
    fp8_grouped_gemm_contiguous(random)
    apply_penalties(random)
    golden.write("operators.safetensors", "tools/reference/operators.py", "single operators; names are operator|case|field",
                 ["torch", "transformers"], TENSORS)


if __name__ == "__main__":
    main()
