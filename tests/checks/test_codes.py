"""The table of codes: complete, well-formed, documented, and explained by the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scenario_runner import errors
from scenario_runner.checks.codes import CODES, FAMILIES, markdown
from scenario_runner.cli import main
from scenario_runner.errors import FileError, Problem, ScenarioRunnerError

PACKAGE = Path(__file__).resolve().parents[2] / "scenario_runner"


def test_codes_are_well_formed() -> None:
    """Each code has the form SR-FAMILY-123, a known family and severity, and texts that are sentences."""
    for name, code in CODES.items():
        assert re.fullmatch(r"SR-[A-Z]+-\d{3}", name)
        assert name == code.code
        assert name.split("-")[1] in FAMILIES
        assert code.severity in ("error", "warning", "note")
        assert code.title
        assert not code.title.endswith(".")
        assert code.meaning.endswith(".")
        assert code.mend.endswith(".")
        assert code.source


def test_every_code_in_the_source_is_in_the_table() -> None:
    """A code that the source gives can be explained, and a code in the table is given by some statement."""
    sources = [path for path in PACKAGE.rglob("*.py") if "code_table" not in path.name]
    named = {
        node.value
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and re.fullmatch(r"SR-[A-Z]+-\d{3}", str(node.value))
    }
    assert named - set(CODES) == set()
    assert set(CODES) - named == set()


def test_every_class_of_errors_has_a_code() -> None:
    """A problem that is raised without a code has that of its error's class, and one that has a code keeps it."""
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, ScenarioRunnerError)]
    assert {one.code for one in classes} <= set(CODES)
    assert [one.code for one in FileError([Problem("a"), Problem("b", code="SR-FILE-002")]).problems] == [
        "SR-FILE-001",
        "SR-FILE-002",
    ]


def test_the_documentation_is_generated(checkout: Path) -> None:
    """docs/codes.md is what the table says."""
    assert (checkout / "docs" / "codes.md").read_text(encoding="utf-8") == markdown()


def test_explain_one(capsys: pytest.CaptureFixture[str]) -> None:
    """explain prints title, meaning, help and source of a code, in any case of letters."""
    assert main(["explain", "sr-bind-003"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SR-BIND-003 (error): the wrong kind of resource\n")
    assert "\nMend it: Bind a resource of the right kind, or change the declaration.\n" in out
    assert "\nSource: Vulkan specification" in out


def test_explain_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    """explain alone lists every code with its severity."""
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("  ")] == [
        [code.code, code.severity]
        for family in FAMILIES
        for code in CODES.values()
        if code.code.split("-")[1] == family
    ]


def test_explain_an_unknown_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A code that does not exist is an error of usage that names close ones."""
    assert main(["explain", "SR-BIND-033"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: there is no code 'SR-BIND-033'\n  help: did you mean SR-BIND-003")
