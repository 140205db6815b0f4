"""However the items lie in the file, the shader sees them in C order and little-endian."""

import numpy as np


def inputs() -> dict[str, np.ndarray]:
    plain = np.arange(48, dtype="<i4").reshape(6, 8)
    return {
        "plain": plain,
        "big_endian": (plain * 3 % 101).astype(">i4"),
        "fortran_order": np.asfortranarray(plain * 7 % 53),
    }


def expected(plain: np.ndarray, big_endian: np.ndarray, fortran_order: np.ndarray) -> dict[str, np.ndarray]:
    return {"sum": (plain + 1000 * big_endian + 1000000 * fortran_order).astype("<i4", order="C")}
