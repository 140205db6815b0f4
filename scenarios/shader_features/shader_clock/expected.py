"""The clocks of the subgroup and of the device do not run backwards."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {}


def expected() -> dict[str, np.ndarray]:
    return {"forwards": np.ones(64, np.uint32)}
