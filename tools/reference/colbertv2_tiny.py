# SPDX-License-Identifier: Apache-2.0
"""Tiny BERTs with seeded weights, as transformers' BertModel computes them on the CPU.

    python tools/reference/colbertv2_tiny.py    writes tests/goldens/colbertv2_tiny.safetensors (ColBERT's head) and
                                                tests/goldens/bert_tiny.safetensors (mean pooling, another epsilon)

Weights come from seeded.py by checkpoint name ("bert." before transformers' names, "linear.weight" for the head), so the
goldens hold only ids and results. Three sequences "long", "short" and "one", each run alone; the long one has two segments. Per
sequence S (T tokens, D hidden size, E features of a vector):

    ids.S types.S             I32 [T]     token ids, token_type_ids
    embeddings.S layer0.S     F32 [T, D]  after the embeddings, after layer 0
    hidden.S                  F32 [T, D]  after the last layer
    vectors.S                 F32 [T, E]  ColBERT: normalize(linear(hidden)); or [1, D]: normalize(mean(hidden))
    vectors_bf16_weights.S    F32         weights rounded to bf16, arithmetic in float32: the truth for the next one
    vectors_bf16.S            BF16        weights and arithmetic in bf16
    scores                    F32 [3]     of the long sequence as a query against all three as documents: MaxSim without the
                                          tokens of `skiplist` and padding, or cosines

A bf16 implementation is good when its error against vectors_bf16_weights is at most 1.5 times that of vectors_bf16.
"""
import ml_dtypes
import numpy as np
import torch
import transformers

import golden
import seeded

SEED = 4321
LENGTHS = {"long": 41, "short": 6, "one": 1}
SKIPLIST = [3, 5]

BASE = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 300, "hidden_size": 64, "intermediate_size": 176,
        "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 48, "type_vocab_size": 2, "hidden_act": "gelu",
        "pad_token_id": 0}
CONFIGS = {"colbertv2_tiny": {**BASE, "layer_norm_eps": 1e-12, "dim": 24},
           "bert_tiny": {**BASE, "layer_norm_eps": 1e-5}}


def token_ids(length, vocab_size):
    """Hashed ids; the last of the vocabulary, one of the skiplist and a repetition among them; none is padding."""
    ids = 1 + seeded.mix64(np.arange(1, length + 1, dtype=np.uint64)) % np.uint64(vocab_size - 1)
    if length > 4:
        ids[:4] = [1, vocab_size - 1, SKIPLIST[1], ids[4]]
    return ids.astype(np.int32)


class Reference(torch.nn.Module):
    def __init__(self, config, dtype, round_to=None):
        super().__init__()
        self.bert = transformers.BertModel(transformers.BertConfig.from_dict(config), add_pooling_layer=False).eval()
        self.linear = torch.nn.Linear(config["hidden_size"], config["dim"], bias=False) if "dim" in config else None
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                values = seeded.values(SEED, name, tuple(parameter.shape))
                if round_to is not None:
                    values = values.astype(round_to).astype(np.float32)
                parameter.data = torch.from_numpy(values).to(dtype)

    def forward(self, ids, types):
        with torch.no_grad():
            output = self.bert(torch.from_numpy(ids)[None].long(), token_type_ids=torch.from_numpy(types)[None].long(),
                               output_hidden_states=True)
            hidden = output.hidden_states[-1][0]
            vectors = self.linear(hidden) if self.linear else hidden.mean(0, keepdim=True)
            return (output.hidden_states[0][0], output.hidden_states[1][0], hidden,
                    torch.nn.functional.normalize(vectors, p=2, dim=-1))


def relative_error(value, truth):
    return float((value.double() - truth.double()).pow(2).mean().sqrt() / truth.double().pow(2).mean().sqrt())


def make(file_name, config):
    plain, double = Reference(config, torch.float32), Reference(config, torch.float64)
    rounded = Reference(config, torch.float32, round_to=ml_dtypes.bfloat16)
    bf16 = Reference(config, torch.bfloat16)
    tensors, errors, vectors = {}, {}, {}
    for name, length in LENGTHS.items():
        ids = token_ids(length, config["vocab_size"])
        types = (np.arange(length) >= length // 2).astype(np.int32) if name == "long" else np.zeros(length, np.int32)
        embeddings, layer0, hidden, vectors[name] = plain(ids, types)
        truth, own = rounded(ids, types)[3], bf16(ids, types)[3]
        errors[name] = {"float32_against_float64": relative_error(vectors[name], double(ids, types)[3]),
                        "bf16_against_float32": relative_error(own, truth)}
        tensors |= {f"ids.{name}": ids, f"types.{name}": types, f"embeddings.{name}": embeddings.numpy(),
                    f"layer0.{name}": layer0.numpy(), f"hidden.{name}": hidden.numpy(), f"vectors.{name}": vectors[name].numpy(),
                    f"vectors_bf16_weights.{name}": truth.numpy(),
                    f"vectors_bf16.{name}": own.float().numpy().astype(ml_dtypes.bfloat16)}
    query, scores = vectors["long"].double(), []
    for name in LENGTHS:
        similarities = query @ vectors[name].double().T
        if "dim" in config:                              # MaxSim over the document's tokens that count
            similarities[:, np.isin(tensors[f"ids.{name}"], SKIPLIST)] = -9999
            scores.append(float(similarities.max(1).values.sum()))
        else:
            scores.append(float(similarities))
    tensors["scores"] = np.array(scores, np.float32)
    print(file_name, errors)
    golden.write(file_name + ".safetensors", "tools/reference/colbertv2_tiny.py", __doc__.split("epsilon)\n", 1)[1],
                 ["torch", "transformers", "numpy", "ml_dtypes"], tensors, seed=SEED, config=config, skiplist=SKIPLIST,
                 attention=plain.bert.config._attn_implementation, relative_rms_errors=errors)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for file_name, config in CONFIGS.items():
        make(file_name, config)
