"""A picture that a fragment shader computes: the Mandelbrot set in integers, with the view in push constants."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {"view": np.array([-2300, 0, 120], np.int32)}


def expected(view: np.ndarray) -> dict[str, np.ndarray]:
    y, x = np.mgrid[:64, :96].astype(np.int64)
    cx, cy = view[0] + (x - 48) * view[2], view[1] + (y - 32) * view[2]
    zx, zy, count = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for _ in range(40):
        inside = (count < 40) & (zx * zx + zy * zy <= 4 * 4096 * 4096)
        new_x, new_y = ((zx * zx - zy * zy) >> 12) + cx, ((zx * zy) >> 11) + cy
        zx, zy, count = np.where(inside, new_x, zx), np.where(inside, new_y, zy), count + inside
    shown = np.stack([count * 8, count * 5, 255 - count * 7, count * 0 + 255], -1) & 255
    shown[count == 40] = [0, 0, 0, 255]
    return {"picture": shown[None].astype(np.uint8)}
