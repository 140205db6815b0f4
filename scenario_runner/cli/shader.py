"""``scenario-runner shader show FILE``: the interface of a shader, a SPIR-V module, or the modules of a model."""

import argparse
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence

from scenario_runner.cli import console
from scenario_runner.cli.arguments import compiler_arguments
from scenario_runner.errors.text import Json, one_line
from scenario_runner.files.input import SPIRV_SIGNATURES, SourceFile
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import Module, read_module
from scenario_runner.shaders.spirv.describe import describe

_MOST_ROWS = 200  # in a table; JSON has all rows
_MOST_CHARACTERS = 100  # of a name or type; JSON has all characters
_STAGES = {".vert": "vertex", ".frag": "fragment"}


def show(options: argparse.Namespace) -> None:
    """Print the interface of each module in a file. Raises FileError, SpirvError, ShaderError or CompileError."""
    if options.file.lower().endswith(".vgf"):
        modules = _modules_of_model(options)
    else:
        modules = [describe(module_of(options, read_shader(options.file)))]
    if options.json:
        print(json.dumps({"file": options.file, "modules": modules}, indent=2))
        return
    for number, module in enumerate(modules):
        if number:
            print()
        _show_module(module)


def read_shader(path: str) -> bytes:
    """Read a SPIR-V module or a source file. Raises FileError."""
    with SourceFile(path) as file:
        return file.read(file.size_bytes)


def is_module(path: str, content: bytes) -> bool:
    """Return whether a file is a SPIR-V module."""
    return path.lower().endswith(".spv") or content.startswith(SPIRV_SIGNATURES)


def module_of(options: argparse.Namespace, content: bytes) -> Module:
    """Read a SPIR-V module, or compile source code. Raises SpirvError and CompileError."""
    code = content
    if not is_module(options.file, content):
        (code,) = compile_all([request_for(options, content)], **compiler_arguments(options))
    return read_module(code, name=options.file)


def request_for(options: argparse.Namespace, content: bytes) -> CompileRequest:
    """Make the compiler request for a file of source code."""
    extension = os.path.splitext(options.file)[1].lower()
    return CompileRequest(
        language="HLSL" if extension == ".hlsl" else "GLSL",
        path=options.file,
        source=content,
        entry=options.entry or "main",
        stage=options.stage or _STAGES.get(extension, "compute"),  # type: ignore[arg-type]
        build_options=" ".join(shlex.quote(f"-D{define}") for define in options.defines),
        include_dirs=tuple(os.path.abspath(folder) for folder in options.include_dirs),
        base_dir=os.getcwd(),
    )


def _modules_of_model(options: argparse.Namespace) -> list[dict[str, object]]:
    """Describe each module of a model. A module without code gets a note."""
    described: list[dict[str, object]] = []
    for number, module in enumerate(read_vgf(options.file).modules):
        name = f"{options.file}: module {number} {module.name!r}"
        if module.code is None or module.language is None:
            described.append({"name": name, "note": "a placeholder: the file holds no code for it"})
            continue
        code = module.code
        if isinstance(code, str):
            request = CompileRequest(language=module.language, source=code)  # type: ignore[arg-type]
            (code,) = compile_all([request], **compiler_arguments(options))
        described.append(describe(read_module(code, name=name)))
    return described


def _show_module(module: Mapping[str, Json]) -> None:
    """Print a module's description from `shaders.spirv.describe.describe`."""
    if "note" in module:
        _show_title(f"{module['name']}: {module['note']}", 0)
        return
    _show_title(f"{module['name']}: SPIR-V {module['version']}, {module['size_bytes']} bytes", 0)
    _show_title(f"capabilities: {', '.join(module['capabilities']) or 'none'}", 1)
    if module["extensions"]:
        _show_title(f"extensions: {', '.join(map(_cell, module['extensions']))}", 1)
    columns = ("id", "name", "type", "default")
    rows = [[constant[column] for column in columns] for constant in module["specialization_constants"]]
    _show_rows("specialization constants", columns, rows, 1)
    for entry in module["entry_points"]:
        _show_entry_point(entry)
    for graph in module["graph_entry_points"]:
        resources = [
            (way, resource["set"], resource["binding"], resource["name"], _tensor(resource))
            for way in ("input", "output")
            for resource in graph[f"{way}s"]
        ]
        _show_rows(f"graph '{_cell(graph['name'])}'", ("", "set", "binding", "name", "tensor"), resources, 1)
    tensors = [(constant["id"], _tensor(constant)) for constant in module["graph_constants"]]
    _show_rows("graph constants", ("id", "tensor"), tensors, 1)


