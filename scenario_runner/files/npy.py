"""NumPy's .npy files: payloads streamed into memory that somebody else owns, and arrays written from such memory.

Bytes of C-order little-endian files go from the file into the destination (mapped device memory, say) by the read
system call alone. Big-endian items are swapped on the way, chunk by chunk; Fortran order is the one case that imports
NumPy. Items are never interpreted: bfloat16 (``V2``), float8 (``V1``) and text pass through as their bytes.
"""

from __future__ import annotations

import array
import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from scenario_runner.files.npy_header import NpyHeader, format_header, parse_descr, parse_header
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import SourceFile, file_error

if TYPE_CHECKING:
    import numpy

__all__ = ["NpyHeader", "NpyReader", "NpyWriter", "open_npy", "parse_descr", "read_array", "read_header", "write_npy"]

_CHUNK_SIZE_BYTES = 4 << 20  # scratch memory of a conversion


def read_header(path: str | os.PathLike[str]) -> NpyHeader:
    """The checked header of a .npy file; the payload is not read. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


def open_npy(path: str | os.PathLike[str]) -> NpyReader:
    """Open a .npy file and check its header against its size. Raises `FileError`; close the reader after use."""
    return NpyReader(path)


def read_array(path: str | os.PathLike[str]) -> numpy.ndarray[Any, Any]:
    """The whole file as a new C-order little-endian array (imports NumPy). Raises `FileError`."""
    import numpy

    with NpyReader(path) as reader:
        header = reader.header
        try:
            dtype = numpy.dtype(header.descr).newbyteorder("<")
        except TypeError as error:  # long doubles of another machine
            raise file_error(
                reader.path, f"holds items of the type {header.descr!r}: {error}", code="SR-FILE-008"
            ) from error
        array = numpy.empty(header.shape, dtype)
        reader.read_into(array.reshape(-1).view("u1").data)
    return array


def write_npy(
    path: str | os.PathLike[str],
    descr: str,
    shape: Sequence[int],
    chunks: Iterable[bytes | bytearray | memoryview],
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write a C-order .npy file (version 1.0) whose payload is ``chunks`` one after the other.

    ``descr`` is a little-endian type like ``'<f4'``, ``'|i1'`` or ``'<V2'``. The file appears complete or not at all;
    missing folders are created. Raises `FileError`, and ``ValueError`` for a type or shape that no file can have.
    """
    with NpyWriter(path, descr, shape, create=create) as writer:
        for chunk in chunks:
            writer.write(chunk)


class NpyReader:
    """An open .npy file whose ``header`` has been checked, and its ``identity``; a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._source = SourceFile(path)
        try:
            self.header = parse_header(self._source)
        except BaseException:
            self._source.close()
            raise
        self.path = self._source.path
        self.identity = self._source.identity
        self._converted: memoryview | None = None

    def read_into(self, destination: memoryview, offset: int = 0, size: int | None = None) -> int:
        """Put ``size`` bytes of the payload, from byte ``offset`` of it on, at the start of ``destination``.

        The payload counts as C-order and little-endian, whatever the file has; ``size`` defaults to all from
        ``offset`` on, and is what is returned. ``destination`` must be writable and contiguous and is not read.
        Threads may read side by side. Raises `FileError` where the file ends early, ``ValueError`` for a range
        outside the payload or a destination that is too small.
        """
        header = self.header
        view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
        if size is None:
            size = header.data_size_bytes - offset
        if offset < 0 or size < 0 or offset + size > header.data_size_bytes or size > len(view):
            raise ValueError(
                f"bytes {offset} to {offset + size} of a payload of {header.data_size_bytes} bytes"
                f" were asked for, into {len(view)} bytes"
            )
        view = view[:size]
        if header.is_plain:
            self._source.read_into(view, header.data_offset + offset)
        elif header.is_c_order:
            self._read_swapped(view, offset)
        elif size == header.data_size_bytes:
            self._read_transposed(view)
        else:
            view[:] = self._whole_converted()[offset : offset + size]
        return size

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._source.close()
        self._converted = None

    def __enter__(self) -> NpyReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_swapped(self, view: memoryview, offset: int) -> None:
        unit = self.header.swap_size_bytes
        position, end = offset, offset + len(view)
        while position < end:
            first = position - position % unit  # whole units around the range asked for
            last = min(end + -end % unit, first + _CHUNK_SIZE_BYTES - _CHUNK_SIZE_BYTES % unit)
            swapped = _swapped(self._source.read(last - first, self.header.data_offset + first), unit)
            stop = min(last, end)
            view[position - offset : stop - offset] = swapped[position - first : stop - first]
            position = stop

    def _read_transposed(self, view: memoryview) -> None:
        """Spread slabs of the last axis, which lie together in a Fortran-order file, over the C-order destination."""
        import numpy

        header = self.header
        if not view:
            return
        items = numpy.frombuffer(view, dtype=f"V{header.item_size_bytes}").reshape(header.shape)
        count = header.shape[-1]
        slab_size_bytes = header.data_size_bytes // count
        step = max(1, _CHUNK_SIZE_BYTES // slab_size_bytes)
        for start in range(0, count, step):
            stop = min(start + step, count)
            data: bytes | bytearray = self._source.read(
                (stop - start) * slab_size_bytes, header.data_offset + start * slab_size_bytes
            )
            if header.swap_size_bytes > 1:
                data = _swapped(data, header.swap_size_bytes)
            slab = numpy.frombuffer(data, dtype=items.dtype).reshape((*header.shape[:-1], stop - start), order="F")
            items[..., start:stop] = slab

    def _whole_converted(self) -> memoryview:
        if self._converted is None:
            # Parts of a transposed array touch all of the file: convert once, at the cost of the payload in memory.
            converted = memoryview(bytearray(self.header.data_size_bytes))
            self._read_transposed(converted)
            self._converted = converted
        return self._converted


class NpyWriter:
    """A .npy file being written chunk by chunk; a context manager that stores the file when its block ends well.

    ``create`` makes the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        descr: str,
        shape: Sequence[int],
        *,
        create: CreateOutput = OutputFile,
    ) -> None:
        order, _, item_size_bytes = parse_descr(descr)
        if order == ">":
            raise ValueError(f"the type {descr!r} is big-endian, only little-endian payloads are written")
        header = format_header(descr, tuple(shape))
        self._missing = item_size_bytes
        for length in shape:
            self._missing *= length
        self._output = create(path, len(header) + self._missing)
        try:
            self._output.write(header)
        except BaseException:
            self._output.discard()
            raise

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next bytes of the payload. Raises `FileError`; ``ValueError`` for more than the shape has."""
        size = memoryview(data).nbytes
        if size > self._missing:
            raise ValueError(
                f"{size - self._missing} bytes more than the shape has were written to {self._output.path!r}"
            )
        self._output.write(data)
        self._missing -= size

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and not self._missing:
            self._output.commit()
            return
        self._output.discard()
        if kind is None:
            raise ValueError(f"{self._missing} bytes less than the shape has were written to {self._output.path!r}")


def _swapped(data: bytes | bytearray, unit: int) -> bytes | bytearray:
    """``data`` with the bytes of each ``unit`` of them reversed."""
    code = {2: "H", 4: "I", 8: "Q"}.get(unit)
    if code is not None:
        items = array.array(code, data)
        items.byteswap()
        return items.tobytes()
    result = bytearray(len(data))
    for index in range(unit):
        result[index::unit] = data[unit - 1 - index :: unit]
    return result
