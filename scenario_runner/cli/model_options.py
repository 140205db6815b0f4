"""The options of commands about shaders and models."""

import re

from scenario_runner.cli.option_types import (
    REPEATED,
    Parser,
    add,
    add_device_options,
    add_json_option,
    add_shared,
    add_tolerance_options,
    jobs,
    subcommand,
    whole_number,
)


def add_shader_options(parser: Parser) -> None:
    """Show the interface of a shader."""
    commands = parser.add_subparsers(required=True, dest="action", metavar="show")
    show = subcommand(commands, "show", "print entry points, bindings, blocks and specialization constants")
    add(show, "file FILE", "a .spv file, a .vgf file with modules, or source code (GLSL, .hlsl) to compile")
    add_json_option(show, "print the whole interface as JSON")
    stages = ("compute", "vertex", "fragment")
    add(show, "--stage", "stage to compile for (default: by the name of the file)", choices=stages)
    _add_source_options(show, "main")


def add_init_options(parser: Parser) -> None:
    """Write a scenario for a compute shader.
    The scenario runs as written. Edit the contents and the number of workgroups.
    """
    add(parser, "file FILE", "a shader: GLSL, .hlsl or SPIR-V")
    add(parser, "-o --output JSON", "the scenario to write (default: the shader's name with .json)")
    add(parser, "--expect", "run the scenario, and write the results as expectations")
    workgroups = "the number of workgroups (default: 16 invocations or more in each direction)"
    add(parser, "--workgroups", workgroups, nargs=3, type=whole_number(1), metavar=("X", "Y", "Z"))
    parser.set_defaults(stage=None)
    _add_source_options(parser, None)


def _add_source_options(parser: Parser, entry: str | None) -> None:
    """Add the options for compiling a file. ``entry`` is the default entry point."""
    add(parser, "--entry NAME", "entry point to compile (default: main)", default=entry)
    add(parser, "-D NAME[=VALUE]", "define a macro", dest="defines", **REPEATED)
    add(parser, "-I DIR", "search includes in DIR", dest="include_dirs", **REPEATED)
    add_shared(parser, "compiler")


def add_vgf_options(parser: Parser) -> None:
    """Show a VGF model, or make a scenario that runs it.
    'extract' takes the models out of an ExecuTorch program (.pte).
    """
    commands = parser.add_subparsers(required=True, dest="action", metavar="show|scenario|extract")
    show = subcommand(commands, "show", "print inputs, outputs, segments, shaders and constants of a model")
    add(show, "file FILE", "the VGF file")
    add_json_option(show, "print the contents as JSON, without code and constant data")
    scenario = subcommand(commands, "scenario", "write a scenario that runs a model on NAME.npy, for you to edit")
    add(scenario, "file FILE", "the VGF file")
    add(scenario, "--output JSON", "write to this file (default: standard output)")
    extract = subcommand(commands, "extract", "write the models of an ExecuTorch program; several models get numbers")
    add(extract, "file FILE", "the program (.pte)")
    add(extract, "-o --output FILE", "write to this file (default: FILE with .vgf, in the current folder)")


def add_convert_options(parser: Parser) -> None:
    """Convert a TOSA model, with the shaders in it, to VGF.
    Custom operations of the domain com.arm.VulkanCustomShader become compute segments. Arm's model-converter lowers all
    other operations.
    """
    parser.set_defaults(action="convert")
    add(parser, "model MODEL", "MLIR text, MLIR bytecode or a TOSA FlatBuffer; - is standard input")
    add(parser, "-o --output FILE", "the VGF file to write; - is standard output", required=True)
    add(parser, "--function NAME", "convert this function of the model (default: main)")
    workgroups = "dispatch workgroup_sizes (attributes, default), or enough workgroups for the result (cover-output)"
    add(parser, "--dispatch", workgroups, choices=("attributes", "cover-output"), default="attributes")
    layers = "turn results of operators into outputs: all, or names and operators that match PATTERN (* and ?)"
    parser.add_argument("--expose-intermediates", nargs="?", const="*", metavar="PATTERN", help=layers)
    add(parser, "--no-check", "do not check shaders against their attributes")
    add(parser, "--strict", "warnings are errors")
    add(parser, "--converter-option OPTION", "an option for model-converter: --converter-option=--x", **REPEATED)
    add_shared(parser, "compiler")


