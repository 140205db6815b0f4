"""Half-precision floats in storage and in arithmetic; every sum and product here is exact."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": (np.arange(256) - 128).astype(np.float16),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    return {"results": a * np.float16(0.5) + np.float16(1)}
