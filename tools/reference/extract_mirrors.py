#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Production signatures, extracted from the published wheels into mirrors/*.tsv.

One idea: an operator here has the interface of a production operator, so the
signatures are read out of the production libraries themselves and never typed in.

  vLLM        operator schemas: the strings that each extension module hands to
              TORCH_LIBRARY(namespace) m.def(...), found through the module's own
              symbol table and code; classes and functions: its Python sources
  FlashInfer  public functions and classes: its Python sources
  PyTorch     schemas of a chosen part of ATen: native_functions.yaml

Nothing is imported or run: wheels are zip files, modules are bytes, sources are
parsed with `ast`. Needs Python 3.10 or later with pip, no other package; the
first run downloads 850 MB into the cache folder.

  extract_mirrors.py --cache DIR            write the tables
  extract_mirrors.py --cache DIR --check    extract again, compare, exit 1 on a difference
  extract_mirrors.py --self-test            check the parsers on difficult signatures
"""

import argparse
import ast
import difflib
import fnmatch
import hashlib
import mmap
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass

# ---------------------------------------------------------------- what is read

@dataclass(frozen=True)
class Wheel:
    """A release on the package index. The wheel is fixed by its hash, so it is the same on every host."""

    distribution: str
    version: str
    file: str
    sha256: str
    pip_options: tuple = ()

    @property
    def table(self):
        return f"{self.distribution.removesuffix('-python')}-{self.version}.tsv"


VLLM = Wheel("vllm", "0.26.0", "vllm-0.26.0-cp38-abi3-manylinux_2_28_x86_64.whl",
             "adb1e4c9b46d0dfdb094121ae5aad670a42412dd813ed4e5db069ed6a15006de",
             ("--platform", "manylinux_2_28_x86_64"))
FLASHINFER = Wheel("flashinfer-python", "0.6.14", "flashinfer_python-0.6.14-py3-none-any.whl",
                   "d124369346a3d48eac67e31c42f7a3c813bcc0abc10e2e36db413b7b3dfd97df")
TORCH = Wheel("torch", "2.11.0", "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl",
              "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a",
              ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11"))

# Python sources to read: path patterns in the wheel; `*` also matches `/`. A leading `-` leaves files out again.
VLLM_SOURCES = """
vllm/_custom_ops.py
vllm/distributed/communication_op.py
vllm/model_executor/layers/*.py
-vllm/model_executor/layers/quantization/*
-vllm/model_executor/layers/pooler/*
-vllm/model_executor/layers/*aiter*
-vllm/model_executor/layers/*xpu*
-vllm/model_executor/layers/*/cpu*
-vllm/model_executor/layers/fused_moe/oracle/*
-vllm/model_executor/layers/fused_moe/prepare_finalize/*
-vllm/model_executor/layers/mamba/ops/gdn_chunk_cutedsl/*
vllm/model_executor/models/llama.py
vllm/third_party/flash_linear_attention/*.py
vllm/v1/attention/ops/*.py
-vllm/v1/attention/ops/*rocm*
-vllm/v1/attention/ops/*xpu*
vllm/v1/sample/*.py
vllm/vllm_flash_attn/*.py
-vllm/vllm_flash_attn/cute/*
vllm/vllm_flash_attn/cute/interface.py
""".split()
FLASHINFER_SOURCES = """
flashinfer/*.py
-flashinfer/*/*
-flashinfer/_*
-flashinfer/aot.py
-flashinfer/api_logging.py
-flashinfer/artifacts.py
-flashinfer/autotuner.py
-flashinfer/compilation_context.py
-flashinfer/cuda_utils.py
-flashinfer/fi_trace.py
-flashinfer/tllm_*.py
-flashinfer/version.py
flashinfer/comm/*.py
flashinfer/cudnn/*.py
flashinfer/fused_moe/*.py
-flashinfer/fused_moe/cute_dsl/black*
flashinfer/gemm/*.py
-flashinfer/gemm/kernels/*
flashinfer/grouped_mm/*.py
flashinfer/logits_processor/*.py
flashinfer/mamba/*.py
-flashinfer/mamba/ssd_*.py
flashinfer/mamba/ssd_combined.py
flashinfer/mla/*.py
flashinfer/norm/*.py
-flashinfer/norm/kernels/*
flashinfer/parallel_attention/*.py
flashinfer/quantization/*.py
-flashinfer/quantization/*cute_dsl*
-flashinfer/quantization/kernels/*
""".split()
NATIVE_FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"
# ATen operators by base name: every overload, and the in-place form with a trailing underscore.
ATEN_OPERATORS = frozenset("""
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d add addbmm addcdiv addcmul addmm
addmv affine_grid_generator all amax amin any arange argmax argmin argsort atan2 avg_pool1d avg_pool2d avg_pool3d
baddbmm batch_norm bernoulli bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm bucketize cat cdist ceil
celu chunk clamp clamp_max clamp_min clone constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d convolution copy cos count_nonzero cross cumprod cumsum diff div dot dropout einsum elu embedding
embedding_bag empty eq erf exp expand expm1 eye fft_fft fft_ifft fft_irfft fft_rfft fill flatten flip floor
floor_divide fmod frac full gather ge gelu glu grid_sampler_2d grid_sampler_3d group_norm gt hardsigmoid hardswish
hardtanh histc index index_add index_copy index_put index_select instance_norm isfinite isinf isnan kthvalue
layer_norm le leaky_relu lerp linalg_vector_norm linear log log10 log1p log2 log_sigmoid log_softmax logaddexp
logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill masked_scatter
masked_select matmul max max_pool1d max_pool2d max_pool3d maximum mean median meshgrid min minimum mish mm movedim
mul multinomial mv native_batch_norm native_dropout native_group_norm native_layer_norm ne neg nonzero norm
normal one_hot outer pad permute pixel_shuffle pixel_unshuffle polar pow prelu prod rand randint randn randperm
reciprocal reflection_pad1d reflection_pad2d relu relu6 remainder repeat repeat_interleave replication_pad1d
replication_pad2d reshape rms_norm roll round rsqrt scaled_dot_product_attention scatter scatter_add scatter_reduce
searchsorted segment_reduce select selu sigmoid sign silu sin sinh slice slice_scatter softmax softplus sort split
split_with_sizes sqrt square squeeze stack std stft istft sub sum tan tanh tensor_split threshold tile topk
transpose tril triu trunc unbind unflatten unfold unique_consecutive unsqueeze upsample_bicubic2d
upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
var view view_as_complex view_as_real _weight_norm where zeros zeros_like ones ones_like
_cslt_sparse_mm _embedding_bag _grouped_mm _scaled_grouped_mm _scaled_mm _softmax _log_softmax _sparse_mm
_scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_for_cpu _weight_int4pack_mm _weight_int8pack_mm _int_mm
""".split())

# Methods that make up the interface of a class.
VLLM_METHODS = ("__init__", "forward", "forward_native", "apply")
FLASHINFER_METHODS = ("__init__", "plan", "run", "forward", "begin_forward")

COLUMNS = ("symbol", "position", "name", "type", "default", "mutated", "keyword_only")


class MirrorError(Exception):
    """A wheel that is not what this script was written for; the message names the thing and the value."""


# --------------------------------------------------------------- the signature

@dataclass(frozen=True)
class Argument:
    name: str
    type: str = "-"
    default: str = "-"
    mutated: str = "-"  # "!" written to, "&" a result may alias it, "-" neither
    keyword_only: str = "-"


@dataclass(frozen=True)
class Signature:
    arguments: tuple
    returns: str

    def rows(self, symbol):
        for position, a in enumerate(self.arguments):
            yield (symbol, str(position), a.name, a.type, a.default, a.mutated, a.keyword_only)
        yield (symbol, "return", "-", self.returns, "-", "-", "-")


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


# ------------------------------------------------------------ operator schemas
# name.overload(type name=default, *, type name) -> returns
# type: a base, then in any order `[]`, `[N]`, `?`, and an annotation `!`, `(a)`, `(a!)`, `(a -> *)`

SCHEMA_SHAPE = re.compile(rb"\s*[A-Za-z_][\w.:]*\s*\([^\0]*\)\s*->\s*[A-Z(a-z][^\0:]*\s*")
SCHEMA = re.compile(r"\s*(?P<name>[A-Za-z_][\w.:]*)\s*\(", re.ASCII)
SCHEMA_ARGUMENT = re.compile(
    r"(?P<base>[A-Za-z_][\w.]*)(?P<suffix>(?:\[\d*\]|\?|!|\([^()]*\))*)\s+(?P<name>[A-Za-z_]\w*)(?:\s*=\s*(?P<default>.+))?",
    re.ASCII)
ANNOTATION = re.compile(r"!|\([^()]*\)")
SCHEMA_RETURN = re.compile(r"\(\)|\(.+\)|[A-Za-z_][\w.]*(?:\[\d*\]|\?|!|\([^()]*\))*(?: \w+)?", re.ASCII)


def split_at_commas(text):
    """Splits at the commas outside of brackets and quotes. Returns the pieces and the index of the first unmatched `)`."""
    pieces, start, depth, quote, escaped = [], 0, 0, "", False
    for i, c in enumerate(text):
        if quote:
            if c == quote and not escaped:
                quote = ""
            escaped = c == "\\" and not escaped
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            if depth == 0:
                return pieces + [text[start:i]], i
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    return pieces + [text[start:]], len(text)


def parse_schema(text):
    """Returns (name with overload, Signature) of an operator schema."""
    text = one_line(text)
    head = SCHEMA.match(text)
    if not head:
        raise MirrorError(f"not an operator schema: {text!r}")
    pieces, end = split_at_commas(text[head.end():])
    arrow = re.fullmatch(r"\)\s*->\s*(.+)", text[head.end() + end:])
    if not arrow or not SCHEMA_RETURN.fullmatch(arrow[1]):
        raise MirrorError(f"operator schema without a readable return type: {text!r}")
    arguments, keyword_only = [], "-"
    for piece in ([] if pieces == [""] else [p.strip() for p in pieces]):
        if piece == "*":
            keyword_only = "*"
            continue
        m = SCHEMA_ARGUMENT.fullmatch(re.sub(r"\s+!(?=\w)", "! ", piece))  # `Tensor !x` means `Tensor! x`
        if not m:
            raise MirrorError(f"argument {piece!r} not understood in operator schema {text!r}")
        annotations = "".join(ANNOTATION.findall(m["suffix"]))
        arguments.append(Argument(m["name"], m["base"] + ANNOTATION.sub("", m["suffix"]), m["default"] or "-",
                                  "!" if "!" in annotations else "&" if annotations else "-", keyword_only))
    return head["name"], Signature(tuple(arguments), arrow[1])


# ------------------------------------------- schemas inside extension modules

class Elf:
    """Just enough of a 64-bit little-endian x86-64 shared library: sections, function symbols, C strings."""

    def __init__(self, data, name):
        self.data, self.name = data, name
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
            raise MirrorError(f"{name}: not an x86-64 ELF file")
        table, = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
        strings = headers[names][4]
        self.sections = {self._text(strings + h[0]): h for h in headers}

    def _text(self, offset):
        return self.data[offset:self.data.find(b"\0", offset)].decode("latin-1")

    def section(self, name):
        """Address and bytes of a section."""
        h = self.sections.get(name)
        return (h[3], self.data[h[4]:h[4] + h[5]]) if h else (0, b"")

    def symbols(self):
        """Yields (name, address, size) of every defined symbol."""
        if ".symtab" not in self.sections:
            raise MirrorError(f"{self.name}: stripped, so no schema can be given to its namespace")
        _, table = self.section(".symtab")
        strings = self.sections[".strtab"][4]
        for name, _info, _other, section, address, size in struct.iter_unpack("<IBBHQQ", table):
            if name and section:
                yield self._text(strings + name), address, size


LIBRARY_FUNCTION = re.compile(r"(\d+)((?:STABLE_)?TORCH_LIBRARY(_FRAGMENT)?_(static_)?init_.*)")
LEA_RIP = re.compile(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4})", re.DOTALL)


def library_namespace(symbol):
    """(namespace, is the static object) that a mangled TORCH_LIBRARY symbol stands for, else None."""
    m = LIBRARY_FUNCTION.search(symbol)
    if not m or ".cold" in symbol:
        return None
    identifier = m[2][:int(m[1])]
    if "TORCH_LIBRARY_IMPL" in identifier:
        return None
    namespace = identifier.split("_static_init_" if m[4] else "_init_", 1)[1]
    if m[3]:  # a fragment also carries a number, since one file may hold several
        namespace = re.sub(r"_\d+$", "", namespace)
    return namespace, bool(m[4])


def module_schemas(data, name):
    """Returns {namespace::operator: Signature} of an extension module.

    `m.def("...")` compiles into code that loads the address of the string (`lea reg, [rip + x]`). The
    function around it is TORCH_LIBRARY's, named after the namespace, or, once the compiler has inlined it,
    the file's static initializer; then the module has to declare a single namespace.
    """
    elf = Elf(data, name)
    namespaces, functions = set(), []
    for symbol, address, size in elf.symbols():
        found = library_namespace(symbol)
        if found:
            namespaces.add(found[0])
            if not found[1]:
                functions.append((found[0], address, size))
        elif symbol.startswith("_GLOBAL__sub_I_"):
            functions.append((None, address, size))
    if not namespaces:
        return {}

    base, rodata = elf.section(".rodata")
    strings = {}  # address -> bytes, of each C string that looks like a schema
    for m in re.finditer(rb"[^\0]+", rodata):
        if SCHEMA_SHAPE.fullmatch(m[0]):
            strings[base + m.start()] = m[0]
    text_base, text = elf.section(".text")
    schemas, seen = {}, set()
    for namespace, address, size in functions:
        code = text[address - text_base:address - text_base + size]
        for m in re.finditer(rb"(?=" + LEA_RIP.pattern + rb")", code, re.DOTALL):
            target = address + m.start() + 7 + struct.unpack("<i", m[1])[0]
            if target not in strings:
                continue
            owner = namespace or (next(iter(namespaces)) if len(namespaces) == 1 else None)
            if owner is None:
                raise MirrorError(f"{name}: {strings[target]!r} may belong to any of {sorted(namespaces)}")
            operator, signature = parse_schema(strings[target].decode())
            symbol = f"{owner}::{operator}"
            if schemas.setdefault(symbol, signature) != signature:
                raise MirrorError(f"{name}: {symbol} is defined twice, differently")
            seen.add(target)
    for target in strings.keys() - seen:
        raise MirrorError(f"{name}: no TORCH_LIBRARY defines the schema {strings[target]!r}")
    return schemas


def wheel_schemas(archive):
    """Schemas of all extension modules of a wheel."""
    schemas = {}
    for member in sorted(n for n in archive.namelist() if n.endswith(".so")):
        with tempfile.TemporaryFile() as file:  # up to 300 MB unpacked: mapped, not held
            with archive.open(member) as packed:
                while block := packed.read(1 << 24):
                    file.write(block)
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                found = module_schemas(data, member)
        for symbol, signature in found.items():
            if schemas.setdefault(symbol, signature) != signature:
                raise MirrorError(f"{member}: {symbol} differs from its definition in another module")
    return schemas


def aten_schemas(text):
    """Schemas of ATEN_OPERATORS from native_functions.yaml, where each stands on a line of its own."""
    schemas, bases = {}, set()
    for line in text.splitlines():
        if not line.startswith("- func:"):
            continue
        name, signature = parse_schema(line.removeprefix("- func:"))
        base = name.split(".")[0]
        chosen = base if base in ATEN_OPERATORS else base.removesuffix("_")
        if chosen in ATEN_OPERATORS:
            schemas[f"aten::{name}"] = signature
            bases.add(chosen)
    if missing := ATEN_OPERATORS - bases:
        raise MirrorError(f"not in native_functions.yaml: {', '.join(sorted(missing))}")
    return schemas


# ------------------------------------------------------------- Python sources

SKIPPED_DECORATORS = {"overload", "property", "jit", "kernel", "autotune", "heuristics"}  # typing stubs, device code


class PythonSources:
    """The Python files of a wheel, parsed on demand; names are followed through imports, methods through bases."""

    def __init__(self, read, members):
        self.read = read
        self.paths = {self.module_name(m): m for m in members if m.endswith(".py")}
        self.modules = {}

    @staticmethod
    def module_name(path):
        return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def module(self, name):
        """(source lines, {name: definitions}, {name: (module, name there or None)}) or None if it's not in the wheel."""
        if name not in self.modules:
            path = self.paths.get(name)
            self.modules[name] = self._parse(name, path) if path else None
        return self.modules[name]

    def _parse(self, name, path):
        source = self.read(path).decode("utf-8")
        definitions, imports = {}, {}
        package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        for node in statements(ast.parse(source, path).body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                definitions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ImportFrom):
                origin = node.module or ""
                if node.level:
                    parent = package.split(".")[:len(package.split(".")) - node.level + 1]
                    origin = ".".join(parent + ([origin] if origin else []))
                for alias in node.names:
                    imports[alias.asname or alias.name] = (origin, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    name_here = alias.asname or alias.name.split(".")[0]
                    imports[name_here] = (alias.name if alias.asname else name_here, None)
        return source.splitlines(), definitions, imports

    def find_class(self, module, expression, depth=0):
        """(module, ClassDef) of a base class expression, or None when it lies outside of the wheel."""
        parsed = self.module(module)
        if not parsed or depth > 16:
            return None
        _, definitions, imports = parsed
        if isinstance(expression, ast.Subscript):
            return self.find_class(module, expression.value, depth + 1)
        if isinstance(expression, ast.Attribute):
            first, *middle, last = ast.unparse(expression).split(".")
            origin, inner = imports.get(first, (None, None))
            if origin is None:
                return None
            return self.find_class(".".join([origin] + ([inner] if inner else []) + middle), ast.Name(last), depth + 1)
        if not isinstance(expression, ast.Name):
            return None
        for node in definitions.get(expression.id, ()):
            if isinstance(node, ast.ClassDef):
                return module, node
        origin, inner = imports.get(expression.id, (None, None))
        return self.find_class(origin, ast.Name(inner), depth + 1) if inner else None

    def find_method(self, module, node, name, depth=0):
        """(module, FunctionDef) of a method, the class's own or an inherited one, or None."""
        found = None
        for item in statements(node.body):
            if isinstance(item, ast.FunctionDef) and item.name == name and not skipped(item):
                found = module, item
            elif (isinstance(item, ast.Assign) and isinstance(item.value, ast.Name)  # begin_forward = plan
                  and any(isinstance(t, ast.Name) and t.id == name for t in item.targets)):
                found = self.find_method(module, node, item.value.id, depth + 1) if depth < 16 else None
        if found:
            return found
        for base in node.bases if depth < 16 else ():
            parent = self.find_class(module, base)
            if parent and parent[1] is not node and (found := self.find_method(*parent, name, depth + 1)):
                return found
        return None

    def signature(self, module, node, method=False):
        lines = self.module(module)[0]
        a = node.args
        positional = a.posonlyargs + a.args
        defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
        arguments = [Argument(p.arg, source_text(lines, p.annotation), source_text(lines, d))
                     for p, d in zip(positional, defaults)]
        if method and "staticmethod" not in map(decorator_name, node.decorator_list):
            arguments = arguments[1:]
        if a.vararg:
            arguments.append(Argument("*" + a.vararg.arg, source_text(lines, a.vararg.annotation)))
        arguments += [Argument(p.arg, source_text(lines, p.annotation), source_text(lines, d), "-", "*")
                      for p, d in zip(a.kwonlyargs, a.kw_defaults)]
        if a.kwarg:
            arguments.append(Argument("**" + a.kwarg.arg, source_text(lines, a.kwarg.annotation)))
        return Signature(tuple(arguments), source_text(lines, node.returns))

    def signatures(self, module, methods):
        """{symbol: Signature} of the public functions and classes that a module defines."""
        result = {}
        for name, nodes in self.module(module)[1].items():
            # Defined once per branch of an `if` or `try`: the first one that is not a typing stub.
            node = next((n for n in nodes if isinstance(n, ast.ClassDef) or not skipped(n)), None)
            if node is None or name.startswith("_"):
                continue
            if not isinstance(node, ast.ClassDef):
                if not re.fullmatch(r"(get|gen)_\w*(module|modules|uri)", name):  # these load compiled code
                    result[f"{module}:{name}"] = self.signature(module, node)
                continue
            found = {m: f for m in methods if (f := self.find_method(module, node, m))}
            # `forward_native` stands in for a `forward` that is missing or only passes on what it gets.
            if "forward_native" in found:
                dispatches = "forward" not in found or passes_on(found["forward"][1])
                found.pop("forward" if dispatches else "forward_native", None)
            for method, (origin, definition) in found.items():
                result[f"{module}:{name}.{method}"] = self.signature(origin, definition, method=True)
        return result


def statements(body):
    """The statements of a body, also those in the branches of `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from statements(node.body)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
            yield from statements(getattr(node, "orelse", ()))
            yield from statements(getattr(node, "finalbody", ()))
        else:
            yield node


def decorator_name(node):
    """Last word of a decorator: `jit` of `@triton.jit(...)`."""
    while isinstance(node, ast.Call):
        node = node.func
    return getattr(node, "attr", getattr(node, "id", ""))


def skipped(node):
    return any(decorator_name(d) in SKIPPED_DECORATORS for d in node.decorator_list)


def passes_on(node):
    a = node.args
    return bool(a.vararg and a.kwarg and len(a.posonlyargs + a.args) == 1 and not a.kwonlyargs)


def source_text(lines, node):
    """An annotation or default as its author wrote it; one that spans lines is set on one line."""
    if node is None:
        return "-"
    if node.lineno != node.end_lineno:
        return one_line(ast.unparse(node))
    return one_line(lines[node.lineno - 1].encode()[node.col_offset:node.end_col_offset].decode())


def chosen_paths(patterns, members):
    """Members that the patterns select; the last pattern that matches a path decides."""
    chosen = {}
    for pattern in patterns:
        matched = fnmatch.filter(members, pattern.removeprefix("-"))
        if not matched:
            raise MirrorError(f"no file in the wheel matches {pattern}")
        for path in matched:
            chosen[path] = not pattern.startswith("-")
    return sorted(p for p, wanted in chosen.items() if wanted)


def wheel_signatures(archive, patterns, methods):
    members = [m for m in archive.namelist() if m.endswith(".py")]
    sources, result = PythonSources(archive.read, members), {}
    for path in chosen_paths(patterns, members):
        result.update(sources.signatures(PythonSources.module_name(path), methods))
    return result


# ---------------------------------------------------------- wheels and tables

def open_wheel(wheel, cache):
    """The wheel as an open zip file; downloaded on the first call, its hash checked on each."""
    path = cache / wheel.file
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
                   "--dest", str(cache), *wheel.pip_options, f"{wheel.distribution}=={wheel.version}"]
        if subprocess.run(command, stdout=sys.stderr).returncode != 0 or not path.exists():
            raise MirrorError(f"pip did not bring {wheel.file} into {cache}")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
    if digest.hexdigest() != wheel.sha256:
        raise MirrorError(f"{path}: SHA-256 is {digest.hexdigest()}, expected {wheel.sha256}")
    return zipfile.ZipFile(path)


def check_pins(archive):
    """The other two tables belong to the releases that vLLM itself asks for."""
    metadata = archive.read(f"vllm-{VLLM.version}.dist-info/METADATA").decode()
    for wheel in (FLASHINFER, TORCH):
        if not re.search(rf"^Requires-Dist: {wheel.distribution}=={re.escape(wheel.version)}\b", metadata, re.MULTILINE):
            raise MirrorError(f"vllm {VLLM.version} does not require {wheel.distribution}=={wheel.version}")


def format_table(signatures):
    lines = ["\t".join(COLUMNS)]
    for symbol in sorted(signatures):
        for row in signatures[symbol].rows(symbol):
            if any("\t" in field or "\n" in field or not field for field in row):
                raise MirrorError(f"{symbol}: a field is empty or holds a tab: {row!r}")
            lines.append("\t".join(row))
    return "\n".join(lines) + "\n"


def extract(cache):
    """{file name: text} of the three tables."""
    with open_wheel(VLLM, cache) as archive:
        check_pins(archive)
        vllm = wheel_schemas(archive) | wheel_signatures(archive, VLLM_SOURCES, VLLM_METHODS)
    with open_wheel(FLASHINFER, cache) as archive:
        flashinfer = wheel_signatures(archive, FLASHINFER_SOURCES, FLASHINFER_METHODS)
    with open_wheel(TORCH, cache) as archive:
        torch = aten_schemas(archive.read(NATIVE_FUNCTIONS).decode())
    return {VLLM.table: format_table(vllm), FLASHINFER.table: format_table(flashinfer), TORCH.table: format_table(torch)}


def check(tables, folder):
    """Prints how the committed tables differ from the extracted ones; returns whether they do."""
    differ = False
    for name, text in tables.items():
        path = folder / name
        committed = path.read_text(encoding="utf-8") if path.exists() else ""
        diff = list(difflib.unified_diff(committed.splitlines(), text.splitlines(), f"{path} (committed)",
                                         f"{name} (extracted)", lineterm="", n=1))
        print("\n".join(diff[:200]) if diff else f"{path}: as extracted")
        if len(diff) > 200:
            print(f"... {len(diff) - 200} more lines differ")
        differ = differ or bool(diff)
    extra = {p.name for p in folder.glob("*.tsv")} - tables.keys()
    for name in sorted(extra):
        print(f"{folder / name}: not made by this script")
    return differ or bool(extra)


# ------------------------------------------------------------------ self test

SCHEMA_CASES = {
    "meta_size() -> int":
        ("meta_size", [], "int"),
    "ns::op(\n   Tensor! result,Tensor input,   float epsilon) -> ()":
        ("ns::op", ["result Tensor - ! -", "input Tensor - - -", "epsilon float - - -"], "()"),
    "f(Tensor!? key, int!? n, bool is_neox, int offset=0, bool inverse=False)->()":
        ("f", ["key Tensor? - ! -", "n int? - ! -", "is_neox bool - - -", "offset int 0 - -", "inverse bool False - -"], "()"),
    "cache(str kv_cache_dtype, Tensor(a!)? x=None, Tensor(b!)[]? y=None) -> Tensor[]":
        ("cache", ["kv_cache_dtype str - - -", "x Tensor? None ! -", "y Tensor[]? None ! -"], "Tensor[]"),
    "pool.out(Tensor self, int[2] padding=[0, 0], bool[3] mask=[True, False, True], *, Tensor(a!) out) -> Tensor(a!)":
        ("pool.out", ["self Tensor - - -", "padding int[2] [0, 0] - -", "mask bool[3] [True, False, True] - -",
                      "out Tensor - ! *"], "Tensor(a!)"),
    "chunk(Tensor(a -> *) self, SymInt chunks, int dim=-1) -> Tensor(a)[]":
        ("chunk", ["self Tensor - & -", "chunks SymInt - - -", "dim int -1 - -"], "Tensor(a)[]"),
    "say(str a=\"x, y)\", *, str b='(', float c=1e-05, ScalarType? dtype=None) -> (Tensor out, Tensor)":
        ("say", ['a str "x, y)" - -', "b str '(' - *", "c float 1e-05 - *", "dtype ScalarType? None - *"], "(Tensor out, Tensor)"),
    "sort(Tensor !ids, Tensor? map) -> ()":
        ("sort", ["ids Tensor - ! -", "map Tensor? - - -"], "()"),
    "grid(Tensor theta, int N) -> Tensor grid":
        ("grid", ["theta Tensor - - -", "N int - - -"], "Tensor grid"),
    r"""quoted(str a="\"'\\", str b='"\'\\') -> Tensor""":
        ("quoted", [r"""a str "\"'\\" - -""", r"""b str '"\'\\' - -"""], "Tensor"),
    "handles(int[][] handles) -> (int[], int[])":
        ("handles", ["handles int[][] - - -"], "(int[], int[])"),
}
BAD_SCHEMAS = ("", "f", "f(Tensor a)", "f(Tensor) -> ()", "f(Tensor a,) -> ()", "f(Tensor a -> ()", "f(Tensor a) -> int x y",
               "f(paths: list[str]) -> list[bool]")

PYTHON_CASE = {
    "pkg/__init__.py": "from .base import Root as Base\n",
    "pkg/base.py": """
class Root(nn.Module):
    def __init__(self, *, enforce: bool = False): ...
    def forward(self, *args, **kwargs): ...
    def forward_native(self, *args, **kwargs): ...
""",
    "pkg/ops.py": """
import pkg
from typing import overload
try:
    from . import Base as B
except ImportError:
    B = object
@overload
def run(x: int) -> int: ...
def run(
    x: Union[
        int,  # a comment
        str,
    ],
    /, y="a, b", *rest, scale: float = 1.0 / 3, **more: Any
) -> "Tensor | None": ...
@triton.jit
def kernel(ptr, N: tl.constexpr): ...
def _private(): ...
def get_run_module(): ...
class Norm(B):
    def forward_native(self, x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor: ...
class Linear(B):
    def __init__(self, size): ...
    def forward(self, x): ...
class Plain(pkg.base.Root):
    @staticmethod
    def forward(x): ...
    def plan(self, n: int) -> None: ...
    begin_forward = plan
""",
}
PYTHON_ROWS = {
    "pkg.ops:run": ["x Union[int, str] - - -", 'y - "a, b" - -', "*rest - - - -", "scale float 1.0 / 3 - *",
                    "**more Any - - -", 'return "Tensor | None"'],
    "pkg.ops:Norm.__init__": ["enforce bool False - *", "return -"],
    "pkg.ops:Norm.forward_native": ["x torch.Tensor - - -", "eps float 1e-6 - -", "return torch.Tensor"],
    "pkg.ops:Linear.__init__": ["size - - - -", "return -"],
    "pkg.ops:Linear.forward": ["x - - - -", "return -"],
    "pkg.ops:Plain.__init__": ["enforce bool False - *", "return -"],
    "pkg.ops:Plain.forward": ["x - - - -", "return -"],
    "pkg.ops:Plain.begin_forward": ["n int - - -", "return None"],
}
NAMESPACE_CASES = {
    "_ZL39STABLE_TORCH_LIBRARY_FRAGMENT_init__C_0RN5torch6stable6detail13StableLibraryE": ("_C", False),
    "_ZL49STABLE_TORCH_LIBRARY_FRAGMENT_init__C_cache_ops_6RN5torch6stable6detail13StableLibraryE": ("_C_cache_ops", False),
    "_ZN5flashL30TORCH_LIBRARY_init__vllm_fa2_CERN5torch7LibraryE": ("_vllm_fa2_C", False),
    "_ZL37TORCH_LIBRARY_static_init__vllm_fa3_C": ("_vllm_fa3_C", True),
    "_ZL40STABLE_TORCH_LIBRARY_IMPL_init__C_CUDA_1RN5torch6stable6detail13StableLibraryE": None,
    "_ZN5flashL30TORCH_LIBRARY_init__vllm_fa2_CERN5torch7LibraryE.cold": None,
}


def self_test():
    """Prints each case that fails; returns the number of failures."""
    results = []

    def expect(case, found, wanted):
        results.append(found == wanted)
        if found != wanted:
            print(f"FAILED {case}\n  found  {found!r}\n  wanted {wanted!r}")

    def cells(argument):
        return " ".join((argument.name, argument.type, argument.default, argument.mutated, argument.keyword_only))

    for text, wanted in SCHEMA_CASES.items():
        name, signature = parse_schema(text)
        expect(text, (name, [cells(a) for a in signature.arguments], signature.returns), wanted)
        expect(f"{text} is found", bool(SCHEMA_SHAPE.fullmatch(text.encode())), True)
    for text in BAD_SCHEMAS:
        try:
            expect(f"refuse {text!r}", parse_schema(text), MirrorError)
        except MirrorError as error:
            expect(f"refusal of {text!r} names it", repr(text) in str(error), True)
    for symbol, wanted in NAMESPACE_CASES.items():
        expect(symbol, library_namespace(symbol), wanted)
    sources = PythonSources(lambda path: PYTHON_CASE[path].encode(), PYTHON_CASE)
    found = sources.signatures("pkg.ops", ("__init__", "forward", "forward_native", "begin_forward"))
    expect("symbols of pkg.ops", sorted(found), sorted(PYTHON_ROWS))
    for symbol in found.keys() & PYTHON_ROWS.keys():
        expect(symbol, [cells(a) for a in found[symbol].arguments] + [f"return {found[symbol].returns}"], PYTHON_ROWS[symbol])
    expect("rows", list(parse_schema("f(*, int? n=1) -> ()")[1].rows("f")),
           [("f", "0", "n", "int?", "1", "-", "*"), ("f", "return", "-", "()", "-", "-", "-")])
    paths = ["a/b.py", "a/c/d.py", "a/c/e.py"]
    expect("chosen paths", chosen_paths(["a/*.py", "-a/c/*", "a/c/e.py"], paths), ["a/b.py", "a/c/e.py"])
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return len(results) - sum(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=pathlib.Path, metavar="DIR", help="folder for the downloaded wheels")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="folder of the tables (default: mirrors/ of this tree)",
                        default=pathlib.Path(__file__).resolve().parents[2] / "mirrors")
    parser.add_argument("--check", action="store_true", help="compare with the tables there instead of writing them")
    parser.add_argument("--self-test", action="store_true", help="check the parsers; needs no wheels")
    options = parser.parse_args()
    if options.self_test:
        return 1 if self_test() else 0
    if not options.cache:
        parser.error("--cache DIR is needed: where to keep the downloaded wheels")
    try:
        tables = extract(options.cache)
    except MirrorError as error:
        print(f"extract_mirrors: {error}", file=sys.stderr)
        return 2
    if options.check:
        return 1 if check(tables, options.out) else 0
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        (options.out / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{options.out / name}: {text.count(chr(10)) - 1} rows, {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
