"""values * scale + offset for the first count values, twice; the numbers are chosen so that nothing is rounded."""

import numpy as np

PUSH = np.dtype([("scale", "<f4"), ("offset", "<f4"), ("count", "<u4")])


def inputs() -> dict[str, np.ndarray]:
    return {
        "values": np.arange(64, dtype=np.float32),
        "halve_all": np.array([(0.5, 1.0, 64)], PUSH).view(np.uint8),
        "treble_first_ten": np.array([(3.0, -0.25, 10)], PUSH).view(np.uint8),
    }


def expected(values: np.ndarray, halve_all: np.ndarray, treble_first_ten: np.ndarray) -> dict[str, np.ndarray]:
    for data in (halve_all, treble_first_ten):
        push = data.view(PUSH)[0]
        count = push["count"]
        values[:count] = values[:count] * push["scale"] + push["offset"]
    return {"values": values}