def add_compare_layers_options(parser: Parser) -> None:
    """Find the first wrong layer of a TOSA model.
    The model runs with the results of its operators as outputs. The exit code is 0 if all layers are within the
    tolerance, else 1.
    """
    parser._negative_number_matcher = re.compile(r"-\d")  # --range -1:1
    add(parser, "model MODEL", "a TOSA FlatBuffer, MLIR text or MLIR bytecode")
    expected = (
        "folder of .npy files or .npz file with results by name; reference: TOSA's reference model; tosa: TOSA's rules "
        "for each operator; device:D"
    )
    add(parser, "--expected WHERE", expected, required=True)
    add(parser, "--layers PATTERN", "only layers with a matching name or operator (* and ?)", default="*")
    add(parser, "--input NAME=FILE", "an input (.npy), by name or number (default: random numbers)", **REPEATED)
    add(parser, "--seed N", "seed of the random numbers (default: 0)", type=whole_number(0), default=0)
    add(parser, "--range MIN:MAX", "least and greatest random number (default: -1:1; integers: docs/layers.md)")
    add_tolerance_options(parser)
    parser.set_defaults(atol=None, rtol=None, ulp=None)
    add_json_option(parser, "print the result as JSON")
    add(parser, "--html FILE", "write a page with pictures of the errors")
    add_device_options(parser)


def add_import_options(parser: Parser) -> None:
    """Make a suite from tests of Amber, LLVM or TOSA. The tests are AmberScript, VkScript, LLVM's offload-test-suite,
    or TOSA's conformance tests.
    """
    commands = parser.add_subparsers(required=True, dest="action", metavar="amber|offload|tosa")
    amber = subcommand(commands, "amber", "import scripts of Amber (AmberScript and VkScript)")
    add(amber, "paths PATH", "scripts, or folders to search for scripts (.amber, .vkscript)", nargs="+")
    offload = subcommand(commands, "offload", "import tests of LLVM's offload-test-suite")
    add(offload, "paths PATH", "tests (.test, .yaml), or folders to search for tests", nargs="+")
    tosa = subcommand(commands, "tosa", "import TOSA's tests")
    add(tosa, "folders DIR", "folders to search for tests (desc.json)", nargs="+")
    for command in (amber, offload, tosa):
        add(command, "-o --output SUITE", "the folder to write; current items stay", required=True)
        add(command, "--jobs N", "import N tests at a time (default: the number of processors)", type=jobs)


def add_custom_op_options(parser: Parser) -> None:
    """Check or write attributes of custom operations in TOSA models."""
    commands = parser.add_subparsers(required=True, dest="action", metavar="check|attributes")
    check = subcommand(commands, "check", "check attributes, and shaders against their attributes")
    files = "attributes of one or several operations (.json; - is standard input), or a TOSA model"
    add(check, "files FILE", files, nargs="+")
    add_json_option(check, "print the findings as JSON")
    add(check, "--strict", "warnings are errors")
    add_shared(check, "compiler")
    attributes = subcommand(commands, "attributes", "print attributes that fit a shader; check their order")
    add(attributes, "shader SHADER", "a GLSL, .hlsl or SPIR-V file; written resources become outputs, others inputs")
    add(attributes, "--entry-point NAME", "entry point (default: main)", default="main")
    number = "workgroup_sizes: the number of workgroups (default: the local size, for --dispatch cover-output)"
    add(attributes, "--workgroups", number, nargs=3, type=whole_number(1), metavar=("X", "Y", "Z"))
    add(attributes, "--spirv", "embed the compiled module instead of the source")
    add(attributes, "-I DIR", "includes", dest="include_dirs", **REPEATED)
    add_shared(attributes, "compiler")
