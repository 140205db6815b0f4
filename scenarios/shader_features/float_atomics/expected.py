"""Atomic additions of floats to a buffer and to shared memory; the sums are whole numbers, so that no order matters."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(4).integers(0, 100, 256).astype(np.float32),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    return {"sums": np.array([a.sum(), a.sum()], np.float32)}
