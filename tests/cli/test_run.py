"""``scenario-runner run``: options, exit codes and output files."""

import re
import subprocess
import tempfile
from pathlib import Path

import numpy
import pytest

from tests.program import COMMAND, Program, files_in
from tests.scenes import ADD, Scene

ON = r"\d+\.\d ms on .+"


@pytest.fixture
def adding(scene: Scene) -> Path:
    """A scenario that adds 1 to the four numbers of x and writes x.out.npy."""
    scene.shader("add", ADD).buffer("x", numpy.array([1, 2, 3, 4], numpy.uint32))
    return scene.dispatch("add", ["x"], [4]).write()


@pytest.mark.parametrize("word", [[], ["run"]])
def test_one_file(program: Program, scene: Scene, adding: Path, word: list[str]) -> None:
    """One file runs, with or without the word run: one line on stdout, nothing on stderr, exit code 0."""
    ended = program(*word, "scenario.json", exit_code=0)
    assert ended.err == ""
    assert re.fullmatch(rf"scenario\.json: ok: 1 dispatch, 1 output, {ON}\n", ended.out)
    assert scene.output("x", "u4").tolist() == [2, 3, 4, 5]


def test_spelling_of_the_reference_runner(program: Program, scene: Scene, adding: Path, tmp_path: Path) -> None:
    """The reference runner's command line works unchanged."""
    disabled = ("VK_EXT_custom_border_color", "VK_EXT_frame_boundary")
    options = ("--repeat=3", "--log-level", "warning", "--disable-extension", *disabled, "--enable-robustness-features")
    again = ("--disable-extension", "VK_KHR_deferred_host_operations")
    ended = program.succeed("--scenario", adding, "--output", tmp_path / "deep" / "er", *options, *again)
    assert f"{adding}: ok: 1 dispatch x 3, 1 output, " in ended.out
    assert numpy.load(tmp_path / "deep" / "er" / "x.out.npy").view("u4").tolist() == [2, 3, 4, 5]
    assert not (tmp_path / "x.out.npy").exists()


def test_repeat_keep_state(program: Program, scene: Scene, adding: Path) -> None:
    """--repeat-keep-state lets iterations add up, as in the reference runner."""
    assert program(adding, "--repeat", "3", "--repeat-keep-state").code == 0
    assert scene.output("x", "u4").tolist() == [4, 5, 6, 7]


def test_dry_run(program: Program, scene: Scene, adding: Path) -> None:
    """--dry-run says that it checked, writes nothing, and warns about a repeat that has no meaning."""
    before = sorted(path.name for path in scene.folder.iterdir())
    ended = program(adding, "--dry-run", "--repeat", "5", exit_code=0)
    assert re.fullmatch(rf"{re.escape(str(adding))}: checked \(dry run\): 1 dispatch, 0 outputs, {ON}\n", ended.out)
    assert ended.err == "warning: a dry run runs nothing, so --repeat is 1\n"
    assert sorted(path.name for path in scene.folder.iterdir()) == before


def test_several_files_of_which_some_fail(program: Program, scene: Scene, adding: Path) -> None:
    """Every file runs, each failure is reported, and the first failure gives the exit code."""
    scene.file("broken.json", '{"resources": [')
    ended = program("scenario.json", "missing.json", "broken.json", "scenario.json", exit_code=4)
    assert [line.split(",")[0] for line in ended.out.splitlines()] == ["scenario.json: ok: 1 dispatch"] * 2
    lines = ended.err.splitlines()
    assert lines[0] == "error: missing.json: cannot read the scenario: no such file or directory [SR-FILE-006]"
    assert lines[1].startswith("error: broken.json:1:16: ")


def test_nothing_to_capture(program: Program, adding: Path, tmp_path: Path) -> None:
    """--capture-dir without any frame that captures something is a warning."""
    ended = program(adding, "--capture-dir", "frames")
    assert (ended.code, ended.err) == (0, "warning: nothing was captured: no mark_boundary names a resource\n")
    assert not (tmp_path / "frames").exists()


