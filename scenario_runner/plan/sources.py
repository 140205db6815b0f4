"""Where initial bytes come from: a .npy file, or an array given in code."""

from __future__ import annotations

from typing import Any

from scenario_runner.array_data import array_of, plain_bytes
from scenario_runner.errors import FileError
from scenario_runner.files.npy import NpyReader, open_npy, read_header


class NpySource:
    """The payload of a .npy file; opened for each reading, so that thousands of them need no open files."""

    def __init__(self, path: str) -> None:
        """Reads the header. Raises FileError, which begins with the path."""
        self.path = path
        self.header = read_header(path)
        self._converted: memoryview | None = None

    @property
    def size_bytes(self) -> int:
        return self.header.data_size_bytes

    @property
    def divisible(self) -> bool:
        """Each part is read through a reader of its own."""
        return self.header.is_c_order

    def opened(self) -> NpyReader:
        """The file, to be closed by the caller. Raises FileError, also where its header is another one now."""
        reader = open_npy(self.path)
        if reader.header != self.header:
            reader.close()
            raise FileError(f"{self.path}: the file changed while the scenario was running")
        return reader

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        end = offset + len(destination)
        if self._converted is None:
            with self.opened() as reader:
                if self.header.is_c_order or len(destination) == self.size_bytes:
                    reader.read_into(destination, offset, len(destination))
                    return
                # every part of a transposed array touches all of the file: convert once, and keep it until the end
                self._converted = memoryview(bytearray(self.size_bytes))
                reader.read_into(self._converted)
        destination[:] = self._converted[offset:end]
        if end == self.size_bytes:
            self._converted = None


class ArraySource:
    """The bytes of an array (what `array_of` takes), little-endian and in C order.

    ``descr`` and ``shape`` are those of a NumPy array (``'<f4'``; ml_dtypes' types are raw bytes, as in files), None
    for other buffers, whose bytes mean what the resource says.
    """

    def __init__(self, data: Any, name: str) -> None:
        """Raises UsageError when ``data`` is not an array of plain values."""
        data = array_of(data, name)
        self._view = plain_bytes(data, name)
        dtype = getattr(data, "dtype", None)
        self.descr: str | None = None if dtype is None else str(dtype.str)
        self.shape: tuple[int, ...] | None = None if dtype is None else tuple(data.shape)

    @property
    def size_bytes(self) -> int:
        return len(self._view)

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        destination[:] = self._view[offset : offset + len(destination)]
