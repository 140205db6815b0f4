"""A file with shaders as described modules and as tables: SPIR-V as it is, sources compiled, each module of a model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.files.source import SourceFile
from scenario_runner.graphs import read_vgf
from scenario_runner.shaders import CompileRequest, compile_all
from scenario_runner.spirv import read_module
from scenario_runner.spirv.describe import describe
from scenario_runner.text import one_line

MAX_FILE_BYTES = 1 << 30
_STAGES = {".vert": "vertex", ".frag": "fragment"}
_MAGIC = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


def modules_of(
    path: str,
    *,
    entry: str = "main",
    stage: str | None = None,
    defines: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    compiler: str | None = None,
    use_cache: bool = True,
) -> list[dict[str, Any]]:
    """What `spirv.describe.describe` says of each module of a file; modules without code keep their name and note.

    Raises FileError, SpirvError and what compiling raises.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension == ".vgf":
        return _modules_of_model(path, compiler, use_cache)
    content = _content(path)
    if extension == ".spv" or content[:4] in _MAGIC:
        return [describe(read_module(content, name=path))]
    language = "HLSL" if extension == ".hlsl" else "GLSL"
    stage = stage or _STAGES.get(extension, "compute")
    options = " ".join(_quoted(f"-D{define}") for define in defines)
    code = _compile(language, entry, stage, options, include_dirs, compiler, use_cache, path=path)
    return [describe(read_module(code, name=path))]


def _content(path: str) -> bytes:
    with SourceFile(path) as file:
        if file.size_bytes > MAX_FILE_BYTES:
            raise FileError(Diagnostic("SR-FILE-001", "error", None, "the file is too large for a shader", path=path))
        return file.read(file.size_bytes)


def _quoted(text: str) -> str:

    return shlex.quote(text)


def _compile(
    language: str,
    entry: str,
    stage: str,
    options: str,
    include_dirs: Sequence[str],
    compiler: str | None,
    use_cache: bool,
    *,
    path: str | None = None,
    source: str | None = None,
) -> bytes:

    request = CompileRequest(
        language=language,  # type: ignore[arg-type]
        path=path,
        source=source,
        entry=entry,
        stage=stage,  # type: ignore[arg-type]
        build_options=options,
        include_dirs=tuple(os.path.abspath(folder) for folder in include_dirs),
        base_dir=os.getcwd(),
    )
    return compile_all([request], compiler=compiler, use_cache=use_cache)[0]


def _modules_of_model(path: str, compiler: str | None, use_cache: bool) -> list[dict[str, Any]]:

    found: list[dict[str, Any]] = []
    for number, module in enumerate(read_vgf(path).modules):
        label = f"{path}: module {number} {module.name!r}"
        if module.code is None or module.language is None:
            found.append({"name": label, "note": "a placeholder: the file holds no code for it"})
            continue
        code = module.code
        if isinstance(code, str):
            code = _compile(module.language, "main", "compute", "", (), compiler, use_cache, source=code)
        found.append(describe(read_module(code, name=label)))
    return found


MOST_ROWS = 200
"""Rows of one table; the JSON form has them all."""
MOST_CHARACTERS = 100
"""Characters of a name or type; the JSON form has them all."""


