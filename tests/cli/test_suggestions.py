"""Mistyped commands, options and files: the message names what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import Program


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("vlidate x.json", "there is no command 'vlidate' (did you mean 'validate'?)"),
        ("explian SR-BIND-001", "there is no command 'explian' (did you mean 'explain'?)"),
        ("help vlidate", "there is no command 'vlidate' (did you mean 'validate'?)"),
        ("x.json --capture-dri out", "unrecognized arguments: --capture-dri out (did you mean '--capture-dir'?)"),
        ("x.json --capture_dir=out", "unrecognized arguments: --capture_dir=out (did you mean '--capture-dir'?)"),
        ("x.json -output out", "unrecognized arguments: -output out (did you mean '--output'?)"),
        ("validate x.json --hazard", "unrecognized arguments: --hazard (did you mean '--hazards'?)"),
        ("shader show x --entri y", "unrecognized arguments: --entri y (did you mean '--entry'?)"),
        ("x.json --wibble", "unrecognized arguments: --wibble\n"),
    ],
)
def test_mistyped_words(program: Program, arguments: str, message: str) -> None:
    """Commands and options that do not exist get the nearest one that does; nonsense gets no guess."""
    ended = program(*arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")


@pytest.mark.parametrize("arguments, choices", [("x.json --log-level eror", "'error'"), ("vgf shwo x", "'show'")])
def test_mistyped_choices(program: Program, arguments: str, choices: str) -> None:
    """The same for words that an option or a command takes."""
    ended = program(*arguments.split())
    assert ended.code == 2
    assert f"(did you mean {choices}?)" in ended.err


def test_help_is_a_command(program: Program) -> None:
    """``help`` prints what --help prints, of the program or of one command."""
    assert program("help") == program("--help")
    assert program("help", "validate") == program("validate", "--help")
    assert program("help").code == 0


def test_scenario_named_like_a_mistyped_command(program: Program, tmp_path: Path) -> None:
    """A file that exists is run, whatever its name is like."""
    (tmp_path / "vlidate").write_text("[", encoding="utf-8")
    ended = program("vlidate")
    assert ended.code == 3
    assert ended.err.startswith("error: vlidate:1:")


@pytest.mark.parametrize("command", [[], ["validate"]])
@pytest.mark.parametrize(
    "wrong, right",
    [
        ("cases/scenaro.json", "cases/scenario.json"),
        ("case/scenario.json", "cases/scenario.json"),
        ("scenario.json", "cases/scenario.json"),
        ("cases/Scenario.JSON", "cases/scenario.json"),
        ("cases/nothing_like_it.json", None),
    ],
)
def test_missing_scenario(program: Program, tmp_path: Path, command: list[str], wrong: str, right: str | None) -> None:
    """A scenario that does not exist gets files that do: of a name like it, or of its name in a folder near it."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "scenario.json").write_text("{}", encoding="utf-8")
    ended = program(*command, wrong)
    assert ended.code == 4
    assert (f"  help: did you mean '{right}'?" in ended.err.splitlines()) == (right is not None)
    assert ("did you mean" in ended.err) == (right is not None)
