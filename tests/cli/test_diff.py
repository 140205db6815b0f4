"""``scenario-runner diff``: the command and resource at which two dumps part first."""

import json
import os
from pathlib import Path

import numpy
import pytest

from tests.gpu.image_scenes import per_texel, storage
from tests.program import Program
from tests.scenes import Scene, at_level, glsl
from tests.tables import cases

FLOATS = "layout(set = 0, binding = 0) buffer A { float a[]; };\n"


def scaling(scene: Scene, factor: str = "2.0", dispatches: int = 3) -> Scene:
    """Dispatches of which the second one multiplies x by a factor, and the others add 1 to it."""
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
    ended = program("scenario.json", "--dump-all", folder)
    assert ended.code == 0, ended.err


@pytest.fixture
def two(scene: Scene, program: Program) -> Scene:
    """The dumps a and b, of runs whose second command differs in its factor."""
    for folder, factor in (("a", "2.0"), ("b", "2.5")):
        scaling(scene, factor)
        dumped(program, folder)
    return scene


def test_equal_dumps(scene: Scene, program: Program) -> None:
    """The same run twice gives equal dumps."""
    scaling(scene)
    dumped(program, "a")
    dumped(program, "b")
    assert program("diff", "a", "b") == (0, "a and b are equal: 5 contents compared\n", "")
    assert json.loads(program("diff", "a", "b", "--json").out)["equal"] is True


def test_the_first_command_that_differs(two: Scene, program: Program) -> None:
    """It is named with its resource and worst element, then all that differ; buffers are what shaders see in them."""
    ended = program("diff", "a", "b")
    assert ended.code == 1
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
    ended = program("diff", "a", "b", *options)
    assert ended.code == code
    if code == 0:
        assert ended.out == "a and b are equal: 5 contents compared, 8 elements within the tolerance\n"


def test_other_types(two: Scene, program: Program) -> None:
    """--dtype says what the bytes of one buffer, or of all, are."""
    for option in ("uint16", "x=uint16"):
        assert "of 8 elements" in program("diff", "a", "b", "--dtype", option).out
    ended = program("diff", "a", "b", "--dtype", "y=uint16")
    assert (ended.code, ended.out) == (2, "")
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
    """Each mip level is compared, and the one that differs is named."""
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
    """What is wrong with a dump is one error."""
    scaling(scene)
    dumped(program, "a")
    dumped(program, "b")
    damaged(tmp_path / "b", change)
    ended = program("diff", "a", "b")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith(f"error: b{os.sep}{message}"), ended.err


def test_a_folder_without_a_dump(scene: Scene, program: Program, tmp_path: Path) -> None:
    """A folder that holds none, or is not there, and a file are errors."""
    for given, message in (
        (".", ".: has no index.json, so that it is not a dump\n  help: --dump-all DIR writes one\n"),
        ("missing", "missing/index.json: cannot be read: no such file or directory\n"),
        ("a/index.json", "a/index.json: is a file, expected the folder of a dump\n  help: give its folder: a\n"),
    ):
        scene.file("a/index.json", "{}")
        ended = program("diff", given, "other")
        assert ended == (4, "", f"error: {message}")
