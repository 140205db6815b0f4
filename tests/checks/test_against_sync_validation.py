"""Missing barriers against the Khronos validation layer, which watches the same commands while they are recorded.

Scenarios are drawn at random; both must find a hazard of the same kind, or none. Left out is what the layer does not
tell (a write behind a write of storage buffers) and what the scenario format cannot say (see `checks.hazards`).
"""

import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import Runner
from scenario_runner.doctor.machine_report import gather
from scenario_runner.validation import Options, validate_file
from tests.scenes import Scene, glsl

HERE = "gl_GlobalInvocationID.x"
SHADERS = {
    "fill": ("writeonly buffer A { uint a[]; };", f"a[{HERE}] = 1;"),
    "copy": (
        "readonly buffer A { uint a[]; }; layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };",
        f"b[{HERE}] = a[{HERE}];",
    ),
    "store": ("uniform writeonly image2D p;", "imageStore(p, ivec2(0), vec4(1));"),
    "fetch": (
        "uniform sampler2D p; layout(set = 0, binding = 1) writeonly buffer B { vec4 b[]; };",
        "b[0] = texelFetch(p, ivec2(0), 0);",
    ),
}
SCENARIOS = 30
WORDS = {
    "src_access": ["memory_write", "compute_shader_write", "compute_shader_write", "memory_read"],
    "dst_access": ["memory_read", "compute_shader_read", "compute_shader_read", "memory_write"],
}
STAGES = (["compute"], ["compute"], ["all"], [])
# Whole buffers, halves, and the rest of a buffer from its beginning.
RANGES = ((0, 64), (0, 64), (0, 32), (32, 32), (0, 2**64 - 1))


@pytest.fixture(scope="module", autouse=True)
def _layer() -> None:
    if not gather()["layers"]["validation"]["works"]:
        pytest.skip("the Khronos validation layer is not installed")


def words(rng: random.Random) -> dict[str, Any]:
    chosen: dict[str, Any] = {name: rng.choice(among) for name, among in WORDS.items()}
    return {**chosen, "src_stage": rng.choice(STAGES), "dst_stage": rng.choice(STAGES)}


def add_shader(scene: Scene, uid: str) -> None:
    declared, body = SHADERS[uid]
    format = "rgba8, " if uid == "store" else ""
    scene.shader(uid, glsl(body, f"layout({format}set = 0, binding = 0) {declared}"))


def with_buffers(scene: Scene, rng: random.Random) -> None:
    """Fills and copies of three buffers, and barriers over all memory or parts of a buffer."""
    add_shader(scene, "fill")
    add_shader(scene, "copy")
    for uid in "xyz":
        scene.buffer(uid, size=64)
    for number in range(rng.randint(3, 6)):
        if number == 0 or rng.random() < 0.5:
            shader, *bound = rng.choice([("fill", rng.choice("xyz")), ("copy", *rng.sample("xyz", 2))])
            scene.dispatch(shader, bound, implicit_barrier=rng.random() < 0.1)
            continue
        names: dict[str, list[str]] = {}
        for each in range(rng.randint(1, 2)):
            uid = f"barrier{number}.{each}"
            if rng.random() < 0.3:
                scene.resource("memory_barrier", uid=uid, **words(rng))
                names.setdefault("memory_barrier_refs", []).append(uid)
            else:
                offset, size = rng.choice(RANGES)
                part = {"buffer_resource": rng.choice("xyz"), "offset": offset, "size": size}
                scene.resource("buffer_barrier", uid=uid, **part, **words(rng))
                names.setdefault("buffer_barrier_refs", []).append(uid)
        scene.command("dispatch_barrier", **names)


def with_an_image(scene: Scene, rng: random.Random) -> None:
    """Stores into levels of an image and reads of them, and barriers over a level, with a change of layout or not."""
    add_shader(scene, "store")
    add_shader(scene, "fetch")
    scene.resource(
        "image", uid="i", dims=[1, 8, 8, 1], format="VK_FORMAT_R8G8B8A8_UNORM", shader_access="readwrite", mips=2
    )
    for number in range(rng.randint(2, 5)):
        level = rng.choice([0, 0, 1])
        if rng.random() < 0.5:
            shader = rng.choice(["store", "fetch", "fetch"])
            bound: list[dict[str, Any]] = [{"set": 0, "id": 0, "resource_ref": "i", "lod": level}]
            if shader == "fetch":  # each into a buffer of its own
                scene.buffer(f"out{number}", size=64)
                bound.append({"set": 0, "id": 1, "resource_ref": f"out{number}"})
            keys = {"shader_ref": shader, "rangeND": [1], "bindings": bound, "implicit_barrier": False}
            scene.command("dispatch_compute", **keys)
            continue
        part = {"base_mip_level": level, "level_count": 1, "base_array_layer": 0, "layer_count": 1}
        layouts = {"old_layout": rng.choice(["general", "undefined"]), "new_layout": "general"}
        given = {**words(rng), **layouts, "subresource_range": part}
        scene.resource("image_barrier", uid=f"barrier{number}", image_resource="i", **given)
        scene.command("dispatch_barrier", image_barrier_refs=[f"barrier{number}"])


def told(messages: Iterable[str]) -> set[str]:
    """The kinds of hazards that the layer tells: 'READ_AFTER_WRITE', ... (its older and its newer wording)."""
    wording = re.compile(r"Hazard (READ_AFTER_WRITE|WRITE_AFTER_READ)\b|\b(READ_AFTER_WRITE|WRITE_AFTER_READ) hazard")
    return {found[1] or found[2] for message in messages for found in wording.finditer(message)}


def found(path: Path, hazards: bool = True) -> set[str]:
    """The kinds of hazards that validate finds."""
    kinds = set()
    for each in validate_file(path, Options(hazards=hazards)).findings:
        assert (each.code or "").startswith("SR-HAZARD")
        message = each.message
        if " reads buffer" in message or " reads image" in message:
            kinds.add("READ_AFTER_WRITE")  # a transition is a write
        elif ") reads" in message:
            kinds.add("WRITE_AFTER_READ")
    return kinds


@pytest.mark.parametrize("build, seed", [(with_buffers, 1000), (with_an_image, 5000)])
def test_both_find_the_same(tmp_path: Path, shader_cache: Path, build: Any, seed: int) -> None:
    """validate and the validation layer find the same kinds of hazards in random scenarios."""
    with_hazards = 0
    for number in range(SCENARIOS):
        folder = tmp_path / str(number)
        folder.mkdir()
        scene = Scene(folder)
        build(scene, random.Random(seed + number))
        path = scene.write()
        # one message is said a few times only in the life of an instance
        with Runner(validation="report", sync_validation=True) as runner:
            runner.run(path, write_files=False)
            expected = told(runner.validation_messages)
        assert found(path) == expected, path.read_text(encoding="utf-8")
        assert found(path, hazards=False) <= expected
        with_hazards += bool(expected)
    assert SCENARIOS // 6 < with_hazards < SCENARIOS
