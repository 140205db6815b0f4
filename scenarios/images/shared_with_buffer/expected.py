"""A memory group of an image and a buffer: a shader draws the image, another works on the same bytes as an array.

A row of 64 texels is 256 bytes, which no known device pads. Where a device pads, the scenario is refused, not garbled.
"""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"width": np.array([64], np.int32)}


def expected(width: np.ndarray) -> dict[str, np.ndarray]:
    y, x = np.mgrid[:48, : int(width[0])]
    sums = np.cumsum(x * y, axis=1).astype(np.float32)
    return {"picture": sums[None, ..., None], "texels": sums.reshape(-1).view(np.int8)}
