"""Mapped memory that a capture tool guards: system calls cannot reach it, and runs give the same results."""

import os
from pathlib import Path

import numpy
import pytest

from tests.layers import layer_from
from tests.program import Program
from tests.scenes import Scene, glsl

DATA = "layout(binding = 0) buffer A { uint a[]; };\n"
DISCRETE = "2"
Layer = dict[str, str]  # the environment variables with which the loader loads it


guard_layer = layer_from(Path(__file__).with_name("guard_layer.c"))


def above(layer: Layer, other: Layer) -> Layer:
    """The variables for both layers, ``layer`` nearer to the program."""
    both = {name: os.pathsep.join((layer[name], other[name])) for name in ("VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS")}
    return {**other, **layer, **both}


@pytest.mark.parametrize("memory", ["unified", "staged"])
@pytest.mark.parametrize("repeat", [1, 2])
def test_files_of_every_kind(
    program: Program, scene: Scene, guard_layer: Layer, fault_layer: Layer, memory: str, repeat: int
) -> None:
    """Small and large files, in other orders of bytes and axes, go in and out, captured ones too."""
    random = numpy.random.default_rng(3)
    arrays = {
        "small": random.integers(0, 2**31, 25_000, numpy.uint32),
        "large": random.integers(0, 2**31, 9 << 20, numpy.uint32),  # read side by side, in pieces
        "fortran": numpy.asfortranarray(random.integers(0, 2**31, (300, 500), numpy.uint32)),
        "swapped": random.integers(0, 2**31, 50_013, numpy.uint32).astype(">u4"),
    }
    body = "uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] += 7u;"
    scene.shader("add", glsl(body, DATA, local_size=256))
    for uid, array in arrays.items():
        scene.buffer(uid, array).dispatch("add", [uid], [36864])
    odd = random.integers(0, 256, 1237, numpy.uint8)
    scene.buffer("odd", odd).buffer("empty", size=100_000).command(
        "mark_boundary", resources=["small"], frame_id=1
    ).write()
    environment = guard_layer
    if memory == "staged":
        environment = {**above(guard_layer, fault_layer), "FAULT_TYPE": DISCRETE, "FAULT_LOG": "log"}
    ended = program("scenario.json", "--capture-dir", "frames", "--repeat", str(repeat), env=environment)
    assert (ended.code, ended.err) == (0, "")
    for uid, array in arrays.items():
        assert (scene.output(uid, "u4") == array.astype("<u4").reshape(-1) + 7).all(), uid
    assert (scene.output("odd", "u1") == odd).all()
    assert not scene.output("empty").any()
    folder = scene.folder / "frames" / (f"iteration_{repeat - 1}/frame_1" if repeat > 1 else "frame_1")
    assert (numpy.load(folder / "small.npy").view("u4") == arrays["small"] + 7).all()
    if memory == "staged":
        calls = (scene.folder / "log").read_text().splitlines()
        assert calls.count("vkMapMemory") == 1  # the staging buffer alone
        assert calls[-1] == "END"
        assert not [line for line in calls if line.startswith("ALIVE")]


@pytest.mark.parametrize("kind", ["png", "dds", "npy"])
def test_images(program: Program, scene: Scene, guard_layer: Layer, kind: str) -> None:
    """Images of every file format go out and in again."""
    texels = numpy.random.default_rng(5).integers(0, 256, (90, 70, 4), numpy.uint8)
    scene.npy("in.npy", texels)
    keys = {"dims": [1, 70, 90, 1], "mips": 1, "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="i", src="in.npy", dst=f"middle.{kind}", **keys).write("out.json")
    again = Scene(scene.folder).resource("image", uid="i", src=f"middle.{kind}", dst="out.npy", **keys)
    again.write("in.json")
    for name in ("out.json", "in.json"):  # the second reads what the first wrote
        ended = program(name, env=guard_layer)
        assert (ended.code, ended.err) == (0, "")
    assert (numpy.load(scene.folder / "out.npy").reshape(texels.shape) == texels).all()
