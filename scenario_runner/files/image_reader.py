"""What reads the texels of an open image file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format


class ImageHeader(NamedTuple):
    """What an image file says that it holds; ``format`` is None where it says only the type of its items."""

    format: Format | None
    width: int
    height: int
    mip_count: int = 1


class ImageReader(ABC):
    """An open image file that fits what was declared; a context manager.

    ``mip_count`` levels can be read, each as a Vulkan buffer-to-image copy takes it: tightly packed, the aspect that is
    the format's first unless another is named.
    """

    mip_count = 1

    @abstractmethod
    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        """Bytes of one level."""

    @abstractmethod
    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        """Put ``size`` bytes of a level, from its byte ``offset`` on, at the start of ``destination``.

        ``size`` defaults to all from ``offset`` on, and is what is returned. Stencils that the file has no room for are
        zeros. Raises `FileError` where the file is broken, ``ValueError`` for a range outside the level or a
        destination that is too small.
        """

    def close(self) -> None:  # noqa: B027 - what holds nothing open has nothing to close
        """Close the file; may be called twice."""

    def __enter__(self) -> ImageReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def check_extent(path: str, found_width: int, found_height: int, width: int, height: int) -> None:
    """Raise `FileError` where a file has another extent than the scenario declares."""
    if (found_width, found_height) == (width, height):
        return
    raise mismatch(
        path,
        f"has {found_width}x{found_height} texels, but the scenario declares {width}x{height} (width x height)",
    )


def mismatch(path: str, message: str) -> FileError:
    """The error for a file that holds something else than the scenario declares."""
    return file_error(path, message, code="SR-FILE-002")
