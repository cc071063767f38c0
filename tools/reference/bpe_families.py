# SPDX-License-Identifier: Apache-2.0
"""What the `tokenizers` package makes of small BPE vocabularies with the parts of tokenizer.json that the published
families have, and with every further part that is read.

    python tools/reference/bpe_families.py       writes tests/goldens/bpe_families.json

Two vocabularies are trained on the first 4,000 lines of tokenizer_lines.py without any cut between words, so that a
word cut in another place has other ids: "bytes" in the byte map, "characters" with byte fallback as SentencePiece has
it. A family is one of them with some fields of its tokenizer.json replaced ("fields"; of "model" only some members).
Special tokens in text are found, the post-processor's are added. Hashes are CRC-32 over

    lines  of 500 lines each: per line its ids as little-endian int32, then -1
    sweep  of 64 blocks of 256 code points each (up to U+323FF), in the same way; block texts as in tokenizer_lines.py
    text   of 500 lines each: per line the decoded text without special tokens, in UTF-8, then the byte 0xff

    repeats  one for each unit repeated so many times

and "cases" are the ids of the texts of that name.
"""
import json
import sys
import types
import zlib

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import golden

sys.modules.setdefault("llama_cpp", types.ModuleType("llama_cpp"))  # only the lines are wanted
import tokenizer_lines  # noqa: E402

GROUP, SWEEP_GROUP, SWEEP_BLOCKS = 500, 64, 0x324
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT_FORMS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
SLASHED = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|"
LLAMA3 = SHORT_FORMS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
            + SPACES).replace(r"\r", "\r").replace(r"\n", "\n")
CASES = ["", " ", "  ", "\n", " \n ", "a->b !!!\n\n 1234567 don't DON'T", "camelCase HTTPSession a/b\n/ \u2192 \u201cx\u201d \u0915\u094d\u0937\u093f",
         "don'\u017f x'LL'Re 'S'd", "e\u0301 \u00e9 \u1e69\u0323\u0307 q\u0307\u0323\u0307", "\u00bd \ufb01 \u212b \uac00\u1100\u1161 \ufdfa",
         "x<s>a</s> b <tool>c</tool>", "foobar foo <X> bar  [pad]  x[one]y [one] \u00e9[one] word", " MAJUSCULES \u0130I \u03a3\u03a3",
         "Hello , world .  \u2581x\u2581 y", "\U00013080 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0001\u007f", "x\n\n\ny"]
REPEATS = [("a", 3000), (" ", 3000), ("\u0301", 500), ("\u0316\u0301", 300), ("\n", 100), ("1", 1000), ("\U0001f600", 400)]


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False, **options}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(field, *parts):
    return {"type": "Sequence", field: list(parts)}


def pre(*parts):
    return {"pre_tokenizer": sequence("pretokenizers", *parts)}


def normal(*parts):
    return {"normalizer": sequence("normalizers", *parts)}


def metaspace(**options):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True, **options}


