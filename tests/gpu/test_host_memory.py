"""Pages of memory that are provided before they are touched."""

from __future__ import annotations

import mmap
from pathlib import Path

from scenario_runner.vulkan.memory.host_memory import populate

_SIZE_BYTES = 8 << 20


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_pages_are_provided_and_what_they_hold_stays():
    """Fresh memory becomes resident, zero but for the bytes that were written before."""
    with mmap.mmap(-1, _SIZE_BYTES) as memory:
        memory[5_000_000] = 77
        before = _resident_bytes()
        with memoryview(memory) as view, view[1000 : _SIZE_BYTES - 1000] as inner:
            populate(inner)
            assert _resident_bytes() - before > _SIZE_BYTES - (1 << 20)
            assert memory[5_000_000] == 77
            assert sum(view) == 77


def test_little_memory_is_left_alone():
    """A few bytes, or none, are nothing to provide."""
    for size in (0, 1, 4096):
        populate(memoryview(bytearray(size)))
