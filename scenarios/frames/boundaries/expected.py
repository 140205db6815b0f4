"""Three generations of the Game of Life: two captured frames, and the commands after the last boundary."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    grid = np.zeros((24, 32), np.uint32)
    grid[2:5, 3:6] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]  # a glider
    grid[12:15, 30:32] = [[1, 1], [1, 0], [0, 1]]  # something that reaches over the edge
    grid[12:15, 0] = [0, 1, 1]
    return {"even": grid}


def generation(grid: np.ndarray) -> np.ndarray:
    neighbours = np.zeros_like(grid)
    for shift in [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]:
        neighbours += np.roll(grid, shift, (0, 1))
    alive: np.ndarray = (neighbours == 3) | ((neighbours == 2) & (grid == 1))
    return alive.astype(np.uint32)


def expected(even: np.ndarray) -> dict[str, np.ndarray]:
    first = generation(even)
    second = generation(first)
    return {
        "frame_1/odd": first,
        "frame_2/even": second,
        "frame_2/odd": first,
        "odd": generation(second),
    }
