#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same file in two worlds: a candidate is judged by `fastkernels bench`, then loaded by the apache-tvm-ffi package onto
numpy arrays, and gives the right answer there too.

    test_candidate_python.py FASTKERNELS SOURCE_DIR WORK_DIR

Needs apache-tvm-ffi and numpy: those of this Python, else a copy in the cache folder, which is installed from PyPI once.
Without either and without network: exit 77 (skipped), with the reason."""
import json
import os
import pathlib
import subprocess
import sys

PACKAGES = ["apache-tvm-ffi==0.1.15.post2", "numpy>=1.26,<3", "typing-extensions"]


def packages():
    cache = os.environ.get("FK_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fastkernels")
    folder = os.path.join(cache, "python-%d.%d" % sys.version_info[:2])
    try:
        import numpy, tvm_ffi  # noqa: F401, E401
        return
    except ImportError:
        sys.path.insert(0, folder)
    try:
        import numpy, tvm_ffi  # noqa: F401, E401, F811
        return
    except ImportError:
        pass
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, "--no-deps", *PACKAGES],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print("SKIPPED: apache-tvm-ffi and numpy are not installed and cannot be fetched:",
              done.stderr.strip().splitlines()[-1:] or "pip failed")
        sys.exit(77)
    import importlib
    importlib.invalidate_caches()


def build(source_dir, source, target):
    subprocess.run(["cc", "-std=c17", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{source_dir}/include",
                    f"-I{source_dir}/ops", str(source), "-o", str(target), "-lm"], check=True)


def main(program, source_dir, work_dir):
    packages()
    import numpy as np
    import tvm_ffi

    folder = pathlib.Path(work_dir) / "candidates"
    folder.mkdir(parents=True, exist_ok=True)
    for op in ("silu_and_mul", "rms_norm", "rotary_emb"):
        build(source_dir, pathlib.Path(source_dir) / "examples/candidates/good" / f"{op}.c", folder / f"{op}.so")

    # In the one world: bench judges these very files.
    cases = []
    for op, case in (("silu_and_mul", "T=5 D=37"), ("rms_norm", "T=4 D=576 epsilon=1e-5"),
                     ("rotary_emb", "T=3 H=4 K=2 head_size=16 P=8 R=16 is_neox=True")):
        done = subprocess.run([program, "bench", "--device", "cpu", "--candidates", str(folder), "--ops", op, "--case", case,
                               "--min-time-ms", "20", "-q", "--json", "-o", str(pathlib.Path(work_dir) / f"bench-{op}.json")],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cases += [r for r in map(json.loads, done.stdout.splitlines()) if "status" in r]
    assert [r["op"] for r in cases] == ["silu_and_mul", "rms_norm", "rotary_emb"], [r["op"] for r in cases]
    assert all(r["status"] == "PASSED" for r in cases), [r for r in cases if r["status"] != "PASSED"]

    # In the other: Python calls them on numpy arrays.
    load = lambda op: getattr(tvm_ffi.load_module(str((folder / f"{op}.so").resolve())), op)  # noqa: E731
    view = tvm_ffi.from_dlpack
    rng = np.random.default_rng(0)

    x = rng.standard_normal((5, 2 * 37)).astype(np.float32)
    y = np.full((5, 37), np.nan, np.float32)
    load("silu_and_mul")(view(y), view(x))
    gate = x[:, :37].astype(np.float64)
    assert np.allclose(y, gate / (1 + np.exp(-gate)) * x[:, 37:], rtol=1e-5, atol=1e-6)

    x = rng.standard_normal((4, 576)).astype(np.float32)
    w = rng.standard_normal(576).astype(np.float32)
    y = np.full_like(x, np.nan)
    rms_norm = load("rms_norm")
    rms_norm(view(y), view(x), view(w), 1e-5)
    exact = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5)
    assert np.allclose(y, exact * w, rtol=1e-5, atol=1e-6)
    rms_norm(view(y), view(x), None, 1e-5)  # the optional weight left out
    assert np.allclose(y, exact, rtol=1e-5, atol=1e-6)

    q = rng.standard_normal((3, 4 * 16)).astype(np.float32)
    k = rng.standard_normal((3, 2 * 16)).astype(np.float32)
    positions = np.array([0, 5, 2], np.int64)
    angle = np.arange(8)[:, None] * 10000.0 ** (-np.arange(8) / 8)
    table = np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    expected = []
    for t in (q, k):
        heads = t.reshape(3, -1, 16).astype(np.float64)
        c, s = (f(angle)[positions][:, None] for f in (np.cos, np.sin))
        a, b = heads[..., :8], heads[..., 8:]
        expected.append(np.concatenate([a * c - b * s, b * c + a * s], -1).reshape(t.shape))
    load("rotary_emb")(view(positions), view(q), view(k), 16, view(table), True)
    assert np.allclose(q, expected[0], atol=1e-5) and np.allclose(k, expected[1], atol=1e-5)

    # Mistakes become Python exceptions that say what is wrong.
    for arguments, words in (((view(y),), "takes 4 arguments, not 1"),
                             ((view(y), 3, None, 1e-5), "argument 1 (input)"),
                             ((view(y), None, None, 1e-5), "argument 1 (input)")):
        try:
            rms_norm(*arguments)
        except TypeError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"no exception for {arguments}")
    print(f"{len(cases)} cases judged; the same files compute on numpy arrays (tvm_ffi {tvm_ffi.__version__}, numpy {np.__version__})")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
