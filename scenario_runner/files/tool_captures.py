"""The files of capture tools: whether all of one is there. The tools do not say so when the disk is full.

Sources: renderdoc/serialise/rdcfile.cpp of RenderDoc 1.x (a header, then sections that say how long they are), and
framework/format/format.h of gfxreconstruct (a header with pairs of options, then blocks that say how long they are).
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

_RDC_HEADER = struct.Struct("<8sII")  # magic number, version, size of the header
_RDC_VERSION = 0x102
_RDC_SECTION = struct.Struct("<4sIQQQII")  # text or not, kind, size in the file, size, version, flags, size of the name
_GFXR_MAGIC = b"GFXR"
_GFXR_HEADER = struct.Struct("<4sIII")  # magic number, version, number of options
_GFXR_OPTION_BYTES = 8
_GFXR_BLOCK = struct.Struct("<QI")  # size of what follows, kind


def is_whole_rdc(path: str) -> bool:
    """Whether a capture of RenderDoc has all of its sections; of versions that are not known, whether it has a header.

    Raises OSError.
    """
    with open(path, "rb") as file:
        head = file.read(_RDC_HEADER.size)
        if len(head) < _RDC_HEADER.size or not head.startswith(b"RDOC"):
            return False
        _, version, end = _RDC_HEADER.unpack(head)
        if version != _RDC_VERSION:
            return True
        size = _size_of(file)
        while end < size:
            file.seek(end)
            section = file.read(_RDC_SECTION.size)
            if len(section) < _RDC_SECTION.size:
                return False
            is_text, _, stored, _, _, _, name = _RDC_SECTION.unpack(section)
            if any(is_text):
                return False  # only what a user adds later is text
            end += _RDC_SECTION.size + name + stored
        return bool(end == size)


def is_gfxr(path: str) -> bool:
    """Whether a file begins like one of gfxreconstruct. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(len(_GFXR_MAGIC)) == _GFXR_MAGIC


def is_whole_gfxr(path: str) -> bool:
    """Whether a capture of gfxreconstruct ends where its last block does. Raises OSError."""
    with open(path, "rb") as file:
        head = file.read(_GFXR_HEADER.size)
        if len(head) < _GFXR_HEADER.size or not head.startswith(_GFXR_MAGIC):
            return False
        size = _size_of(file)
        end = start = _GFXR_HEADER.size + _GFXR_HEADER.unpack(head)[-1] * _GFXR_OPTION_BYTES
        while end < size:
            file.seek(end)
            block = file.read(_GFXR_BLOCK.size)
            if len(block) < _GFXR_BLOCK.size:
                return False
            end += _GFXR_BLOCK.size + _GFXR_BLOCK.unpack(block)[0]
        return bool(start < end == size)


def _size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
