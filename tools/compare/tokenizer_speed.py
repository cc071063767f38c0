#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our BPE encoder against tiktoken and tokenizers: English text on one core, alternated in one run, the same ids.

    python tools/compare/tokenizer_speed.py [--rounds 5] [--text FILE] [--library build/libfastkernels.so]

Needs tiktoken, tokenizers, sentencepiece and gguf. The vocabulary is SmolLM2's (tools/fetch-assets smollm2-135m) as a rank file, cut into
words as gpt2, cl100k_base and o200k_base do; the text is Shakespeare's works (tools/fetch-assets shakespeare) in documents
of about 4 kB. Every side gets the same documents one after the other on one core and must return the same ids; of
tiktoken the faster of its two ways is taken. Prints MB/s of each round and the median of the ratios.

Then the other kinds on the same documents: the small models of tests/goldens against sentencepiece, MiniLM's WordPiece
against tokenizers. Then seconds of ours for a million equal characters, for each kind.
"""
import argparse
import base64
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import gguf  # noqa: E402
import sentencepiece  # noqa: E402
import tiktoken  # noqa: E402
import tiktoken_ext.openai_public as public  # noqa: E402
import tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens"
DOCUMENT_BYTES = 4096


class TokenList(ctypes.Structure):
    _fields_ = [("ids", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_int64), ("capacity", ctypes.c_int64)]


class Ours:
    def __init__(self, library, load, *args):
        self.library, tokenizer = library, ctypes.c_void_p()
        self.check(load(*args, ctypes.byref(tokenizer)))
        self.encoder, self.ids = ctypes.c_void_p(), TokenList()
        self.check(library.fk_encoder_create(tokenizer, ctypes.byref(self.encoder)))

    def check(self, status):
        if status:
            self.library.fk_error_message.restype = ctypes.c_char_p
            raise RuntimeError(self.library.fk_error_message().decode())

    def encode(self, data):
        self.ids.count = 0
        self.check(self.library.fk_encoder_encode(self.encoder, data, ctypes.c_size_t(len(data)), 0, ctypes.byref(self.ids)))
        return self.ids.ids[:self.ids.count]

    def encode_only(self, data):
        self.ids.count = 0
        self.library.fk_encoder_encode(self.encoder, data, ctypes.c_size_t(len(data)), 0, ctypes.byref(self.ids))


def asset(name):
    return subprocess.run([ROOT / "tools" / "fetch-assets", "--print", name], check=True, capture_output=True, text=True).stdout.strip()


def vocabulary():
    """Pieces of text in the byte map in the order of their ranks, and the merges."""
    fields = gguf.GGUFReader(asset("smollm2-135m")).fields
    tokens, types, merges = (fields["tokenizer.ggml." + n].contents() for n in ("tokens", "token_type", "merges"))
    return [t for t, kind in zip(tokens, types) if kind == 1], [tuple(m.split(" ")) for m in merges]


def byte_of():
    visible = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 256)]
    others = [b for b in range(256) if b not in visible]
    return {**{chr(b): b for b in visible}, **{chr(256 + i): b for i, b in enumerate(others)}}


def documents(path):
    text, made = pathlib.Path(path).read_bytes(), []
    while text:
        cut = text.find(b"\n", DOCUMENT_BYTES) + 1 or len(text)
        made.append(text[:cut])
        text = text[cut:]
    return made


def seconds(work, items):
    start = time.perf_counter()
    for item in items:
        work(item)
    return time.perf_counter() - start


def compare(name, library, path, pieces, merges, docs, rounds):
    to_byte = byte_of()
    ranks = {bytes(to_byte[c] for c in piece): rank for rank, piece in enumerate(pieces)}
    public.load_tiktoken_bpe = public.data_gym_to_mergeable_bpe_ranks = lambda *args, **kwargs: ranks
    spec = public.ENCODING_CONSTRUCTORS[name]()
    spec.pop("explicit_n_vocab", None)
    theirs = tiktoken.Encoding(**spec)
    ours = Ours(library, library.fk_tiktoken_load, str(path).encode(), name.encode())
    vocab = {piece: rank for rank, piece in enumerate(pieces)}
    hugging = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [m for m in merges if "".join(m) in vocab], ignore_merges=True))
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=name == "gpt2")
    pattern = {"cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]+|\s+(?!\S)|\s+",
               "o200k_base": spec["pat_str"]}.get(name)
    hugging.pre_tokenizer = level if pattern is None else tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"), level])

    texts = [d.decode() for d in docs]
    for data, text in zip(docs, texts):
        ids = ours.encode(data)
        if ids != theirs.encode_ordinary(text) or ids != hugging.encode(text).ids:
            raise SystemExit(f"{name}: other ids for {text[:200]!r}...")
    megabytes, ratios = sum(map(len, docs)) / 1e6, []
    for i in range(rounds):
        a = seconds(ours.encode_only, docs)
        b = min(seconds(theirs.encode_ordinary, texts), seconds(lambda t: theirs.encode_to_numpy(t, disallowed_special=()), texts))
        c = seconds(lambda t: hugging.encode_batch_fast([t]), texts)
        ratios.append((b / a, c / a))
        print(f"{name} round {i + 1}: ours {megabytes / a:.1f} MB/s, tiktoken {megabytes / b:.1f}, tokenizers {megabytes / c:.1f}", flush=True)
    print(f"{name}: {statistics.median(r[0] for r in ratios):.1f} times tiktoken, {statistics.median(r[1] for r in ratios):.1f} times tokenizers")


def other_kinds(library, docs, rounds):
    texts, megabytes = [d.decode() for d in docs], sum(map(len, docs)) / 1e6

    def one(name, ours, theirs):
        if any(ours.encode(data) != theirs(text) for data, text in zip(docs, texts)):
            raise SystemExit(f"{name}: other ids")
        pairs = [(seconds(ours.encode_only, docs), seconds(theirs, texts)) for _ in range(rounds)]
        a, b = (statistics.median(side) for side in zip(*pairs))
        print(f"{name}: ours {megabytes / a:.1f} MB/s, theirs {megabytes / b:.1f}, {statistics.median(q / p for p, q in pairs):.1f} times", flush=True)

    for kind, name in (("BPE", "llama"), ("BPE with rules", "bpe"), ("Unigram with rules", "t5"), ("Unigram", "suffix")):
        path = str(GOLDENS / f"sentencepiece_{name}.model")
        one(f"SentencePiece {kind}", Ours(library, library.fk_sentencepiece_load, path.encode()), sentencepiece.SentencePieceProcessor(model_file=path).encode)
    path = asset("minilm-l6-tokenizer")
    hugging = tokenizers.Tokenizer.from_file(path)
    hugging.no_padding()
    hugging.no_truncation()
    one("WordPiece", Ours(library, library.fk_tokenizer_json_load, path.encode(), None),
        lambda text: hugging.encode_batch_fast([text], add_special_tokens=False)[0].ids)


def equal_characters(library, path):
    kinds = {"BPE gpt2": (library.fk_tiktoken_load, str(path).encode(), b"gpt2"), "BPE o200k": (library.fk_tiktoken_load, str(path).encode(), b"o200k_base"),
             "SentencePiece BPE": (library.fk_sentencepiece_load, str(GOLDENS / "sentencepiece_llama.model").encode()),
             "SentencePiece Unigram": (library.fk_sentencepiece_load, str(GOLDENS / "sentencepiece_t5.model").encode()),
             "WordPiece": (library.fk_tokenizer_json_load, asset("minilm-l6-tokenizer").encode(), None)}
    for name, (load, *args) in kinds.items():
        ours = Ours(library, load, *args)
        for unit in ("a", " ", "\u00e9"):
            text = (unit * 1000000).encode()
            print(f"a million of {unit!r}, {name}: {seconds(ours.encode_only, [text]):.3f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text")
    parser.add_argument("--library", default=str(ROOT / "build" / "libfastkernels.so"))
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    docs, (pieces, merges) = documents(options.text or asset("shakespeare")), vocabulary()
    library = ctypes.CDLL(options.library)
    with tempfile.TemporaryDirectory() as folder:
        path, to_byte = pathlib.Path(folder, "gpt2.tiktoken"), byte_of()
        path.write_bytes(b"".join(base64.b64encode(bytes(to_byte[c] for c in p)) + b" %d\n" % i for i, p in enumerate(pieces)))
        for name in ("gpt2", "cl100k_base", "o200k_base"):
            compare(name, library, path, pieces, merges, docs, options.rounds)
        other_kinds(library, docs, options.rounds)
        equal_characters(library, path)


if __name__ == "__main__":
    main()
