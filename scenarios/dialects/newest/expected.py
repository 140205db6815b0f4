"""3 x + 1, twice: the same scenario in two dialects of the format, with the same results."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"input": np.arange(64, dtype=np.int32) * 7 - 200}


def expected(input: np.ndarray) -> dict[str, np.ndarray]:
    between = 3 * input + 1
    output = 3 * between + 1
    return {"output": output, "frame_0/between": between, "frame_0/output": output}
