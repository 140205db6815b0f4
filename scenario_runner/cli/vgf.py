"""``scenario-runner vgf show|scenario|extract FILE``: contents of a model, a scenario for it, extracted models."""

import argparse
import json
import os
from collections.abc import Iterable, Sequence

from scenario_runner.cli.console import show_table
from scenario_runner.errors import file_error
from scenario_runner.errors.text import Json, counted, one_line, size_in_units
from scenario_runner.files.input import SourceFile
from scenario_runner.files.output import OutputFile
from scenario_runner.ml.flatbuffers import is_program, read_program
from scenario_runner.ml.model_scenario import scenario_for
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.ml.vgf_model import describe
from scenario_runner.scenario.writing import compact

_CHUNK_BYTES = 16 << 20


def show(options: argparse.Namespace) -> None:
    """Print the contents of a model. Raises FileError for a file that is not a valid model."""
    described = describe(read_vgf(options.file))
    if options.json:
        print(json.dumps(described, indent=2))
    else:
        _show_model(options.file, described)


def scenario(options: argparse.Namespace) -> None:
    """Write a scenario that runs a model. Raises FileError."""
    path = os.path.relpath(options.file, os.path.dirname(os.path.abspath(options.output)) if options.output else None)
    text = compact(scenario_for(read_vgf(options.file), path))
    if options.output is None:
        print(text)
        return
    with OutputFile(options.output) as file:
        file.write(text.encode() + b"\n")


def extract(options: argparse.Namespace) -> None:
    """Write the models of a program. Raises FileError."""
    with SourceFile(options.file) as source:
        if not is_program(source):
            read_vgf(options.file)  # has better errors for files of frameworks
            raise file_error(options.file, "is not an ExecuTorch program", code="SR-FILE-014")
        parts = read_program(source).parts
        output = options.output or os.path.splitext(os.path.basename(options.file))[0] + ".vgf"
        for number, part in enumerate(parts, 1):
            stem, suffix = os.path.splitext(output)
            path = output if len(parts) == 1 else f"{stem}_{number}{suffix}"
            with OutputFile(path) as file:
                for at in range(0, part.size_bytes, _CHUNK_BYTES):
                    file.write(source.read(min(_CHUNK_BYTES, part.size_bytes - at), part.offset_bytes + at))
            print(one_line(path))


def _show_model(path: str, model: dict[str, Json]) -> None:
    segments, constants = model["segments"], model["constants"]
    counts = [f"VGF {model['version']}", counted(len(segments), "segment"), counted(len(constants), "constant")]
    total = sum(constant["size_bytes"] for constant in constants)
    print(f"{path}: {', '.join(counts)}" + (f" ({size_in_units(total)})" if constants else ""))
    for direction in ("inputs", "outputs"):
        _show_table(direction, ("binding", "name", "kind", "format", "shape"), map(_port, model[direction]))
    headings = ("#", "name", "type", "module", "reads", "writes", "workgroups", "constants")
    _show_table("segments", headings, map(_segment, segments))
    _show_table("modules", ("#", "name", "type", "code", "entry point"), map(_module, model["modules"]))
    _show_table("constants", ("#", "format", "shape", "bytes", "sparse"), map(_constant, constants))


def _show_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = [headings, *rows]
    if len(table) > 1:
        print(f"\n{title}")
        show_table(table)


def _port(port: dict[str, Json]) -> tuple[object, ...]:
    kind = (port["descriptor_type"] or "-").removeprefix("VK_DESCRIPTOR_TYPE_").removesuffix("_ARM")
    names = " = ".join(port["names"]) or "-"
    return port["binding"], names, kind.lower().replace("_", " "), _short(port["format"]), _shape(port["shape"])


def _segment(segment: dict[str, Json]) -> tuple[object, ...]:
    return (
        segment["index"],
        segment["name"] or "-",
        segment["type"],
        segment["module"],
        _bindings(segment["inputs"]),
        _bindings(segment["outputs"]),
        _shape(segment["dispatch_shape"]) if segment["type"] == "compute" else "-",
        ", ".join(str(constant["id"]) for constant in segment["constants"]) or "-",
    )


def _module(module: dict[str, Json]) -> tuple[object, ...]:
    language = module["language"]
    code = f"{language}, {size_in_units(module['code_size_bytes'])}" if language else "placeholder"
    return module["index"], module["name"], module["type"], code, module["entry_point"]


def _constant(constant: dict[str, Json]) -> tuple[object, ...]:
    dimension = constant["sparsity_dimension"]
    sparse = "-" if dimension is None else f"2:4 along {dimension}"
    format, shape = _short(constant["format"]), _shape(constant["shape"])
    return constant["index"], format, shape, constant["size_bytes"], sparse


def _short(format: str) -> str:
    return format.removeprefix("VK_FORMAT_")


def _shape(shape: Sequence[int]) -> str:
    return "x".join("?" if size < 0 else str(size) for size in shape) or "scalar"


def _bindings(slots: Sequence[dict[str, int]]) -> str:
    return ", ".join(map(str, dict.fromkeys(slot["binding"] for slot in slots))) or "-"
