"""--capture-frame and --gfxr: captures, messages about missing tools, and the commands of docs/capture.md with
RenderDoc and gfxreconstruct."""

import os
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import numpy
import pytest

from scenario_runner.vulkan.capture_tools import is_gfxr, is_whole_gfxr, is_whole_rdc
from tests.docs.test_docs import CHECKOUT, page, pattern_of
from tests.gpu.ml_scenes import HEAD
from tests.program import Program
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
renderdoc = pytest.mark.skipif(shutil.which("renderdoccmd") is None, reason="RenderDoc is not installed")
gfxreconstruct = pytest.mark.skipif(shutil.which("gfxrecon-info") is None, reason="gfxreconstruct is not installed")
SECTION = struct.pack("<4sIQQQII", bytes(4), 1, 5, 9, 21, 2, 4) + b"name" + b"12345"
RDC = struct.pack("<8sII", b"RDOC", 0x102, 20) + b"more" + SECTION
GFXR = struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 1) + struct.pack("<QI", 3, 5) + b"abc" + struct.pack("<QI", 0, 3)


@pytest.fixture
def frames(scene: Scene) -> Path:
    """Frame 4 of one dispatch, frame 1 of two, and a dispatch after them."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", numpy.zeros(4, numpy.uint32))
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x"], frame_id=4)
    scene.dispatch("add", ["x"], [4]).dispatch("add", ["x"], [3]).command("mark_boundary", resources=[])
    return scene.dispatch("add", ["x"], [4]).write()


def calls(path: Path) -> list[str]:
    """The Vulkan calls in a capture of RenderDoc."""
    xml = path.with_suffix(".xml")
    command = ["renderdoccmd", "convert", "-f", str(path), "-o", str(xml), "-c", "xml"]
    subprocess.run(command, check=True, capture_output=True)
    return re.findall(r'<chunk [^>]*name="(vk\w+)"', xml.read_text(encoding="utf-8"))


@renderdoc
@pytest.mark.parametrize(
    "what, expected",
    [
        ("4", {"frame_4": 1}),
        ("1,4", {"frame_1": 2, "frame_4": 1}),
        ("2", {"frame_2": 1}),
        ("run", {"run": 4}),
        ("command:3", {"command_3": 1}),
        ("command:0,1", {"command_0": 1, "frame_1": 2}),
    ],
)
def test_captures(scene: Scene, frames: Path, program: Program, what: str, expected: dict[str, int]) -> None:
    """Each capture holds the dispatches of its frame, command or run, and the results equal other runs."""
    done = program("--capture-frame", what, frames.name, "--capture-dir", "captured", exit_code=0)
    made = {path.stem.removeprefix("scenario-"): calls(path) for path in (scene.folder / "captured").glob("*.rdc")}
    assert {name: each.count("vkCmdDispatch") for name, each in made.items()} == expected
    for name in expected:
        assert f"scenario.json: captured captured/scenario-{name}.rdc\n" in done.out
    assert scene.output("x", "u4").tolist() == [4, 4, 4, 3]


@renderdoc
def test_frames_with_the_same_id(scene: Scene, program: Program) -> None:
    """Each has a file of its own."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", numpy.zeros(4, numpy.uint32))
    for count in (1, 2):
        for _ in range(count):
            scene.dispatch("add", ["x"], [4])
        scene.command("mark_boundary", resources=[], frame_id=4)
    program("--capture-frame", "4", scene.write().name, exit_code=0)
    made = {path.name: calls(path).count("vkCmdDispatch") for path in scene.folder.glob("*.rdc")}
    assert made == {"scenario-frame_4.rdc": 1, "scenario-frame_4_2.rdc": 2}


def copied(frames: Path, folder: Path) -> None:
    """Copy the scenario with its files to a folder."""
    folder.mkdir()
    for name in ("scenario.json", "add.comp", "x.npy"):
        shutil.copy(frames.parent / name, folder / name)


