"""Each subgroup elects one invocation, so elected invocations and subgroups are equally many."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "values": np.random.default_rng(7).integers(0, 1000, 128, dtype=np.uint32),
    }


def expected(values: np.ndarray) -> dict[str, np.ndarray]:
    return {"each": np.ones(128, np.uint32), "totals": np.ones(2, np.uint32)}
