"""An image written as its bytes come: level by level, of each level the depths before the stencils.

What a file cannot hold is dropped: the levels after the first of .png and .npy files, and stencils of .npy files whose
items have no room for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType


class ImageWriter(ABC):
    """An image file being written; a context manager that stores the file when its block ends well.

    ``planes`` are the sizes in bytes of what is written, in order: for each level one for each of the ``aspects`` of
    the format. The file appears complete or not at all; missing folders are created. Raises FileError.
    """

    def __init__(self, planes: tuple[int, ...], aspects: int) -> None:
        self._planes = planes
        self._aspects = aspects
        self._plane = 0  # which one is being written, and how much of it was
        self._done = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next bytes of the image; cut anywhere."""
        view = memoryview(data)
        while len(view):
            part = view[: self._planes[self._plane] - self._done]
            self._write_part(self._plane, part)
            self._done += len(part)
            view = view[len(part) :]
            if self._done == self._planes[self._plane]:
                self._plane += 1
                self._done = 0

    def __enter__(self) -> ImageWriter:
        return self

    @abstractmethod
    def _write_part(self, plane: int, part: memoryview) -> None:
        """Take the next bytes of a plane."""

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Store the file, or discard it where the block failed."""


class HeldImageWriter(ImageWriter):
    """Keeps the planes of the first level, for a file that is written as a whole by `_store`."""

    def __init__(self, planes: tuple[int, ...], aspects: int) -> None:
        super().__init__(planes, aspects)
        self._held = [bytearray() for _ in range(aspects)]

    def _write_part(self, plane: int, part: memoryview) -> None:
        if plane < self._aspects:
            self._held[plane] += part

    @abstractmethod
    def _store(self, held: list[bytearray]) -> None:
        """Write the file; ``held`` has the bytes of each aspect."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._store(self._held)
        self._held = []
