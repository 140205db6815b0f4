"""All 64 integers are doubled; the first 32, one workgroup of the second entry point, also change their sign."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"data": np.arange(64, dtype=np.int32) ** 2 - 1000}


def expected(data: np.ndarray) -> dict[str, np.ndarray]:
    data = data * 2
    data[:32] = -data[:32]
    return {"data": data}
