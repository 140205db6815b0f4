"""Tests of other programs become item folders: found files, kept folders, and errors beside complete items."""

import json
from pathlib import Path

from scenario_runner.errors import FileError
from scenario_runner.importers.item_folders import (
    FoundTest,
    Imported,
    Prepared,
    file_error,
    find_files,
    import_tests,
    write_not_supported,
)


def test_files_have_the_names_of_their_suite(tmp_path: Path) -> None:
    """Folders are searched by extension. A file has no folder in the name, and a name is used once."""
    tests = tmp_path / "tests"
    for name in ("b/two.a", "one.a", "one.b", "done/import.json", "done/old.a"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).touch()
    found = list(find_files([str(tests), str(tests / "one.b"), str(tests / "b/two.a"), str(tests / "one.a")], (".a",)))
    assert [each.name for each in found if isinstance(each, FoundTest)] == ["b/two.a", "one.a", "one.b", "two.a"]
    (error,) = [str(each) for each in found if isinstance(each, FileError)]
    assert error == f"{tests / 'one.a'}: has the same name 'one.a' as the test in {tests / 'one.a'}"


def test_paths_without_tests(tmp_path: Path) -> None:
    """A folder without tests and a path to nothing are errors."""
    empty, nothing = str(tmp_path), str(tmp_path / "nothing")
    errors = [each.problems[0] for each in find_files([empty, nothing], (".a", ".b")) if isinstance(each, FileError)]
    assert [(each.code, str(each)) for each in errors] == [
        ("SR-IMPORT-001", f"{empty}: has no file that ends in .a or .b"),
        ("SR-IMPORT-001", f"{nothing}: is not a file or folder"),
    ]


def prepare(test: FoundTest) -> Prepared:
    """Read a test: the content is the reason, and "wrong" is an error in line 3."""
    text = Path(test.path).read_text(encoding="utf-8")
    if text == "wrong":
        raise file_error(test.path, "is wrong", line=3)
    return Prepared(text, lambda folder: write_not_supported(folder, text))


def test_errors_stop_no_other_test(tmp_path: Path) -> None:
    """An error leaves no folder, a missing file is an error, and a folder stays while the digest does."""
    suite = tmp_path / "suite"
    tests = [FoundTest(name, str(tmp_path / name)) for name in ("right", "wrong", "missing")]
    for test in tests[:2]:
        Path(test.path).write_text(test.name, encoding="utf-8")

    def imported() -> dict[str, Imported]:
        return {each.name: each for each in import_tests(tests, str(suite), 2, prepare)}

    first = imported()
    assert first["right"] == Imported("right", "not supported", "right")
    assert str(first["wrong"].error) == f"{tmp_path / 'wrong'}:3: is wrong"
    assert str(first["missing"].error) == f"{tmp_path / 'missing'}: no such file or directory"
    assert [path.name for path in suite.iterdir()] == ["right"]
    assert json.loads((suite / "right/check.json").read_text(encoding="utf-8")) == {"not_supported": "right"}
    assert imported()["right"].kept
    Path(tests[0].path).write_text("changed", encoding="utf-8")
    assert imported()["right"] == Imported("right", "not supported", "changed")
