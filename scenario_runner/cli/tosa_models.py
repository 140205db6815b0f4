"""TOSA models with shaders.

- ``scenario-runner convert MODEL -o FILE`` converts a model to VGF.
- ``custom-op check FILE…`` checks custom operations, ``custom-op attributes SHADER`` writes their attributes.
"""

import argparse
import json
import sys
from typing import NamedTuple

from scenario_runner.cli.arguments import compiler_arguments
from scenario_runner.cli.console import read_standard_input, write, write_finding
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, UsageError, exit_code_of
from scenario_runner.errors.diagnostic import Diagnostic, warnings_as_errors
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import SourceFile
from scenario_runner.tosa import conversion
from scenario_runner.tosa.attribute_parsing import Examined, examine_attributes, examine_document
from scenario_runner.tosa.attribute_skeleton import attributes_of_shader
from scenario_runner.tosa.model_files import open_source, parse_model
from scenario_runner.tosa.shader_agreement import CheckedShader, check_shaders, with_shader_offsets

SCHEMA = 1
"""The version of the JSON of ``check --json``. It grows when a key changes meaning."""


class CheckedFile(NamedTuple):
    """A checked file: each operation's attributes and shader, or None for wrong attributes.

    In a model (``is_model``), findings point into attributes.
    """

    path: str
    operations: list[tuple[Examined, CheckedShader | None]]
    findings: list[Diagnostic]
    is_model: bool = False

    @property
    def exit_code(self) -> int:
        """The exit code of the first error, or 0."""
        return exit_code_of(self.findings)


def convert(options: argparse.Namespace) -> None:
    """Convert a model. After FileError, ScenarioError or UnsupportedError, no file is written."""
    to_stdout = options.output == "-"
    if to_stdout and sys.stdout.isatty():
        raise UsageError("a terminal cannot show a VGF file", help="write it to a file: --output model.vgf")
    converted = conversion.convert(
        read_standard_input() if options.model == "-" else options.model,
        None if to_stdout else options.output,
        function=options.function,
        dispatch=options.dispatch,
        check=not options.no_check,
        strict=options.strict,
        **compiler_arguments(options),
        converter_options=options.converter_option,
        expose_intermediates=options.expose_intermediates,
    )
    for finding in converted.findings:
        write(finding.severity, str(finding), finding.help)
    if to_stdout:
        sys.stdout.buffer.writelines(converted.parts)
        sys.stdout.buffer.flush()
    else:
        print(f"wrote {one_line(options.output)}")


def attributes(options: argparse.Namespace) -> None:
    """Print attributes that fit a shader."""
    described = attributes_of_shader(
        options.shader,
        entry_point=options.entry_point,
        workgroups=options.workgroups and tuple(options.workgroups),
        spirv=options.spirv,
        include_dirs=options.include_dirs,
        **compiler_arguments(options),
    )
    print(json.dumps(described, indent=2))


def check(options: argparse.Namespace) -> int:
    """Check attributes and shaders. Return 0, or the exit code of the first error."""
    files = []
    for path in options.files:
        files.append(_checked_file(path, options))
        if not options.json:
            _show(files[-1])
    if options.json:
        print(json.dumps({"schema": SCHEMA, "files": list(map(_as_json, files))}, indent=2))
    return next((file.exit_code for file in files if file.exit_code), 0)


def _checked_file(path: str, options: argparse.Namespace) -> CheckedFile:
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            content = read_standard_input()
        else:
            with SourceFile(path) as file:
                content = file.read(file.size_bytes)
        is_json = path.lower().endswith(".json") or content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        examined = _of_document(content, name) if is_json else _of_model(content, name)
    except ScenarioRunnerError as error:
        return CheckedFile(path, [], list(error.at(path=path).problems))
    shaders = [(row.attributes, row.types) for row in examined if row.attributes is not None]
    checked = iter(check_shaders(*zip(*shaders, strict=True), **compiler_arguments(options)) if shaders else ())
    operations = [(row, next(checked) if row.attributes else None) for row in examined]
    findings = [finding for operation in operations for finding in _findings(*operation)]
    return CheckedFile(path, operations, warnings_as_errors(findings) if options.strict else findings, not is_json)


def _findings(examined: Examined, checked: CheckedShader | None) -> list[Diagnostic]:
    """Return the findings about the attributes, then the findings about the shader."""
    return [*examined.findings, *(checked.findings if checked else ())]


def _of_document(content: bytes, name: str) -> list[Examined]:
    try:
        return examine_document(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        message = f"the byte {content[error.start]:#04x} at the offset {error.start} is not UTF-8"
        raise ScenarioError(message, help="save the file as UTF-8", code="SR-JSON-007") from None


def _of_model(content: bytes, name: str) -> list[Examined]:
    """Examine the shaders in all functions of a model."""
    examined: list[Examined] = []
    shaders = [shader for function in parse_model(open_source(content, name)).functions for shader in function.shaders]
    labels = [shader.name or "unnamed" for shader in shaders]
    for number, (label, shader) in enumerate(zip(labels, shaders, strict=True)):
        if labels.count(label) > 1:
            label += f"[{labels[:number].count(label)}]"
        counts = len(shader.operands), len(shader.results)
        examined.append(Examined(label, *examine_attributes(shader.attributes, label, counts), types=shader.types))
    return examined


def _show(file: CheckedFile) -> None:
    path, findings = file.path, file.findings
    for finding in ScenarioRunnerError(findings).of_scenario(path).problems if file.is_model and findings else findings:
        write_finding(finding)
    if file.exit_code:
        return
    if not file.operations:
        print(f"{one_line(path)}: valid: no shaders")
    for examined, checked in file.operations:
        if checked is not None:
            name = f"{examined.operation}: " if file.is_model or len(file.operations) > 1 else ""
            print(f"{one_line(path)}: {one_line(name)}valid: {_summary(checked)}")


def _summary(checked: CheckedShader) -> str:
    attributes, size = checked.attributes, checked.local_size
    parts = [
        f"{attributes.language} shader" if attributes.language else "placeholder without code",
        f"entry point {one_line(attributes.module_entry_point, 200)!r}",
        f"local size {' x '.join(map(str, size))}" if size is not None else "",
        f"workgroups {' x '.join(map(str, attributes.workgroup_sizes))}",
        counted(len(attributes.inputs), "input"),
        counted(len(attributes.outputs), "output"),
        counted(len(attributes.push_constants), "push constant") if attributes.push_constants else "",
    ]
    return ", ".join(filter(None, parts))


def _as_json(file: CheckedFile) -> dict[str, object]:
    return {
        "file": file.path,
        "valid": not file.exit_code,
        "exit_code": file.exit_code,
        "operations": [_operation_as_json(*operation) for operation in file.operations],
        "findings": [finding.as_json() for finding in file.findings],
    }


def _operation_as_json(examined: Examined, checked: CheckedShader | None) -> dict[str, object]:
    described: dict[str, object] = {
        "operation": examined.operation,
        "is_shader": examined.is_shader,
        "errors": sum(finding.severity == "error" for finding in _findings(examined, checked)),
    }
    if checked is None:
        return described
    attributes = checked.attributes
    constants, size = with_shader_offsets(attributes, checked.interface)
    return described | {
        "language": attributes.language,
        "entry_point": attributes.module_entry_point,
        "workgroup_sizes": attributes.workgroup_sizes,
        "local_size": checked.local_size,
        "push_constants_size_bytes": size,
        "push_constants": [constant._asdict() for constant in constants],
    }
