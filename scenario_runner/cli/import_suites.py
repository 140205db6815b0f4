"""Suites from tests of other programs: ``scenario-runner import KIND PATH… --output SUITE``."""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from scenario_runner.cli.console import live, show, write_finding
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.text import Span, counted, one_line
from scenario_runner.importers.item_folders import FoundTest, Imported, find_files
from scenario_runner.processes.system_limits import processors

Importer = Callable[[Sequence[FoundTest], str, int], Iterable[Imported]]
"""A function that writes tests into a suite, a number of them at a time."""
_MOST_ERRORS = 50
_REASON_END = re.compile(r"\n|; | that was |: %")  # ends the reason in a message of TOSA's converter


def tosa(options: argparse.Namespace) -> int:
    """Import TOSA's conformance tests. Return 0, or the exit code of the first error."""
    from scenario_runner.tosa.conformance_tests import find_tests, import_tests

    return _import(options, find_tests(options.folders), import_tests)


def amber(options: argparse.Namespace) -> int:
    """Import scripts of Amber. Return 0, or the exit code of the first error."""
    from scenario_runner.importers.amber import EXTENSIONS, import_scripts

    return _import(options, find_files(options.paths, EXTENSIONS), import_scripts)


def offload(options: argparse.Namespace) -> int:
    """Import tests of LLVM's offload-test-suite. Return 0, or the exit code of the first error."""
    from scenario_runner.importers.offload import find_tests, import_tests

    return _import(options, find_tests(options.paths), import_tests)


def _import(options: argparse.Namespace, found: Iterable[FoundTest | ScenarioRunnerError], importer: Importer) -> int:
    start = time.monotonic()
    found = list(found)
    tests = [each for each in found if isinstance(each, FoundTest)]
    errors = [each for each in found if isinstance(each, ScenarioRunnerError)]
    outcomes: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    kept = 0

    def rows() -> Iterator[list[Span]]:
        done = sum(outcomes.values())
        yield [f"{done} of {counted(len(tests), 'test')}", f", {time.monotonic() - start:.0f} s"]

    with live(sys.stderr, rows):
        for result in importer(tests, options.output, options.jobs or processors()) if tests else ():
            outcomes[result.outcome] += 1
            kept += result.kept
            if result.error is not None:
                errors.append(result.error)
            elif result.reason:
                reasons[result.outcome, _kind(result)] += 1
    for error in errors[:_MOST_ERRORS]:
        for problem in error.problems:
            write_finding(problem)
    _show_end(options.output, outcomes, reasons, kept, len(errors), time.monotonic() - start)
    return errors[0].exit_code if errors else 0


def _kind(result: Imported) -> str:
    """Shorten a test's reason, so that similar tests share a text. For an expected error, keep only the first part."""
    reason = _REASON_END.split(result.reason)[0]
    return one_line(reason.partition(":")[0] if result.outcome == "expected error" else reason, 150)


def _show_end(
    output: str, outcomes: Counter[str], reasons: Counter[tuple[str, str]], kept: int, errors: int, seconds: float
) -> None:
    for (outcome, reason), count in sorted(reasons.items(), key=lambda row: (row[0][0], -row[1], row[0][1])):
        show(f"{outcome}: {count}: {reason}")
    if errors > _MOST_ERRORS:
        show(f"and {errors - _MOST_ERRORS} more errors")
    parts = [f"{outcomes['imported']} imported", f"{outcomes['not supported']} not supported"]
    parts += [f"{outcomes['expected error']} expected to fail", counted(errors, "error")]
    parts += [f"{kept} of them unchanged"] if kept else []
    show(f"{', '.join(parts)} in {seconds:.1f} s: {one_line(output)}")
