"""Every level of an image written by a shader, and all levels read again at once."""

import numpy as np

WIDTH, HEIGHT = 24, 16


def inputs() -> dict[str, np.ndarray]:
    return {}


def expected() -> dict[str, np.ndarray]:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    levels = [(WIDTH >> level) * 10000 + (y >> level) * 100 + (x >> level) for level in range(4)]
    return {"gathered": np.stack(levels, -1).astype(np.uint32)[None]}
