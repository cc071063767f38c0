#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M on the CPU against transformers: a prompt of 512 tokens, then 32 tokens one by one, alternated in one run.

    python tools/compare/smollm2_speed.py [--threads 2] [--dtype f32|bf16] [--rounds 5] [--program build/fastkernels]

Needs torch, transformers, accelerate and gguf; the model comes from tools/fetch-assets smollm2-135m. Ours reads the Q4_1 file and computes in --dtype;
transformers has the same weights, dequantised by itself, in bfloat16, eager, with its own key-value cache. Each side is a process
of its own that waits while the other runs, and gets the same number of threads. Ours starts anew each round (the time counts from
the prompt on, so its first touch of the weights is in it); transformers is warm. Prints both sides round by round and the medians
of their ratios: above 1, ours is faster.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT, STEPS = 512, 32


def ours(options, ids):
    """Milliseconds of the prompt, tokens a second after it."""
    command = [options.program, "run", "--model", "smollm2-135m", "--device", "cpu", "--threads", str(options.threads), "--dtype",
               options.dtype, "--prompt-ids", ",".join(map(str, ids)), "--max-tokens", str(STEPS + 1), "--ignore-eos", "--temperature", "0",
               "--json", "-q"]
    timings = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["timings"]
    return timings["prefill_ms"], timings["decode_tok_s"]


@torch.inference_mode()
def theirs(model, ids):
    start = time.perf_counter()
    out = model(input_ids=torch.tensor([ids]), use_cache=True, logits_to_keep=1)
    token = out.logits[:, -1:].argmax(-1)
    prefill = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(STEPS):
        out = model(input_ids=token, past_key_values=out.past_key_values, use_cache=True)
        token = out.logits[:, -1:].argmax(-1)
    return 1e3 * prefill, STEPS / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build" / "fastkernels"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    path = subprocess.run([ROOT / "tools" / "fetch-assets", "--print", "smollm2-135m"], check=True, capture_output=True, text=True).stdout.strip()
    file = pathlib.Path(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16).eval()
    ids = torch.randint(100, 49000, (PROMPT,), generator=torch.Generator().manual_seed(1)).tolist()
    theirs(model, ids)
    prefill, decode = [], []
    for i in range(options.rounds):
        (a_ms, a_rate), (b_ms, b_rate) = ours(options, ids), theirs(model, ids)
        prefill.append(b_ms / a_ms)
        decode.append(a_rate / b_rate)
        print(f"round {i + 1}: {PROMPT} tokens: ours {a_ms:.0f} ms, transformers {b_ms:.0f} ms, {prefill[-1]:.2f}x; "
              f"one by one: ours {a_rate:.1f} tok/s, transformers {b_rate:.1f}, {decode[-1]:.2f}x", flush=True)
    print(f"ours in {options.dtype}, {options.threads} threads: {statistics.median(prefill):.2f} times the speed of transformers "
          f"{transformers.__version__} (torch {torch.__version__}, bfloat16, eager) at {PROMPT} tokens, {statistics.median(decode):.2f} times one by one")


if __name__ == "__main__":
    main()