class Table(NamedTuple):
    """A headline, and rows under it if there are any; ``depth`` is how far it is indented."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    depth: int = 0


def tables_of(module: Mapping[str, Any]) -> Iterator[Table]:
    """The tables of what `spirv.describe.describe` says of a module."""
    if "note" in module:
        yield Table(f"{module['name']}: {module['note']}")
        return
    yield Table(f"{module['name']}: SPIR-V {module['version']}, {module['size_bytes']} bytes")
    yield Table(f"capabilities: {', '.join(module['capabilities']) or 'none'}", depth=1)
    if module["extensions"]:
        yield Table(f"extensions: {', '.join(map(_cell, module['extensions']))}", depth=1)
    constants = module["specialization_constants"]
    if constants:
        rows = [(str(each["id"]), each["name"], each["type"], str(each["default"])) for each in constants]
        yield _table("specialization constants", ("id", "name", "type", "default"), rows, 1)
    for entry in module["entry_points"]:
        yield from _entry_point(entry)
    for graph in module["graph_entry_points"]:
        resources = [(way, *_tensor_row(each)) for way in ("input", "output") for each in graph[f"{way}s"]]
        yield _table(f"graph '{_cell(graph['name'])}'", ("", "set", "binding", "name", "tensor"), resources, 1)
    if module["graph_constants"]:
        tensors = [(str(each["id"]), _tensor(each)) for each in module["graph_constants"]]
        yield _table("graph constants", ("id", "tensor"), tensors, 1)


def _entry_point(entry: Mapping[str, Any]) -> Iterator[Table]:
    if "note" in entry:
        yield Table(f"entry point '{_cell(entry['name'])}': {entry['execution_model']}, {entry['note']}", depth=1)
        return
    size = entry["local_size"]
    details = [entry["execution_model"]]
    if size is not None:
        details.append(f"workgroups of {' x '.join(map(str, size))}")
    if entry["workgroup_memory_bytes"]:
        details.append(f"{entry['workgroup_memory_bytes']} bytes of shared memory")
    yield Table(f"entry point '{_cell(entry['name'])}': {', '.join(details)}", depth=1)
    for way in ("inputs", "outputs"):
        if entry[way]:
            variables = [_stage_variable(each) for each in entry[way]]
            yield _table(way, ("location", "name", "type", "details"), variables, 2)
        if entry[f"{way}_built_in"]:
            yield Table(f"built-in {way}: {', '.join(entry[f'{way}_built_in'])}", depth=2)
    if entry["bindings"]:
        columns = ("set", "binding", "name", "kind", "access", "details")
        yield _table("bindings", columns, [_binding(each) for each in entry["bindings"]], 2)
    block = entry["push_constants"]
    if block is not None:
        yield from _block(f"push constants '{_cell(block['name'])}': {block['size_bytes']} bytes", block)
    for each in entry["bindings"]:
        if each.get("block") is not None:
            title = f"{each['kind'].replace('_', ' ')} '{_cell(each['name'])}': {_size(each['block'])}"
            yield from _block(title, each["block"])
    for problem in entry["problems"]:
        yield Table(f"problem: {problem}", depth=2)


def _stage_variable(variable: Mapping[str, Any]) -> tuple[str, ...]:
    first, count = variable["location"], variable["locations"]
    location = str(first) if count == 1 else f"{first}-{first + count - 1}"
    location += f".{variable['component']}" if variable["component"] else ""
    details = [*variable["interpolation"], *(["index 1"] if variable["index"] else [])]
    return location, variable["name"], variable["type"], " ".join(details)


def _binding(binding: Mapping[str, Any]) -> tuple[str, ...]:
    kind = binding["kind"].replace("_", " ")
    if binding["count"] != 1:
        kind += f"[{'' if binding['count'] is None else binding['count']}]"
    does = [word for word, flag in (("reads", binding["reads"]), ("writes", binding["writes"])) if flag]
    access = " and ".join(does) or ("declared" if not binding["used"] else "size only")
    if binding.get("image") is not None:
        details = _image(binding["image"])
    elif binding.get("tensor") is not None:
        details = _tensor(binding["tensor"])
    else:
        details = _size(binding["block"]) if binding.get("block") is not None else ""
    return str(binding["set"]), str(binding["binding"]), binding["name"], kind, access, details


def _size(block: Mapping[str, Any]) -> str:
    stride = block["runtime_stride_bytes"]
    return f"{block['size_bytes']} bytes" + (f" + {stride} per element" if stride is not None else "")


def _image(image: Mapping[str, Any]) -> str:
    words = [image["dim"]]
    words += [word for word in ("arrayed", "multisampled") if image[word]]
    words += [str(image["sampled_type"]), "" if image["format"] == "Unknown" else image["format"]]
    return " ".join(word for word in words if word)


def _tensor(tensor: Mapping[str, Any]) -> str:
    if tensor["shape"] is not None:
        return f"{tensor['element_type']} {'x'.join(map(str, tensor['shape'])) or 'scalar'}"
    return f"{tensor['element_type']} of rank {'?' if tensor['rank'] is None else tensor['rank']}"


def _tensor_row(resource: Mapping[str, Any]) -> tuple[str, ...]:
    return str(resource["set"]), str(resource["binding"]), resource["name"], _tensor(resource)


def _block(title: str, block: Mapping[str, Any]) -> Iterator[Table]:
    rows = list(_members(block["members"] or (), "", 0))
    yield _table(title, ("offset", "size", "type", "member"), rows, 2)


def _members(members: Sequence[Mapping[str, Any]], prefix: str, start: int) -> Iterator[tuple[str, ...]]:
    for member in members:
        offset = None if member["offset"] is None else start + member["offset"]
        name = prefix + member["name"]
        stride = member.get("array_stride")
        type = member["type"] + (f" stride {stride}" if stride is not None else "")
        yield "?" if offset is None else str(offset), str(member["size_bytes"]), type, name
        inner = member.get("members")
        if inner:
            yield from _members(inner, f"{name}{'[].' if stride is not None else '.'}", offset or 0)


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], depth: int) -> Table:
    if len(rows) > MOST_ROWS:
        title += f" (the first {MOST_ROWS} of {len(rows)})"
    return Table(title, columns, tuple(tuple(map(_cell, row)) for row in rows[:MOST_ROWS]), depth)


def _cell(text: str) -> str:
    """A word of the module as a terminal may see it: names are any bytes, control characters and whole books too."""
    text = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return one_line(text)
