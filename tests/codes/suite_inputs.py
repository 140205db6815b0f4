"""Inputs for the codes of suites."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from scenario_runner.cli.options import parse
from scenario_runner.cli.test import main
from scenario_runner.suite.discovery import Discovery
from scenario_runner.suite.journal import FILE_NAME, Journal, header
from scenario_runner.suite.lists import read_baselines, read_patterns
from scenario_runner.suite.merging import MergedJournals
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.records import Item, Outcome, Result
from tests.codes.case import Case, Codes, Input
from tests.scenes import glsl
from tests.suite.collected import Collected


def found(look: Callable[[Case, SuiteProblems], object]) -> Input:
    """What is found and stops nothing."""

    def codes(case: Case) -> Codes:
        problems = Collected()
        look(case, problems)
        return {each.code for each in problems.diagnostics}

    return codes


def patterns(**files: str) -> Input:
    """Lists of patterns, of which the first one is read."""

    def look(case: Case, problems: SuiteProblems) -> None:
        paths = [case.scene.file(f"{name}.txt", text) for name, text in files.items()]
        read_patterns([str(paths[0])], problems)

    return found(look)


def baseline(text: str) -> Input:
    """A baseline of these lines."""
    return lambda case: case.raised(lambda: read_baselines([str(case.scene.file("b", text))], Collected()))


def searched(make: Callable[[Path], object]) -> Input:
    """A folder with something in it."""

    def look(case: Case, problems: SuiteProblems) -> None:
        make(case.scene.folder)
        discovery = Discovery(str(case.scene.folder), problems)
        assert not list(discovery.items([str(case.scene.folder)]))

    return found(look)


def unmatched_entry(case: Case) -> Codes:
    """With --strict it is an error, whose code the program prints."""
    case.scene.write()
    skips = case.scene.file("skips", "nowhere\n")
    ended = case.program("test", "scenario.json", "--skips", skips, "--list", "--strict")
    return {"SR-SUITE-004"} if "matches no scenario" in ended.err and ended.code == 2 else set()


def nothing_found(case: Case) -> Codes:
    return case.raised(lambda: main(parse("test", [str(case.scene.folder), "--list"])))


def journal_in_use(case: Case) -> Codes:
    """This process holds the lock on the journal; the test of the journal sees the code."""
    path = case.scene.write()
    with Journal(str(case.scene.folder)):
        ended = case.program("test", path, "--results", ".")
    return {"SR-SUITE-010"} if "another suite writes" in ended.err and ended.code == 4 else set()


def journal(folder: Path, *verdicts: str) -> str:
    with Journal(str(folder)) as written:
        written.begin(header(""))
        for verdict in verdicts:
            written.add(Result(Item("a", "/a"), verdict, (Outcome("Pass"),)))
    return str(folder / FILE_NAME)


def other_file(case: Case) -> Codes:
    path = case.scene.file("j.jsonl", "{}\n")
    return case.raised(lambda: MergedJournals([str(path)], Collected()))


def damaged(case: Case, problems: SuiteProblems) -> None:
    path = Path(journal(case.scene.folder, "Pass"))
    path.write_bytes(path.read_bytes()[:-9])
    MergedJournals([str(path)], problems)


def printed(case: Case, code: int, *command: str) -> Codes:
    """The codes of the errors that the program prints with this exit code."""
    ended = case.program(*command, case.scene.folder)
    return set(re.findall(r"^error: .*\[(SR-SUITE-.*)\]$", ended.err, re.M) if ended.code == code else ())


def reported(verdict: str) -> Input:
    """A journal that has not ended, with this result."""
    return lambda case: journal(case.scene.folder, verdict) and printed(case, 4, "report")


def without_a_compiler(case: Case) -> Codes:
    case.scene.shader("s", glsl("")).dispatch("s", []).write()
    return printed(case, 17, "test", "--glslang", "no-such-compiler")


def contradiction(case: Case, problems: SuiteProblems) -> None:
    paths = [journal(case.scene.folder / verdict, verdict) for verdict in ("Pass", "Fail")]
    MergedJournals(paths, problems)


INPUTS: dict[str, Input] = {
    "SR-SUITE-001": patterns(a="bad("),
    "SR-SUITE-002": baseline("a\n"),
    "SR-SUITE-003": baseline("a,Fail\na,Fail\n"),
    "SR-SUITE-004": unmatched_entry,
    "SR-SUITE-005": patterns(a="b.txt", b="a.txt"),
    "SR-SUITE-006": searched(lambda folder: (folder / "x.json").symlink_to("nowhere")),
    "SR-SUITE-007": searched(lambda folder: (folder / "up").symlink_to(folder)),
    "SR-SUITE-008": searched(lambda folder: (folder / "a\nb.json").touch()),
    "SR-SUITE-009": nothing_found,
    "SR-SUITE-010": journal_in_use,
    "SR-SUITE-011": other_file,
    "SR-SUITE-012": found(damaged),
    "SR-SUITE-013": found(contradiction),
    "SR-SUITE-014": reported("Pass"),
    "SR-SUITE-015": reported("NotSupported"),
    "SR-SUITE-016": without_a_compiler,
}
