"""The shader doubles a buffer that is the upper half of another buffer, and both see the change."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"table": np.arange(256, dtype=np.uint32) * 3 + 1}


def expected(table: np.ndarray) -> dict[str, np.ndarray]:
    table[128:] *= 2
    return {"table": table, "upper_half": table[128:]}
