"""What new workers allocate comes from large pages; in a process of its own, as a heap is there for all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")

# Prints the kilobytes of the heap that may be in large pages, and those that are in memory of them.
PROBE = """
import re
from scenario_runner.suite.running.large_pages import make_room

make_room()
regions = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())
large = [each for each in regions if "[heap]" in each and " hg" in each]
for name in "Size", "Rss":
    print(sum(int(re.search(rf"(?m)^{name}: +(\\d+) kB", each)[1]) for each in large))
"""


@pytest.mark.skipif(not SETTING.exists() or "CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="no large pages here")
def test_room_is_made_and_left_untouched() -> None:
    """Some megabytes at the end of the heap are for large pages; they take no memory before they are used."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    size_kib, used_kib = map(int, done.stdout.split())
    assert size_kib >= 4096
    assert used_kib <= 256
