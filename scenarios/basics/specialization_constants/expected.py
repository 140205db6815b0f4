"""The integer 4 for a float constant is 4.0; the last constant keeps the default that the shader gives it."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"x": (np.arange(64, dtype=np.int32) - 32) * 4099}


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    y = -(np.float32(4) * (x - 3).astype(np.float32) + np.float32(0.5))
    return {"y": y, "masked": x.view(np.uint32) & np.uint32(0xFFFF0000)}
