"""``python -m benchmarks.captures``: capturing a 64 MiB buffer at each of 20 frames, against plain copies to files."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.bounds import Bound, ratio
from benchmarks.turns import Ways, in_turns, judged, shown
from benchmarks.workloads.workload import buffer, compile_shader, dispatch, shader, write_scenario
from scenario_runner import Runner

ADD = """#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer Data { uvec4 data[]; };
void main() {
    data[gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 256 + gl_GlobalInvocationID.x] += 1u;
}
"""
FRAMES = 20
BOUND = Bound(must=2.0)


def main(argv: list[str] | None = None) -> int:
    """Return 0, or 1 if a capture is wrong. A missed bound is reported, but is no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.captures", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="measured runs (default 5)")
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where to write (default: for temporary files)")
    parser.add_argument("--quick", action="store_true", help="1 MiB: shows that the benchmark works")
    options = parser.parse_args(argv)
    size_bytes = 1 << 20 if options.quick else 64 << 20
    with (
        tempfile.TemporaryDirectory(prefix="scenario-benchmarks-", dir=options.folder) as root,
        Runner(options.device) as runner,
    ):
        folder = Path(root)
        path = _scenario(folder, size_bytes)
        content = memoryview(bytearray(os.urandom(1 << 20) * (size_bytes >> 20)))
        ways: Ways = {
            "the run without captures": lambda: runner.run_to_files(path),
            "plain copies": lambda: _copies(folder / "plain copies", content),
            "the run with captures": lambda: runner.run_to_files(path, capture_dir=folder / "the run with captures"),
        }
        times = in_turns(ways, options.runs, before=lambda name: shutil.rmtree(folder / name, ignore_errors=True))
        wrong = not _is_right(folder / "the run with captures")
        print(f"device: {runner.physical_device.name}")
    for name, measured in times.items():
        print(f"{name}: {shown(measured)}")
    found = ratio(times["the run with captures"], times["plain copies"]).median
    print(f"with captures / plain copies: {judged(found, BOUND)}")
    if wrong:
        print("the captures are wrong")
    return int(wrong)


def _scenario(folder: Path, size_bytes: int) -> Path:
    (folder / "add.spv").write_bytes(compile_shader(ADD))
    groups = size_bytes // 16 // 256
    commands = []
    for _ in range(FRAMES):
        commands.append(dispatch("add", [min(groups, 1024), max(groups // 1024, 1), 1], "data"))
        commands.append({"mark_boundary": {"resources": ["data"]}})
    write_scenario(folder / "scenario.json", commands, [shader("add", "add.spv"), buffer("data", size_bytes)])
    return folder / "scenario.json"


def _copies(folder: Path, content: memoryview) -> None:
    """Do the minimum: copy the bytes, so that the next frame can change them, and write them to a file."""
    folder.mkdir()
    for number in range(FRAMES):
        copied = bytes(content)
        with open(folder / str(number), "wb", buffering=0) as file:
            file.write(copied)


def _is_right(folder: Path) -> bool:
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    arrays = (np.load(folder / entry["file"], mmap_mode="r").view(np.uint32) for entry in entries)
    return len(entries) == FRAMES and all(bool((array == number + 1).all()) for number, array in enumerate(arrays))


if __name__ == "__main__":
    sys.exit(main())
