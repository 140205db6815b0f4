"""Items of folders and lists: patterns, skips and baselines."""

import json
import os
from pathlib import Path

import pytest

from scenario_runner.errors import FileError, UsageError
from scenario_runner.suite.discovery import Discovery, looks_like_scenario
from scenario_runner.suite.suite_run import Lists, Patterns, given_patterns, read_baselines, read_patterns
from tests.scenes import error_of
from tests.suite.collected import Collected
from tests.tables import cases

SCENARIO = '{"commands": [], "resources": []}'


class Tree:
    """A folder of files and the items in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems = Collected()

    def file(self, name: str, text: str = SCENARIO) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def ids(self, *paths: str, input: bytes = b"", root: Path | None = None) -> list[str]:
        with (self.folder.parent / "input").open("w+b", buffering=0) as file:
            file.write(input)
            file.seek(0)
            discovery = Discovery(str(root or self.folder), self.problems, file.fileno())
            return [item.id for item in discovery.items(paths)]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.chdir(tmp_path)
    return Tree(tmp_path)


@pytest.mark.parametrize("text, is_one", cases(__file__, "cases.txt", "LOOKS"))
def test_what_a_scenario_looks_like(text: str, is_one: str) -> None:
    """An object with one of the two keys at its top, whatever follows."""
    assert looks_like_scenario(json.loads(text).encode()) == json.loads(is_one)


def test_a_folder_is_searched(tree: Tree) -> None:
    """Scenarios of a folder come sorted; other JSON files, expectations and hidden folders are left out."""
    for name in ("b/scenario.json", "b/check.json", "a/two.json", "a/one.json", "a/one.check.json", ".git/x.json"):
        tree.file(name)
    tree.file("a/manifest.json")
    tree.file("a/data.json", '{"numbers": [1]}')
    tree.file("a/bad.json", "not JSON")
    tree.file("a/broken.json", "not JSON")
    tree.file("a/broken.check.json", "{}")
    assert tree.ids(".") == ["a/broken.json", "a/one.json", "a/two.json", "b/scenario.json"]
    assert tree.problems.shown == []


def test_expectations_of_no_scenario(tree: Tree) -> None:
    """Expectations beside another or a renamed scenario give a warning."""
    for name in ("a/add.json", "a/check.json", "a/old.check.json", "b/m.vgf", "b/m.check.json", "b/scenario.json"):
        tree.file(name)
    assert tree.ids("a", "b") == ["a/add.json", "b/m.vgf", "b/scenario.json"]
    said = "these expectations belong to no scenario: there is no"
    assert tree.problems.shown == [
        f"SR-SUITE-018 {tree.folder / 'a' / 'check.json'}: {said} scenario.json beside them",
        f"SR-SUITE-018 {tree.folder / 'a' / 'old.check.json'}: {said} old.json beside them",
    ]
    assert tree.problems.exit_code == 0


def test_files_come_in_the_order_they_are_named_in(tree: Tree) -> None:
    """A file that is named is an item whatever is in it, also where there is none; each comes once."""
    tree.file("x.json", "{}")
    tree.file("d/y.json")
    assert tree.ids("x.json", "gone.json", "d", "./x.json") == ["x.json", "gone.json", "d/y.json"]


def test_names_are_relative_to_the_root(tree: Tree) -> None:
    """Outside of it they are absolute."""
    tree.file("a/x.json")
    outside = tree.file("b/y.json")
    assert tree.ids("a", "b", root=tree.folder / "a") == ["x.json", str(outside)]


def test_a_list(tree: Tree) -> None:
    """A line is a scenario or a folder, relative to the root or else to the list; # begins a comment."""
    tree.file("a/x.json")
    tree.file("b/y.json")
    tree.file("lists/near.json")
    tree.file("lists/some.txt", "# comment\n\n b \na/x.json\nnear.json\n")
    assert tree.ids("@lists/some.txt") == ["b/y.json", "a/x.json", "lists/near.json"]
    assert tree.ids("-", input=b"a\nb/y.json\n") == ["a/x.json", "b/y.json"]


