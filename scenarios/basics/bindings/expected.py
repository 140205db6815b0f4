"""Sums of two buffers with pairs of weights: the second buffer is bound from its byte 256 on."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"second": np.arange(128, dtype=np.uint32).view(np.int8)}


def expected(second: np.ndarray) -> dict[str, np.ndarray]:
    weights = np.arange(1, 9, dtype=np.uint32).reshape(4, 2)
    numbers = np.stack([np.array([1, 10, 100, 1000], np.uint32), second.view(np.uint32)[64:68]], -1)
    return {"sums": (weights * numbers).sum(-1, dtype=np.uint32).view(np.int8)}
