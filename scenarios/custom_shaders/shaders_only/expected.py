"""A model of two shaders and nothing else: the extremes of an array, then the array stretched between two limits."""

import numpy as np

COUNT = 1000


def inputs() -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(15).normal(3, 20, COUNT).astype(np.float32)
    return {"numbers": numbers, "limits": np.float32([-1, 1])}


def expected(numbers: np.ndarray, limits: np.ndarray) -> dict[str, np.ndarray]:
    extremes = np.stack([numbers.min(), numbers.max()])
    low, high = limits.astype(np.float64)
    part = (numbers.astype(np.float64) - extremes[0]) / (extremes[1] - extremes[0])
    return {"extremes": extremes, "stretched": (low + part * (high - low)).astype(np.float32)}
