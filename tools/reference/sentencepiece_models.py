# SPDX-License-Identifier: Apache-2.0
"""What the `sentencepiece` package makes of small models trained here, and the `tokenizers` package of Unigram models
with the parts that published files have.

    python tools/reference/sentencepiece_models.py     writes tests/goldens/sentencepiece.json,
                                                       tests/goldens/sentencepiece_<name>.model and
                                                       tests/goldens/sentencepiece_llama.gguf

The models are trained on the first 4,000 lines of tokenizer_lines.py:
    llama   BPE with byte fallback, single digits, text left as it is (Llama 2, Mistral); the .gguf holds it too
    bpe     BPE with rules of normalization, unknown characters and symbols of the user (Gemma's kind of symbols)
    t5      Unigram with the same (T5, XLM-R)
    suffix  Unigram with byte fallback, the mark of a space behind the word

The rules of normalization are a part of nmt_nfkc (the whole would be 240 kB): controls and spaces, and NFKC of some
blocks. "models" and "families" hold hashes of lines, sweep, text and repeats as bpe_families.py states them; of
"families" the vocabulary is that of a model, and the special tokens in text are found.
"""
import base64
import io
import json
import pathlib
import sys
import tempfile
import types
import unicodedata

import gguf
import numpy as np
import sentencepiece
import tokenizers

import golden

sys.modules.setdefault("llama_cpp", types.ModuleType("llama_cpp"))  # only the lines are wanted
import bpe_families as bpe  # noqa: E402
import tokenizer_lines  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402

CASES = bpe.CASES + ["<tool>a <tool> b", "foofoo foo", "\u2581a \u2581\u2581 b", "a\u00a0b\u3000c \u200b d", "\uff21\uff22 \ufb01x \u00bd\u0301 e\u0301",
                     "\r\n x\r\ny", "\u0301a", "<unk>\u9fa0\u9fa1 \u9fa0", "  lead and trail  ", "\U0001f600\U0001f601", "a\u200db \u0600a"]
BLOCKS = [(0xA0, 0x250), (0x370, 0x400), (0x1E00, 0x1F00), (0x2000, 0x2190), (0x2460, 0x2500), (0x3000, 0x3001), (0xFB00, 0xFB07), (0xFF01, 0xFF5F)]
SYMBOLS = ["<tool>", "foo", "[one]"]
REPEATS = [*bpe.REPEATS, ("one tw\u00f63 nananana ", 20000)]  # long enough for sums of scores that SentencePiece starts again from 0
OPTIONS = {
    "llama": dict(model_type="bpe", vocab_size=1400, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                  split_digits=True, allow_whitespace_only_pieces=True),
    "bpe": dict(model_type="bpe", vocab_size=1100, user_defined_symbols=SYMBOLS),
    "t5": dict(model_type="unigram", vocab_size=1100, user_defined_symbols=SYMBOLS, pad_id=3),
    "suffix": dict(model_type="unigram", vocab_size=1300, byte_fallback=True, normalization_rule_name="identity", treat_whitespace_as_suffix=True),
}


def rules():
    """The lines of a normalization table: code points, tab, code points."""
    made = {}
    for first, last in BLOCKS:
        for c in range(first, last):
            normal = unicodedata.normalize("NFKC", chr(c))
            if normal != chr(c):
                made[chr(c)] = normal
            parts = unicodedata.normalize("NFD", chr(c))
            if len(parts) == 2 and unicodedata.normalize("NFC", parts) == chr(c):
                made[parts] = chr(c)
    for c in [*range(1, 9), 11, *range(14, 32), 127, 0x8F, 0x9F]:
        made[chr(c)] = ""
    for c in [9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD]:
        made[chr(c)] = " "
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    return "".join(f"{codes(a)}\t{codes(b)}\n" for a, b in sorted(made.items()))


def train(name, lines):
    options = dict(OPTIONS[name])
    with tempfile.TemporaryDirectory() as folder:
        if "normalization_rule_name" not in options:
            path = pathlib.Path(folder, "rules.tsv")
            path.write_text(rules())
            options["normalization_rule_tsv"] = str(path)
        writer = io.BytesIO()
        parts = [part for line in lines[:4000] for part in (line[i:i + 100] for i in range(0, len(line), 100)) if "\0" not in part]
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(parts), model_writer=writer, character_coverage=0.98, num_threads=2,
                                                 hard_vocab_limit=False, minloglevel=2, **options)
    proto = sentencepiece_model_pb2.ModelProto.FromString(writer.getvalue())
    proto.normalizer_spec.normalization_rule_tsv = ""  # a path of the machine
    return proto


