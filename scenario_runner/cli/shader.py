"""``scenario-runner shader show FILE``: the interface of a shader, of a SPIR-V module or of a model's modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.cli.arguments import Parser, add_compiler_options, compiler_arguments
from scenario_runner.cli.messages import is_terminal, rich_console

if TYPE_CHECKING:
    from scenario_runner.validation.shader_files import Table


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises FileError, ShaderError or CompileError."""
    parser = Parser(prog="scenario-runner shader", description="Show the interfaces of shaders.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="show", parser_class=Parser)
    show = commands.add_parser(
        "show",
        help="print entry points, bindings, blocks and specialization constants",
        description="Print the interface of a shader. GLSL and HLSL are compiled first; of a .vgf file each module is"
        " printed.",
    )
    show.add_argument("file", metavar="FILE", help="a .spv, .vgf, .hlsl or GLSL file")
    show.add_argument("--json", action="store_true", help="print everything that is known, as JSON")
    show.add_argument("--entry", metavar="NAME", default="main", help="entry point to compile (default: main)")
    show.add_argument(
        "--stage", choices=("compute", "vertex", "fragment"), help="stage to compile for (default: by the file's name)"
    )
    show.add_argument("-D", action="append", default=[], metavar="NAME[=VALUE]", dest="defines", help="define a macro")
    show.add_argument("-I", action="append", default=[], metavar="DIR", dest="include_dirs", help="folder of includes")
    add_compiler_options(show)
    options = parser.parse_args(argv)
    from scenario_runner.validation.shader_files import modules_of, tables_of

    modules = modules_of(
        options.file,
        entry=options.entry,
        stage=options.stage,
        defines=options.defines,
        include_dirs=options.include_dirs,
        **compiler_arguments(options),
    )
    if options.json:
        import json

        print(json.dumps({"file": options.file, "modules": modules}, indent=2))
        return 0
    for number, module in enumerate(modules):
        if number:
            print()
        for table in tables_of(module):
            _show(table)
    return 0


def _show(table: Table) -> None:
    if is_terminal(sys.stdout):
        _show_in_colour(table)
        return
    print("  " * table.depth + table.title)
    if table.rows:
        rows = [table.columns, *table.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
        for row in rows:
            cells = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
            print("  " * (table.depth + 1) + cells.rstrip())


def _show_in_colour(table: Table) -> None:
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    console = rich_console(sys.stdout)
    console.print(Padding(Text(table.title, "bold"), (0, 0, 0, 2 * table.depth)))
    if table.rows:
        shown: Any = RichTable(box=None, header_style="dim", pad_edge=False)
        for column in table.columns:
            shown.add_column(column, overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(cell) for cell in row))
        console.print(Padding(shown, (0, 0, 0, 2 * (table.depth + 1))))
