"""Arithmetic with addresses of buffers: where the fourth structure behind an address lies."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "addresses": np.arange(1, 65, dtype=np.uint64) * 4096,
    }


def expected(addresses: np.ndarray) -> dict[str, np.ndarray]:
    return {"moved": addresses + np.uint64(3 * 32)}
