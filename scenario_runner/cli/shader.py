"""``scenario-runner shader show FILE``: the interface of a shader, a SPIR-V module, or the modules of a model."""

import argparse
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scenario_runner.cli import console
from scenario_runner.cli.arguments import compiler_arguments
from scenario_runner.errors.text import Json, one_line
from scenario_runner.files.input import SPIRV_SIGNATURES, SourceFile
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import Module, read_module
from scenario_runner.shaders.spirv.interface import DescriptorBinding
from scenario_runner.shaders.spirv.module import EntryPoint, GraphResource
from scenario_runner.shaders.spirv.stage_interface import StageVariable
from scenario_runner.shaders.spirv.types import Image, Member, Struct, Tensor, innermost

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
    """Print a module's description from `describe`."""
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


def describe(module: Module) -> dict[str, object]:
    """Describe a module in dicts, lists, strings, numbers, Booleans and None.

    Sizes, offsets and strides are in bytes. Raises `SpirvError` if an entry point's interface cannot be read.
    """
    return {
        **_fields(module, "name", "size_bytes"),
        "version": f"{module.version[0]}.{module.version[1]}",
        "capabilities": list(module.capabilities),
        "extensions": list(module.extensions),
        "ext_inst_imports": list(module.ext_inst_imports),
        **_fields(module, "addressing_model", "memory_model"),
        "specialization_constants": [
            {**_fields(constant, "id", "name", "type", "size_bytes"), "default": _finite(constant.default)}
            for constant in module.spec_constants
        ],
        "entry_points": [_entry_point(entry_point) for entry_point in module.entry_points],
        "graph_entry_points": [
            {
                "name": graph.name,
                "inputs": _graph_resources(graph.inputs),
                "outputs": _graph_resources(graph.outputs),
            }
            for graph in module.graph_entry_points
        ],
        "graph_constants": [
            {"id": constant.id, **_tensor_fields(constant.tensor)} for constant in module.graph_constants
        ],
    }


def _finite(value: bool | int | float) -> bool | int | float | str:
    """Return a number, or text for infinities and NaN, which JSON lacks."""
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value


def _entry_point(entry_point: EntryPoint) -> dict[str, object]:
    interface = entry_point.interface
    size = interface.local_size()
    stage = entry_point.stage_interface()
    return {
        **_fields(entry_point, "name", "execution_model"),
        "local_size": None if size is None else list(size),
        "workgroup_memory_bytes": interface.workgroup_memory_bytes,
        "push_constants": _block(interface.push_constants),
        "bindings": [_binding_fields(binding) for binding in interface.bindings],
        "inputs": [_variable_fields(variable) for variable in stage.inputs],
        "outputs": [_variable_fields(variable) for variable in stage.outputs],
        "inputs_built_in": list(stage.inputs_built_in),
        "outputs_built_in": list(stage.outputs_built_in),
        "problems": [*interface.problems, *stage.problems],
    }


def _fields(record: object, *names: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in names}


def _variable_fields(variable: StageVariable) -> dict[str, object]:
    return {
        **_fields(variable, "name", "location", "locations", "component", "index"),
        "type": str(variable.type),
        "interpolation": [*(["flat"] if variable.flat else []), *variable.interpolation],
    }


def _known(**parts: object) -> dict[str, object]:
    """Drop the parts that are None."""
    return {name: part for name, part in parts.items() if part is not None}


def _binding_fields(binding: DescriptorBinding) -> dict[str, object]:
    return {
        **_fields(binding, "set", "binding", "name", "kind", "count"),
        **_fields(binding, "used", "readable", "writable", "reads", "writes"),
        **_known(
            image=None if binding.image is None else _image_fields(binding.image),
            tensor=None if binding.tensor is None else _tensor_fields(binding.tensor),
            block=_block(binding.block),
            input_attachment_index=binding.input_attachment_index,
        ),
    }


def _image_fields(image: Image) -> dict[str, object]:
    return {
        **_fields(image, "dim", "arrayed", "multisampled", "depth"),
        "sampled_type": None if image.sampled_type is None else str(image.sampled_type),
        "format": image.format,
    }


def _tensor_fields(tensor: Tensor) -> dict[str, object]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {"element_type": str(tensor.element), "rank": tensor.rank, "shape": shape}


def _graph_resources(resources: Iterable[GraphResource]) -> list[dict[str, object]]:
    return [
        {**_fields(resource, "name", "set", "binding"), **_tensor_fields(resource.tensor)} for resource in resources
    ]


def _block(block: Struct | None) -> dict[str, object] | None:
    if block is None:
        return None
    members = [_member(member) for member in block.members]
    return {**_fields(block, "name", "size_bytes", "runtime_stride_bytes"), "members": members}


def _member(member: Member) -> dict[str, object]:
    inner = innermost(member.type)
    return {
        "name": member.name,
        "type": str(member.type),
        "offset": member.offset_bytes,
        "size_bytes": member.size_bytes,
        **_known(
            array_stride=member.array_stride_bytes,
            matrix_stride=member.matrix_stride_bytes,
            members=list(map(_member, inner.members)) if isinstance(inner, Struct) else None,
        ),
        **({} if member.matrix_stride_bytes is None else {"majorness": member.majorness}),
    }