@renderdoc
def test_scenarios_of_one_name(frames: Path, program: Program, tmp_path: Path) -> None:
    """With --folder-each the captures of each scenario are in a folder of its own."""
    copied(frames, tmp_path / "other")
    program("--capture-frame", "1", frames, "other/scenario.json", "--folder-each", "--output", "out", exit_code=0)
    made = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.rdc"))
    assert made == ["other/scenario/scenario-frame_1.rdc", "scenario/scenario-frame_1.rdc"]


def test_scenarios_that_would_be_captured_into_one_file(frames: Path, program: Program, tmp_path: Path) -> None:
    """Without --folder-each that is an error before the first one runs."""
    copied(frames, tmp_path / "other")
    done = program.fail(2, "--capture-frame", "1", frames, "other/scenario.json", "--capture-dir", "captured")
    assert "would both capture 'x' of frame 4 into 'captured'" in done.err
    done = program.fail(2, "--capture-frame", "1", frames, tmp_path / "other/scenario.json")
    assert "would both be captured into files called ./scenario-….rdc" in done.err


@renderdoc
def test_a_full_disk_under_renderdoc(frames: Path, program: Program, scene: Scene) -> None:
    """A capture that RenderDoc could not write as a whole is removed, and the run fails."""
    limit = ("bash", "-c", 'ulimit -f 4; exec "$@"', "-")
    done = program("--capture-frame", "run", frames.name, "--capture-dir", "captured", launcher=limit)
    if done.code in (9, -signal.SIGBUS):
        pytest.skip("the memory of this driver is files, which the limit concerns as well")
    assert (done.code, done.out) == (4, "")
    assert "scenario-run.rdc: RenderDoc could not write all of its capture, which was removed" in done.err
    assert not list(scene.folder.rglob("*.rdc"))


@renderdoc
def test_reference_spelling(scene: Scene, frames: Path, program: Program) -> None:
    """--capture-frame without a value, also before a file, captures the run."""
    assert program("--capture-frame", frames.name).code == 0
    assert calls(scene.folder / "scenario-run.rdc").count("vkCmdDispatch") == 4


@renderdoc
@pytest.mark.parametrize(
    "what, message",
    [
        ("9", "frame 9 does not exist, or does no work"),
        ("command:1", "command 1 does not exist, or does no work"),
        ("command:0,4", "command 0 is in frame 4, which is captured as well"),
    ],
)
def test_what_is_not_there(frames: Path, program: Program, scene: Scene, what: str, message: str) -> None:
    """A missing frame or command is one error with the existing ones."""
    done = program.fail(2, "--capture-frame", what, frames.name)
    assert f"scenario.json: --capture-frame: {message}" in done.err
    assert "  help: " in done.err
    assert not (scene.folder / "x.out.npy").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--capture-frame", "one"], "--capture-frame is 'one', expected frame ids"),
        (["--capture-frame", "run,1"], "'run' captures everything"),
        (["--capture-frame=1", "--dry-run"], "--capture-frame and --dry-run contradict each other"),
        (["--gfxr", "a.gfxr", "--dry-run"], "--gfxr and --dry-run contradict each other"),
        (["--gfxr", "a.gfxr", "--capture-frame=1"], "--capture-frame and --gfxr contradict each other"),
    ],
)
def test_contradictions(frames: Path, program: Program, options: list[str], message: str) -> None:
    """Values without a meaning and options that contradict each other are refused."""
    done = program(*options, frames.name, exit_code=2)
    assert message in done.err


@pytest.mark.parametrize(
    "option, variable, words",
    [
        ("--capture-frame=run", "SCENARIO_RUNNER_RENDERDOC", ("--capture-frame needs RenderDoc", "renderdoc")),
        ("--gfxr=a.gfxr", "VK_LAYER_PATH", ("VK_LAYER_LUNARG_gfxreconstruct was not found", "gfxreconstruct")),
    ],
)
def test_missing_tools(
    frames: Path, program: Program, tmp_path: Path, option: str, variable: str, words: tuple[str, str]
) -> None:
    """Without RenderDoc or gfxreconstruct's layer the error has the package to install."""
    done = program(option, frames.name, env={variable: str(tmp_path / "none")})
    assert (done.code, done.err.count("error: ")) == (6, 1)
    assert words[0] in done.err
    assert f"apt install {words[1]}" in done.err


