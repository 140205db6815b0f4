"""Whether a file of a capture tool is whole."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scenario_runner.run.capture_tools import is_gfxr, is_whole_gfxr, is_whole_rdc

SECTION = struct.pack("<4sIQQQII", bytes(4), 1, 5, 9, 21, 2, 4) + b"name" + b"12345"
RDC = struct.pack("<8sII", b"RDOC", 0x102, 20) + b"more" + SECTION
GFXR = struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 1) + struct.pack("<QI", 3, 5) + b"abc" + struct.pack("<QI", 0, 3)


@pytest.mark.parametrize(
    "content, whole",
    [
        (RDC, True),
        (RDC + SECTION, True),
        (RDC[:-1], False),
        (RDC + SECTION[:20], False),
        (RDC + bytes(10), False),
        (RDC[:12], False),
        (b"", False),
        (b"x" * 100, False),
        (struct.pack("<8sII", b"RDOC", 0x777, 20), True),  # a version that is not known
    ],
)
def test_renderdoc(tmp_path: Path, content: bytes, whole: bool) -> None:
    """The last section has to end with the file."""
    path = tmp_path / "a.rdc"
    path.write_bytes(content)
    assert is_whole_rdc(str(path)) is whole


@pytest.mark.parametrize(
    "content, whole", [(GFXR, True), (GFXR[:-1], False), (GFXR[:-12], True), (GFXR[:24], False), (b"GFXR", False)]
)
def test_gfxreconstruct(tmp_path: Path, content: bytes, whole: bool) -> None:
    """The last block has to end with the file."""
    path = tmp_path / "a.gfxr"
    path.write_bytes(content)
    assert is_whole_gfxr(str(path)) is whole
    assert is_gfxr(str(path))
