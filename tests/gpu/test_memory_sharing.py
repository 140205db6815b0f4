"""Every member of a memory group shows the bytes that any other member was given, however these are read.

Filled by whom x changed in between by whom x read how. Expected values are NumPy's. Drivers of devices with memory of
their own may keep a compressed form of it, so that only a run on the real device tells.
"""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import draw, fragment, grid, output, vertex
from tests.gpu.sharing_scenes import KINDS, add_group, add_one, read, values
from tests.scenes import Scene

MEMBERS = ("image", "buffer", "tensor")
READERS = ("storage", "sampled", "buffer", "tensor")
# Rows of 256 bytes and more need no padding on any device known.
SIZE = (64, 5)


def all_show(
    runner: Runner, scene: Scene, name: str, size: tuple[int, int], readers: Any, expected: Any, **keys: Any
) -> None:
    """Let shaders read; they and every member's readback see the expected values: (height, width, items)."""
    for how in readers:
        read(scene, name, size, how)
    members = [uid for resource in scene.resources for uid in [next(iter(resource.values()))["uid"]] if uid in MEMBERS]
    uids = [*members, *(f"by_{how}" for how in readers)]
    result = runner.run(scene.write(), outputs=uids, **keys)
    for uid in uids:
        seen = numpy.frombuffer(result[uid].tobytes(), KINDS[name].dtype).reshape(size[1], size[0], KINDS[name].items)
        numpy.testing.assert_array_equal(seen, expected, uid)


def drawn(scene: Scene, name: str, before: Any) -> Any:
    """Draw every other column of the image, and return the content of its memory."""
    kind = KINDS[name]
    channels = f"{kind.prefix}vec4" if kind.items > 1 else "uint"
    items = ", ".join(f"p.x + p.y + {n}" for n in range(kind.items))
    vertex(scene)
    fragment(scene, f"if (p.x % 2 == 0) discard; color = {channels}({items});", output(channels))
    draw(scene, ["image"])
    x, y = grid(*SIZE)
    texels = numpy.stack([x + y + n for n in range(kind.items)], -1).astype(kind.dtype)
    return numpy.where((x % 2 == 1)[..., None], texels, before)


FILLERS = ["image's file", "buffer's file", "tensor's file", *MEMBERS]


@pytest.mark.parametrize("changed_by", [None, *MEMBERS])
@pytest.mark.parametrize(
    "filled_by, draws", [*((each, False) for each in FILLERS), (None, True), ("buffer's file", True), ("buffer", True)]
)
@pytest.mark.parametrize("name", KINDS)
def test_three_members(
    ml: Runner, scene: Scene, name: str, filled_by: str | None, draws: bool, changed_by: str | None
) -> None:
    """An image, a buffer and a tensor: a file or a shader fills one, a drawing changes a part of the image, a shader
    changes one, shaders and copies read."""
    add_group(scene, name, SIZE, MEMBERS, filled_by)
    expected = values(KINDS[name], *SIZE) if filled_by else numpy.zeros_like(values(KINDS[name], *SIZE))
    if draws:
        expected = drawn(scene, name, expected)
    if changed_by is not None:
        add_one(scene, name, SIZE, changed_by)
        expected = expected + numpy.ones_like(expected)
    all_show(ml, scene, name, SIZE, READERS, expected, repeat=2 if draws else 1)


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("filled_by", [None, *MEMBERS])
def test_one_reader(ml: Runner, scene: Scene, filled_by: str | None, how: str) -> None:
    """One reader alone decides the usage of the image. Without content it is zeros in every run."""
    name = "R32_UINT"
    add_group(scene, name, SIZE, MEMBERS, filled_by)
    expected = values(KINDS[name], *SIZE) * (0 if filled_by is None else 1)
    all_show(ml, scene, name, SIZE, [how], expected, repeat=2)


@pytest.mark.parametrize("filled_by", ["image's file", "tensor's file", "image", "tensor"])
@pytest.mark.parametrize("size", [(7, 5), (100, 3), (1, 1)])
def test_rows_that_devices_pad(ml: Runner, scene: Scene, size: tuple[int, int], filled_by: str) -> None:
    """An image and a tensor agree about the texels where the device puts rows further apart."""
    name = "R32_UINT"
    add_group(scene, name, size, ["image", "tensor"], filled_by)
    all_show(ml, scene, name, size, ["storage", "sampled", "tensor"], values(KINDS[name], *size))


@pytest.mark.parametrize("filled_by", ["buffer's file", "image's file", "buffer", "image"])
def test_large_members(both: Runner, scene: Scene, filled_by: str) -> None:
    """Four megabytes, which go through staging memory in several pieces or parts."""
    name, size = "R32G32B32A32_SFLOAT", (512, 512)
    members = ["image", "buffer"]
    add_group(scene, name, size, members, filled_by)
    for member in members:
        add_one(scene, name, size, member)
    all_show(both, scene, name, size, ["storage", "sampled", "buffer"], values(KINDS[name], *size) + 2)
