"""Pages of memory that are provided before they are touched."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from scenario_runner.system_limits import control_groups
from scenario_runner.vulkan.memory import left_in, populate

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


_FIRST = {"memory.limit_in_bytes": 9000, "memory.usage_in_bytes": 5000}
_SECOND = {"memory.max": 9000, "memory.current": 5000}


@pytest.mark.parametrize(
    "line, folder, files, stat",
    [
        ("4:cpu,memory:/job/step", "memory/job", _FIRST, "cache 9\ntotal_active_file 100\ntotal_inactive_file 200\n"),
        ("0::/job/step", "job", _SECOND, "anon 5\nactive_file 100\ninactive_file 200\n"),
        ("0::/host/path/of/a/container", "", _SECOND, "active_file 300\n"),
    ],
)
def test_limits_of_control_groups(tmp_path: Path, line: str, folder: str, files: dict[str, int], stat: str) -> None:
    """The group of a process, or one around it, bounds its memory; cached files do not count as used."""
    (tmp_path / "cgroup").write_text(f"7:pids:/job/step\n{line}\n")
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (group / name).write_text(f"{value}\n")
    (group / "memory.stat").write_text(stat)
    found = list(control_groups("memory", str(tmp_path / "cgroup"), str(tmp_path)))
    assert [left_in(each) for each in found if left_in(each) is not None] == [9000 - 5000 + 300]
    assert str(group) in found
    (group / "memory.stat").unlink()
    assert left_in(str(group)) is None
    assert list(control_groups("memory", str(tmp_path / "none"), str(tmp_path))) == []


def test_little_memory_is_left_alone():
    """A few bytes, or none, are nothing to provide."""
    for size in (0, 1, 4096):
        populate(memoryview(bytearray(size)))
