"""Constants of 8, 16 and 64 bits and a double arrive with every bit; results are exact or rounded once."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {}


def expected() -> dict[str, np.ndarray]:
    i = np.arange(16)
    return {
        "integers": np.int64(-1099511627777) + i.astype(np.int64) * 65535 - 128,
        "reals": np.float64(0.3333333333333333) * i.astype(np.float64),
    }
