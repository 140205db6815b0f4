"""Six squares in one draw: each has a place, a depth and a number, and the nearest square is seen."""

import numpy as np

SQUARES = [
    (1, 2, 0.5, 10),
    (6, 5, 0.25, 20),
    (11, 8, 0.75, 30),
    (16, 3, 0.125, 40),
    (20, 10, 0.625, 50),
    (9, 12, 0.5, 60),
]


def inputs() -> dict[str, np.ndarray]:
    squares = np.array([square[:3] for square in SQUARES], np.float32)
    values = np.array([[square[3]] for square in SQUARES], np.uint32)
    return {"squares": np.hstack([squares.view(np.uint32), values])}


def expected(squares: np.ndarray) -> dict[str, np.ndarray]:
    depth = np.ones((24, 32), np.float32)
    picture = np.zeros((24, 32), np.uint32)
    for row in squares:
        (x, y, z), value = row[:3].view(np.float32), row[3]
        part = np.s_[int(y) : int(y) + 10, int(x) : int(x) + 10]
        nearer = z < depth[part]
        depth[part][nearer], picture[part][nearer] = z, value
    return {"depth": depth[None, :, :, None], "picture": picture[None, :, :, None]}
