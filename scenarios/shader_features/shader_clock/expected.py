"""The subgroup clock and the device clock do not run backwards."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {}


def expected() -> dict[str, np.ndarray]:
    return {"forwards": np.ones(64, np.uint32)}
