# SPDX-License-Identifier: Apache-2.0
"""What llama.cpp's tokenizer makes of SmolLM2's vocabulary: 20,000 generated lines, special tokens, broken UTF-8.

    tools/fetch-assets smollm2-135m
    python tools/reference/tokenizer_lines.py       writes tests/goldens/tokenizer_smollm2.safetensors,
                                                    tests/goldens/tokenizer_lines.tsv, tests/goldens/tokenizer_cases.tsv

The lines come from tests/goldens/tokenizer_fragments.txt (its head says how to read it; F fragments) by this rule, in
64-bit arithmetic mod 2^64:

    r(n, j)   mix64((32 n + j + 1) * 0x9e3779b97f4a7c15)              mix64 as in seeded.py
    line n    n < F: fragment n
              else:  c = 1 + r(n, 0) mod 10 fragments; for j = 1 .. c append fragment r(n, j) / 2 mod F (integer division)
                     and, if r(n, j) is odd and j < c, one space

Golden tensors (add_special and parse_special off; hashes are FNV-1a, their bits in a signed integer):
    text_hash  I64 [200]    64-bit, over the bytes of lines 100 b .. 100 b + 99, each followed by the byte 0xff
    count      I32 [20000]  ids in the line
    hash       I32 [20000]  32-bit, over the ids as little-endian int32
    piece_hash I64 [768]    64-bit, over the bytes of ids 64 b .. 64 b + 63 (special tokens by their text), each followed
                            by the byte 0xff
    sweep_hash I32 [4352]   32-bit, over the ids of: for each code point c of 256 b .. 256 b + 255, surrogates left out:
                            space, c, "x"; the text of a block of surrogates is empty
tokenizer_lines.tsv holds line number, escaped text and ids of every 100th line, to read when a hash differs.
tokenizer_cases.tsv holds escaped text, ids with parse_special off, and ids with it on: special tokens within text, and
bytes that are no UTF-8 or NUL. The vocabulary has no token for some bytes; llama.cpp leaves such a byte out. Sequences
above U+10FFFF are no case here: llama.cpp ends the process on them ("invalid codepoint").
"""
import ctypes
import pathlib
import re
import subprocess

import llama_cpp
import numpy as np

import golden

LINES = 20000
MASK = 2**64 - 1
CASES = r"""
<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n
<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n
<|im_start|>
<|im_end|><|im_end|>
<|endoftext|>
a<|endoftext|>b
a <|endoftext|> b
a\x20\x20<|im_end|>\x20\x20b
<|im_end|>\x20
\x20<|im_end|>
\n<|im_end|>\n
<|im_start|><|im_start|>user
<|im_start|
|im_start|>
<|im_start |>
<|IM_START|>
<|im_<|im_end|>start|>
<<|im_end|>>
<|im_end|>'s
it<|im_end|>'s
<|im_end|>42
<repo_name>me/project<file_sep>src/main.c\nint main(void)
<reponame><filename><gh_stars>100-1000
<issue_start><issue_comment>username_1: it's broken<issue_closed>
<jupyter_start><jupyter_text>Title<jupyter_code>print(1)<jupyter_output>1<jupyter_script><empty_output>
<file_sep
<file_sepx>
<|endoftext|>\xf0\x9f\x98\x80<|endoftext|>
\xe4\xb8\xad<|im_end|>\xe4\xb8\xad
\x00
a\x00b
\x00\x00<|im_end|>\x00
\xff
\x80
a\x80b
\xc3
\xc3x
caf\xc3
\xc3\xc3\xa9
\xe2\x82
\xe2\x82x
\xf0\x9f\x98
\xf0\x9f\x98 x
\xf0\x9f\x98\x80\x80
\xc0\x80
\xe0\x80\x80
\xed\xa0\x80
\xed\xa0\xbd\xed\xb8\x80
\xf8\x88\x80\x80\x80
\xfe\xfe\xff\xff
\xbf\xbf\xbf
ok \xff\xfe ok
12\xff34
\x20\xff\x20
\xff<|im_end|>\xff
"""


def unescape(text):
    """One line of a fragment file to bytes."""
    named = {b"n": b"\n", b"t": b"\t"}
    return re.sub(rb"\\(n|t|x([0-9a-f]{2}))", lambda m: named.get(m[1]) or bytes.fromhex(m[2].decode()), text.encode())


