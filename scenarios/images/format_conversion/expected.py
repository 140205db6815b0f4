"""A B8G8R8A8 picture in four other formats: half floats, signed bytes, small integers and packed integers."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"picture": np.random.default_rng(42).integers(0, 256, (1, 20, 30, 4), dtype=np.uint8)}


def expected(picture: np.ndarray) -> dict[str, np.ndarray]:
    color = np.ascontiguousarray(picture[..., [2, 1, 0, 3]])  # blue lies first in memory
    numbers = color / np.float64(255)
    return {
        "halves": numbers.astype(np.float16),
        "signed_bytes": np.rint((numbers * 2 - 1) * 127).astype(np.int8),
        "quarters": color // 4,
        "packed": color.view("<u4"),
    }
