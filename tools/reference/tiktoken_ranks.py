# SPDX-License-Identifier: Apache-2.0
"""What the `tiktoken` package makes of a rank file, with the patterns and special tokens of its encodings.

    python tools/reference/tiktoken_ranks.py     writes tests/goldens/tiktoken.json and tests/goldens/ranks.tiktoken

The ranks are the pieces of the vocabulary "bytes" of tests/goldens/bpe_families.json in their order; that package's own
files are not needed. Hashes of lines, sweep, text and repeats are as bpe_families.py states them; special tokens in text
are found, and are no part of the decoded text.
"""
import base64
import json
import sys
import types

import numpy as np
import tiktoken
import tiktoken_ext.openai_public as public

import golden

sys.modules.setdefault("llama_cpp", types.ModuleType("llama_cpp"))  # only the lines are wanted
import bpe_families as bpe  # noqa: E402
import tokenizer_lines  # noqa: E402

CASES = bpe.CASES + ["a<|endoftext|>b <|fim_prefix|> <|endofprompt|>", "x \n", "x\n \t ", " \n\n  y", "it'\u017f IT'S", "\u01c5a \u02b0b", "   <|endoftext|>  "]


def encodings(ranks):
    """The encodings of the package with these ranks in place of downloaded ones."""
    public.load_tiktoken_bpe = lambda *args, **kwargs: ranks
    public.data_gym_to_mergeable_bpe_ranks = lambda *args, **kwargs: ranks
    for name in ("gpt2", "p50k_edit", "cl100k_base", "o200k_base"):
        spec = public.ENCODING_CONSTRUCTORS[name]()
        spec.pop("explicit_n_vocab", None)
        yield name, tiktoken.Encoding(**spec)


def main():
    with open(golden.GOLDENS / "bpe_families.json", encoding="utf-8") as file:
        vocab = json.load(file)["vocabularies"]["bytes"]["model"]["vocab"]
    to_byte = {c: b for b, c in bpe_bytes().items()}
    pieces = [p for p, _ in sorted(vocab.items(), key=lambda item: item[1]) if p not in ("<s>", "</s>", "<unk>")]
    ranks = {bytes(to_byte[c] for c in piece): rank for rank, piece in enumerate(pieces)}
    with open(golden.GOLDENS / "ranks.tiktoken", "wb") as file:
        file.writelines(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())

    fragments = tokenizer_lines.read_fragments()
    lines = [tokenizer_lines.make_line(n, fragments).decode() for n in range(tokenizer_lines.LINES)]
    sweep = [tokenizer_lines.sweep_text(block).decode() for block in range(bpe.SWEEP_BLOCKS)]
    packed = lambda ids: np.array([*ids, -1], "<i4").tobytes()
    written = []
    for name, encoding in encodings(ranks):
        encode = lambda texts: [encoding.encode(t, allowed_special="all") for t in texts]
        ids = encode(lines)
        text = [encoding.decode_bytes([i for i in line if i < len(ranks)]) + b"\xff" for line in ids]
        written.append({"name": name, "lines": bpe.groups([*map(packed, ids)], bpe.GROUP),
                        "sweep": bpe.groups([*map(packed, encode(sweep))], bpe.SWEEP_GROUP), "text": bpe.groups(text, bpe.GROUP), "cases": encode(CASES),
                        "repeats": bpe.groups([packed(i) for i in encode([u * n for u, n in bpe.REPEATS])], 1)})
        print(name, sum(map(len, ids)), flush=True)
    with open(golden.GOLDENS / "tiktoken.json", "w", encoding="utf-8", newline="\n") as file:
        file.write(f'{{\n"made_by": "tools/reference/tiktoken_ranks.py, tiktoken {tiktoken.__version__}",\n"cases": {json.dumps(CASES)},\n')
        file.write(f'"repeats": {json.dumps(bpe.REPEATS)},\n"encodings": [\n' + ",\n".join(map(json.dumps, written)) + "\n]\n}\n")


def bpe_bytes():
    """The byte map: the character that stands for each byte."""
    visible = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 256)]
    others = [b for b in range(256) if b not in visible]
    return {**{b: chr(b) for b in visible}, **{b: chr(256 + i) for i, b in enumerate(others)}}


if __name__ == "__main__":
    main()
