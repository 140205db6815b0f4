"""Tensors in a GLSL shader (GL_ARM_tensors): every row times 1 / the row's largest value, in steps of 1/64."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"rows": np.random.default_rng(4).uniform(-8, 8, (6, 10)).astype(np.float32)}


def expected(rows: np.ndarray) -> dict[str, np.ndarray]:
    largest = np.abs(rows).max(1, keepdims=True)
    return {"normalized": rows * np.float32(1 / 64) * np.floor(np.float32(64) / largest)}
