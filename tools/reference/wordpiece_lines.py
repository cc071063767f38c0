# SPDX-License-Identifier: Apache-2.0
"""What the `tokenizers` package makes of all-MiniLM-L6-v2's tokenizer.json: the 20,000 lines of tokenizer_lines.py and
every code point.

    tools/fetch-assets minilm-l6-tokenizer
    python tools/reference/wordpiece_lines.py       writes tests/goldens/wordpiece_minilm.safetensors

Golden tensors (special tokens added, neither truncated nor padded; hashes are FNV-1a 32 over the ids as little-endian
int32, their bits in a signed integer):
    count       I32 [20000]  ids in the line
    hash        I32 [20000]
    text_hash   I64 [200]    FNV-1a 64, over the decoded text without special tokens of lines 100 b .. 100 b + 99, each
                             followed by the byte 0xff
    sweep_hash  I32 [4352]   over the ids of: for each code point c of 256 b .. 256 b + 255, surrogates left out:
                             space, c, "x"; the text of a block of surrogates is empty
"""
import pathlib
import subprocess
import sys
import types

import numpy as np
import tokenizers

import golden

sys.modules.setdefault("llama_cpp", types.ModuleType("llama_cpp"))  # only the lines are wanted
import tokenizer_lines as lines  # noqa: E402


def main():
    fetch = pathlib.Path(__file__).resolve().parents[1] / "fetch-assets"
    path = subprocess.run([fetch, "--print", "minilm-l6-tokenizer"], check=True, capture_output=True, text=True).stdout.strip()
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    fragments = lines.read_fragments()
    ids = [tokenizer.encode(lines.make_line(n, fragments).decode()).ids for n in range(lines.LINES)]
    tensors = {
        "count": np.array([len(i) for i in ids], np.int32),
        "hash": lines.signed([lines.hash_ids(i) for i in ids], 32),
        "text_hash": lines.signed([golden.fnv1a64(b"".join(tokenizer.decode(i).encode() + b"\xff" for i in ids[start:start + 100]))
                                   for start in range(0, lines.LINES, 100)], 64),
        "sweep_hash": lines.signed([lines.hash_ids(tokenizer.encode(lines.sweep_text(block).decode()).ids)
                                    for block in range(0x110000 // 256)], 32)}
    golden.write("wordpiece_minilm.safetensors", "tools/reference/wordpiece_lines.py", __doc__.split(".safetensors\n", 1)[1],
                 ["tokenizers", "numpy"], tensors, fragments=len(fragments), lines=lines.LINES)
    print(f"{sum(map(len, ids))} ids, {sum(i.count(100) for i in ids)} of them unknown")


if __name__ == "__main__":
    main()