def write_gguf(proto, path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([p.piece.encode() for p in proto.pieces])
    writer.add_token_scores([p.score for p in proto.pieces])
    writer.add_token_types([p.type for p in proto.pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def special(id, content):
    return bpe.token(id, content, special=True)


def unigram(proto, **fields):
    """The tokenizer.json of a model, with the fields given."""
    vocab = [[p.piece, p.score] for p in proto.pieces]
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "added_tokens": [special(i, p.piece) for i, p in enumerate(proto.pieces) if p.type in (2, 3)],
            "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False}, **fields}


def merged(proto):
    """The same of a BPE model: its merges are all ways to make a piece of two, in the order of the scores."""
    rank = {p.piece: i for i, p in enumerate(proto.pieces) if p.type == 1}
    merges = [(rank[piece], piece[:i], piece[i:]) for piece in rank for i in range(1, len(piece)) if piece[:i] in rank and piece[i:] in rank]
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "vocab": {p.piece: i for i, p in enumerate(proto.pieces)},
             "merges": [f"{a} {b}" for _, a, b in sorted(merges)]}
    return {**unigram(proto), "model": model}


def template(first, last):
    names = {"<s>": 1, "</s>": 2}
    part = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    return {"post_processor": {"type": "TemplateProcessing", "pair": [],
                               "single": [*map(part, first), {"Sequence": {"id": "A", "type_id": 0}}, *map(part, last)],
                               "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in names.items()}}}


def families(protos):
    """name, vocabulary, fields of tokenizer.json"""
    charsmap = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(protos["t5"].normalizer_spec.precompiled_charsmap).decode()}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    yield "xlm-r", "t5", {"normalizer": charsmap, **bpe.pre({"type": "WhitespaceSplit"}, bpe.metaspace()), "decoder": bpe.metaspace(),
                          **template(["<s>"], ["</s>"])}
    yield "t5", "t5", {**bpe.normal(charsmap, spaces), "pre_tokenizer": bpe.metaspace(), "decoder": bpe.metaspace(), **template([], ["</s>"])}
    yield "albert", "t5", {**bpe.normal({"type": "Replace", "pattern": {"String": "``"}, "content": "\""}, {"type": "NFKD"}, {"type": "StripAccents"},
                                        {"type": "Lowercase"}, charsmap), "pre_tokenizer": bpe.metaspace(), "decoder": bpe.metaspace()}
    yield "whole", "t5", {**bpe.normal({"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}),
                          "decoder": bpe.metaspace()}
    yield "llama", "llama", {**bpe.normal({"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}),
                             **bpe.FUSED, **template(["<s>"], [])}
    yield "bytes", "suffix", {"pre_tokenizer": bpe.metaspace(split=False), "model": {"byte_fallback": True}, **bpe.FUSED}


def main():
    fragments = tokenizer_lines.read_fragments()
    lines = [tokenizer_lines.make_line(n, fragments).decode() for n in range(tokenizer_lines.LINES)]
    sweep = [tokenizer_lines.sweep_text(block).decode() for block in range(bpe.SWEEP_BLOCKS)]
    repeats = [u * n for u, n in REPEATS]
    packed = lambda ids: np.array([*ids, -1], "<i4").tobytes()
    hashes = lambda encode, decode: {
        "lines": bpe.groups([packed(i) for i in encode(lines)], bpe.GROUP), "sweep": bpe.groups([packed(i) for i in encode(sweep)], bpe.SWEEP_GROUP),
        "text": bpe.groups([decode(i).encode() + b"\xff" for i in encode(lines)], bpe.GROUP), "cases": encode(CASES),
        "repeats": bpe.groups([packed(i) for i in encode(repeats)], 1)}
    protos = {name: train(name, lines) for name in OPTIONS}
    write_gguf(protos["llama"], golden.GOLDENS / "sentencepiece_llama.gguf")
    made = []
    for name, proto in protos.items():
        (golden.GOLDENS / f"sentencepiece_{name}.model").write_bytes(proto.SerializeToString())
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        made.append({"name": name, **hashes(lambda texts: processor.encode(texts), processor.decode)})
        print(name, len(proto.pieces), len(proto.SerializeToString()), len(proto.normalizer_spec.precompiled_charsmap), flush=True)
    bases = {"t5": unigram(protos["t5"]), "suffix": unigram(protos["suffix"]), "llama": merged(protos["llama"])}
    written = []
    for name, vocabulary, fields in families(protos):
        data = {**bases[vocabulary], **fields}
        data["model"] = {**bases[vocabulary]["model"], **fields.get("model", {})}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
        written.append({"name": name, "vocabulary": vocabulary, "fields": fields,
                        **hashes(lambda texts: [e.ids for e in tokenizer.encode_batch_fast(texts)], tokenizer.decode)})
        print(name, flush=True)
    with open(golden.GOLDENS / "sentencepiece.json", "w", encoding="utf-8", newline="\n") as file:
        file.write(f'{{\n"made_by": "tools/reference/sentencepiece_models.py, sentencepiece {sentencepiece.__version__}, tokenizers {tokenizers.__version__}",\n')
        file.write('"vocabularies": {\n' + ",\n".join(f'"{n}": {json.dumps(b, ensure_ascii=False)}' for n, b in bases.items()))
        file.write(f'\n}},\n"cases": {json.dumps(CASES)},\n"repeats": {json.dumps(REPEATS)},\n"models": [\n')
        file.write(",\n".join(map(json.dumps, made)) + '\n],\n"families": [\n' + ",\n".join(json.dumps(f, ensure_ascii=False) for f in written) + "\n]\n}\n")


if __name__ == "__main__":
    main()
