"""``scenario-runner [run] FILE…``: exit code, stdout and stderr."""

import re
from pathlib import Path

import numpy
import pytest

from tests.program import Program
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
    ended = program(*word, "scenario.json")
    assert ended.code == 0
    assert ended.err == ""
    assert re.fullmatch(rf"scenario\.json: ok: 1 dispatch, 1 output, {ON}\n", ended.out)
    assert scene.output("x", "u4").tolist() == [2, 3, 4, 5]


def test_spelling_of_the_reference_runner(program: Program, scene: Scene, adding: Path, tmp_path: Path) -> None:
    """The reference runner's command line works unchanged."""
    disabled = ("VK_EXT_custom_border_color", "VK_EXT_frame_boundary")
    options = ("--repeat=3", "--log-level", "warning", "--disable-extension", *disabled, "--enable-robustness-features")
    again = ("--disable-extension", "VK_KHR_deferred_host_operations")
    ended = program("--scenario", adding, "--output", tmp_path / "deep" / "er", *options, *again)
    assert (ended.code, ended.err) == (0, "")
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
    ended = program(adding, "--dry-run", "--repeat", "5")
    assert ended.code == 0
    assert re.fullmatch(rf"{re.escape(str(adding))}: checked \(dry run\): 1 dispatch, 0 outputs, {ON}\n", ended.out)
    assert ended.err == "warning: a dry run runs nothing, so --repeat is 1\n"
    assert sorted(path.name for path in scene.folder.iterdir()) == before


def test_several_files_of_which_some_fail(program: Program, scene: Scene, adding: Path) -> None:
    """Every file runs, each failure is reported, and the exit code is that of the first one."""
    scene.file("broken.json", '{"resources": [')
    ended = program("scenario.json", "missing.json", "broken.json", "scenario.json")
    assert ended.code == 4
    assert [line.split(",")[0] for line in ended.out.splitlines()] == ["scenario.json: ok: 1 dispatch"] * 2
    lines = ended.err.splitlines()
    assert lines[0] == "error: missing.json: cannot read the scenario: no such file or directory"
    assert lines[1].startswith("error: broken.json:1:16: ")


def test_quiet(program: Program, adding: Path) -> None:
    """--quiet leaves stdout empty."""
    assert program(adding, "--quiet") == (0, "", "")


def test_nothing_to_capture(program: Program, adding: Path, tmp_path: Path) -> None:
    """--capture-dir without any frame that captures something is a warning."""
    ended = program(adding, "--capture-dir", "frames")
    assert (ended.code, ended.err) == (0, "warning: nothing was captured: no mark_boundary names a resource\n")
    assert not (tmp_path / "frames").exists()


def test_device_by_index_name_and_uuid(program: Program, adding: Path) -> None:
    """--device takes what --list-devices shows: index, name, part of the name, UUID."""
    listed = program("--list-devices")
    assert listed.code == 0
    match = re.match(r"(\d+): (.*) \(\w+, Vulkan [\d.]+, .*\) uuid (\S+)", listed.out)
    assert match is not None, listed.out
    index, name, uuid = match.groups()
    for device in (index, name, name[:6].upper(), uuid, uuid.replace("-", "").upper()):
        ended = program(adding, "--device", device)
        assert (ended.code, ended.err) == (0, "")
        assert f" on {name}\n" in ended.out


def test_unknown_device(program: Program, adding: Path) -> None:
    """A device that does not exist ends with exit code 8 and the list of those that do."""
    ended = program(adding, "--device", "no such card")
    assert (ended.code, ended.out) == (8, "")
    message = "no device has the index, name or UUID 'no such card'; devices: 0: "
    assert ended.err.startswith(f"error: {adding}: {message}")


def test_no_driver(program: Program, adding: Path, tmp_path: Path) -> None:
    """Without a driver the exit code is 8 and the message says how to find out more."""
    nothing = str(tmp_path / "nothing.json")
    ended = program(adding, env={"VK_ICD_FILENAMES": nothing, "VK_DRIVER_FILES": nothing})
    assert (ended.code, ended.out) == (8, "")
    assert ended.err.splitlines()[0] == f"error: {adding}: vkCreateInstance failed with VK_ERROR_INCOMPATIBLE_DRIVER"
    assert "doctor" in ended.err.splitlines()[1]


def test_waiting_for_a_key_without_a_keyboard(program: Program, adding: Path) -> None:
    """Waiting for Enter ends when standard input does."""
    ended = program(adding, "--wait-for-key-stroke-before-run", "--pause-on-exit", stdin="")
    assert ended.code == 0
    assert ended.out.startswith("press Enter to run")
    ended = program(adding, "--wait-for-key-stroke-before-run", "--pause-on-exit", stdin="\n\n")
    assert ended.code == 0
    assert ended.out.endswith("press Enter to exit")


def test_warnings_are_shown(program: Program, scene: Scene) -> None:
    """What is probably not meant is a warning with its place; --log-level error hides it."""
    scene.shader("add", ADD).buffer("x", size=4).buffer("y", size=4).dispatch("add", ["x", "y"]).write()
    ended = program("scenario.json")
    assert ended.code == 0
    place = r"scenario\.json:\d+:\d+: /commands/0/dispatch_compute/bindings/1"
    message = "resource 'y' is bound to set 0, binding 1, which shader 'add' does not use\n  help: "
    assert re.match(f"warning: {place}: {message}", ended.err)
    assert program("scenario.json", "--log-level", "error").err == ""


def test_names_that_are_no_utf8(program: Program, scene: Scene, adding: Path) -> None:
    """A file whose name is not UTF-8 runs, and can be named in messages."""
    name = b"caf\xe9.json".decode("utf-8", "surrogateescape")
    adding.rename(scene.folder / name)
    ended = program(name)
    assert ended.code == 0
    assert "caf\\udce9.json: ok: " in ended.out
    ended = program(name + "x")
    assert ended.code == 4
    assert "caf\\udce9.jsonx: cannot read the scenario" in ended.err


def test_debug_log(program: Program, adding: Path) -> None:
    """--log-level debug tells which device was opened, with what."""
    assert "debug: opened " in program(adding, "--log-level", "debug").err


def test_a_layer_that_is_not_there(program: Program, adding: Path) -> None:
    """The loader ignores a name in VK_INSTANCE_LAYERS that no layer has: the run warns of it once, and goes on."""
    ended = program(adding, adding, env={"VK_INSTANCE_LAYERS": "VK_LAYER_TEST_missing"})
    assert ended.code == 0
    message = "VK_INSTANCE_LAYERS names layers that are not there: VK_LAYER_TEST_missing"
    assert ended.err.count(f"warning: {message}\n") == 1
