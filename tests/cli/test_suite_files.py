"""Files that a suite writes beside its journal: reports, and evidence of failures."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.test_test_command import doubled, item
from tests.program import Program


def test_evidence_is_bounded_and_removed(tmp_path: Path, program: Program) -> None:
    """Without room for contents there are none, and the message says so; an item that passes then has no files."""
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 7))
    program("test", "suite", "--results", "r")
    names = {path.name for path in (tmp_path / "r" / "suite" / "wrong.json").iterdir()}
    assert names == {"x.actual.npy", "x.expected.npy", "x.error.npy"}
    ended = program("test", "suite", "--results", "r", "--max-evidence", "0")
    assert "(its content is not kept: more than --max-evidence 0 MiB)" in ended.out
    assert not (tmp_path / "r" / "suite").exists()
    program("test", "suite", "--results", "r")
    assert (tmp_path / "r" / "suite" / "wrong.json" / "x.actual.npy").exists()
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 6))
    assert program("test", "suite", "--results", "r").code == 0
    assert not (tmp_path / "r" / "suite").exists()


def test_a_report_that_cannot_be_written(tmp_path: Path, program: Program) -> None:
    """It is an error, and the others are written: here a folder of the results takes its place meanwhile."""
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 7))
    (tmp_path / "base").write_text("suite/wrong.json,Fail\n")
    reports = ("--junit", "r/suite/wrong.json", "--json", "j.json", "--html", "h.html")
    ended = program("test", "suite", "--baseline", "base", "--results", "r", *reports)
    assert ended.code == 4
    assert re.search("^error: r/suite/wrong.json: is a folder", ended.err, re.M)
    assert "results: r\nreport: j.json\nreport: h.html\nsuite passed: 1 item\n" in ended.out