def _show_entry_point(entry: Mapping[str, Json]) -> None:
    details = [entry["execution_model"]]
    if entry["local_size"] is not None:
        details.append(f"workgroups of {' x '.join(map(str, entry['local_size']))}")
    if entry["workgroup_memory_bytes"]:
        details.append(f"{entry['workgroup_memory_bytes']} bytes of shared memory")
    _show_title(f"entry point '{_cell(entry['name'])}': {', '.join(details)}", 1)
    for way in ("inputs", "outputs"):
        _show_rows(way, ("location", "name", "type", "details"), list(map(_stage_variable, entry[way])), 2)
        if entry[f"{way}_built_in"]:
            _show_title(f"built-in {way}: {', '.join(entry[f'{way}_built_in'])}", 2)
    columns = ("set", "binding", "name", "kind", "access", "details")
    _show_rows("bindings", columns, list(map(_binding, entry["bindings"])), 2)
    block = entry["push_constants"]
    if block is not None:
        _show_block(f"push constants '{_cell(block['name'])}': {block['size_bytes']} bytes", block)
    for variable in entry["bindings"]:
        if variable.get("block") is not None:
            title = f"{variable['kind'].replace('_', ' ')} '{_cell(variable['name'])}': {_size(variable['block'])}"
            _show_block(title, variable["block"])
    for problem in entry["problems"]:
        _show_title(f"problem: {problem}", 2)


def _stage_variable(variable: Mapping[str, Json]) -> tuple[str, ...]:
    first, count = variable["location"], variable["locations"]
    location = str(first) if count == 1 else f"{first}-{first + count - 1}"
    location += f".{variable['component']}" if variable["component"] else ""
    details = [*variable["interpolation"], *(["index 1"] if variable["index"] else [])]
    return location, variable["name"], variable["type"], " ".join(details)


def _binding(binding: Mapping[str, Json]) -> tuple[object, ...]:
    kind = binding["kind"].replace("_", " ")
    if binding["count"] != 1:
        kind += f"[{'' if binding['count'] is None else binding['count']}]"
    does = [word for word, flag in (("reads", binding["reads"]), ("writes", binding["writes"])) if flag]
    access = " and ".join(does) or ("declared" if not binding["used"] else "size only")
    describers = {"image": _image, "tensor": _tensor, "block": _size}
    details = next((describe(binding[key]) for key, describe in describers.items() if binding.get(key)), "")
    return binding["set"], binding["binding"], binding["name"], kind, access, details


def _size(block: Mapping[str, object]) -> str:
    stride = block["runtime_stride_bytes"]
    return f"{block['size_bytes']} bytes" + (f" + {stride} per element" if stride is not None else "")


def _image(image: Mapping[str, Json]) -> str:
    flags = [word for word in ("arrayed", "multisampled") if image[word]]
    format = [] if image["format"] == "Unknown" else [image["format"]]
    return " ".join([image["dim"], *flags, str(image["sampled_type"]), *format])


def _tensor(tensor: Mapping[str, Json]) -> str:
    if tensor["shape"] is not None:
        return f"{tensor['element_type']} {'x'.join(map(str, tensor['shape'])) or 'scalar'}"
    return f"{tensor['element_type']} of rank {'?' if tensor['rank'] is None else tensor['rank']}"


def _show_block(title: str, block: Mapping[str, Json]) -> None:
    rows = list(_members(block["members"], "", 0))
    _show_rows(title, ("offset", "size", "type", "member"), rows, 2)
    if not rows:
        _show_title(title, 2)


def _members(members: Sequence[Mapping[str, Json]], prefix: str, start: int) -> Iterator[tuple[object, ...]]:
    for member in members:
        offset = None if member["offset"] is None else start + member["offset"]
        name, type = prefix + member["name"], member["type"]
        is_array = "array_stride" in member
        if is_array:
            type += f" stride {member['array_stride']}"
        yield "?" if offset is None else offset, member["size_bytes"], type, name
        yield from _members(member.get("members", ()), f"{name}{'[].' if is_array else '.'}", offset or 0)


def _show_title(text: str, depth: int) -> None:
    console.show("  " * depth, (text, "bold"))


def _show_rows(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]], depth: int) -> None:
    """Print a table, unless it is empty."""
    if rows:
        _show_title(title if len(rows) <= _MOST_ROWS else f"{title} (the first {_MOST_ROWS} of {len(rows)})", depth)
        console.show_table([headings, *(tuple(map(_cell, row)) for row in rows[:_MOST_ROWS])], indent=2 * (depth + 1))


def _cell(value: object) -> str:
    """Shorten a word from the module. Names may have any length and any characters."""
    text = str(value)
    return one_line(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…")
