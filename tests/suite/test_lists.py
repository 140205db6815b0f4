"""suite/suite_run.py: skips, flakes, included tests and baselines."""

import json
from pathlib import Path

import pytest

from scenario_runner.errors import FileError, UsageError
from scenario_runner.suite.suite_run import Lists, Patterns, given_patterns, read_baselines, read_patterns
from tests.suite.collected import Collected
from tests.tables import cases


def written(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_patterns_match_anywhere(tmp_path: Path) -> None:
    """Each line is a regular expression that need not match the whole name; comments and empty lines do not count."""
    patterns = read_patterns([written(tmp_path / "skips", "# slow\n\nimages/.*blur\n  ^a$  \n")], Collected())
    assert [patterns.match(name) for name in ("x/images/my_blur.json", "a", "ab")] == [True, True, False]


def test_a_line_that_ends_in_txt_includes_that_file(tmp_path: Path) -> None:
    """An included list is looked for beside the one that includes it."""
    written(tmp_path / "more" / "b.txt", "b$\n")
    patterns = read_patterns([written(tmp_path / "a", "a$\nmore/b.txt\n")], Collected())
    assert [patterns.match(name) for name in ("xa", "xb", "xc")] == [True, True, False]


def test_patterns_of_the_command_line(tmp_path: Path) -> None:
    """They are patterns, or files of patterns where they end in .txt."""
    patterns = given_patterns(["x.*y", written(tmp_path / "t.txt", "only")], Collected())
    assert [patterns.match(name) for name in ("xxy", "the only one", "z")] == [True, True, False]


@pytest.mark.parametrize("id", ["a.json[4]", "a.json[int-4-3]", "a.json[x+]"])
def test_a_line_may_be_a_name(tmp_path: Path, id: str) -> None:
    """A name with the brackets of parameters, as --list prints it, matches itself and no other."""
    problems = Collected()
    patterns = read_patterns([written(tmp_path / "skips", f"{id}\n")], problems)
    assert [patterns.match(name) for name in (id, "a.json[5]")] == [True, False]
    assert (list(patterns.unmatched({id})), problems.shown) == ([], [])
    assert [text for text, _ in patterns.unmatched({"b"})] == [id]


def test_a_wrong_pattern(tmp_path: Path) -> None:
    """It is a problem at its line."""
    problems = Collected()
    path = written(tmp_path / "skips", "a\nbad(\n")
    read_patterns([path], problems)
    reason = "missing ), unterminated subpattern at position 3"
    assert problems.shown == [f"SR-SUITE-001 {path}:2: the pattern 'bad(' is invalid: {reason}"]


def test_lists_that_include_each_other(tmp_path: Path) -> None:
    """A circle is a problem at the line that closes it."""
    problems = Collected()
    first, second = written(tmp_path / "a.txt", "x\nb.txt\n"), written(tmp_path / "b.txt", "y\na.txt\n")
    patterns = read_patterns([first], problems)
    assert problems.shown == [f"SR-SUITE-005 {second}:2: the list 'a.txt' includes itself through this line"]
    assert patterns.match("y")


def test_a_list_that_does_not_exist(tmp_path: Path) -> None:
    """The error names the list, and one that may have been meant."""
    written(tmp_path / "skips.list", "")
    with pytest.raises(FileError, match="the list does not exist") as caught:
        read_patterns([str(tmp_path / "skip.list")], Collected())
    assert "skips.list" in (caught.value.problems[0].help or "")
    with pytest.raises(FileError) as caught:
        read_patterns([written(tmp_path / "skips", "\ngone.txt\n")], Collected())
    assert (caught.value.problems[0].path, caught.value.problems[0].line) == (str(tmp_path / "gone.txt"), None)


def test_a_list_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are an error."""
    (tmp_path / "skips").write_bytes(b"a\xff\n")
    with pytest.raises(FileError, match="not UTF-8"):
        read_patterns([str(tmp_path / "skips")], Collected())


def test_a_baseline(tmp_path: Path) -> None:
    """A name, a status, and further columns that are ignored; names may be quoted."""
    text = '# comment\n\na/b.json,Fail\nc.json,UnexpectedImprovement(Pass),0.25\n"d,e.json",Crash\nf.json,Flake\n'
    baseline = read_baselines([written(tmp_path / "b", text)], Collected())
    names = ("a/b.json", "c.json", "d,e.json", "f.json", "other")
    assert [baseline.get(name, (None,))[0] for name in names] == ["Fail", "Pass", "Crash", None, None]


def test_a_known_flake_of_a_baseline(tmp_path: Path) -> None:
    """It may fail, as one that a list of flakes matches; a Flake of the run before says nothing."""
    baseline = read_baselines([written(tmp_path / "b", "a,KnownFlake\nb,Flake\nc,Fail\n")], Collected())
    lists = Lists(baseline, Patterns(), read_patterns([written(tmp_path / "f", "c")], Collected()))
    assert [lists.expected(name) for name in "abc"] == [(None, True), (None, False), ("Fail", True)]


LONG = json.dumps(f"a,{'x' * 200000}")
TOO_LONG = [LONG, "SR-SUITE-002", "b:1: the line cannot be read: field larger than field limit (131072)"]


@pytest.mark.parametrize("text, code, message", [*cases(__file__, "cases.txt", "BASELINES"), TOO_LONG])
def test_a_wrong_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: str, message: str) -> None:
    """A line without a status and a name that stands there twice are errors with their place."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "b", json.loads(text))
    with pytest.raises(UsageError) as caught:
        read_baselines(["b"], Collected())
    assert (caught.value.problems[0].code, str(caught.value)) == (code, message)
