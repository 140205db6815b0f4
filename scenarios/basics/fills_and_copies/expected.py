"""An image and a buffer filled with values, and a mip level copied between 16 bytes of another value on both sides."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {}


def expected() -> dict[str, np.ndarray]:
    sevens = np.full(4, 7, np.uint32).view(np.int8)
    blue = np.tile(np.array([0, 0, 255, 255], np.uint8), 16).view(np.int8)
    canvas = np.empty((1, 8, 8, 4), np.uint8)
    canvas[:] = 255, 51, 0, 255
    return {"canvas": canvas, "texels": np.concatenate([sevens, blue, sevens])}
