"""64-bit integers in storage and in arithmetic."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(2).integers(0, 2**64, 64, dtype=np.uint64),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    x = a ^ (a >> np.uint64(33))
    x = x * np.uint64(0xFF51AFD7ED558CCD)
    return {"hashes": x ^ (x >> np.uint64(33))}
