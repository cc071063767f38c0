#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MiniLM against PyTorch: 32 sequences of 128 tokens through all-MiniLM-L6-v2, alternated in one run.

    python tools/compare/minilm.py [--threads 2] [--dtype f32|bf16] [--rounds 5] [--program build/fastkernels]

Needs transformers and torch; the model comes from tools/fetch-assets minilm-l6. Each side is a process of its own that waits while
the other runs: ours is asked by `eval --self-test`, whose req_s is the median of its runs; PyTorch's time is the median of as many
passes. Both get the same number of threads. Prints milliseconds a pass of both sides, round by round, and the median of their ratios.
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
SEQUENCES, TOKENS = 32, 128


def ours(options):
    command = [options.program, "eval", "--scenario", "encoder-32x128", "--self-test", "--pairs", "4", "--time-budget-s", "0", "--device", "cpu",
               "--threads", str(options.threads), "--dtype", options.dtype, "--json"]
    record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    return 1e3 * SEQUENCES / max(record["baseline"]["req_s"], record["candidate"]["req_s"])


def theirs(model, ids):
    def one():
        start = time.perf_counter()
        with torch.inference_mode():
            hidden = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            torch.nn.functional.normalize(hidden.mean(1), dim=-1)
        return 1e3 * (time.perf_counter() - start)

    one()
    return min(statistics.median(one() for _ in range(4)) for _ in range(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build" / "fastkernels"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = subprocess.run([ROOT / "tools" / "fetch-assets", "--print", "minilm-l6"], check=True, capture_output=True, text=True).stdout.strip()
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False,
                                                   dtype=torch.float32 if options.dtype == "f32" else torch.bfloat16).eval()
    ids = torch.randint(1000, 30000, (SEQUENCES, TOKENS), generator=torch.Generator().manual_seed(1))
    ratios = []
    for i in range(options.rounds):
        a, b = ours(options), theirs(model, ids)
        ratios.append(b / a)
        print(f"round {i + 1}: ours {a:.1f} ms, PyTorch {b:.1f} ms, {b / a:.2f}x", flush=True)
    print(f"{options.dtype}, {options.threads} threads: {statistics.median(ratios):.2f} times PyTorch {torch.__version__}'s speed "
          f"(attention {model.config._attn_implementation})")


if __name__ == "__main__":
    main()
