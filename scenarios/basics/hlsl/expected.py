"""Samples in quarters are scaled by 4 and counted by their nearest integer; half precision holds them exactly."""

import numpy as np

PUSH = np.dtype([("scale", "<f4"), ("count", "<u4")])
BINS = 16


def inputs() -> dict[str, np.ndarray]:
    samples = np.arange(256, dtype=np.float32) % 37 / 8
    return {"samples": samples, "push": np.array([(4.0, 200)], PUSH).view(np.uint8)}


def expected(samples: np.ndarray, push: np.ndarray) -> dict[str, np.ndarray]:
    given = push.view(PUSH)[0]
    scaled = samples[: given["count"]] * given["scale"]
    bins = np.minimum(np.floor(scaled + 0.5).astype(np.int64), BINS - 1)
    halves = np.zeros(256, np.float16)
    halves[: given["count"]] = scaled
    return {"counts": np.bincount(bins, minlength=BINS).astype(np.uint32), "halves": halves}
