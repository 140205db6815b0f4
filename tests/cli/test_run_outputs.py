"""Where the scenarios of one call write, what is left of earlier runs, and scenarios from pipes."""

import subprocess
import tempfile
from pathlib import Path

import numpy
import pytest

from tests.program import COMMAND, Program
from tests.scenes import ADD, Scene


def adding(folder: Path, first: int, name: str = "scenario.json", dst: str = "out.npy", source: str = "x") -> Path:
    """A scenario that adds 1 to two numbers, and captures them."""
    scene = Scene(folder)
    scene.shader("add", ADD).buffer(source, numpy.array([first, 2], numpy.uint32), dst=dst)
    return scene.dispatch("add", [source], [2]).command("mark_boundary", resources=[source]).write(name)


def first_number(path: Path) -> int:
    return int(numpy.load(path).view("u4")[0])


def files_below(folder: Path) -> list[str]:
    """All but the lists of captures."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    return sorted(str(path.relative_to(folder)) for path in files)


def test_two_scenarios_never_write_one_output(program: Program, tmp_path: Path) -> None:
    """Scenarios with one dst below --output are refused before anything runs, or get a folder each on request."""
    adding(tmp_path / "one", 10)
    adding(tmp_path / "two", 20)
    ended = program("one/scenario.json", "two/scenario.json", "--output", "both")
    assert (ended.code, ended.out) == (2, "")
    same = f"one/scenario.json and two/scenario.json would write the same file: {tmp_path}/both/out.npy"
    assert ended.err == f"error: {same}\n  help: run them one by one, or with --folder-each and --output\n"
    assert not (tmp_path / "both").exists()
    assert program("one/scenario.json", "two/scenario.json", "--output", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one/scenario/out.npy", "two/scenario/out.npy"]
    assert first_number(tmp_path / "both/one/scenario/out.npy") == 11
    assert first_number(tmp_path / "both/two/scenario/out.npy") == 21


def test_two_scenarios_never_write_one_frame(program: Program, tmp_path: Path) -> None:
    """The same holds for the frames in --capture-dir."""
    adding(tmp_path, 10, "one.json", "one.npy")
    adding(tmp_path, 20, "two.json", "two.npy")
    ended = program("one.json", "two.json", "--capture-dir", "both")
    assert (ended.code, ended.out) == (2, "")
    assert "one.json and two.json would both capture 'x' of frame 0 into 'both'" in ended.err
    assert not (tmp_path / "both").exists()
    assert not (tmp_path / "one.npy").exists()
    assert program("one.json", "two.json", "--capture-dir", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one/frame_0/x.npy", "two/frame_0/x.npy"]


@pytest.mark.parametrize("dst", ["../out.npy", "{folder}/out.npy", "../link/out.npy"])
def test_scenarios_that_name_one_file(program: Program, tmp_path: Path, dst: str) -> None:
    """Plain dst paths are compared by the file they lead to, however they are written."""
    (tmp_path / "link").symlink_to(".")
    adding(tmp_path / "one", 10, dst="../out.npy")
    adding(tmp_path / "two", 20, dst=dst.format(folder=tmp_path))
    ended = program("one/scenario.json", "two/scenario.json")
    assert (ended.code, ended.out) == (2, "")
    assert f"would write the same file: {tmp_path}/out.npy" in ended.err
    assert not (tmp_path / "out.npy").exists()


def test_scenarios_with_files_of_their_own_share_a_folder(program: Program, tmp_path: Path) -> None:
    """Different names below one --output are right, and so is a scenario that is named twice."""
    adding(tmp_path, 10, "one.json", "one.npy", "x")
    adding(tmp_path, 20, "two.json", "two.npy", "y")
    ended = program("one.json", "two.json", "./one.json", "--output", "both", "--capture-dir", "both")
    assert (ended.code, ended.err) == (0, "")
    assert files_below(tmp_path / "both") == ["frame_0/x.npy", "frame_0/y.npy", "one.npy", "two.npy"]


def test_a_scenario_is_not_overwritten_by_another(program: Program, tmp_path: Path) -> None:
    """A dst that is the text of another scenario of the call is refused."""
    adding(tmp_path, 10, "one.json", "two.json")
    text = adding(tmp_path, 20, "two.json", "out.npy").read_bytes()
    ended = program("one.json", "two.json")
    assert (ended.code, ended.out) == (2, "")
    assert f"one.json: would overwrite the scenario two.json: {tmp_path}/two.json" in ended.err
    assert (tmp_path / "two.json").read_bytes() == text


def test_folders_of_files_with_one_stem(program: Program, tmp_path: Path) -> None:
    """Files that differ in their extension alone get folders with it."""
    adding(tmp_path, 10, "one.json")
    adding(tmp_path, 20, "one.txt")
    assert program("one.json", "one.txt", "--output", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one.json/out.npy", "one.txt/out.npy"]


def test_a_failed_run_names_what_is_stale(program: Program, tmp_path: Path) -> None:
    """Outputs of an earlier run are named after a failure, and --clean removes them and nothing else."""
    adding(tmp_path, 10)
    assert program("scenario.json").code == 0
    (tmp_path / "add.comp").write_text("#version 450\nthis is wrong\n")
    ended = program("scenario.json")
    assert ended.code == 5
    stale = f"note: scenario.json: these outputs are from an earlier run: {tmp_path}/out.npy\n"
    assert ended.err.endswith(f"{stale}  help: --clean removes the outputs of earlier runs before a run\n")
    inputs = sorted({"add.comp", "scenario.json", "x.npy"})
    ended = program("scenario.json", "--clean")
    assert ended.code == 5
    assert "note:" not in ended.err
    assert files_below(tmp_path) == inputs
    assert "note:" not in program("scenario.json").err


def test_clean_removes_outputs_alone(program: Program, tmp_path: Path) -> None:
    """What the scenario reads stays, and so does a file that holds something else than an output."""
    scenario = adding(tmp_path, 10, dst="x.npy")
    content = (tmp_path / "x.npy").read_bytes()
    assert program("scenario.json", "--clean").code == 3
    assert (tmp_path / "x.npy").read_bytes() == content
    scenario.write_text(scenario.read_text().replace('"dst": "x.npy"', '"dst": "notes"'))
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "add.comp").unlink()
    assert program("scenario.json", "--clean").code != 0
    assert (tmp_path / "notes").read_text() == "mine"


def test_clean_between_scenarios(program: Program, tmp_path: Path) -> None:
    """Each scenario is cleaned just before it runs, so that one can read what the one before it wrote."""
    adding(tmp_path, 10, "one.json", "between.npy")
    second = adding(tmp_path, 20, "two.json", "out.npy")
    second.write_text(second.read_text().replace('"src": "x.npy"', '"src": "between.npy"'))
    for _ in range(2):
        numpy.save(tmp_path / "x.npy", numpy.array([10, 2], numpy.uint32))
        ended = program("one.json", "two.json", "--clean")
        assert (ended.code, ended.err) == (0, "")
        assert first_number(tmp_path / "out.npy") == 12


@pytest.mark.parametrize("words", [[], ["validate"]])
def test_standard_input(program: Program, tmp_path: Path, words: list[str]) -> None:
    """A scenario from a pipe is read once; its paths start from the current folder."""
    text = adding(tmp_path, 10).read_text()
    ended = program(*words, "/dev/stdin", stdin=text)
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / "out.npy").exists() == (not words)


def test_a_file_in_shared_memory_is_a_file(program: Program) -> None:
    """Below /dev there are folders of files, too: paths start from the folder of such a scenario."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        adding(Path(folder), 10)
        assert program(f"{folder}/scenario.json").code == 0
        assert first_number(Path(folder) / "out.npy") == 11


