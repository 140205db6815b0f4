"""An affine transform whose parameters lie in a uniform buffer with the std140 layout; all numbers are exact."""

import numpy as np

PARAMETERS = np.dtype(
    {
        "names": ["matrix", "offset", "scale", "weights"],
        "formats": [("<f4", (4, 4)), ("<f4", 3), "<f4", ("<f4", (4, 4))],
        "offsets": [0, 64, 76, 80],
        "itemsize": 144,
    }
)


def inputs() -> dict[str, np.ndarray]:
    parameters = np.zeros(1, PARAMETERS)
    matrix = np.array([[0, -1, 0, 5], [1, 0, 0, 6], [0, 0, 2, 7], [0, 0, 0, 1]], np.float32)
    parameters["matrix"] = matrix.T  # GLSL keeps columns together
    parameters["offset"] = (0.5, -0.25, 8)
    parameters["scale"] = 3
    parameters["weights"][0, :, 0] = (1, 2, 4, 8)  # the rest of each 16 bytes is padding
    points = np.arange(32 * 4, dtype=np.float32).reshape(32, 4) % 23 - 11
    points[:, 3] = 1
    return {"parameters": parameters.view("u1"), "points": points}


def expected(parameters: np.ndarray, points: np.ndarray) -> dict[str, np.ndarray]:
    block = parameters.view(PARAMETERS)[0]
    turned = points @ block["matrix"]
    moved = block["scale"] * turned[:, :3] + block["offset"]
    weights = block["weights"][np.arange(len(points)) % 4, 0] * turned[:, 3]
    return {"moved": np.column_stack([moved, weights]).astype(np.float32)}
