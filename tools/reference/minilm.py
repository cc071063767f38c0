# SPDX-License-Identifier: Apache-2.0
"""What sentence-transformers makes of tests/data/minilm_sentences.txt with all-MiniLM-L6-v2, in float32 on the CPU.

    tools/fetch-assets minilm-l6
    python tools/reference/minilm.py    writes tests/goldens/minilm.safetensors

The last sentence is longer than the model reads (256 tokens): both cut it off. N sentences:

    embeddings   F32 [N, 384]  SentenceTransformer.encode, vectors of length 1
    ids          I32 [sum]     token ids of all sentences, [CLS] and [SEP] among them
    lengths      I32 [N]       how many of each
    ranking      I32 [Q, R]    the R sentences with the largest cosine to each of the first Q, best first, itself left out
"""
import pathlib
import subprocess

import numpy as np
import sentence_transformers
import torch

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERIES, BEST = 50, 5


def main():
    torch.set_num_threads(1)
    fetch = ROOT / "tools" / "fetch-assets"
    folder = subprocess.run([fetch, "--print", "minilm-l6"], check=True, capture_output=True, text=True).stdout.strip()
    sentences = (ROOT / "tests" / "data" / "minilm_sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    embeddings = model.encode(sentences, batch_size=1, convert_to_numpy=True).astype(np.float32)
    ids = [np.array(model.preprocess([sentence])["input_ids"][0].tolist(), np.int32) for sentence in sentences]
    cosines = embeddings.astype(np.float64) @ embeddings.astype(np.float64).T
    np.fill_diagonal(cosines, -2)
    ranking = np.argsort(-cosines[:QUERIES], axis=1)[:, :BEST].astype(np.int32)
    gaps = -np.diff(-np.sort(-cosines[:QUERIES], axis=1)[:, :BEST + 1], axis=1)
    print(f"{len(sentences)} sentences, longest {max(map(len, ids))} tokens; least gap between ranks {gaps.min():.2g}")
    golden.write("minilm.safetensors", "tools/reference/minilm.py", __doc__.split("N sentences:\n", 1)[1],
                 ["sentence-transformers", "transformers", "torch", "numpy"],
                 {"embeddings": embeddings, "ids": np.concatenate(ids), "lengths": np.array([len(i) for i in ids], np.int32),
                  "ranking": ranking}, sentences="tests/data/minilm_sentences.txt")


if __name__ == "__main__":
    main()
