"""A nine by nine pixel blur with binomial weights, as a single two-dimensional filter.

Pixels are integers and weights are 256ths, so that every sum fits 24 bits and no summing order rounds anything.
"""

import math

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    y, x = np.mgrid[:38, :50]
    disc = ((x - 20) ** 2 + (y - 18) ** 2 < 150) * 120
    stripes = (x // 3 + y // 5) % 2 * 90
    return {
        "picture": (disc + stripes + x % 7 * 6).astype(np.float32),
        "weights": np.array([math.comb(8, k) for k in range(9)], np.float32) / np.float32(256),
        "size": np.array([50, 38], np.int32),
    }


def expected(picture: np.ndarray, weights: np.ndarray, size: np.ndarray) -> dict[str, np.ndarray]:
    width, height = size
    padded = np.pad(picture.astype(np.float64), 4, mode="edge")
    kernel = np.outer(weights, weights).astype(np.float64)
    blurred = sum(kernel[y, x] * padded[y : y + height, x : x + width] for y in range(9) for x in range(9))
    return {"blurred": blurred.astype(np.float32)}
