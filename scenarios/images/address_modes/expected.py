"""What a sampler gives outside of the picture: the edge, the border, or the picture again, mirrored or not."""

import numpy as np

WIDTH, HEIGHT = 7, 5


def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(40)
    return {"picture": random.integers(0, 256, (1, HEIGHT, WIDTH, 4), dtype=np.uint8)}


def expected(picture: np.ndarray) -> dict[str, np.ndarray]:
    texels = picture[0]
    # three pictures wide and high, nine positions a texel: the texel under each
    x = np.floor((np.arange(9 * WIDTH) + 0.5) / 3).astype(int) - WIDTH
    y = np.floor((np.arange(9 * HEIGHT) + 0.5) / 3).astype(int) - HEIGHT
    white = np.full(4, 255, np.uint8)
    outside = ((x < 0) | (x >= WIDTH))[None, :, None] | ((y < 0) | (y >= HEIGHT))[:, None, None]
    clamped = texels[np.clip(y, 0, HEIGHT - 1)][:, np.clip(x, 0, WIDTH - 1)]
    mirrored = texels[mirror(y, HEIGHT)][:, mirror(x, WIDTH)]
    return {
        "edge": clamped[None],
        "border": np.where(outside, white, clamped)[None],
        "repeated": texels[y % HEIGHT][:, x % WIDTH][None],
        "mirrored": mirrored[None],
    }


def mirror(index: np.ndarray, size: int) -> np.ndarray:
    index = index % (2 * size)
    return np.where(index < size, index, 2 * size - 1 - index)
