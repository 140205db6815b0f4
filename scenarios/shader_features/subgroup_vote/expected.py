"""Votes over a subgroup: all, any, all equal."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "values": np.random.default_rng(7).integers(0, 1000, 128, dtype=np.uint32),
    }


def expected(values: np.ndarray) -> dict[str, np.ndarray]:
    return {"each": np.full(128, 5, np.uint32), "totals": np.array([(values % 2).sum()], np.uint32)}
