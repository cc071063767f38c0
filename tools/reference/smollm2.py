# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M: its GGUF file dequantised by the gguf package, run by transformers in float32 on the CPU.

    tools/fetch-assets smollm2-135m
    python tools/reference/smollm2.py       writes tests/goldens/smollm2_135m.safetensors

Tensors (P = 20 prompts; ids are llama.cpp's):
    prompt_ids I32, prompt_start I32 [P + 1]    prompt p is prompt_ids[prompt_start[p] : prompt_start[p + 1]]
    top_ids I32, top_logits F32 [P, 64]         the largest logits after the prompt, in falling order
    random_ids I32 [256], random_logits F32 [P, 256]    the same position, at fixed ids
    logsumexp F32 [P]                           over the whole vocabulary
    greedy_ids I32 [P, 64]                      greedy continuation, end tokens taken like any other
    greedy_gap F32 [P, 64]                      at each of these steps the largest logit minus the second largest
    dequant_hash I64 [272]                      one per tensor, in the file's order: 64-bit FNV-1a over the rows' hashes
                                                (8 little-endian bytes each), a row's being 64-bit FNV-1a over its float32
                                                values; a one-dimensional tensor is one row
"""
import pathlib
import re
import subprocess

import gguf
import jinja2
import llama_cpp
import numpy as np
import torch
import transformers

import golden
import seeded

STEPS = 64
RANDOM_IDS = 256
SYSTEM = "You are a terse assistant."
ESSAY = """The harbour town had two clocks, and they never agreed. The one on the church ran four minutes fast, so that nobody
would miss the service; the one on the customs house ran six minutes slow, so that no ship could be said to have sailed
late. Between the two lay ten minutes that belonged to no one, and the children of the town made good use of them. They
called it the gap. In the gap you could not be scolded for being late, because somewhere in sight it was still early, and
you could not be sent home, because somewhere in sight it was already time to be elsewhere. When the railway came, the
company hung a third clock over the platform, and this one was right. For a week people gathered under it after supper to
watch the minutes fall into place. Then the stationmaster, who had grown up in the town, climbed a ladder one evening and
moved the long hand"""
# (text, or a list of chat messages; the template of the file renders these and special tokens are parsed)
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "Water boils at a temperature of 100 degrees Celsius, and it freezes at",
    "1, 2, 3, 4, 5, 6,",
    "Q: What is 12 + 30?\nA: 42\nQ: What is 7 + 8?\nA:",
    "La capitale de l'Italie est",
    "Die Hauptstadt von Deutschland ist",
    "El sol sale por el este y se pone por el",
    "Столица России - это город",
    "日本の首都は",
    "中国的首都是",
    "عاصمة مصر هي",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "#include <stdio.h>\n\nint main(void)\n{\n    for (int i = 0; i < 10; i++) {\n",
    "SELECT name, COUNT(*) FROM orders",
    "I love pizza 🍕 and sushi 🍣, but my favourite is 🍦 because",
    " ".join(ESSAY.split()),
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Name three colours."},
     {"role": "assistant", "content": "Red, green, blue."}, {"role": "user", "content": "And two more?"}],
    [{"role": "user", "content": "Write a haiku about the sea 🌊.\n\nUse  42  words at most."}],
]


def text_field(reader, name):
    return reader.fields[name].contents()


def build_model(reader):
    """transformers' Llama with the dequantised weights; also a hash of each tensor."""
    value = lambda name: text_field(reader, "llama." + name)
    heads, kv_heads = value("attention.head_count"), value("attention.head_count_kv")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=value("embedding_length"), num_hidden_layers=value("block_count"), num_attention_heads=heads,
        num_key_value_heads=kv_heads, intermediate_size=value("feed_forward_length"), vocab_size=value("vocab_size"),
        max_position_embeddings=value("context_length"), rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base")}, tie_word_embeddings=True)).eval()
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    parameters = dict(model.named_parameters())
    hashes = []
    for tensor in reader.tensors:
        weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        hashes.append(golden.fnv1a64(golden.fnv1a64_rows(np.atleast_2d(weight)).tobytes()))
        layer, kind = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name).groups()
        if kind in ("attn_q", "attn_k"):
            # The file holds the rows of a head in the order of interleaved pairs, transformers wants halves.
            count = heads if kind == "attn_q" else kv_heads
            weight = weight.reshape(count, -1, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
        name = (f"model.layers.{layer}." if layer else "") + names[kind] + ".weight"
        parameter = parameters.pop(name)
        assert tuple(parameter.shape) == weight.shape, name
        parameter.data = torch.from_numpy(np.array(weight, order="C"))
    assert not parameters, f"not in the file: {sorted(parameters)}"
    return model, np.array(hashes, np.uint64).view(np.int64)


def render_chat(template, messages):
    return jinja2.Template(template, trim_blocks=True, lstrip_blocks=True).render(messages=messages, add_generation_prompt=True)


def gap(logits):
    top = logits.topk(2).values
    return float(top[0] - top[1])


def run(model, ids):
    """Logits after the prompt, greedy ids, gaps."""
    logits, greedy, gaps = None, [], []
    cache = transformers.DynamicCache(config=model.config)
    step = torch.tensor([ids])
    with torch.no_grad():
        while len(greedy) < STEPS:
            last = model(step, cache=cache, use_cache=True).logits[0, -1]
            logits = last if logits is None else logits
            greedy.append(int(last.argmax()))
            gaps.append(gap(last))
            step = torch.tensor([[greedy[-1]]])
    return logits, greedy, gaps


def main():
    fetch = pathlib.Path(__file__).resolve().parents[1] / "fetch-assets"
    path = subprocess.run([fetch, "--print", "smollm2-135m"], check=True, capture_output=True, text=True).stdout.strip()
    reader = gguf.GGUFReader(path)
    tokenizer = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    template = text_field(reader, "tokenizer.chat_template")
    model, dequant_hash = build_model(reader)
    vocab_size = model.config.vocab_size
    random_ids = np.sort((seeded.mix64(np.arange(1, RANDOM_IDS + 1, dtype=np.uint64)) % np.uint64(vocab_size)).astype(np.int32))

    prompts, results = [], []
    for prompt in PROMPTS:
        chat = isinstance(prompt, list)
        text = render_chat(template, prompt) if chat else prompt
        prompts.append(tokenizer.tokenize(text.encode(), add_bos=False, special=chat))
        results.append(run(model, prompts[-1]))
        print(f"{len(prompts[-1]):4} ids, smallest gap {min(results[-1][2]):.6f}: "
              f"{tokenizer.detokenize(results[-1][1], special=True).decode(errors='replace')!r}")
    logits = torch.stack([result[0] for result in results])
    top = logits.topk(64)
    tensors = {
        "prompt_ids": np.array(sum(prompts, []), np.int32),
        "prompt_start": np.cumsum([0] + [len(ids) for ids in prompts]).astype(np.int32),
        "top_ids": top.indices.numpy().astype(np.int32), "top_logits": top.values.numpy(),
        "random_ids": random_ids, "random_logits": logits[:, random_ids].numpy(),
        "logsumexp": logits.double().logsumexp(-1).float().numpy(),
        "greedy_ids": np.array([result[1] for result in results], np.int32),
        "greedy_gap": np.array([result[2] for result in results], np.float32),
        "dequant_hash": dequant_hash}
    golden.write("smollm2_135m.safetensors", "tools/reference/smollm2.py", __doc__.split("Tensors ", 1)[1],
                 ["torch", "transformers", "gguf", "llama_cpp_python", "numpy"], tensors,
                 file=pathlib.Path(path).name, prompts=PROMPTS, tensor_names=[tensor.name for tensor in reader.tensors],
                 smallest_gap=float(tensors["greedy_gap"].min()))


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