def test_process_substitution(shader_cache: Path, tmp_path: Path) -> None:
    """The shell's <(…) runs, several of them too, and what fails on a device names its place."""
    adding(tmp_path, 10, "one.json", "one.npy", "x")
    adding(tmp_path, 20, "two.json", "two.npy", "y")
    command = f"{' '.join(COMMAND)} <(cat one.json) <(cat two.json)"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert first_number(tmp_path / "one.npy") == 11
    assert first_number(tmp_path / "two.npy") == 21


def test_wrong_text_from_a_pipe(program: Program, tmp_path: Path) -> None:
    """What is wrong with standard input is said once, with its place."""
    ended = program("/dev/stdin", stdin='{"resources": [], "commands": [')
    assert ended.code == 3
    assert ended.err.startswith("error: /dev/stdin:1:")
    assert ended.err.count("error:") == 1


def test_an_error_behind_the_plan_from_a_pipe(program: Program, scene: Scene, tmp_path: Path) -> None:
    """What is found after planning has its line too, although standard input cannot be read again."""
    scene.buffer("x", size=4, dst="folder").write()
    (tmp_path / "folder").mkdir()
    ended = program("/dev/stdin", stdin=(tmp_path / "scenario.json").read_text())
    assert ended.code == 4
    assert ended.err.startswith("error: /dev/stdin:")
    assert "/resources/0/buffer/dst: " in ended.err
