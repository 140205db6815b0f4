"""bfloat16 in storage, converted to float and back; every value here is exact in both."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": (np.arange(64, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    values = (a.astype(np.uint32) << 16).view(np.float32) * 2 + 1
    return {"results": (values.view(np.uint32) >> 16).astype(np.uint16)}
