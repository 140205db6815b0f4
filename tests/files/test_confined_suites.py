"""--sandbox of suites and of --clean: files that a suite names or links to, outside of its folder, stay unread."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.files.test_sandbox import CODE, WAYS, Way, buffer, outside, parent, planted, result, stored
from tests.program import Program
from tests.scenes import Scene


@pytest.fixture
def case(tmp_path: Path) -> Scene:
    """A scenario in a folder of its own, beside the folder ``outside``."""
    (tmp_path / "case").mkdir()
    (tmp_path / "outside").mkdir()
    return Scene(tmp_path / "case")


def suite_item(scene: Scene, **check: Any) -> Path:
    """A scenario with expectations in the scene's folder."""
    path = stored(scene)
    if check:
        scene.file("check.json", json.dumps(check))
    return path


@pytest.mark.parametrize("name", ["check.json", "suite.json", "scenario.json", "other.json", "sub"])
def test_a_suite_reads_no_planted_link(case: Scene, program: Program, name: str) -> None:
    """A file of a suite that is a link out of the folder is refused before it is read."""
    secret = outside(case, "secret.json", '{ "passphrase": 1, "commands": [] }')
    if name != "scenario.json":
        suite_item(case)
    target = secret if name.endswith(".json") else secret.parent
    (case.folder / name).symlink_to(target)
    ended = program("test", "--sandbox", case.folder, "--results", case.folder.parent / "results")
    assert ended.code != 0
    assert CODE in ended.out + ended.err
    assert "passphrase" not in ended.out + ended.err


@pytest.mark.parametrize("option", ["--skips", "--flakes", "--baseline", "--include-tests"])
@pytest.mark.parametrize("how", ["link", "included"])
def test_lists_read_no_file_outside(case: Scene, program: Program, option: str, how: str) -> None:
    """A list that is a link out of the suite's folder, or that includes a list outside, is refused."""
    secret = outside(case, "secret.txt", "(passphrase\n")
    suite_item(case)
    if how == "link":
        (case.folder / "list.txt").symlink_to(secret)
    elif option == "--baseline":
        return  # which includes no other list
    else:
        case.file("list.txt", "../outside/secret.txt\n")
    ended = program("test", "--sandbox", case.folder, option, case.folder / "list.txt", exit_code=14)
    assert CODE in ended.err or "the sandbox forbids" in ended.err
    assert "passphrase" not in ended.out + ended.err


def test_the_journal_has_no_hash_of_a_file_outside(case: Scene, program: Program) -> None:
    """A suite refuses sources and expected files outside the sandbox without reading them, so their content changes no
    output."""
    buffer(case, parent)
    case.write()
    case.file("check.json", json.dumps({"outputs": {"c": {"file": "../outside/b.npy"}}}))
    outside(case, "b.npy", numpy.zeros(1, "i4"))
    (case.folder / "expected").symlink_to(case.folder.parent / "outside")
    results = case.folder.parent / "results"
    hashes = []
    for value in (1, 2):
        for name in ("a.npy", "b.npy"):
            outside(case, name, numpy.full(1, value, "i4"))
        ended = program("test", "--sandbox", case.folder, "--results", results)
        assert ended.code != 0
        assert CODE in ended.out + ended.err + (results / "journal.jsonl").read_text()
        rows = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
        hashes.append([row["hashes"] for row in rows if "hashes" in row])
    assert len(hashes[0]) == 1
    assert hashes[0] == hashes[1]


def test_no_model_outside_is_converted(case: Scene, program: Program) -> None:
    """`convert` of a check.json names a file of the folder; whether another one exists is not told."""
    words = []
    for name in ("there.tosa", "absent.tosa"):
        outside(case, "there.tosa", "no model")
        suite_item(case, convert=f"../outside/{name}", exit_code=3)
        ended = program("test", "--sandbox", case.folder, exit_code=1)
        words.append((ended.out + ended.err).replace(name, "NAME"))
        case.resources.clear()
        case.commands.clear()
    assert "the sandbox forbids" in words[0]
    assert "cannot be" not in words[0]
    assert [line for line in words[0].splitlines() if "forbids" in line] == [
        line for line in words[1].splitlines() if "forbids" in line
    ]


def test_a_planted_link_in_place_of_the_results_of_a_suite(case: Scene, program: Program) -> None:
    """The journal and files about failures are not written through a link of the suite's folder."""
    target = planted(case, "results")
    suite_item(case)
    program("test", "--sandbox", case.folder, "--results", case.folder / "results", exit_code=14)
    assert not list(target.iterdir())


@pytest.mark.parametrize("isolation", [[], ["--isolate"]])
@pytest.mark.parametrize("way", WAYS)
def test_clean_deletes_nothing_outside(case: Scene, program: Program, way: Way, isolation: list[str]) -> None:
    """--sandbox --clean leaves a file outside, and the scenario that names it is refused."""
    result(case, way)
    file = case.folder.parent / "outside" / "a.npy"
    content = file.read_bytes()
    ended = program(case.write(), "--sandbox", "--clean", *isolation, exit_code=14)
    assert "note:" not in ended.err
    assert file.read_bytes() == content


def test_clean_deletes_outputs_of_resources_alone(case: Scene, program: Program) -> None:
    """A `dst` in another part of the text is no output, so that --clean leaves the file that it names."""
    path = stored(case)
    tree = json.loads(path.read_text())
    tree["comment"] = {"dst": "mine.npy"}
    tree["commands"][0]["dispatch_compute"]["dst"] = "mine.npy"
    tree["resources"][0]["shader"]["dst"] = "mine.npy"
    tree["resources"][-1]["buffer"]["src"] = {"fill": 0, "dst": "mine.npy"}
    path.write_text(json.dumps(tree))
    for name in ("c.npy", "mine.npy"):
        numpy.save(case.folder / name, numpy.zeros(1, "i4"))
    program(path, "--clean", "--strict", exit_code=3)
    assert (case.folder / "mine.npy").exists()
    assert not (case.folder / "c.npy").exists()


@pytest.mark.parametrize("part", ["resources", "commands"])
@pytest.mark.parametrize("value", [5, None, [5], [[]], {"a": 1}, [{"mark_boundary": 1}], [{"buffer": {"src": 1}}]])
def test_files_of_a_wrong_scenario(case: Scene, program: Program, part: str, value: Any) -> None:
    """Wrongly shaped parts name no files, and the run reports them."""
    path = case.file("a.json", json.dumps({"resources": [], "commands": []} | {part: value}))
    program(case.folder / path, "--clean", exit_code=3)
