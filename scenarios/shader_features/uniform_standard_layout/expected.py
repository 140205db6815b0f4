"""A uniform buffer with the std430 layout, whose array of floats has no gaps."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "table": np.arange(64, dtype=np.float32),
    }


def expected(table: np.ndarray) -> dict[str, np.ndarray]:
    return {"reversed": np.ascontiguousarray(table[::-1])}
