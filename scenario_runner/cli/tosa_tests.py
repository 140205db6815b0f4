"""``scenario-runner import tosa DIR… --output SUITE``: TOSA's conformance tests as a suite."""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator

from scenario_runner.cli.messages import live, show, write_finding
from scenario_runner.suite.tosa_tests import Imported, Test, find_tests, import_tests
from scenario_runner.system_limits import processors
from scenario_runner.text import Span, counted, one_line

_MOST_ERRORS = 50
_REASON_END = re.compile(r"\n|; | that was |: %")  # of what the converter says: operands and types follow


def tosa(options: argparse.Namespace) -> int:
    """Import tests; return 0, or the exit code of the first error."""
    start = time.monotonic()
    found = list(find_tests(options.folders))
    tests = [test for test in found if isinstance(test, Test)]
    errors = [error for error in found if not isinstance(error, Test)]
    outcomes: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    kept = 0

    def rows() -> Iterator[list[Span]]:
        done = sum(outcomes.values())
        yield [f"{done} of {counted(len(tests), 'test')}", f", {time.monotonic() - start:.0f} s"]

    with live(sys.stderr, rows):
        for result in import_tests(tests, options.output, options.jobs or processors()) if tests else ():
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
    """The reason without what differs from test to test: of an expected error, only what refused the test."""
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
    parts += [f"{kept} of them were there"] if kept else []
    show(f"{', '.join(parts)} in {seconds:.1f} s: {one_line(output)}")
