"""``scenario-runner validate FILE…``: everything that can be checked without a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from scenario_runner.cli.arguments import Parser, add_compiler_options, add_logging_option, compiler_arguments
from scenario_runner.errors import ScenarioRunnerError, UnsupportedError


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first file that is wrong. What this version cannot run is a note, no error."""
    parser = Parser(prog="scenario-runner validate", description="Check scenarios without a GPU.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario files (JSON)")
    add_compiler_options(parser)
    add_logging_option(parser)
    options = parser.parse_args(argv)
    from scenario_runner.cli.report import set_up_logging, show_error, write
    from scenario_runner.plan.model import CompilerOptions
    from scenario_runner.plan.resolve import resolve
    from scenario_runner.scenario import load

    set_up_logging(options.log_level)
    compiler = CompilerOptions(**compiler_arguments(options))
    code = 0
    for file in options.files:
        try:
            scenario = load(file)
            try:
                plan = resolve(scenario, compiler=compiler)
            except UnsupportedError as error:
                for problem in error.problems:
                    write("note", str(problem), problem.help)
                warnings = scenario.warnings
            else:
                warnings = plan.warnings
        except ScenarioRunnerError as error:
            show_error(error)
            code = code or error.exit_code
            continue
        for warning in warnings:
            write("warning", str(warning), warning.help)
        counts = f"{len(scenario.resources)} resources, {len(scenario.commands)} commands"
        print(f"{file}: valid: {counts}" + (f", {len(warnings)} warnings" if warnings else ""))
    return code
