"""Atomic additions and maxima of 64-bit integers in a buffer."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(6).integers(0, 2**60, 128, dtype=np.uint64),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    return {"results": np.array([a.sum(dtype=np.uint64), a.max()], np.uint64)}
