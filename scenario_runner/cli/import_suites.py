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
