"""``scenario-runner diff --devices``: the first difference of two real devices, whose subgroups differ."""

import json
from functools import partial
from pathlib import Path

import imageio.v3
import numpy
import pytest

from scenario_runner.errors import UnsupportedError
from tests.devices import NARROW, WIDE
from tests.program import Program
from tests.scenes import Scene, glsl

FLOATS = "layout(set = 0, binding = 0) buffer A { float a[]; };\n"
INPUT = numpy.array([1, 2, 3, 5], "f4")
CRASHES_IN_A_SUBMIT, TROUBLE = 13, 7000


@pytest.fixture
def diff(scene: Scene, program: Program, two_devices: dict[str, str]) -> Program:
    """Run ``diff --devices`` on a scenario that adds 1 to x, multiplies it by the size of a subgroup, and adds 1."""
    body = glsl("a[gl_WorkGroupID.x] *= gl_SubgroupSize;", FLOATS)
    extension = "#version 450\n#extension GL_KHR_shader_subgroup_basic : require"
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1.0;", FLOATS))
    scene.shader("scale", body.replace("#version 450", extension))
    scene.buffer("x", INPUT).buffer("trouble", size=TROUBLE + 4 * CRASHES_IN_A_SUBMIT, dst=None)
    for shader in ("add", "scale", "add"):
        scene.dispatch(shader, ["x"], [4])
    scene.write()
    return partial(program, "diff", "--devices", NARROW, WIDE, "scenario.json", env=two_devices)


def test_the_first_difference(scene: Scene, diff: Program) -> None:
    """The command and the resource, the worst element, the counts and a picture; no output is written."""
    ended = diff("--png", "errors.png", "--output", "kept")
    assert (ended.code, ended.err) == (1, "")
    lines = ended.out.splitlines()
    narrow, wide = (numpy.float32(size) * (INPUT + 1) for size in (4, 8))
    assert lines[0].startswith(f"device {NARROW} (llvmpipe")
    assert lines[0].endswith(" first differ after command 1 (/commands/1/dispatch_compute), at 'x':")
    assert lines[1:4] == [
        "  the first and the second differ: 4 of 4 elements (100 %)",
        f"    first at       [0]: {narrow[0]} (0x{narrow.view('u4')[0]:08x}) against {wide[0]}"
        f" (0x{wide.view('u4')[0]:08x})",
        f"    absolute error {abs(wide - narrow).max():g} at [3]",
    ]
    assert [line.split()[:3] for line in lines[-3:-1]] == [[str(at), "dispatch_compute", "'x'"] for at in (1, 2)]
    assert lines[-1].endswith("equal, 2 different")
    assert imageio.v3.imread(scene.folder / "errors.png").shape[:2] == (1, 4)
    kept = [numpy.load(scene.folder / "kept" / name / "1_dispatch_compute" / "x.npy") for name in ("first", "second")]
    assert [each.view("f4").tolist() for each in kept] == [narrow.tolist(), wide.tolist()]
    assert list(scene.folder.glob("*.out.npy")) == []


def test_tolerances(diff: Program) -> None:
    """They are those of the comparison of folders, and so is the JSON, which names the devices too."""
    ended = diff("--atol", f"{4 * (INPUT + 1).max():g}", "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["equal"], shown["complete"]) == (0, True, [True, True])
    assert [(each["choice"], each["status"]) for each in shown["devices"]] == [(NARROW, "Pass"), (WIDE, "Pass")]


def test_a_crash_on_one_device(diff: Program, two_devices: dict[str, str], trouble_layer: dict[str, str]) -> None:
    """It is the answer, with what both have; on both devices its exit code is that of the crash."""
    environment = {**two_devices, **trouble_layer}
    ended = diff(env={**environment, "TROUBLE_DEVICE": WIDE})
    assert (ended.code, ended.err) == (1, "")
    first, *others = ended.out.splitlines()
    assert first.startswith(f"device {WIDE} (llvmpipe")
    assert ": Crash: " in first
    assert "was ended by SIGSEGV" in first
    assert any(line.startswith(f"only in device {NARROW} ") for line in others)
    assert diff(env=environment).code == 12


def test_parameters_and_the_validation_layer(scene: Scene, program: Program) -> None:
    """The options of a run: values of parameters, and the layer, whose absence is the error of a run."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1.0;", FLOATS)).buffer("x", INPUT).dispatch("add", ["x"], ["${n}"])  # type: ignore[list-item]
    path = scene.write()
    path.with_name("check.json").write_text(
        '{"parameters": {"n": [4], "atol": [0]}, "outputs": {"x": {"atol": "${atol}"}}}'
    )
    options = ("--devices", "0", "0", path.name, "--set", "n=3", "--set", "atol=1")
    ended = program("diff", *options, "--validation", "--output", "kept")
    assert (ended.code, ended.err) == (0, "")
    kept = numpy.load(scene.folder / "kept" / "second" / "0_dispatch_compute" / "x.npy")
    assert kept.view("f4").tolist() == (INPUT + numpy.array([1, 1, 1, 0], "f4")).tolist()
    ended = program("diff", *options, "--validation", env={"VK_LAYER_PATH": str(scene.folder)})
    assert ended.code == UnsupportedError.exit_code
    ended = program("diff", *options[:4])
    assert (ended.code, "the parameter 'n' is not set\n  help: --set n=VALUE (check.json has 4)" in ended.err) == (
        3,
        True,
    )


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        ("--devices 0 0", 2, "--devices takes one scenario file"),
        ("--devices 0 0 a.json b.json", 2, "--devices takes one scenario file"),
        ("--devices 0 0 model.vgf", 2, "--devices takes one scenario file"),
        ("--devices 0 0 /dev/stdin", 2, "/dev/stdin can be read only once, expected a file"),
        ("--devices 0", 2, "argument --devices: expected 2 arguments"),
        ("--devices 77 0 scenario.json", 8, "there is no device 77; devices: 0: "),
        ("--devices 0 0 nothing.json", 4, "nothing.json: cannot read the scenario: no such file or directory"),
        ("--devices 0 0 scenario.json --png /dev/full", 4, "/dev/full: is a pipe, a device or a socket"),
        ("one two --set n=1", 2, "--set needs --devices"),
        ("one", 2, "expected the folders of two dumps, 1 were given"),
    ],
)
def test_bad_input(scene: Scene, program: Program, arguments: str, code: int, message: str) -> None:
    """One error, and nothing is written."""
    scene.shader("add", glsl("a[0] += 1.0;", FLOATS)).buffer("x", INPUT).dispatch("add", ["x"]).write()
    before = sorted(Path(scene.folder).rglob("*"))
    ended = program("diff", *arguments.split())
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.removeprefix("error: ").removeprefix(f"{scene.folder}/").startswith(message)
    assert sorted(Path(scene.folder).rglob("*")) == before
