"""``scenario-runner diff``: two dumps, and two devices."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import imageio.v3
import numpy
import pytest

from scenario_runner.errors import UnsupportedError
from tests.devices import NARROW, WIDE
from tests.gpu.image_scenes import per_texel, storage
from tests.program import Program
from tests.scenes import Scene, at_level, glsl
from tests.tables import cases

FLOATS = "layout(set = 0, binding = 0) buffer A { float a[]; };\n"


def scaling(scene: Scene, factor: str = "2.0", dispatches: int = 3) -> Scene:
    """Add 1 to x, multiply x by a factor in the second dispatch, and add 1 again."""
    scene.resources.clear()
    scene.commands.clear()
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1.0;", FLOATS))
    scene.shader("scale", glsl(f"a[gl_WorkGroupID.x] *= {factor};", FLOATS))
    scene.buffer("x", numpy.array([1, 2, 3, 5], "f4")).buffer("other", size=8)
    for number in range(dispatches):
        scene.dispatch("scale" if number == 1 else "add", ["x"], [4])
    scene.write()
    return scene


def dumped(program: Program, folder: str) -> None:
    program("scenario.json", "--dump-all", folder, exit_code=0)


@pytest.fixture
def two(scene: Scene, program: Program) -> Scene:
    """The dumps a and b of two runs with different factors in the second command."""
    for folder, factor in (("a", "2.0"), ("b", "2.5")):
        scaling(scene, factor)
        dumped(program, folder)
    return scene


def test_equal_dumps(scene: Scene, program: Program) -> None:
    """Two runs of one scenario give equal dumps."""
    scaling(scene)
    dumped(program, "a")
    dumped(program, "b")
    assert program("diff", "a", "b") == (0, "a and b are equal: 5 contents compared\n", "")
    assert json.loads(program("diff", "a", "b", "--json").out)["equal"] is True


def test_the_first_command_that_differs(two: Scene, program: Program) -> None:
    """The first differing command is named with its resource and worst element, and all further differences follow."""
    ended = program("diff", "a", "b", exit_code=1)
    lines = ended.out.splitlines()
    assert lines[:2] == [
        "a and b first differ after command 1 (/commands/1/dispatch_compute), at 'x':",
        "  a/1_dispatch_compute/x.npy and b/1_dispatch_compute/x.npy differ: 4 of 4 elements (100 %)",
    ]
    one, other = (numpy.array([2, 3, 4, 6], "f4") * numpy.float32(factor) for factor in (2, 2.5))
    ulps = [int(numpy.abs((one + add).view("i4") - (other + add).view("i4")).max()) for add in (0, 1)]
    ulp = ulps[0]
    assert "    absolute error 3 at [3]" in lines
    assert any(line.startswith(f"    ULP            {ulp} at ") for line in lines)
    assert [line.split() for line in lines[-3:-1]] == [
        [str(command), "dispatch_compute", "'x'", "4", "4", "3", str(worst)] for command, worst in enumerate(ulps, 1)
    ]
    assert lines[-1] == "5 contents compared: 3 equal, 2 different"
    found = json.loads(program("diff", "a", "b", "--json").out)
    assert [(each["command"], each["resource"]) for each in found["different"]] == [(1, "x"), (2, "x")]
    assert found["first"]["absolute"] == {"value": 3.0, "index": [3]}
    assert found["first"]["ulp"]["value"] == ulp
    assert found["equal"] is False


@pytest.mark.parametrize(
    "options, code",
    [
        *((["--atol", "3"], 0), (["--atol", "2.9"], 1), (["--ulp", "3"], 1)),
        *((["--rtol", "0.25"], 0), (["--rtol", "0.24"], 1), (["--rtol", "0.2", "--atol", "0.6"], 0)),
    ],
)
def test_tolerances(two: Scene, program: Program, options: list[str], code: int) -> None:
    """Errors up to the tolerance are accepted."""
    ended = program("diff", "a", "b", *options, exit_code=code)
    if code == 0:
        assert ended.out == "a and b are equal: 5 contents compared, 8 elements within the tolerance\n"


def test_other_types(two: Scene, program: Program) -> None:
    """--dtype gives the element type of one buffer or of all buffers."""
    for option in ("uint16", "x=uint16"):
        assert "of 8 elements" in program("diff", "a", "b", "--dtype", option).out
    ended = program.fail(2, "diff", "a", "b", "--dtype", "y=uint16")
    assert ended.err.startswith("error: --dtype y=…: neither dump has a buffer 'y'")
    assert program("diff", "a", "b", "--dtype", "number").code == 2


def test_different_scenarios(scene: Scene, program: Program) -> None:
    """Commands and resources that only one scenario has are named; the rest is compared."""
    scaling(scene)
    dumped(program, "a")
    scaling(scene, dispatches=2)
    scene.resources[-1]["buffer"]["uid"] = "another"
    scene.write()
    dumped(program, "b")
    ended = program("diff", "a", "b")
    assert (ended.code, ended.out.splitlines()) == (
        1,
        [
            "the scenarios have different commands (1):",
            "  command 2: dispatch_compute against none",
            "only in a: at the start, 'other'",
            "only in a: after command 2 (/commands/2/dispatch_compute), 'x'",
            "only in b: at the start, 'another'",
            "a and b are equal in what both have: 3 contents compared",
        ],
    )


def test_levels_of_images(scene: Scene, program: Program) -> None:
    """Each mip level is compared, and the differing level is named."""
    for folder, step in (("a", 1), ("b", 2)):
        scene.resources.clear()
        scene.commands.clear()
        declarations = storage(0, "R32_UINT", "dst")
        scene.shader("add", per_texel(f"imageStore(dst, p, imageLoad(dst, p) + {step}u);", declarations))
        scene.image("x", "R32_UINT", size=(8, 8), mips=3)
        scene.dispatch("add", [at_level("x", 1)], (4, 4))
        scene.write()
        dumped(program, folder)
    ended = program("diff", "a", "b")
    assert ended.out.startswith(
        "a and b first differ after command 0 (/commands/0/dispatch_compute), at 'x' mip level 1:\n"
    )
    found = json.loads(program("diff", "a", "b", "--json").out)
    assert [(each["mip"], each["different"], each["elements"]) for each in found["different"]] == [(1, 16, 16)]


def damaged(folder: Path, change: str) -> None:
    path = folder / "index.json"
    index = json.loads(path.read_text())
    content = folder / index["files"][0]["file"]
    match change:
        case "file":
            content.write_bytes(content.read_bytes()[:-1] + b"!")
        case "missing":
            content.unlink()
        case "outside":
            index["files"][0]["file"] = "../scenario.json"
        case "type":
            index["files"][0]["command"] = "1"
        case "twice":
            index["files"] *= 2
        case "version":
            index["version"] = 99
        case "lists":
            del index["files"]
    text = json.dumps(index)
    path.write_text({"json": text[:-9], "list": "[]", "mark": "{}"}.get(change, text))


@pytest.mark.parametrize("change, message", cases(__file__, "viewing.txt", "DUMPS"))
def test_damaged_dumps(scene: Scene, program: Program, tmp_path: Path, change: str, message: str) -> None:
    """A damaged dump is one error."""
    scaling(scene)
    dumped(program, "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    damaged(tmp_path / "b", change)
    ended = program.fail(4, "diff", "a", "b")
    assert ended.err.startswith(f"error: b{os.sep}{message}"), ended.err


def test_a_folder_without_a_dump(scene: Scene, program: Program, tmp_path: Path) -> None:
    """A folder that holds none, or is not there, and a file are errors."""
    for given, message in (
        (".", ".: has no index.json, so it is not a dump\n  help: --dump-all DIR writes one\n"),
        ("missing", "missing/index.json: cannot be read: no such file or directory\n"),
        ("a/index.json", "a/index.json: is a file, expected the folder of a dump\n  help: give its folder: a\n"),
    ):
        scene.file("a/index.json", "{}")
        ended = program("diff", given, "other")
        assert ended == (4, "", f"error: {message}")


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


def test_tolerances_between_devices(diff: Program) -> None:
    """Devices are compared with the tolerances of folders, and the JSON also names the devices."""
    ended = diff("--atol", f"{4 * (INPUT + 1).max():g}", "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["equal"], shown["complete"]) == (0, True, [True, True])
    assert [(each["choice"], each["status"]) for each in shown["devices"]] == [(NARROW, "Pass"), (WIDE, "Pass")]


def test_a_crash_on_one_device(diff: Program, two_devices: dict[str, str], trouble_layer: dict[str, str]) -> None:
    """A crash on one device is the difference. A crash on both devices gives the exit code of a crash."""
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
    """diff --devices takes parameters and the validation layer like a run, with the same error for a missing layer."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1.0;", FLOATS)).buffer("x", INPUT).dispatch("add", ["x"], ["${n}"])  # type: ignore[list-item]
    path = scene.write()
    path.with_name("check.json").write_text(
        '{"parameters": {"n": [4], "atol": [0]}, "outputs": {"x": {"atol": "${atol}"}}}'
    )
    options = ("--devices", "0", "0", path.name, "--set", "n=3", "--set", "atol=1")
    program.succeed("diff", *options, "--validation", "--output", "kept")
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
        ("one", 2, "expected the folders of two dumps, got 1"),
    ],
)
def test_bad_input(scene: Scene, program: Program, arguments: str, code: int, message: str) -> None:
    """Bad input is one error, and no file is written."""
    scene.shader("add", glsl("a[0] += 1.0;", FLOATS)).buffer("x", INPUT).dispatch("add", ["x"]).write()
    before = sorted(Path(scene.folder).rglob("*"))
    ended = program.fail(code, "diff", *arguments.split())
    assert ended.err.removeprefix("error: ").removeprefix(f"{scene.folder}/").startswith(message)
    assert sorted(Path(scene.folder).rglob("*")) == before
