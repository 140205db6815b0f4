"""Where the elements of a LINEAR tensor or image lie in its memory, as runs of bytes that a buffer copy can move."""

from __future__ import annotations

from math import prod
from typing import Any

from scenario_runner.vulkan.api.ffi import ffi


class Rows:
    """Runs of elements side by side: one where they are packed, else one for each index of the outer dimensions.

    ``end_bytes`` is where the last element ends in the memory.
    """

    def __init__(
        self, dims: tuple[int, ...], strides: tuple[int, ...] | None, size_bytes: int, start_bytes: int = 0
    ) -> None:
        """``size_bytes`` is that of the packed elements, ``start_bytes`` where the first lies. No strides: packed."""
        self._size_bytes = size_bytes
        self._start_bytes = start_bytes
        self._counts: tuple[int, ...] = ()
        self._strides: tuple[int, ...] = ()
        self._run_bytes = size_bytes
        if strides is not None:
            run = element = size_bytes // prod(dims)
            outer = len(dims)
            while outer and (strides[outer - 1] == run or dims[outer - 1] == 1):
                outer -= 1
                run *= dims[outer]
            self._run_bytes = max(run, element)
            self._counts, self._strides = dims[:outer], strides[:outer]
        last = sum((count - 1) * stride for count, stride in zip(self._counts, self._strides, strict=True))
        self.end_bytes = start_bytes + last + self._run_bytes

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """How many of the packed bytes from ``offset_bytes`` on to move at once: whole runs where there are several."""
        room = min(self._size_bytes - offset_bytes, room_bytes)
        return room - room % self._run_bytes if self._counts else room

    def regions(self, staging_offset: int, offset_bytes: int, size: int, *, into_staging: bool) -> Any:
        """VkBufferCopy[] between packed bytes in a staging buffer and their places."""
        if not self._counts:
            places = [self._start_bytes + offset_bytes]
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
        place = self._start_bytes
        for count, stride in zip(reversed(self._counts), reversed(self._strides), strict=True):
            number, index = divmod(number, count)
            place += index * stride
        return place