def token(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def template(first, last=()):
    part = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    names = {"<s>": 0, "</s>": 1}
    return {"post_processor": {"type": "TemplateProcessing", "pair": [],
                               "single": [*map(part, first), {"Sequence": {"id": "A", "type_id": 0}}, *map(part, last)],
                               "special_tokens": {n: {"id": n, "ids": [names[n]], "tokens": [n]} for n in (*first, *last)}}}


SPECIAL = [token(0, "<s>", special=True), token(1, "</s>", special=True)]
FUSED = {"decoder": sequence("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                             {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})}


def flagged(first):
    return {"added_tokens": SPECIAL + [
        token(first, "foo", single_word=True, normalized=True), token(first + 1, "<X>", lstrip=True, rstrip=True),
        token(first + 2, "[pad]", rstrip=True, special=True), token(first + 3, "[one]", single_word=True, lstrip=True),
        token(first + 4, "<tool>"), token(first + 5, "<tool>c"), token(first + 6, "MAJUS", normalized=True)]}


def families(sizes):
    """name, vocabulary, fields of tokenizer.json"""
    size = sizes["bytes"]
    yield "gpt2", "bytes", {"pre_tokenizer": byte_level(use_regex=True)}
    yield "smollm2", "bytes", pre({"type": "Digits", "individual_digits": True}, byte_level(use_regex=True))
    yield "llama3", "bytes", {**pre(split(LLAMA3), byte_level()), "model": {"ignore_merges": True}, **template(["<s>"])}
    yield "qwen2", "bytes", {**pre(split(LLAMA3.replace("{1,3}", "")), byte_level()), "normalizer": {"type": "NFC"}}
    yield "qwen3.5", "bytes", {**pre(split(SHORT_FORMS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES),
                                     byte_level()), "normalizer": {"type": "NFC"}}
    yield "o200k", "bytes", pre(split(LOWER + SHORT_FORMS + "?|" + UPPER + SHORT_FORMS + r"?|\p{N}{1,3}|" + SLASHED + SPACES), byte_level())
    yield "tekken", "bytes", {**pre(split(LOWER + "|" + UPPER + r"|\p{N}|" + SLASHED + SPACES), byte_level()), "model": {"ignore_merges": True}}
    yield "deepseek", "bytes", pre(split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK), byte_level())
    yield "roberta", "bytes", {"pre_tokenizer": byte_level(use_regex=True, add_prefix_space=True), "model": {"unk_token": "<unk>"},
                               "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}}
    yield "expression", "bytes", pre(split(r"\p{Lu}?\p{Ll}+|[\p{N}\-]+|\s{2,}|x(?=y)"), byte_level())
    yield "mistral", "characters", {"pre_tokenizer": metaspace(prepend_scheme="first"), **FUSED, **template(["<s>"], ["</s>"])}
    yield "llama2", "characters", {**normal({"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}),
                                   "pre_tokenizer": None, **FUSED}
    yield "gemma", "characters", {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                                  "pre_tokenizer": split(" ", "MergedWithPrevious", kind="String"), "model": {"fuse_unk": False}}
    yield "metaspace", "characters", {"pre_tokenizer": metaspace(), "decoder": metaspace(), "model": {"byte_fallback": False, "fuse_unk": True}}
    yield "unknown", "characters", {"pre_tokenizer": {"type": "Whitespace"}, "model": {"byte_fallback": False, "fuse_unk": False}}
    yield "nothing_unknown", "characters", {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"byte_fallback": False, "unk_token": None}}
    yield "flags", "bytes", {"pre_tokenizer": byte_level(use_regex=True), **flagged(size)}
    yield "flags_normalized", "bytes", {"pre_tokenizer": byte_level(use_regex=True), "normalizer": {"type": "Lowercase"}, **flagged(size)}
    for behavior in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"split_{behavior}", "bytes", pre(split(r"[aeiou]|\s", behavior), byte_level())
        yield f"invert_{behavior}", "bytes", pre(split("the", behavior, True, "String"), byte_level())
    yield "punctuation", "bytes", pre({"type": "Punctuation", "behavior": "MergedWithNext"}, {"type": "Digits", "individual_digits": False},
                                      {"type": "CharDelimiterSplit", "delimiter": "-"}, byte_level())
    yield "bert_words", "bytes", pre({"type": "BertPreTokenizer"}, {"type": "FixedLength", "length": 3}, byte_level())
    yield "byte_level_first", "bytes", pre(byte_level(), split("\u0120t", "MergedWithNext", kind="String"))
    yield "byte_level_normalizer", "bytes", {"normalizer": {"type": "ByteLevel"}, **pre(split("\u0120\\w+"))}
    for form in ("NFD", "NFKC", "NFKD"):
        yield form, "bytes", {"normalizer": {"type": form}, "pre_tokenizer": byte_level(use_regex=True)}
    yield "clean", "bytes", {**normal({"type": "Nmt"}, {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                                      {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}),
                             "pre_tokenizer": byte_level(use_regex=True)}


def train(lines, pieces):
    if pieces == "bytes":
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
        alphabet = []
    special = ["<s>", "</s>", "<unk>"] + ([f"<0x{b:02X}>" for b in range(256)] if pieces == "characters" else [])
    trainer = trainers.BpeTrainer(vocab_size=1500, initial_alphabet=alphabet, limit_alphabet=256 if pieces == "bytes" else 300,
                                  special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([part for line in lines[:4000] for part in (line[i:i + 24] for i in range(0, len(line), 24))], trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"], data["normalizer"] = SPECIAL, None
    return data


def apply(base, fields):
    data = {**base, **fields}
    data["model"] = {**base["model"], **fields.get("model", {})}
    return data


def groups(items, size):
    return [zlib.crc32(b"".join(items[i:i + size])) for i in range(0, len(items), size)]


def main():
    fragments = tokenizer_lines.read_fragments()
    lines = [tokenizer_lines.make_line(n, fragments).decode() for n in range(tokenizer_lines.LINES)]
    sweep = [tokenizer_lines.sweep_text(block).decode() for block in range(SWEEP_BLOCKS)]
    bases = {pieces: train(lines, pieces) for pieces in ("bytes", "characters")}
    sizes = {pieces: len(base["model"]["vocab"]) for pieces, base in bases.items()}
    packed = lambda ids: np.array([*ids, -1], "<i4").tobytes()
    written = []
    for name, pieces, fields in families(sizes):
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(apply(bases[pieces], fields)))
        encode = lambda texts: [e.ids for e in tokenizer.encode_batch_fast(texts)]
        ids = encode(lines)
        text = [t.encode() + b"\xff" for t in tokenizer.decode_batch(ids)]
        written.append({"name": name, "vocabulary": pieces, "fields": fields, "lines": groups([*map(packed, ids)], GROUP),
                        "sweep": groups([*map(packed, encode(sweep))], SWEEP_GROUP), "text": groups(text, GROUP),
                        "cases": encode(CASES), "repeats": groups([packed(i) for i in encode([u * n for u, n in REPEATS])], 1)})
        print(name, sum(map(len, ids)), flush=True)
    with open(golden.GOLDENS / "bpe_families.json", "w", encoding="utf-8", newline="\n") as file:
        file.write("{\n")
        file.write(f'"made_by": "tools/reference/bpe_families.py, tokenizers {tokenizers.__version__}",\n"vocabularies": {{\n')
        file.write(",\n".join(f'"{n}": {json.dumps(b, ensure_ascii=False)}' for n, b in bases.items()))
        file.write(f'\n}},\n"cases": {json.dumps(CASES)},\n"repeats": {json.dumps(REPEATS)},\n"families": [\n')
        file.write(",\n".join(json.dumps(f, ensure_ascii=False) for f in written))
        file.write("\n]\n}\n")


if __name__ == "__main__":
    main()