def test_device_by_index_name_and_uuid(program: Program, adding: Path) -> None:
    """--device takes the index, the name, a part of the name and the UUID from --list-devices."""
    listed = program("--list-devices", exit_code=0)
    match = re.match(r"(\d+): (.*) \(\w+, Vulkan [\d.]+, .*\) uuid (\S+)", listed.out)
    assert match is not None, listed.out
    index, name, uuid = match.groups()
    for device in (index, name, name[:6].upper(), uuid, uuid.replace("-", "").upper()):
        ended = program.succeed(adding, "--device", device)
        assert f" on {name}\n" in ended.out


def test_unknown_device(program: Program, adding: Path) -> None:
    """An unknown device ends with exit code 8 and a list of devices."""
    ended = program.fail(8, adding, "--device", "no such card")
    message = "no device has the index, name or UUID 'no such card'; devices: 0: "
    assert ended.err.startswith(f"error: {adding}: {message}")


def test_no_driver(program: Program, adding: Path, tmp_path: Path) -> None:
    """Without a driver the exit code is 8 and the message says how to find out more."""
    nothing = str(tmp_path / "nothing.json")
    ended = program.fail(8, adding, env={"VK_ICD_FILENAMES": nothing, "VK_DRIVER_FILES": nothing})
    message = "vkCreateInstance failed with VK_ERROR_INCOMPATIBLE_DRIVER [SR-DEVICE-002]"
    assert ended.err.splitlines()[0] == f"error: {adding}: {message}"
    assert "doctor" in ended.err.splitlines()[1]


def test_waiting_for_a_key_without_a_keyboard(program: Program, adding: Path) -> None:
    """Waiting for Enter ends when standard input does."""
    for typed in ("", "\n\n"):
        ended = program(adding, "--wait-for-key-stroke-before-run", "--pause-on-exit", stdin=typed, exit_code=0)
        assert ended.out.startswith("press Enter to run")
        assert ended.out.endswith("press Enter to exit")


def test_warnings_are_shown(program: Program, scene: Scene) -> None:
    """A probable mistake is a warning with its place, and --log-level error hides it."""
    scene.shader("add", ADD).buffer("x", size=4).buffer("y", size=4).dispatch("add", ["x", "y"]).write()
    ended = program("scenario.json", exit_code=0)
    place = r"scenario\.json:\d+:\d+: /commands/0/dispatch_compute/bindings/1"
    message = "resource 'y' is bound to set 0, binding 1, which shader 'add' does not use\n  help: "
    assert re.match(f"warning: {place}: {message}", ended.err)
    assert program("scenario.json", "--log-level", "error").err == ""


def test_names_that_are_no_utf8(program: Program, scene: Scene, adding: Path) -> None:
    """A file whose name is not UTF-8 runs, and messages show the name."""
    name = b"caf\xe9.json".decode("utf-8", "surrogateescape")
    adding.rename(scene.folder / name)
    ended = program(name, exit_code=0)
    assert "caf\\udce9.json: ok: " in ended.out
    ended = program(name + "x", exit_code=4)
    assert "caf\\udce9.jsonx: cannot read the scenario" in ended.err


def test_amount_of_output(program: Program, adding: Path) -> None:
    """--quiet prints nothing, and --log-level debug tells which device was opened, with what."""
    assert program(adding, "--quiet") == (0, "", "")
    assert "debug: opened " in program(adding, "--log-level", "debug").err


def test_a_layer_that_is_not_there(program: Program, adding: Path) -> None:
    """The loader ignores a name in VK_INSTANCE_LAYERS that no layer has: the run warns of it once, and goes on."""
    ended = program(adding, adding, env={"VK_INSTANCE_LAYERS": "VK_LAYER_TEST_missing"}, exit_code=0)
    message = "VK_INSTANCE_LAYERS names layers that are not installed: VK_LAYER_TEST_missing"
    assert ended.err.count(f"warning: {message}\n") == 1


def write_adding(
    folder: Path, first: int, name: str = "scenario.json", dst: str = "out.npy", source: str = "x"
) -> Path:
    """A scenario that adds 1 to two numbers, and captures them."""
    scene = Scene(folder)
    scene.shader("add", ADD).buffer(source, numpy.array([first, 2], numpy.uint32), dst=dst)
    return scene.dispatch("add", [source], [2]).command("mark_boundary", resources=[source]).write(name)


