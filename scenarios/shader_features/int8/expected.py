"""8-bit integers in storage and in arithmetic, where they wrap around at 256."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.arange(256, dtype=np.uint8).view(np.int8),
        "b": np.arange(256, dtype=np.uint8),
    }


def expected(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    return {"signed_sums": a + a[::-1], "products": b * b}
