"""``scenario-runner convert MODEL -o FILE``: a TOSA model, with the shaders in it, to VGF."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from scenario_runner.cli.arguments import Parser, add_compiler_options, add_flag, compiler_arguments
from scenario_runner.cli.messages import read_standard_input, write
from scenario_runner.conversion.convert import convert
from scenario_runner.errors import UsageError


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises FileError, ScenarioError and UnsupportedError; nothing is written then."""
    parser = Parser(
        prog="scenario-runner convert",
        description="Convert a TOSA model to VGF. Custom operations of the domain com.arm.VulkanCustomShader become"
        " compute segments; Arm's model-converter lowers all others.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="MLIR text, MLIR bytecode or a TOSA FlatBuffer; - is standard input"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the VGF file to write; - is standard output"
    )
    parser.add_argument(
        "--function", metavar="NAME", help="the function to convert, where the model has several (default: main)"
    )
    parser.add_argument(
        "--dispatch",
        choices=("attributes", "cover-output"),
        default="attributes",
        help="workgroups of a shader: its workgroup_sizes (attributes), or as many of that local size as its first"
        " result needs (default: attributes)",
    )
    add_flag(parser, "--no-check", help="do not compile the shaders and compare them with their attributes")
    add_flag(parser, "--strict", help="warnings are errors")
    parser.add_argument(
        "--converter-option",
        action="append",
        default=[],
        metavar="OPTION",
        dest="converter_options",
        help="an option for model-converter, such as --converter-option=--emit-debug-info; can be repeated",
    )
    add_compiler_options(parser)
    options = parser.parse_args(argv)
    to_stdout = options.output == "-"
    if to_stdout and sys.stdout.isatty():
        raise UsageError("a VGF file is not shown on a terminal", help="write it to a file: --output model.vgf")
    converted = convert(
        read_standard_input() if options.model == "-" else options.model,
        None if to_stdout else options.output,
        function=options.function,
        dispatch=options.dispatch,
        check=not options.no_check,
        strict=options.strict,
        **compiler_arguments(options),
        converter_options=options.converter_options,
    )
    for finding in converted.findings:
        write(finding.severity, str(finding), finding.help)
    if to_stdout:
        sys.stdout.buffer.writelines(converted.parts)
        sys.stdout.buffer.flush()
    return 0
