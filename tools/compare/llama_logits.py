# SPDX-License-Identifier: Apache-2.0
"""Our logits of Llama with seeded weights against transformers' on the same weights, on one GPU.

    python tools/compare/llama_logits.py CONFIG.json FASTKERNELS MODEL [-o FILE.json] [--seed N]

CONFIG.json is the configuration that MODEL ("llama:8b") names. transformers runs twice: in float32 with the weights rounded
to bfloat16 (the truth), and in bfloat16 (what production does). Both errors at the last position are given as root mean
square over the vocabulary, relative to that of the truth; ours may be at most 1.5 times theirs. Exit 1 when it is not.
Needs torch and transformers; prompts are token ids, so no tokenizer."""
import argparse
import json
import pathlib
import random
import subprocess
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
import seeded_torch  # noqa: E402

LENGTHS = (1, 17, 128, 700)
LIMIT = 1.5


def build(config, seed, dtype):
    with torch.device("cuda"):
        torch.set_default_dtype(dtype)
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    seeded_torch.fill_parameters(model, seed)
    return model


def logits_of(model, prompts):
    with torch.no_grad():
        return [model(torch.tensor([ids], device="cuda")).logits[0, -1].float().cpu() for ids in prompts]


def ours_of(program, name, seed, ids, vocab):
    command = [program, "run", "--model", name, "--device", "cuda", "--seed", str(seed), "--prompt-ids",
               ",".join(map(str, ids)), "--max-tokens", "1", "--logits", str(vocab), "--ignore-eos", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:8])} ... failed: {done.stderr.strip()[-2000:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    logits = torch.full((vocab,), float("nan"))
    for index, value in result["top_logits"]:
        logits[index] = value
    if torch.isnan(logits).any():
        sys.exit(f"only {len(result['top_logits'])} of {vocab} logits came back")
    return logits, result["timings"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config"), parser.add_argument("program"), parser.add_argument("model")
    parser.add_argument("-o", "--output"), parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    config = transformers.LlamaConfig(**json.load(open(args.config)))
    rng = random.Random(1)
    prompts = [[rng.randrange(config.vocab_size) for _ in range(n)] for n in LENGTHS]

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    half = build(config, args.seed, torch.bfloat16)
    theirs = logits_of(half, prompts)
    truth_model = half.float()  # the bfloat16 weights, widened: exact
    truth = logits_of(truth_model, prompts)
    del half, truth_model
    torch.cuda.empty_cache()

    rows, worst = [], 0
    for ids, golden, their in zip(prompts, truth, theirs):
        our, timings = ours_of(args.program, args.model, args.seed, ids, config.vocab_size)
        rms = golden.square().mean().sqrt()
        our_error, their_error = (((x - golden).square().mean().sqrt() / rms).item() for x in (our, their))
        ratio = our_error / their_error
        worst = max(worst, ratio)
        rows.append(dict(prompt_tokens=len(ids), our_error=our_error, their_error=their_error, ratio=ratio,
                         argmax_equal=bool(our.argmax() == golden.argmax()), timings=timings))
        print(f"{len(ids):5d} tokens: error {our_error:.3e}, transformers' bfloat16 {their_error:.3e}, ratio {ratio:.2f}",
              flush=True)
    result = dict(model=args.model, library="transformers", version=transformers.__version__, torch=torch.__version__,
                  device=torch.cuda.get_device_name(), limit=LIMIT, worst_ratio=worst, cases=rows)
    if args.output:
        json.dump(result, open(args.output, "w"), indent=1)
    print("validate:", "PASSED" if worst <= LIMIT else "FAILED", f"worst ratio {worst:.2f}, limit {LIMIT}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
