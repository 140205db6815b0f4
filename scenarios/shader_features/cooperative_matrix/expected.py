"""A product of two 16 x 16 matrices by a whole subgroup; every value is a small whole number."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(10).integers(-8, 8, (16, 16)).astype(np.float16),
        "b": np.random.default_rng(11).integers(-8, 8, (16, 16)).astype(np.float16),
    }


def expected(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    return {"product": a.astype(np.float32) @ b.astype(np.float32)}
