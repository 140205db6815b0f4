"""An image written as its bytes come: level by level, of each level the depths before the stencils.

What a file cannot hold is dropped: the levels after the first of .png and .npy files, and stencils of .npy files whose
items have no room for them.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import TracebackType

from scenario_runner.files.dds import DdsWriter
from scenario_runner.files.image_file import check_destination, extension_of, write_image
from scenario_runner.files.npy import NpyWriter
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.formats import Format

_DEPTH_BITS = 0xFF_FFFF


class ImageWriter:
    """An image file being written; a context manager that stores the file when its block ends well.

    ``planes`` are the sizes in bytes of what is written, in order: for each level one for each aspect of the format.
    Raises FileError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: Format,
        width: int,
        height: int,
        planes: tuple[int, ...],
        *,
        create: CreateOutput = OutputFile,
    ) -> None:
        check_destination(path, format)
        self._path, self._format, self._extent = path, format, (width, height)
        self._planes = planes
        self._create = create
        self._aspects = len(format.aspects)
        self._plane = 0  # which one is being written, and how much of it was
        self._done = 0
        self._held: list[bytearray] = []  # whole planes, where a file needs several at once
        self._stack = ExitStack()
        extension = extension_of(path)
        self._dds: DdsWriter | None = None
        self._npy: NpyWriter | None = None
        if extension == ".dds":
            self._dds = self._stack.enter_context(
                DdsWriter(path, format, width, height, len(planes) // self._aspects, create=create)
            )
        elif extension == ".npy" and not _is_composed(format):
            assert format.numpy_dtype is not None, "`check_destination` sees to it"
            shape = (1, height, width, format.numpy_items)
            self._npy = self._stack.enter_context(NpyWriter(path, format.numpy_dtype, shape, create=create))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next bytes of the image; cut anywhere."""
        view = memoryview(data)
        while len(view):
            part = view[: self._planes[self._plane] - self._done]
            self._write_part(part)
            self._done += len(part)
            view = view[len(part) :]
            if self._done == self._planes[self._plane]:
                self._end_plane()
                self._plane += 1
                self._done = 0

    def __enter__(self) -> ImageWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self._held:
            self._write_held()
        self._stack.__exit__(kind, error, traceback)

    def _write_part(self, part: memoryview) -> None:
        if self._dds is not None and self._aspects == 1:
            self._dds.write(part)
        elif self._npy is not None:
            if self._plane == 0:
                self._npy.write(part)
        elif self._dds is not None or self._plane < self._aspects:
            if self._done == 0:
                self._held.append(bytearray())
            self._held[-1] += part

    def _end_plane(self) -> None:
        if self._dds is not None and self._aspects > 1 and len(self._held) == self._aspects:
            depth, stencil = self._held
            self._dds.write(depth, stencil)
            self._held = []

    def _write_held(self) -> None:
        """The first level, for the files that are written as a whole."""
        texels = self._held[0]
        if _is_composed(self._format):
            texels = bytearray(composed(texels, self._held[1] if self._aspects > 1 else None))
        write_image(self._path, self._format, *self._extent, [texels], create=self._create)
        self._held = []


def composed(depths: bytes | bytearray | memoryview, stencils: bytes | bytearray | memoryview | None) -> bytes:
    """Items of 24 bits of depth below a stencil (or zeros), from 32-bit words whose highest byte means nothing."""
    import numpy

    words = numpy.frombuffer(depths, "<u4") & _DEPTH_BITS
    if stencils is not None:
        words |= numpy.frombuffer(stencils, "u1").astype("<u4") << 24
    return words.tobytes()


def _is_composed(format: Format) -> bool:
    """Whether an item of a .npy file has 24 bits of depth, and maybe a stencil above them."""
    return "D" in format.channels and format.channel_bits[format.channels.index("D")] == 24
