"""Bindings to a part of a buffer: what shaders see, hazards, alignments, and wrong ranges."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from tests.program import Program
from tests.scenes import Scene, findings_of, glsl

BUFFERS = "layout(binding = 0) buffer A { uint a[]; }; layout(binding = 1) buffer B { uint b[]; };"
LENGTHS = glsl("b[0] = a[0]; b[1] = uint(a.length()); b[2] = uint(b.length());", BUFFERS)
BOUND = "layout(binding = 0) uniform U { uvec4 u; }; layout(binding = 1) buffer B { uint b[]; };"
UNIFORMS = glsl("b[0] = u.y;", BOUND)
WRITE = glsl("a[0] = 1u;", "layout(binding = 0) writeonly buffer A { uint a[]; };")
READ = glsl("b[0] = a[0];", BUFFERS.replace("buffer A", "readonly buffer A").replace("buffer B", "writeonly buffer B"))
ONE = glsl("a[0] += 1u;", "layout(binding = 0) buffer A { uint a[]; };")
COUNT = numpy.arange(256, dtype="u4")


def part(uid: str, **keys: int) -> dict[str, Any]:
    return {"resource_ref": uid, **keys}


def test_shaders_see_the_part(scene: Scene, both: Runner) -> None:
    """A shader sees `size` bytes from `offset` on, by default the rest; other bytes stay."""
    scene.shader("s", LENGTHS).buffer("x", COUNT).buffer("y", size=1024)
    scene.dispatch("s", [part("x", offset=512, size=32), part("y", offset=256)])
    scene.dispatch("s", [part("x", size=16), part("y", offset=768, size=12)])
    result = both.run(scene.write())
    expected = numpy.zeros(256, "u4")
    expected[64:67] = 128, 8, 192
    expected[192:195] = 0, 4, 3
    assert (result.array("y", "u4") == expected).all()


def test_uniforms_and_the_same_buffer_twice(scene: Scene, both: Runner) -> None:
    """A uniform buffer and a storage buffer may be two parts of one buffer."""
    scene.shader("s", UNIFORMS).buffer("x", COUNT)
    scene.dispatch("s", [part("x", offset=256, size=16), part("x", offset=768)])
    expected = COUNT.copy()
    expected[192] = 65
    assert (both.run(scene.write()).array("x", "u4") == expected).all()


@pytest.mark.parametrize(
    "first, second, codes",
    [
        ({"size": 256}, {"offset": 256}, []),
        ({"offset": 256, "size": 256}, {"offset": 512, "size": 256}, []),
        ({"size": 260}, {"offset": 256}, ["SR-HAZARD-001"]),
        ({}, {"offset": 256}, ["SR-HAZARD-001"]),
    ],
)
def test_hazards(
    scene: Scene, check_hazards: Any, first: dict[str, int], second: dict[str, int], codes: list[str]
) -> None:
    """Only dispatches on bytes in common need a barrier, for validate and for the validation layer."""
    scene.shader("write", WRITE).shader("read", READ).buffer("x", COUNT).buffer("y", size=16)
    scene.dispatch("write", [part("x", **first)], implicit_barrier=False).dispatch("read", [part("x", **second), "y"])
    check_hazards(scene.write(), codes)
    assert [finding.code for finding in findings_of(scene.write(), hazards=True)] == codes


@pytest.mark.parametrize("kind", ["storage", "uniform"])
def test_alignment(scene: Scene, runner: Runner, kind: str) -> None:
    """An offset that the device refuses is an error of a run; validate warns of offsets that some device refuses."""
    scene.shader("s", ONE if kind == "storage" else UNIFORMS).buffer("x", COUNT)
    scene.dispatch("s", [part("x", offset=4, size=64), *([part("x", offset=512)] if kind == "uniform" else [])])
    problem = scene.refusal(runner.run, UnsupportedError)
    assert problem.code == "SR-LIMIT-012"
    assert problem.pointer == "/commands/0/dispatch_compute/bindings"
    assert "buffer 'x' is bound from offset 4 on, which is not a multiple of " in problem.message
    (finding,) = findings_of(scene.write())
    assert (finding.code, finding.severity) == ("SR-LIMIT-014", "warning")
    assert finding.message == "buffer 'x' is bound from offset 4 on, which some devices refuse"


@pytest.mark.parametrize(
    "keys, inside, message",
    [
        ({"offset": 1024}, "/offset", "the buffer 'x' has 1024 bytes, got the offset 1024"),
        ({"offset": 512, "size": 513}, "/size", "the buffer 'x' has 512 bytes from offset 512 on, got 513"),
        ({"size": 1025}, "/size", "the buffer 'x' has 1024 bytes from offset 0 on, got 1025"),
    ],
)
def test_outside(
    scene: Scene, program: Program, shader_cache: Path, keys: dict[str, int], inside: str, message: str
) -> None:
    """A part that ends behind the buffer is an error with the place."""
    path = scene.shader("s", ONE).buffer("x", COUNT).dispatch("s", [part("x", **keys)]).write()
    (finding,) = findings_of(path)
    assert (finding.code, finding.message) == ("SR-CONFLICT-009", message)
    assert finding.pointer == f"/commands/0/dispatch_compute/bindings/0{inside}"
    assert message in program.fail(3, path.name).err


def test_smaller_than_the_block(scene: Scene, shader_cache: Path) -> None:
    """The part counts, not the buffer."""
    scene.shader("s", UNIFORMS).buffer("x", COUNT)
    scene.dispatch("s", [part("x", offset=256, size=12), part("x", offset=512)])
    (finding,) = findings_of(scene.write())
    assert finding.code == "SR-BIND-005"
    assert finding.message.startswith("buffer 'x' has 12 bytes from offset 256 on; uniform buffer 'U'")


def test_parts_of_other_resources(scene: Scene, shader_cache: Path) -> None:
    """On an image the keys have no effect; an optical flow takes whole resources."""
    scene.shader("s", glsl("imageStore(i, ivec2(0), uvec4(1));", "layout(binding = 0, r8ui) uniform uimage2D i;"))
    scene.image("i", "R8_UINT", size=(4, 4)).dispatch("s", [part("i", offset=256, size=4)])
    place = "/commands/0/dispatch_compute/bindings/0"
    assert [(finding.code, finding.pointer, finding.message) for finding in findings_of(scene.write())] == [
        ("SR-CONFLICT-002", f"{place}/offset", "has no effect on the image 'i'"),
        ("SR-CONFLICT-002", f"{place}/size", "has no effect on the image 'i'"),
    ]
    names = ("search_image", "template_image", "output_image")
    bound = {name: {"set": 0, "id": number, "resource_ref": "i"} for number, name in enumerate(names)}
    bound["output_image"]["offset"] = 0
    scene.commands = [{"dispatch_optical_flow": {"width": 4, "height": 4, "grid_size": "1x1", "bindings": bound}}]
    (finding,) = findings_of(scene.write())
    assert (finding.code, finding.pointer) == (
        "SR-CONFLICT-011",
        "/commands/0/dispatch_optical_flow/bindings/output_image/offset",
    )
    assert finding.message == "a graph or optical flow takes whole resources, got 'offset'"