@renderdoc
def test_a_layer_that_is_not_registered(frames: Path, program: Program, tmp_path: Path) -> None:
    """Without RenderDoc's layer, such as with an archive that was just unpacked, the error says how to register it."""
    nowhere = {"XDG_DATA_HOME": str(tmp_path), "XDG_DATA_DIRS": str(tmp_path), "HOME": str(tmp_path)}
    library = os.environ.get("SCENARIO_RUNNER_RENDERDOC") or "librenderdoc.so"
    done = program("--capture-frame", "run", frames.name, env={**nowhere, "SCENARIO_RUNNER_RENDERDOC": library})
    if done.code == 0:
        pytest.skip("the layer is in a folder that the loader always looks into")
    assert (done.code, done.out) == (6, "")
    assert "the Vulkan loader does not find its layer VK_LAYER_RENDERDOC_Capture" in done.err
    assert "renderdoccmd vulkanlayer --register --user" in done.err


def test_another_library(frames: Path, program: Program) -> None:
    """A library that is not RenderDoc is refused by name."""
    done = program("--capture-frame", "run", frames.name, env={"SCENARIO_RUNNER_RENDERDOC": "libc.so.6"}, exit_code=6)
    assert "'libc.so.6' is not RenderDoc: it has no RENDERDOC_GetAPI" in done.err


def test_a_renderdoc_that_is_too_old(scene: Scene, frames: Path, program: Program) -> None:
    """A library that does not hand out the version that is needed is refused."""
    source = scene.file("old.c", "int RENDERDOC_GetAPI(int wanted, void **out) { *out = 0; return wanted < 10102; }\n")
    library = scene.folder / "old.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    done = program("--capture-frame", "run", frames.name, env={"SCENARIO_RUNNER_RENDERDOC": str(library)}, exit_code=6)
    assert "it is too old" in done.err


@gfxreconstruct
@pytest.mark.parametrize("mode", ["", "page_guard", "assisted", "unassisted"])
def test_files_under_gfxreconstruct(scene: Scene, frames: Path, program: Program, mode: str) -> None:
    """Files go in and out under every way to follow memory, and the capture has names and labels."""
    environment = {"GFXRECON_MEMORY_TRACKING_MODE": mode} if mode else {}
    program("--gfxr", "new/a.gfxr", frames.name, "--capture-dir", "captured", env=environment, exit_code=0)
    assert scene.output("x", "u4").tolist() == [4, 4, 4, 3]
    assert (numpy.load(scene.folder / "captured/frame_4/x.npy").view("u4") == 1).all()
    text = scene.folder / "a.jsonl"
    subprocess.run(["gfxrecon-convert", "--output", str(text), "new/a.gfxr"], cwd=scene.folder, check=True)
    found = text.read_text(encoding="utf-8")
    assert found.count("vr-marker,frame_end,type,application") == 3
    assert '"command 3: add"' in found
    assert '"pObjectName":"x"' in found


@gfxreconstruct
def test_tensors_under_gfxreconstruct(scene: Scene, program: Program) -> None:
    """The layer below the ML emulation layers records the commands that replace tensors."""
    scene.tensor("t", numpy.arange(4, dtype=numpy.float32))
    at = "uint[](gl_WorkGroupID.x)"
    body = f"float v; tensorReadARM(t, {at}, v); tensorWriteARM(t, {at}, v + 1.0);"
    declared = "layout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) uniform tensorARM<float, 1> t;\n"
    scene.shader("add", f"{HEAD}{declared}void main() {{ {body} }}\n")
    scene.dispatch("add", ["t"], [4])
    program("--gfxr", "a.gfxr", scene.write().name, exit_code=0)
    assert numpy.load(scene.folder / "t.out.npy").tolist() == [1, 2, 3, 4]
    shown = subprocess.run(["gfxrecon-info", "a.gfxr"], cwd=scene.folder, check=True, capture_output=True, text=True)
    assert "Total compute pipelines: 1" in shown.stdout


