"""Vectors of three floats without gaps between them, which takes scalarBlockLayout."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {
        "particles": np.random.default_rng(12).integers(-100, 100, (64, 7)).astype(np.float32),
    }


def expected(particles: np.ndarray) -> dict[str, np.ndarray]:
    return {"momenta": particles[:, :1] * particles[:, 4:]}
