"""`--repeat 3 --repeat-keep-state`: each iteration continues where the previous iteration stopped."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"counters": np.arange(16, dtype=np.uint32) * 10}


def expected(counters: np.ndarray) -> dict[str, np.ndarray]:
    return {"counters": counters + np.uint32(3)}
