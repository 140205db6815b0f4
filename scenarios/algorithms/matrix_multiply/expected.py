"""A (40 x 50) times B (50 x 33); items are multiples of 1/128 below 1, so that sums are exact in any order."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    a = (np.arange(40 * 50) * 7919 % 255 - 127) / 128
    b = (np.arange(50 * 33) * 104729 % 253 - 126) / 128
    return {
        "a": a.reshape(40, 50).astype(np.float32),
        "b": b.reshape(50, 33).astype(np.float32),
        "sizes": np.array([40, 50, 33], np.uint32),
    }


def expected(a: np.ndarray, b: np.ndarray, sizes: np.ndarray) -> dict[str, np.ndarray]:
    return {"product": (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)}