def first_number(path: Path) -> int:
    return int(numpy.load(path).view("u4")[0])


def files_below(folder: Path) -> list[str]:
    """All but the lists of captures."""
    return sorted(name for name in files_in(folder) if not name.endswith("manifest.json"))


def test_two_scenarios_never_write_one_output(program: Program, tmp_path: Path) -> None:
    """Scenarios with one dst below --output are refused before anything runs, or get a folder each on request."""
    write_adding(tmp_path / "one", 10)
    write_adding(tmp_path / "two", 20)
    ended = program.fail(2, "one/scenario.json", "two/scenario.json", "--output", "both")
    same = "one/scenario.json and two/scenario.json would write the same file: both/out.npy"
    assert ended.err == f"error: {same}\n  help: run them one by one, or with --folder-each and --output\n"
    assert not (tmp_path / "both").exists()
    assert program("one/scenario.json", "two/scenario.json", "--output", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one/scenario/out.npy", "two/scenario/out.npy"]
    assert first_number(tmp_path / "both/one/scenario/out.npy") == 11
    assert first_number(tmp_path / "both/two/scenario/out.npy") == 21


def test_two_scenarios_never_write_one_frame(program: Program, tmp_path: Path) -> None:
    """Two scenarios never write one frame in --capture-dir."""
    write_adding(tmp_path, 10, "one.json", "one.npy")
    write_adding(tmp_path, 20, "two.json", "two.npy")
    ended = program.fail(2, "one.json", "two.json", "--capture-dir", "both")
    assert "one.json and two.json would both capture 'x' of frame 0 into 'both'" in ended.err
    assert not (tmp_path / "both").exists()
    assert not (tmp_path / "one.npy").exists()
    assert program("one.json", "two.json", "--capture-dir", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one/frame_0/x.npy", "two/frame_0/x.npy"]


@pytest.mark.parametrize("dst", ["../out.npy", "{folder}/out.npy", "../link/out.npy"])
def test_scenarios_that_name_one_file(program: Program, tmp_path: Path, dst: str) -> None:
    """Plain dst paths are compared by the file they lead to, however they are written."""
    (tmp_path / "link").symlink_to(".")
    write_adding(tmp_path / "one", 10, dst="../out.npy")
    write_adding(tmp_path / "two", 20, dst=dst.format(folder=tmp_path))
    ended = program.fail(2, "one/scenario.json", "two/scenario.json")
    assert "would write the same file: out.npy" in ended.err
    assert not (tmp_path / "out.npy").exists()


def test_scenarios_with_files_of_their_own_share_a_folder(program: Program, tmp_path: Path) -> None:
    """Different names below one --output are right, and so is a scenario that is named twice."""
    write_adding(tmp_path, 10, "one.json", "one.npy", "x")
    write_adding(tmp_path, 20, "two.json", "two.npy", "y")
    program.succeed("one.json", "two.json", "./one.json", "--output", "both", "--capture-dir", "both")
    assert files_below(tmp_path / "both") == ["frame_0/x.npy", "frame_0/y.npy", "one.npy", "two.npy"]


def test_a_scenario_is_not_overwritten_by_another(program: Program, tmp_path: Path) -> None:
    """A dst that is the text of another scenario of the call is refused."""
    write_adding(tmp_path, 10, "one.json", "two.json")
    text = write_adding(tmp_path, 20, "two.json", "out.npy").read_bytes()
    ended = program.fail(2, "one.json", "two.json")
    assert "one.json: an output would overwrite the scenario two.json: two.json" in ended.err
    assert (tmp_path / "two.json").read_bytes() == text


def test_folders_of_files_with_one_stem(program: Program, tmp_path: Path) -> None:
    """Files that differ in their extension alone get folders with it."""
    write_adding(tmp_path, 10, "one.json")
    write_adding(tmp_path, 20, "one.txt")
    assert program("one.json", "one.txt", "--output", "both", "--folder-each").code == 0
    assert files_below(tmp_path / "both") == ["one.json/out.npy", "one.txt/out.npy"]


def test_a_failed_run_names_what_is_stale(program: Program, tmp_path: Path) -> None:
    """Outputs of an earlier run are named after a failure, and --clean removes them and nothing else."""
    write_adding(tmp_path, 10)
    assert program("scenario.json").code == 0
    absent = ["--device", "no such device"]
    ended = program("scenario.json", *absent, exit_code=8)
    assert ended.err.endswith("\nnote: from an earlier run (--clean removes such outputs): out.npy\n")
    inputs = sorted({"add.comp", "scenario.json", "x.npy"})
    ended = program("scenario.json", "--clean", *absent, exit_code=8)
    assert "note:" not in ended.err
    assert files_below(tmp_path) == inputs
    assert "note:" not in program("scenario.json", *absent).err


def test_clean_removes_outputs_alone(program: Program, tmp_path: Path) -> None:
    """--clean keeps sources, and files with another content than an output."""
    scenario = write_adding(tmp_path, 10, dst="x.npy")
    content = (tmp_path / "x.npy").read_bytes()
    assert program("scenario.json", "--clean").code == 3
    assert (tmp_path / "x.npy").read_bytes() == content
    scenario.write_text(scenario.read_text().replace('"dst": "x.npy"', '"dst": "notes"'))
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "add.comp").unlink()
    assert program("scenario.json", "--clean").code != 0
    assert (tmp_path / "notes").read_text() == "mine"


def test_clean_between_scenarios(program: Program, tmp_path: Path) -> None:
    """--clean works just before each scenario, so that a scenario can read the output of an earlier one."""
    write_adding(tmp_path, 10, "one.json", "between.npy")
    second = write_adding(tmp_path, 20, "two.json", "out.npy")
    second.write_text(second.read_text().replace('"src": "x.npy"', '"src": "between.npy"'))
    for _ in range(2):
        numpy.save(tmp_path / "x.npy", numpy.array([10, 2], numpy.uint32))
        program.succeed("one.json", "two.json", "--clean")
        assert first_number(tmp_path / "out.npy") == 12


@pytest.mark.parametrize("words", [[], ["validate"]])
def test_standard_input(program: Program, tmp_path: Path, words: list[str]) -> None:
    """A scenario from a pipe is read once; its paths start from the current folder."""
    text = write_adding(tmp_path, 10).read_text()
    program.succeed(*words, "/dev/stdin", stdin=text)
    assert (tmp_path / "out.npy").exists() == (not words)


def test_a_file_in_shared_memory_is_a_file(program: Program) -> None:
    """Below /dev there are folders of files, too: paths start from the folder of such a scenario."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        write_adding(Path(folder), 10)
        assert program(f"{folder}/scenario.json").code == 0
        assert first_number(Path(folder) / "out.npy") == 11


def test_process_substitution(shader_cache: Path, tmp_path: Path) -> None:
    """Scenarios from the shell's <(…) run, also several, and an error of the device has its place."""
    write_adding(tmp_path, 10, "one.json", "one.npy", "x")
    write_adding(tmp_path, 20, "two.json", "two.npy", "y")
    command = f"{' '.join(COMMAND)} <(cat one.json) <(cat two.json)"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert first_number(tmp_path / "one.npy") == 11
    assert first_number(tmp_path / "two.npy") == 21


def test_wrong_text_from_a_pipe(program: Program, tmp_path: Path) -> None:
    """Wrong text on standard input gives one error with its place."""
    ended = program("/dev/stdin", stdin='{"resources": [], "commands": [', exit_code=3)
    assert ended.err.startswith("error: /dev/stdin:1:")
    assert ended.err.count("error:") == 1


def test_an_error_behind_the_plan_from_a_pipe(program: Program, scene: Scene, tmp_path: Path) -> None:
    """A finding after planning has its line, although standard input cannot be read again."""
    scene.buffer("x", size=4, dst="folder").write()
    (tmp_path / "folder").mkdir()
    ended = program("/dev/stdin", stdin=(tmp_path / "scenario.json").read_text(), exit_code=4)
    assert ended.err.startswith("error: /dev/stdin:")
    assert "/resources/0/buffer/dst: " in ended.err
