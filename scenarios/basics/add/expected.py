"""sum = a + b, with a single rounding, so every bit is known."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.linspace(-5, 5, 100, dtype=np.float32),
        "b": np.arange(100, dtype=np.float32) / np.float32(7),
    }


def expected(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    return {"sum": a + b}
