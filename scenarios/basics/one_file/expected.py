"""mixed = fill + (noise / 2 + 2 * ramp); the products are exact and the sums precise, so every bit is known."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    return {}


def split_mix(seed: int, count: int) -> np.ndarray:
    """The 64-bit numbers of docs/contents.md."""
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def expected() -> dict[str, np.ndarray]:
    noise = (-1 + 2 * ((split_mix(2024, 1024) >> np.uint64(11)) * 2.0**-53)).astype(np.float32)
    ramp = (-8 + 0.125 * np.arange(1024)).astype(np.float32)
    fill = np.tile(np.float32([0, 100]), 512)
    dice = 1 + split_mix(6, 1024) % np.uint64(6)
    mixed = fill + (np.float32(0.5) * noise + np.float32(2) * ramp)
    return {"mixed": mixed, "dice": (7 - dice).astype(np.uint32)}
