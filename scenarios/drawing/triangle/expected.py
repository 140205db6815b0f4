"""A triangle over a part of a picture: the texels whose centers it covers change, the others stay what they are."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    y, x = np.mgrid[:32, :32]
    return {
        "picture": ((x // 4 + y // 4) % 2 * 40).astype(np.uint8)[None, :, :, None],
        "corners": np.array([[4, 3], [28, 9], [10, 30]], np.float32),
    }


def expected(picture: np.ndarray, corners: np.ndarray) -> dict[str, np.ndarray]:
    y, x = np.mgrid[:32, :32] + 0.5
    drawn = np.ones((32, 32), bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, 0), strict=True):
        side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        top_left = (by == ay and bx > ax) or by < ay
        drawn &= (side > 0) | ((side == 0) & top_left)
    return {"picture": np.where(drawn[None, :, :, None], np.uint8(200), picture)}
