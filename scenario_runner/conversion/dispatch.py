"""How many workgroups the dispatch of a shader has, where it is to cover the shader's output."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from scenario_runner.custom_shader import View


def covering_workgroups(shape: Sequence[int], view: View, local_size: Sequence[int]) -> tuple[int, int, int]:
    """The workgroups of ``local_size`` that have one invocation for each element of a value of this shape.

    x, y and z are width and height of an image; else the last dimension, the one before it, and all others. A buffer
    that is written by workgroups of one dimension is counted by its elements, in x. The components of a format count
    as one element where they are the last dimension.
    """
    sizes = list(shape)
    if view.format.components > 1 and sizes and sizes[-1] == view.format.components:
        sizes.pop()
    if view.kind == "buffer" and tuple(local_size[1:]) == (1, 1):
        sizes = [prod(sizes)]
    y, x = [1, 1, *sizes][-2:]
    extent = (x, y, prod(sizes[:-2]))
    return tuple(-(-size // local) for size, local in zip(extent, local_size, strict=True))  # type: ignore[return-value]
