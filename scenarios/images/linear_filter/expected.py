"""A picture four times as wide and as high, with a LINEAR filter (mag_filter) that holds on to the edge."""

import numpy as np

TIMES = 4


def inputs() -> dict[str, np.ndarray]:
    return {"small": np.random.default_rng(41).random((1, 6, 9, 4), dtype=np.float32)}


def expected(small: np.ndarray) -> dict[str, np.ndarray]:
    texels = small[0].astype(np.float64)
    for axis in (0, 1):
        size = texels.shape[axis]
        position = (np.arange(size * TIMES) + 0.5) / TIMES - 0.5
        first = np.floor(position).astype(int)
        weight = np.expand_dims(position - first, tuple({0, 1, 2} - {axis}))
        below, above = (np.take(texels, np.clip(first + step, 0, size - 1), axis) for step in (0, 1))
        texels = (1 - weight) * below + weight * above
    return {"large": texels.astype(np.float32)[None]}
