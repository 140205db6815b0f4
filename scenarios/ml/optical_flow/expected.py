"""The motion of a picture that moves by known vectors: from the first picture to the second, and on to the third."""

import numpy as np

WIDTH, HEIGHT = 128, 96
MARGIN = 16  # what moves into the picture from outside of it has no vector
# How far the content moves from picture to picture, in texels (x, y).
MOTIONS = ((-5, 3), (4, 2))


def inputs() -> dict[str, np.ndarray]:
    scene = np.random.default_rng(11).uniform(0, 1, (HEIGHT + 2 * MARGIN, WIDTH + 2 * MARGIN))
    for _ in range(4):  # neighbouring texels are alike, as in pictures of things
        scene = (scene + sum(np.roll(scene, step, axis) for axis in (0, 1) for step in (-1, 1))) / 5
    scene = (scene - scene.min()) / (scene.max() - scene.min()) * 255
    pictures, x, y = {}, MARGIN, MARGIN
    for name, (dx, dy) in zip(("first", "second", "third"), (*MOTIONS, (0, 0)), strict=True):
        pictures[name] = scene[y : y + HEIGHT, x : x + WIDTH].round().astype(np.uint8)[None, :, :, None]
        x, y = x - dx, y - dy  # the window moves against the content
    return pictures


def expected(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> dict[str, np.ndarray]:
    """``motions`` are the vectors away from the edges; ``found`` is what lies where they point, in the next picture."""
    inside = np.s_[0, MARGIN:-MARGIN, MARGIN:-MARGIN, 0]
    shape = (HEIGHT - 2 * MARGIN, WIDTH - 2 * MARGIN)
    result = {}
    for number, (picture, motion) in enumerate(zip((first, second), MOTIONS, strict=True), 1):
        result[f"motion_{number}"] = np.broadcast_to(np.array(motion, np.float32), (*shape, 2)).copy()
        result[f"found_{number}"] = picture[inside].astype(np.uint32)
    return result
