"""Constants of models in kept plans: which bytes of which file, as it was then."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

from scenario_runner.plan.graph_plan import ConstantData

Identity = tuple[int, ...]

# Where the header of a VGF file says where the constant section begins.
_SECTION_AT = 64
_U64 = struct.Struct("<Q")

_mapped: dict[tuple[str, Identity], memoryview] = {}


def file_identity(path: str) -> Identity:
    """What tells a file from another one at the same path, without reading it; empty for none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def place_in_model(view: memoryview, index: int, path: str) -> tuple[str, int] | None:
    """Where the data of constant ``index`` of the VGF file at ``path`` lie; None where they are a copy.

    The header and the constant section were checked when the file was read (`vgf.constants` describes them).
    """
    mapping = view.obj
    if not isinstance(mapping, mmap.mmap):
        return None
    (section,) = _U64.unpack_from(mapping, _SECTION_AT)
    (count,) = _U64.unpack_from(mapping, section + 8)
    (offset,) = _U64.unpack_from(mapping, section + 16 + 24 * index + 16)
    return path, section + 16 + 24 * count + offset


def encoded_constant(data: ConstantData) -> tuple[Any, ...]:
    """Path, identity, first byte and size."""
    assert data.place is not None, "constants of files only"
    path, start = data.place
    return path, file_identity(path), start, data.view.nbytes


def decoded_constant(value: tuple[Any, ...]) -> ConstantData | None:
    """The constant, mapped again; None where the file is another one now."""
    path, identity, start, size = value
    if file_identity(path) != identity:
        return None
    view = _mapped.get((path, identity))
    if view is None:
        _mapped.clear()  # one model at a time
        with open(path, "rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        _mapped[path, identity] = view
    return ConstantData(view[start : start + size], (path, start))
