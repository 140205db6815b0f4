"""Mip levels, each drawn from the level before (`lod` in bindings and attachments), then sampled nearest."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"tiles": np.random.default_rng(7).integers(0, 256, (1, 32, 64, 4), np.uint8)}


def expected(tiles: np.ndarray) -> dict[str, np.ndarray]:
    level, picture = tiles[0], np.empty_like(tiles)
    for number in range(4):
        rows = slice(8 * number, 8 * number + 8)
        picture[0, rows] = level.repeat(2**number, 0).repeat(2**number, 1)[rows]
        level = level.reshape(level.shape[0] // 2, 2, level.shape[1] // 2, 2, 4).max((1, 3))
    return {"picture": picture}
