"""Reads far and near beyond the end of a storage buffer, a uniform buffer and an image, with robust access.

``allowed`` has a bit for each of the three where robust access of either kind allows what came back: 0, or (without
robustBufferAccess2) a value from the same buffer. The buffer ``zeros`` gets what came back.
"""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "table": np.arange(1000, 1016, dtype=np.uint32),
        "small": np.arange(1000, 1016, dtype=np.uint32),
        "picture": np.full((1, 4, 4, 1), 77, np.uint32),
        "places": (16 + np.arange(64, dtype=np.uint64) ** 3 * 3).astype(np.uint32),
    }


def expected(table: np.ndarray, small: np.ndarray, picture: np.ndarray, places: np.ndarray) -> dict[str, np.ndarray]:
    assert places.min() >= max(table.size, small.size, picture.size), "every read is beyond the end"
    return {"allowed": np.full(64, 7, np.uint32)}
