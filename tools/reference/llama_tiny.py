# SPDX-License-Identifier: Apache-2.0
"""Tiny Llamas and kin with seeded weights, as transformers computes them on the CPU.

    python tools/reference/llama_tiny.py [NAME...]    writes tests/goldens/NAME.safetensors, all of them without names:
        llama_tiny               untied head
        llama_tiny_rope_llama3   rope_type llama3, tied head
        llama_tiny_yarn          rope_type yarn in rope_parameters, biases, no head_dim, no num_key_value_heads
        mistral_tiny             a sliding window in every layer, rope_type linear in the old form
        qwen2_tiny               biases on query, key and value; a sliding window from layer 1 on
        qwen3_tiny               normalized heads of query and key, head_dim above hidden_size / heads

Weights come from seeded.py by checkpoint name, so the goldens hold only ids and results. Two sequences, each run alone
from position 0: "long" and "short". Per sequence (T tokens, D hidden size, V vocabulary, R last positions that are kept):

    ids.S                     I32 [T]
    embeddings.S layer0.S     F32 [T, D]  after the embedding, after decoder layer 0
    norm.S                    F32 [T, D]  after the final norm
    logits.S                  F32 [R, V]  float32 weights, float32 arithmetic, as the three above
    logits_bf16_weights.S     F32 [R, V]  weights rounded to bf16, arithmetic in float32: the truth for the next one
    logits_bf16.S             BF16 [R, V] weights and arithmetic in bf16 (tables of the rotary embedding in float32)

A bf16 implementation is good when its error against logits_bf16_weights is at most 1.5 times that of logits_bf16.
"""
import sys

import ml_dtypes
import numpy as np
import torch
import transformers

import golden
import seeded

SEED = 1234
LENGTHS = {"long": 37, "short": 5}
KEPT_LOGITS = 16

BASE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 160, "vocab_size": 384,
        "max_position_embeddings": 512, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def variant(architecture, model_type, without=("attention_bias", "mlp_bias", "head_dim"), **fields):
    kept = {key: value for key, value in BASE.items() if key not in without}
    return {**kept, "architectures": [architecture], "model_type": model_type, **fields}


# The llama3 bands: with 8 frequencies and these numbers one is kept, one lies between, six are divided by the factor.
CONFIGS = {
    "llama_tiny": {**BASE, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": False},
    "llama_tiny_rope_llama3": {
        **BASE, "rms_norm_eps": 1e-6, "rope_theta": 500000.0, "tie_word_embeddings": True,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64}},
    "llama_tiny_yarn": variant(
        "LlamaForCausalLM", "llama", without=("head_dim", "num_key_value_heads"), attention_bias=True, rms_norm_eps=1e-6,
        tie_word_embeddings=False, max_position_embeddings=128,
        rope_parameters={"rope_type": "yarn", "rope_theta": 20000.0, "factor": 4.0, "original_max_position_embeddings": 32,
                         "beta_fast": 8.0}),
    "mistral_tiny": variant("MistralForCausalLM", "mistral", rms_norm_eps=1e-5, tie_word_embeddings=False, sliding_window=6,
                            rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 2.0}),
    "qwen2_tiny": variant("Qwen2ForCausalLM", "qwen2", rms_norm_eps=1e-6, tie_word_embeddings=True, rope_theta=1000000.0,
                          use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "qwen3_tiny": variant("Qwen3ForCausalLM", "qwen3", rms_norm_eps=1e-6, tie_word_embeddings=False, head_dim=32,
                          rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, sliding_window=None,
                          use_sliding_window=False),
}


def token_ids(length, vocab_size):
    """Hashed ids with the first and the last of the vocabulary and a repetition among them."""
    ids = seeded.mix64(np.arange(1, length + 1, dtype=np.uint64)) % np.uint64(vocab_size)
    ids[:4] = [1, vocab_size - 1, 0, ids[4]]
    return ids.astype(np.int32)


def build(config, dtype, round_to=None):
    """The model with seeded weights, rounded to round_to where given. Buffers keep their float32."""
    config = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():      # a tied head appears once, as the embedding
            values = seeded.values(SEED, name, tuple(parameter.shape))
            if round_to is not None:
                values = values.astype(round_to).astype(np.float32)
            parameter.data = torch.from_numpy(values).to(dtype)
    rotary = model.model.rotary_emb
    assert rotary.inv_freq.dtype == torch.float32
    if dtype == torch.float64:                                 # all but the norms, which transformers keeps in float32
        rotary.inv_freq = rotary.inv_freq.double()
    return model


def forward(model, ids):
    with torch.no_grad():
        output = model(torch.from_numpy(ids)[None].long(), output_hidden_states=True, use_cache=False)
    hidden = output.hidden_states                              # embeddings, after each layer; the last one is after the norm
    assert len(hidden) == model.config.num_hidden_layers + 1
    return hidden[0][0], hidden[1][0], hidden[-1][0], output.logits[0]


def relative_error(value, truth):
    return float((value.double() - truth.double()).pow(2).mean().sqrt() / truth.double().pow(2).mean().sqrt())


def make(file_name, config):
    plain = build(config, torch.float32)
    rounded = build(config, torch.float32, round_to=ml_dtypes.bfloat16)
    bf16 = build(config, torch.bfloat16)
    double = build(config, torch.float64)
    tensors, errors = {}, {}
    for name, length in LENGTHS.items():
        ids = token_ids(length, config["vocab_size"])
        embeddings, layer0, norm, logits = forward(plain, ids)
        truth, own = forward(rounded, ids)[3], forward(bf16, ids)[3]
        errors[name] = {"float32_logits_against_float64": relative_error(logits, forward(double, ids)[3]),
                        "bf16_logits_against_float32": relative_error(own[-KEPT_LOGITS:], truth[-KEPT_LOGITS:])}
        tensors[f"ids.{name}"] = ids
        tensors[f"embeddings.{name}"] = embeddings.numpy()
        tensors[f"layer0.{name}"] = layer0.numpy()
        tensors[f"norm.{name}"] = norm.numpy()
        tensors[f"logits.{name}"] = logits[-KEPT_LOGITS:].numpy()
        tensors[f"logits_bf16_weights.{name}"] = truth[-KEPT_LOGITS:].numpy()
        tensors[f"logits_bf16.{name}"] = own[-KEPT_LOGITS:].float().numpy().astype(ml_dtypes.bfloat16)
    print(file_name, errors)
    golden.write(file_name + ".safetensors", "tools/reference/llama_tiny.py", __doc__.split("hidden_size / heads\n", 1)[1],
                 ["torch", "transformers", "numpy", "ml_dtypes"], tensors, seed=SEED, config=config,
                 attention=plain.config._attn_implementation, relative_rms_errors=errors)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for file_name in sys.argv[1:] or CONFIGS:
        make(file_name, CONFIGS[file_name])
