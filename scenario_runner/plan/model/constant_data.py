"""The bytes of a graph's constants: in memory, or a part of a file that is read when the pipeline is made."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.source import Identity, SourceFile

# Above this much, constants are not copied but mapped where the file cannot change meanwhile.
_LARGE_BYTES = 64 << 20
_COMPARED_BYTES = 1 << 20


class FilePart(NamedTuple):
    """``size_bytes`` from ``start_bytes`` on of the file at ``path``, which had this identity when it was planned."""

    path: str
    identity: Identity
    start_bytes: int
    size_bytes: int


class ConstantData:
    """The bytes of one constant; equal where they are known to be the same bytes, so that pipelines are found again.

    Parts of files compare by the identity of the file, not by its content: that takes too long for large models.
    """

    __slots__ = ("_hash", "_view", "part")

    def __init__(self, data: memoryview | FilePart) -> None:
        self.part = data if isinstance(data, FilePart) else None
        self._view = None
        if isinstance(data, FilePart):
            self._hash = hash((data.identity, data.start_bytes, data.size_bytes))
        else:
            self._view = data if data.readonly else memoryview(bytes(data))  # the caller may change it later
            self._hash = zlib.crc32(self._view)

    @property
    def size_bytes(self) -> int:
        if self.part is not None:
            return self.part.size_bytes
        assert self._view is not None
        return self._view.nbytes

    @property
    def view(self) -> memoryview | None:
        """The bytes, where they are in memory."""
        return self._view

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ConstantData) or self._hash != other._hash:
            return False
        if self.part is not None and other.part is not None:
            return self.part.identity.settled and self.part[1:] == other.part[1:]
        if self._view is None or other._view is None or self._view.nbytes != other._view.nbytes:
            return False
        one, two = self._view, other._view
        return all(
            bytes(one[at : at + _COMPARED_BYTES]) == bytes(two[at : at + _COMPARED_BYTES])
            for at in range(0, one.nbytes, _COMPARED_BYTES)
        )


@contextmanager
def in_memory(constants: Iterable[ConstantData]) -> Iterator[list[memoryview]]:
    """The bytes of each constant, valid as long as the block runs. Raises FileError, also where a file has changed."""
    constants = list(constants)
    large = sum(each.part.size_bytes for each in constants if each.part is not None) >= _LARGE_BYTES
    with ExitStack() as stack:
        files: dict[str, tuple[SourceFile, memoryview | None]] = {}
        views = []
        for each in constants:
            part = each.part
            if part is None:
                assert each.view is not None
                views.append(each.view)
                continue
            if part.path not in files:
                files[part.path] = _opened(part, stack, large)
            file, mapped = files[part.path]
            if mapped is not None:
                views.append(mapped[part.start_bytes : part.start_bytes + part.size_bytes])
            else:
                data = memoryview(bytearray(part.size_bytes))
                file.read_into(data, part.start_bytes)
                views.append(data)
        yield views


def _opened(part: FilePart, stack: ExitStack, large: bool) -> tuple[SourceFile, memoryview | None]:
    """The file, and its mapping if it is ``large`` and cannot be changed until the stack is closed."""
    file = stack.enter_context(SourceFile(part.path))
    leased = False
    if large:
        from scenario_runner.files.lease import lease

        leased = stack.enter_context(lease(file))
    if not file.current_identity().is_same_file(part.identity):
        raise FileError(f"{part.path}: the file changed while the scenario was running")
    if not leased:
        return file, None
    import mmap

    return file, memoryview(mmap.mmap(file.descriptor, 0, access=mmap.ACCESS_READ))