def escape(data):
    """Bytes to the escaped form: readable where it is printable UTF-8, so that unescape gives the bytes back."""
    out = []
    for byte_or_char in re.findall(rb"[ -\[\]-~]|[\xc3-\xf4][\x80-\xbf]+|.", data, re.DOTALL):
        try:
            char = byte_or_char.decode()
        except UnicodeDecodeError:
            char = ""
        out.append(char if len(char) == 1 and char.isprintable() and char != "\\" else
                   {b"\n": r"\n", b"\t": r"\t"}.get(byte_or_char) or "".join(f"\\x{b:02x}" for b in byte_or_char))
    text = "".join(out)
    body = text.strip(" ")
    lead = len(text) - len(text.lstrip(" ")) if body else 0
    text = r"\x20" * lead + body + r"\x20" * (len(text) - lead - len(body))
    assert unescape(text) == data, (text, data)
    return text


def read_fragments():
    text = (golden.GOLDENS / "tokenizer_fragments.txt").read_text(encoding="utf-8")
    return [unescape(line) for line in text.split("\n") if line and not line.startswith("#")]


def random(n, j):
    z = (32 * n + j + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def make_line(n, fragments):
    if n < len(fragments):
        return fragments[n]
    count = 1 + random(n, 0) % 10
    line = b""
    for j in range(1, count + 1):
        r = random(n, j)
        line += fragments[r // 2 % len(fragments)] + (b" " if r % 2 and j < count else b"")
    return line


def fnv1a32(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def signed(values, bits):
    return np.array(values, np.uint64).astype(f"<u{bits // 8}").view(f"<i{bits // 8}")


def hash_ids(ids):
    return fnv1a32(np.array(ids, "<i4").tobytes())


def pieces(model, vocab_size):
    vocab = llama_cpp.llama_model_get_vocab(model.model)
    buffer = ctypes.create_string_buffer(1024)
    for token in range(vocab_size):
        length = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        assert length >= 0, token
        yield buffer.raw[:length]


def sweep_text(block):
    points = (c for c in range(256 * block, 256 * block + 256) if not 0xD800 <= c <= 0xDFFF)
    return "".join(f" {chr(c)}x" for c in points).encode()


def main():
    fetch = pathlib.Path(__file__).resolve().parents[1] / "fetch-assets"
    gguf_path = subprocess.run([fetch, "--print", "smollm2-135m"], check=True, capture_output=True, text=True).stdout.strip()
    model = llama_cpp.Llama(gguf_path, vocab_only=True, verbose=False)

    def tokenize(text, parse_special=False):
        return model.tokenize(text, add_bos=False, special=parse_special) if text else []

    fragments = read_fragments()
    lines = [make_line(n, fragments) for n in range(LINES)]
    for line in lines:
        line.decode()                                  # every line is valid UTF-8
    ids = [tokenize(line) for line in lines]
    piece = list(pieces(model, model.n_vocab()))
    bytes_without_token = sorted(set(range(256)) - {p[0] for p in piece if len(p) == 1})

    tensors = {
        "text_hash": signed([golden.fnv1a64(b"".join(line + b"\xff" for line in lines[start:start + 100]))
                             for start in range(0, LINES, 100)], 64),
        "count": np.array([len(i) for i in ids], np.int32),
        "hash": signed([hash_ids(i) for i in ids], 32),
        "piece_hash": signed([golden.fnv1a64(b"".join(p + b"\xff" for p in piece[start:start + 64]))
                              for start in range(0, len(piece), 64)], 64),
        "sweep_hash": signed([hash_ids(tokenize(sweep_text(block))) for block in range(0x110000 // 256)], 32)}
    golden.write("tokenizer_smollm2.safetensors", "tools/reference/tokenizer_lines.py", __doc__.split("cases.tsv\n", 1)[1],
                 ["llama_cpp_python", "numpy"], tensors, fragments=len(fragments), lines=LINES,
                 bytes_without_token=bytes_without_token)

    as_text = lambda values: " ".join(map(str, values))
    with open(golden.GOLDENS / "tokenizer_lines.tsv", "w", encoding="utf-8", newline="\n") as file:
        file.write("# line number, escaped text, ids: every 100th line of tools/reference/tokenizer_lines.py\n")
        file.writelines(f"{n}\t{escape(lines[n])}\t{as_text(ids[n])}\n" for n in range(0, LINES, 100))
    with open(golden.GOLDENS / "tokenizer_cases.tsv", "w", encoding="utf-8", newline="\n") as file:
        file.write("# escaped text, ids with parse_special off, ids with it on (tools/reference/tokenizer_lines.py)\n")
        for text in CASES.split("\n")[1:-1]:
            data = unescape(text)
            file.write(f"{escape(data)}\t{as_text(tokenize(data))}\t{as_text(tokenize(data, True))}\n")

    lossless = sum(b"".join(piece[i] for i in line_ids) == line for line, line_ids in zip(lines, ids))
    print(f"{sum(map(len, ids))} ids, longest line {max(map(len, lines))} bytes, {lossless} lines decode to themselves,"
          f" bytes without a token: {bytes_without_token}")


if __name__ == "__main__":
    main()
