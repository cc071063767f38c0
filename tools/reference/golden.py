# SPDX-License-Identifier: Apache-2.0
"""What every golden script shares: the file writer and the 64-bit FNV-1a hash.

A golden is a safetensors file in tests/goldens/. Its metadata has one entry "golden": a JSON object with "script",
"about", "versions" of the libraries that made it, and the script's own parameters. The writer is deterministic, so
that rerunning a script with the same libraries changes nothing.
"""
import importlib.metadata
import json
import pathlib
import struct

import ml_dtypes
import numpy as np

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "goldens"
DTYPE_NAMES = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(ml_dtypes.bfloat16): "BF16",
               np.dtype(np.int32): "I32", np.dtype(np.int64): "I64", np.dtype(np.uint8): "U8",
               np.dtype(np.bool_): "BOOL", np.dtype(ml_dtypes.float8_e4m3fn): "F8_E4M3"}


def write(file_name, script, about, packages, tensors, **parameters):
    """Write tests/goldens/<file_name> with the tensors in the given order; the path."""
    versions = {package: importlib.metadata.version(package) for package in packages}
    golden = {"script": script, "about": " ".join(about.split()), "versions": versions, **parameters}
    header = {"__metadata__": {"golden": json.dumps(golden, ensure_ascii=False)}}
    offset = 0
    for name, array in tensors.items():
        header[name] = {"dtype": DTYPE_NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = GOLDENS / file_name
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
    print(f"{path}: {path.stat().st_size} bytes, {len(tensors)} tensors")
    return path


def fnv1a64(data):
    """64-bit FNV-1a of bytes, as a Python integer."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def fnv1a64_rows(rows):
    """64-bit FNV-1a of each row's little-endian bytes (array [N, ...]), as int64 with the same bits [N]."""
    columns = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8).T.astype(np.uint64, order="C")
    value = np.full(len(rows), 0xCBF29CE484222325, np.uint64)
    prime = np.uint64(0x100000001B3)
    for column in columns:
        value ^= column
        value *= prime
    return value.view(np.int64)
