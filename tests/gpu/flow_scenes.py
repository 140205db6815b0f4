"""Pictures that move by known vectors, and scenarios with optical flows over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

from tests.scenes import Scene

WIDTH, HEIGHT = 80, 64
VECTORS = "VK_FORMAT_R16G16_SFLOAT"
COSTS = "VK_FORMAT_R16_UINT"
CONNECTIONS = {
    "search_image": "search",
    "template_image": "template",
    "output_image": "vectors",
    "hint_motion_vectors": "hints",
    "output_cost": "costs",
}


def moved(*motions: tuple[int, int], items: int = 1) -> list[Any]:
    """A picture, and that picture after each of the motions in turn: uint8 of the shape (height, width, items)."""
    margin = 32
    scene = numpy.random.default_rng(7).uniform(0, 1, (HEIGHT + 2 * margin, WIDTH + 2 * margin))
    for _ in range(4):
        scene = (scene + sum(numpy.roll(scene, step, axis) for axis in (0, 1) for step in (-1, 1))) / 5
    scene = ((scene - scene.min()) / (scene.max() - scene.min()) * 255).round().astype("u1")
    pictures, x, y = [], margin, margin
    for dx, dy in ((0, 0), *motions):
        x, y = x - dx, y - dy
        pictures.append(numpy.repeat(scene[y : y + HEIGHT, x : x + WIDTH, None], items, axis=2))
    return pictures


def grid_extent(grid: int) -> tuple[int, int]:
    """Width and height of an image with a texel for each vector."""
    return -(-WIDTH // grid), -(-HEIGHT // grid)


def add_pictures(scene: Scene, first: Any, second: Any, *, grid: int = 1, format: str = "VK_FORMAT_R8_UNORM") -> Scene:
    """The images search and template, and vectors for the motion between them."""
    scene.image("search", format, first)
    scene.image("template", format, second)
    scene.image("vectors", VECTORS, dims=[1, *grid_extent(grid), 1])
    return scene


def flow(scene: Scene, *names: str, grid: int = 1, bound: Mapping[str, Any] | None = None, **keys: Any) -> Scene:
    """A dispatch_optical_flow over the images of `add_pictures`.

    ``names`` are further bindings; ``bound`` replaces the keys of bindings by their names, or the image with a uid.
    """
    bindings = {}
    for number, name in enumerate(("search_image", "template_image", "output_image", *names)):
        change = (bound or {}).get(name, {})
        change = {"resource_ref": change} if isinstance(change, str) else change
        bindings[name] = {"set": 0, "id": number, "resource_ref": CONNECTIONS[name], **change}
    given = {"width": WIDTH, "height": HEIGHT, "grid_size": f"{grid}x{grid}", **keys}
    return scene.command("dispatch_optical_flow", bindings=bindings, **given)


def inside(vectors: Any, grid: int = 1) -> Any:
    """The vectors away from the edges, where content comes in that the other picture does not have."""
    margin = 24 // grid
    return vectors[margin:-margin, margin:-margin].astype("f4")


def two_pictures(scene: Scene) -> Path:
    """The smallest scenario with an optical flow."""
    return flow(add_pictures(scene, *moved((3, -2)))).write()
