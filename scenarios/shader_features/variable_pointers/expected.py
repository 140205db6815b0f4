"""A pointer into one of two buffers, chosen while the shader runs."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.arange(64, dtype=np.uint32),
        "b": np.arange(64, dtype=np.uint32) * 1000,
    }


def expected(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    return {"chosen": np.where(a % 2 == 1, a, b).astype(np.uint32)}
