"""An image that a shader draws is a tensor to a graph (a convolution in SPIR-V) in the same memory.

The graph takes the weights from a graph_constant, and declares the output's shape. Whole numbers make it exact.
"""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"weights": np.random.default_rng(5).integers(-3, 4, (2, 3, 3, 4)).astype(np.float32)}


def expected(weights: np.ndarray) -> dict[str, np.ndarray]:
    y, x = np.mgrid[:8, :8]
    picture = np.stack([x, y, x * y, np.ones_like(x)], -1).astype(np.float64)
    padded = np.pad(picture, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1))
    sums = np.einsum("yxiab,oabi->yxo", windows, weights.astype(np.float64)) + np.array([1, 2])
    return {"features": sums[None].astype(np.float32)}
