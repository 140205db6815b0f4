"""16-bit integers in storage and in arithmetic, where they wrap around at 65536."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "a": np.random.default_rng(1).integers(-(2**15), 2**15, 256, dtype=np.int16),
    }


def expected(a: np.ndarray) -> dict[str, np.ndarray]:
    return {"products": a * np.int16(3), "shifted": a.view(np.uint16) >> np.uint16(3)}
