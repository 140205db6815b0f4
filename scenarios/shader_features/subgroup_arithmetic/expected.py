"""Reductions and scans over subgroups, put together into those over everything."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "values": np.random.default_rng(7).integers(0, 1000, 128, dtype=np.uint32),
    }


def expected(values: np.ndarray) -> dict[str, np.ndarray]:
    totals = [
        values.sum(),
        1000 - values.min(),
        values.max(),
        np.bitwise_or.reduce(values),
        np.bitwise_xor.reduce(values),
    ]
    return {"each": values, "totals": np.array(totals, np.uint32)}
