"""``scenario-runner vgf show|scenario|extract FILE``: what is in a model, a scenario that runs it, the model alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from scenario_runner.cli.arguments import Parser
from scenario_runner.errors import UsageError
from scenario_runner.text import counted, one_line, size_in_units

_ACTIONS = ("show", "scenario", "extract")
_CHUNK_BYTES = 16 << 20


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises FileError for a file that is not a sound model, UsageError."""
    action = argv[0] if argv else None
    if action not in _ACTIONS:
        parser = Parser(
            prog="scenario-runner vgf",
            description="Show VGF models (compiled ML models), make scenarios that run them, or take them out of"
            " ExecuTorch programs (.pte).",
        )
        parser.add_argument(
            "action",
            choices=_ACTIONS,
            help="show the contents of a model, make a scenario that runs it, or write the models in a program",
        )
        parser.add_argument("file", metavar="FILE", help="the VGF file")
        parser.parse_args(argv)
        raise UsageError("expected 'show', 'scenario' or 'extract'", help="scenario-runner vgf show model.vgf")
    return {"show": _show, "scenario": _scenario, "extract": _extract}[action](argv[1:])


def _show(argv: Sequence[str]) -> int:
    parser = Parser(
        prog="scenario-runner vgf show", description="Show inputs, outputs, segments, shaders and constants of a model."
    )
    parser.add_argument("file", metavar="FILE", help="the VGF file")
    parser.add_argument("--json", action="store_true", help="print everything except code and constant data, as JSON")
    options = parser.parse_args(argv)
    from scenario_runner.graphs import read_vgf
    from scenario_runner.graphs.describe import describe

    described = describe(read_vgf(options.file))
    if options.json:
        print(json.dumps(described, indent=2))
    else:
        print("\n".join(_report(options.file, described)))
    return 0


def _scenario(argv: Sequence[str]) -> int:
    parser = Parser(
        prog="scenario-runner vgf scenario",
        description="Write a scenario that runs a model, to be edited: inputs from NAME.npy, outputs to NAME.npy.",
    )
    parser.add_argument("file", metavar="FILE", help="the VGF file")
    parser.add_argument("--output", metavar="JSON", help="write to this file (default: standard output)")
    options = parser.parse_args(argv)
    from scenario_runner.graphs import read_vgf
    from scenario_runner.graphs.scenario_template import scenario_for

    folder = os.path.dirname(os.path.abspath(options.output)) if options.output else os.getcwd()
    try:
        path = os.path.relpath(options.file, folder)
    except ValueError:  # another drive
        path = os.path.abspath(options.file)
    text = json.dumps(scenario_for(read_vgf(options.file), path), indent=2)
    if options.output is None:
        print(text)
        return 0
    from scenario_runner.files.output import OutputFile

    with OutputFile(options.output) as file:
        file.write(text.encode() + b"\n")
    return 0


def _extract(argv: Sequence[str]) -> int:
    parser = Parser(
        prog="scenario-runner vgf extract",
        description="Write the VGF models in an ExecuTorch program, several as FILE_1.vgf and so on.",
    )
    parser.add_argument("file", metavar="FILE", help="the program (.pte)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default: in the current folder, called like FILE)"
    )
    options = parser.parse_args(argv)
    from scenario_runner.files.output import OutputFile
    from scenario_runner.files.source import SourceFile, file_error
    from scenario_runner.graphs.executorch import is_program, read_program

    with SourceFile(options.file) as source:
        if not is_program(source):
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
    return 0


def _report(path: str, model: dict[str, Any]) -> Iterator[str]:
    segments, constants = model["segments"], model["constants"]
    total = sum(constant["size_bytes"] for constant in constants)
    yield (
        f"{path}: VGF {model['version']}, {counted(len(segments), 'segment')}, {counted(len(constants), 'constant')}"
        + (f" ({size_in_units(total)})" if constants else "")
    )
    for direction in ("inputs", "outputs"):
        yield from _table(
            direction,
            ("binding", "name", "kind", "format", "shape"),
            [
                (port["binding"], " = ".join(port["names"]) or "-", *_kind(port), _shape(port["shape"]))
                for port in model[direction]
            ],
        )
    yield from _table(
        "segments",
        ("#", "name", "type", "module", "reads", "writes", "workgroups", "constants"),
        [
            (
                segment["index"],
                segment["name"] or "-",
                segment["type"],
                segment["module"],
                _bindings(segment["inputs"]),
                _bindings(segment["outputs"]),
                _shape(segment["dispatch_shape"]) if segment["type"] == "compute" else "-",
                ", ".join(str(constant["id"]) for constant in segment["constants"]) or "-",
            )
            for segment in segments
        ],
    )
    yield from _table(
        "modules",
        ("#", "name", "type", "code", "entry point"),
        [
            (
                module["index"],
                module["name"],
                module["type"],
                f"{module['language']}, {size_in_units(module['code_size_bytes'])}"
                if module["language"]
                else "placeholder",
                module["entry_point"],
            )
            for module in model["modules"]
        ],
    )
    yield from _table(
        "constants",
        ("#", "format", "shape", "bytes", "sparse"),
        [
            (
                constant["index"],
                _short(constant["format"]),
                _shape(constant["shape"]),
                constant["size_bytes"],
                "-" if constant["sparsity_dimension"] is None else f"2:4 along {constant['sparsity_dimension']}",
            )
            for constant in constants
        ],
    )


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    if not rows:
        return
    texts = [tuple(one_line(str(value)) for value in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    yield ""
    yield title
    for row in (heads, *texts):
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _kind(port: dict[str, Any]) -> tuple[str, str]:
    kind = (port["descriptor_type"] or "-").removeprefix("VK_DESCRIPTOR_TYPE_").removesuffix("_ARM")
    return kind.lower().replace("_", " "), _short(port["format"])


def _short(format: str) -> str:
    return format.removeprefix("VK_FORMAT_")


def _shape(shape: Sequence[int]) -> str:
    return "x".join("?" if size < 0 else str(size) for size in shape) or "scalar"


def _bindings(slots: Sequence[dict[str, int]]) -> str:
    return ", ".join(map(str, dict.fromkeys(slot["binding"] for slot in slots))) or "-"
