# SPDX-License-Identifier: Apache-2.0
"""A tiny Qwen3 as transformers' save_pretrained writes it: shards with their index, config.json, generation_config.json.

    python tools/reference/hf_folder.py     writes the folder tests/goldens/hf_folder and tests/goldens/hf_folder.safetensors

Weights are bf16, from torch's generator; logits and ids come from float32 arithmetic on them, the ids greedily. The first
end token of generation_config.json is one that the model says; config.json names another one.

    prompt I32 [P]      answer I32 [A]  up to the end token, which is the last
    logits F32 [P, V]   of the prompt   endless I32 [E]  the answer with end tokens ignored
"""
import json
import shutil

import numpy as np
import torch
import transformers

import golden

PROMPT = [3, 17, 94, 0, 41, 17, 5]
ENDLESS = 24
END_AT = 7          # the answer's token that becomes an end token
SHARD_BYTES = 12000

CONFIG = {"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 16, "intermediate_size": 48, "vocab_size": 96, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
          "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "use_sliding_window": False,
          "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": 32}}


def build():
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(**CONFIG)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape)
            parameter.copy_(1 + 0.1 * noise if parameter.ndim == 1 else noise * parameter.shape[-1] ** -0.5)
    return model.to(torch.bfloat16)


def generate(model, **arguments):
    ids = torch.tensor([PROMPT])
    return model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **arguments)[0, len(PROMPT):].tolist()


def main():
    folder = golden.GOLDENS / "hf_folder"
    shutil.rmtree(folder, ignore_errors=True)
    model = build()
    exact = build().float()
    exact.generation_config.eos_token_id = None
    endless = generate(exact, max_new_tokens=ENDLESS, pad_token_id=0)
    end = endless[END_AT]
    assert end not in endless[:END_AT] and 2 not in endless, endless
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=1, eos_token_id=[end, 7 if end != 7 else 8], do_sample=True, temperature=0.6, top_k=20, top_p=0.95)
    model.save_pretrained(folder, max_shard_size=SHARD_BYTES)

    again = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    answer = generate(again, max_new_tokens=ENDLESS, pad_token_id=0)
    assert answer == endless[:END_AT + 1], (answer, endless)
    with torch.no_grad():
        logits = again(torch.tensor([PROMPT])).logits[0].numpy()
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 2
    golden.write("hf_folder.safetensors", "tools/reference/hf_folder.py", __doc__.split("hf_folder.safetensors\n", 1)[1],
                 ["torch", "transformers", "safetensors"],
                 {"prompt": np.array(PROMPT, np.int32), "answer": np.array(answer, np.int32), "logits": logits,
                  "endless": np.array(endless, np.int32)})


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
