"""Where the elements of a LINEAR tensor lie in its memory, as runs of bytes that a buffer copy can move."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api import ffi

if TYPE_CHECKING:
    from scenario_runner.plan.tensor_plan import TensorDescription


class Rows:
    """Runs of elements side by side: one for a packed tensor, else one for each index of the outer dimensions.

    ``end_bytes`` is where the last element ends in the tensor's memory.
    """

    def __init__(self, description: TensorDescription, size_bytes: int) -> None:
        """``size_bytes`` is the size of the packed elements."""
        self._size_bytes = size_bytes
        self._counts: tuple[int, ...] = ()
        self._strides: tuple[int, ...] = ()
        self._run_bytes = size_bytes
        dims, strides = description.dims, description.strides
        if strides is not None:
            run = element = size_bytes // prod(dims)
            outer = len(dims)
            while outer and (strides[outer - 1] == run or dims[outer - 1] == 1):
                outer -= 1
                run *= dims[outer]
            self._run_bytes = max(run, element)
            self._counts, self._strides = dims[:outer], strides[:outer]
        last = sum((count - 1) * stride for count, stride in zip(self._counts, self._strides, strict=True))
        self.end_bytes = last + self._run_bytes

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """How many of the packed bytes from ``offset_bytes`` on to move at once: whole runs where there are several."""
        room = min(self._size_bytes - offset_bytes, room_bytes)
        return room - room % self._run_bytes if self._counts else room

    def regions(self, staging_offset: int, offset_bytes: int, size: int, *, into_staging: bool) -> Any:
        """VkBufferCopy[] between packed bytes in a staging buffer and their places."""
        if not self._counts:
            places = [offset_bytes]
            length = size
        else:
            first = offset_bytes // self._run_bytes
            places = [self._place(number) for number in range(first, first + size // self._run_bytes)]
            length = self._run_bytes
        regions = ffi.new("VkBufferCopy[]", len(places))
        for number, place in enumerate(places):
            region, staged = regions[number], staging_offset + number * length
            region.srcOffset, region.dstOffset = (place, staged) if into_staging else (staged, place)
            region.size = length
        return regions

    def _place(self, number: int) -> int:
        """Where a run begins."""
        place = 0
        for count, stride in zip(reversed(self._counts), reversed(self._strides), strict=True):
            number, index = divmod(number, count)
            place += index * stride
        return place
