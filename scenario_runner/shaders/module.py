"""The file that a compiler wrote."""

from __future__ import annotations

MAX_FILE_BYTES = 64 << 20
_SPIRV_MAGIC = b"\x03\x02\x23\x07"


def read_module(path: str) -> bytes:
    """Its bytes, or one more than ``MAX_FILE_BYTES`` of them. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def is_module(data: bytes) -> bool:
    """Whether this can be a module of SPIR-V: its header, whole words, a size within bounds."""
    return 20 <= len(data) <= MAX_FILE_BYTES and len(data) % 4 == 0 and data[:4] == _SPIRV_MAGIC
