"""A quad's four invocations swap values and share the first invocation's value."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "values": np.random.default_rng(7).integers(0, 1000, 128, dtype=np.uint32),
    }


def expected(values: np.ndarray) -> dict[str, np.ndarray]:
    return {"each": values, "totals": np.array([values.sum(), 128], np.uint32)}
