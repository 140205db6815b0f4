"""Dot products of four 8-bit integers packed into 32 bits, with and without signs."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(8).integers(0, 2**32, 64, dtype=np.uint32),
        "b": np.random.default_rng(9).integers(0, 2**32, 64, dtype=np.uint32),
    }


def expected(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    def dot(dtype: type, wide: type) -> np.ndarray:
        left, right = (each.view(dtype).reshape(64, 4).astype(wide) for each in (a, b))
        return (left * right).sum(1, dtype=wide)

    return {"signed_products": dot(np.int8, np.int32), "unsigned_products": dot(np.uint8, np.uint32)}