def test_items_are_found_as_they_are_asked_for(tree: Tree) -> None:
    """The first item of standard input is there while whoever writes the list goes on."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b"x.json\n" * 5000)
        assert next(Discovery(".", tree.problems, reading).items(["-"])).id == "x.json"
    finally:
        os.close(reading)
        os.close(writing)


def test_lists_that_are_no_text(tree: Tree) -> None:
    """A line that is not UTF-8 is a problem of that line; a closed standard input one of the list."""
    tree.file("x.json")
    assert tree.ids("-", input=b"\xff.json\nx.json\n") == ["x.json"]
    (problem,) = tree.problems.shown
    assert problem.startswith("SR-SUITE-008 standard input:1: the name b'\\xff.json' has control characters")
    assert list(Discovery(".", tree.problems, 999).items(["-"])) == []
    assert tree.problems.shown[1] == "SR-SUITE-006 standard input: the list cannot be read: bad file descriptor"


def test_links_in_a_circle(tree: Tree) -> None:
    """A link to a folder above is a problem with its place; a second way to a folder leads nowhere new."""
    tree.file("a/b/x.json")
    (tree.folder / "a" / "b" / "up").symlink_to(tree.folder / "a")
    (tree.folder / "a" / "c").symlink_to(tree.folder / "a" / "b")
    assert tree.ids("a") == ["a/b/x.json"]
    place = tree.folder / "a" / "b" / "up"
    assert tree.problems.shown == [f"SR-SUITE-007 {place}: the link leads to a parent folder, and is not followed"]
    assert tree.problems.exit_code == 0


def test_a_link_out_of_the_folder(tree: Tree) -> None:
    """One that leads above the searched folder is a circle as well; a folder that is named later is searched."""
    tree.file("a/x.json")
    tree.file("b/y.json")
    (tree.folder / "a" / "out").symlink_to(tree.folder)
    (tree.folder / "a" / "side").symlink_to(tree.folder / "b")
    assert tree.ids("a", "b") == ["a/side/y.json", "a/x.json", "b/y.json"]
    assert [each.code for each in tree.problems.diagnostics] == ["SR-SUITE-007"]


def test_what_cannot_be_read(tree: Tree) -> None:
    """A link to nothing and a list that does not exist are problems, a pipe is no scenario, and the others come."""
    tree.file("x.json")
    (tree.folder / "dangling.json").symlink_to("nowhere")
    os.mkfifo(tree.folder / "pipe.json")
    assert tree.ids("@list", ".") == ["x.json"]
    assert tree.problems.shown == [
        "SR-SUITE-006 list: the list cannot be read: no such file or directory",
        f"SR-SUITE-006 {tree.folder}/dangling.json: the file cannot be read: no such file or directory",
    ]
    assert tree.problems.exit_code == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission(tree: Tree) -> None:
    """A folder without permission is a problem, and the others are searched."""
    tree.file("shut/x.json")
    tree.file("y.json")
    (tree.folder / "shut").chmod(0)
    assert tree.ids(".") == ["y.json"]
    (tree.folder / "shut").chmod(0o700)
    assert tree.problems.shown == [f"SR-SUITE-006 {tree.folder}/shut: the folder cannot be searched: permission denied"]


@pytest.mark.parametrize("name", [b"a\nb.json", b"\xff.json", b"\x1b[31m.json"])
def test_names_that_no_list_can_hold(tree: Tree, name: bytes) -> None:
    """Control characters and bytes that are not UTF-8 are problems of the item, not of the others."""
    tree.file("x.json")
    with open(os.path.join(os.fsencode(tree.folder), name), "w", encoding="ascii") as file:
        file.write(SCENARIO)
    assert tree.ids(".") == ["x.json"]
    (problem,) = tree.problems.shown
    assert problem.startswith(f"SR-SUITE-008 {tree.folder}: the name {name!r} has control characters")
    assert tree.ids(os.fsdecode(name)) == []
    assert len(tree.problems.shown) == 2


def written(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_patterns_match_anywhere(tmp_path: Path) -> None:
    """Each line is a regular expression that need not match the whole name; comments and empty lines do not count."""
    patterns = read_patterns([written(tmp_path / "skips", "# slow\n\nimages/.*blur\n  ^a$  \n")], Collected())
    assert [patterns.match(name) for name in ("x/images/my_blur.json", "a", "ab")] == [True, True, False]


def test_a_line_that_ends_in_txt_includes_that_file(tmp_path: Path) -> None:
    """An included list is found beside the list that includes it."""
    written(tmp_path / "more" / "b.txt", "b$\n")
    patterns = read_patterns([written(tmp_path / "a", "a$\nmore/b.txt\n")], Collected())
    assert [patterns.match(name) for name in ("xa", "xb", "xc")] == [True, True, False]


def test_patterns_of_the_command_line(tmp_path: Path) -> None:
    """A pattern that ends in .txt names a file of patterns."""
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
    """All wrong patterns are one error with their lines."""
    problems = Collected()
    path = written(tmp_path / "skips", "a\nbad(\nc[\n")
    with pytest.raises(UsageError) as caught, problems.together():
        read_patterns([path], problems)
    reasons = ["'bad(' is not a regular expression: missing ), unterminated subpattern at position 3"]
    reasons.append("'c[' is not a regular expression: unterminated character set at position 1")
    assert [str(each) for each in caught.value.problems] == [
        f"{path}:{line}: {reason}" for line, reason in enumerate(reasons, 2)
    ]
    assert {each.code for each in caught.value.problems} == {"SR-SUITE-001"}


def test_misspelt_expectations(tmp_path: Path) -> None:
    """A name almost like that of missing expectations is a warning. Other names, and those of scenarios, are not."""
    scenario = '{"commands": []}'
    for name in ("scenario", "a", "b", "c", "d.e", "a.checks"):
        written(tmp_path / f"{name}.json", scenario)
    wrong = {"chek.json": "check.json", "a.chek.json": "a.check.json", "d.e.Check.json": "d.e.check.json"}
    for name in wrong:
        written(tmp_path / name, "{}")
    for name in ("b.check.json", "b.chek.json", "expected.npy", "c.txt"):
        written(tmp_path / name, "{}")
    for name in ("expectd", "c.expect", "b.expects", "exports"):
        (tmp_path / name).mkdir()
    wrong |= {"expectd": "expected", "c.expect": "c.expected"}
    for path in (tmp_path, tmp_path / "b.json"):
        problems = Collected()
        list(Discovery(str(tmp_path), problems).items([str(path)]))
        found = {os.path.basename(str(each.path)): (each.code, each.help) for each in problems.diagnostics}
        said = {name: ("SR-SUITE-019", f"did you mean {known!r}?") for name, known in wrong.items()}
        assert found == said


def test_lists_that_include_each_other(tmp_path: Path) -> None:
    """A circle is a problem at the line that closes it."""
    problems = Collected()
    first, second = written(tmp_path / "a.txt", "x\nb.txt\n"), written(tmp_path / "b.txt", "y\na.txt\n")
    (problem,) = error_of(UsageError, read_patterns, [first], problems).problems
    assert (problem.code, str(problem)) == (
        "SR-SUITE-005",
        f"{second}:2: the list 'a.txt' includes itself through this line",
    )


def test_a_list_that_does_not_exist(tmp_path: Path) -> None:
    """The error names the list, and one that may have been meant."""
    written(tmp_path / "skips.list", "")
    with pytest.raises(FileError, match="the list does not exist") as caught:
        read_patterns([str(tmp_path / "skip.list")], Collected())
    assert "skips.list" in (caught.value.problems[0].help or "")
    error = error_of(FileError, read_patterns, [written(tmp_path / "skips", "\ngone.txt\n")], Collected())
    assert (error.problems[0].path, error.problems[0].line) == (str(tmp_path / "gone.txt"), None)


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
    """A known flake in a baseline may fail like an entry of a list of flakes. A Flake of the run before has no
    effect."""
    baseline = read_baselines([written(tmp_path / "b", "a,KnownFlake\nb,Flake\nc,Fail\n")], Collected())
    lists = Lists(baseline, Patterns(), read_patterns([written(tmp_path / "f", "c")], Collected()))
    assert [lists.expected(name) for name in "abc"] == [(None, True), (None, False), ("Fail", True)]


LONG = json.dumps(f"a,{'x' * 200000}")
TOO_LONG = [LONG, "SR-SUITE-002", "b:1: invalid line: field larger than field limit (131072)"]


@pytest.mark.parametrize("text, code, message", [*cases(__file__, "cases.txt", "BASELINES"), TOO_LONG])
def test_a_wrong_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: str, message: str) -> None:
    """A line without a status and a name that stands there twice are errors with their place."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "b", json.loads(text))
    error = error_of(UsageError, read_baselines, ["b"], Collected())
    assert (error.problems[0].code, str(error)) == (code, message)
