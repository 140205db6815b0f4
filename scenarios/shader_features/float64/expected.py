"""Double precision in storage and in arithmetic."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(3).uniform(-10, 10, 64),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    return {"results": a * a - 0.25}
