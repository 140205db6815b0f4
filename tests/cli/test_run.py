"""``scenario-runner [run] FILE…``: exit code, stdout and stderr."""

from __future__ import annotations

import re
from pathlib import Path

import numpy
import pytest

from scenario_runner.vulkan.device import Instance
from tests.program import Program
from tests.scenes import ADD, Scene, glsl

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


def test_capture_dir(program: Program, scene: Scene, adding: Path, tmp_path: Path) -> None:
    """--capture-dir gets the frames."""
    scene.command("mark_boundary", resources=["x"], frame_id=7).dispatch("add", ["x"], [4]).write()
    assert program(adding, "--capture-dir", "frames").code == 0
    assert numpy.load(tmp_path / "frames" / "frame_7" / "x.npy").view("u4").tolist() == [2, 3, 4, 5]
    assert scene.output("x", "u4").tolist() == [3, 4, 5, 6]


def test_nothing_to_capture(program: Program, adding: Path, tmp_path: Path) -> None:
    """--capture-dir without any frame that captures something is a warning."""
    ended = program(adding, "--capture-dir", "frames")
    assert (ended.code, ended.err) == (0, "warning: nothing was captured: no mark_boundary names a resource\n")
    assert not (tmp_path / "frames").exists()


def test_device_by_index_name_and_uuid(program: Program, adding: Path) -> None:
    """--device takes what --list-devices shows: index, name, part of the name, UUID."""
    listed = program("--list-devices")
    assert listed.code == 0
    instance = Instance()
    try:
        devices = [(device.index, device.name, device.uuid) for device in instance.physical_devices]
    finally:
        instance.close()
    assert devices
    for index, name, uuid in devices:
        assert f"{index}" in listed.out
        assert name in listed.out
        assert uuid in listed.out
    index, name, uuid = devices[0]
    for wanted in (str(index), name, name[:6].upper(), uuid, uuid.replace("-", "").upper()):
        ended = program(adding, "--device", wanted)
        assert (ended.code, ended.err) == (0, "")
        assert f" on {name}\n" in ended.out


@pytest.mark.parametrize(
    "wanted, message",
    [
        ("99", "there is no device 99; there are 0: "),
        ("no such card", "no device has the index, name or UUID 'no such card'; there are 0: "),
    ],
)
def test_unknown_device(program: Program, adding: Path, wanted: str, message: str) -> None:
    """A device that does not exist ends with exit code 8 and the list of those that do."""
    ended = program(adding, "--device", wanted)
    assert (ended.code, ended.out) == (8, "")
    assert ended.err.startswith(f"error: {adding}: {message}")


def test_no_driver(program: Program, adding: Path, tmp_path: Path) -> None:
    """Without a driver the exit code is 8 and the message says how to find out more."""
    nothing = str(tmp_path / "nothing.json")
    ended = program(adding, env={"VK_ICD_FILENAMES": nothing, "VK_DRIVER_FILES": nothing})
    assert (ended.code, ended.out) == (8, "")
    assert ended.err.splitlines()[0] == f"error: {adding}: vkCreateInstance failed with VK_ERROR_INCOMPATIBLE_DRIVER"
    assert "doctor" in ended.err.splitlines()[1]


def test_no_loader(program: Program, adding: Path, tmp_path: Path) -> None:
    """Without a Vulkan loader the exit code is 8 and the message says what to install."""
    ended = program(adding, env={"SCENARIO_RUNNER_VULKAN_LOADER": str(tmp_path / "none.so")})
    assert (ended.code, ended.out) == (8, "")
    assert ended.err.startswith(f"error: {adding}: no Vulkan loader could be opened (")
    assert "help: SCENARIO_RUNNER_VULKAN_LOADER must be" in ended.err


def test_waiting_for_a_key_without_a_keyboard(program: Program, adding: Path) -> None:
    """Waiting for Enter ends when standard input does."""
    ended = program(adding, "--wait-for-key-stroke-before-run", "--pause-on-exit", stdin="")
    assert ended.code == 0
    assert ended.out.startswith("press Enter to run")
    assert program(adding, "--pause-on-exit", stdin="\n").code == 0


def test_warnings_are_shown(program: Program, scene: Scene) -> None:
    """What is probably not meant is a warning with its place; --log-level error hides it."""
    scene.shader("add", ADD).buffer("x", size=4).buffer("y", size=4).dispatch("add", ["x", "y"]).write()
    ended = program("scenario.json")
    assert ended.code == 0
    assert re.fullmatch(
        r"warning: scenario\.json:\d+:\d+: /commands/0/dispatch_compute/bindings/1: resource 'y' is bound to set 0,"
        r" binding 1, which shader 'add' does not use\n"
        r"  help: nothing that is written here can depend on it\n",
        ended.err,
    )
    assert program("scenario.json", "--log-level", "error").err == ""


def test_shader_that_does_not_compile(program: Program, scene: Scene) -> None:
    """A failed compile ends with exit code 5 and shows its place, that in the source and the compiler's message."""
    scene.shader("bad", glsl("a[0] = wrong;", "layout(binding = 0) buffer B { uint a[]; };\n"))
    scene.buffer("x", size=4).dispatch("bad", ["x"]).write()
    ended = program("scenario.json")
    assert (ended.code, ended.out) == (5, "")
    assert re.match(
        r"error: scenario\.json:\d+:\d+: /resources/0/shader: (\S*/)?bad\.comp:6:8: .*'wrong' : undeclared identifier",
        ended.err,
    )


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
    ended = program(adding, "--log-level", "debug")
    assert ended.code == 0
    assert "debug: opened " in ended.err