@gfxreconstruct
@pytest.mark.parametrize("others", [(), ("missing.json",)])
def test_a_full_disk_under_gfxreconstruct(
    frames: Path, program: Program, scene: Scene, others: tuple[str, ...]
) -> None:
    """A capture that gfxreconstruct could not write as a whole is removed, and the call fails; also after another
    failure."""
    limit = ("bash", "-c", 'ulimit -f 8; exec "$@"', "-")
    done = program("--gfxr", "a.gfxr", frames.name, *others, launcher=limit)
    if done.code in (9, -signal.SIGBUS):
        pytest.skip("the memory of this driver is files, which the limit concerns as well")
    assert done.code == 4
    assert "a.gfxr: gfxreconstruct could not write all of its capture, which was removed" in done.err
    assert not (scene.folder / "a.gfxr").exists()


def test_a_file_that_is_no_capture(frames: Path, program: Program, scene: Scene) -> None:
    """--gfxr replaces captures only. Another file, such as an input, stays."""
    before = (scene.folder / "x.npy").read_bytes()
    done = program.fail(4, "--gfxr", "x.npy", frames.name)
    assert "x.npy: is not a capture of gfxreconstruct, and a run would replace it" in done.err
    assert (scene.folder / "x.npy").read_bytes() == before


@pytest.mark.parametrize(
    "content, whole",
    [
        (RDC, True),
        (RDC + SECTION, True),
        (RDC[:-1], False),
        (RDC + SECTION[:20], False),
        (RDC + bytes(10), False),
        (RDC[:12], False),
        (b"", False),
        (b"x" * 100, False),
        (struct.pack("<8sII", b"RDOC", 0x777, 20), True),  # a version that is not known
    ],
)
def test_whole_captures_of_renderdoc(tmp_path: Path, content: bytes, whole: bool) -> None:
    """The last section has to end with the file."""
    path = tmp_path / "a.rdc"
    path.write_bytes(content)
    assert is_whole_rdc(str(path)) is whole


@pytest.mark.parametrize(
    "content, whole", [(GFXR, True), (GFXR[:-1], False), (GFXR[:-12], True), (GFXR[:24], False), (b"GFXR", False)]
)
def test_whole_captures_of_gfxreconstruct(tmp_path: Path, content: bytes, whole: bool) -> None:
    """The last block has to end with the file."""
    path = tmp_path / "a.gfxr"
    path.write_bytes(content)
    assert is_whole_gfxr(str(path)) is whole
    assert is_gfxr(str(path))


__all__ = ["page"]  # the fixture: a folder like a checkout, and the program in it

PAGE = CHECKOUT / "docs" / "capture.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(heading: str) -> list[tuple[str, list[str]]]:
    """The commands below a heading, each with the lines that it prints."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(section):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("page", [PAGE], ids=["capture.md"], indirect=True)
@pytest.mark.parametrize("heading, needed", [("RenderDoc", "renderdoccmd"), ("gfxreconstruct", "gfxrecon-info")])
def test_commands_of_tools(page: tuple[Path, Path, dict[str, str]], heading: str, needed: str) -> None:
    """Each command prints the output of the page."""
    if shutil.which(needed) is None:
        pytest.skip(f"{heading} is not installed")
    _, folder, environment = page
    steps = commands(heading)
    assert len(steps) >= 5
    for command, expected in steps:
        done = subprocess.run(
            ["sh", "-c", f"{{ {command}\n}} 2>&1"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        shown = f"{command}\nprinted:\n{done.stdout}\nexpected:\n" + "\n".join(expected)
        assert pattern_of(expected).fullmatch(done.stdout), shown
