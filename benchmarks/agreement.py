"""``python -m benchmarks.agreement``: do two programs write the same files for the same scenarios?

Files are compared byte by byte. For .npy files type, shape and elements count, since headers may be padded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.programs import CHECKOUT, Program, ours, reference
from benchmarks.report import print_table

_TIMEOUT_S = 120.0
_SHOWN_LENGTH = 110


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0, or 1 if a scenario gave different files."""
    options = _parse(argv)
    programs = (ours(options.ours), reference(options.reference))
    scenarios = sorted(path for folder in options.folders for path in Path(folder).rglob("*.json") if _is_one(path))
    lines: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory(prefix="scenario-agreement-") as root:
        for number, scenario in enumerate(scenarios):
            outcome, what = compare(scenario, programs, Path(root) / str(number))
            lines.append((str(scenario), outcome, what))
    print_table(("scenario", "outcome", ""), lines)
    counts = Counter(outcome for _, outcome, _ in lines)
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if counts["different"] else 0


def compare(scenario: Path, programs: tuple[Program, Program], root: Path) -> tuple[str, str]:
    """Run a scenario with both programs into separate folders under ``root``. Return the outcome and details."""
    wanted = outputs(json.loads(scenario.read_text(encoding="utf-8")))
    said: list[str | None] = []
    for program in programs:
        target = root / program.name
        for name in wanted:  # the reference makes no folders
            (target / name).parent.mkdir(parents=True, exist_ok=True)
        said.append(_run(program, scenario, target))
    mine, other = said
    if mine is not None and other is not None:
        return "neither runs it", other
    if other is not None:
        return "only ours runs it", other
    if mine is not None:
        return "only the reference runs it", mine
    differing = [
        f"{name}: {what}"
        for name in wanted
        if (what := difference(*(root / program.name / name for program in programs)))
    ]
    return ("different", "; ".join(differing)) if differing else ("equal", f"{len(wanted)} files")


def difference(one: Path, other: Path) -> str:
    """Describe the difference between our file and the reference's; empty if they agree."""
    if not one.is_file() or not other.is_file():
        return "" if one.is_file() == other.is_file() else f"{'reference' if one.is_file() else 'ours'}: no such file"
    if one.suffix == ".npy":
        mine, theirs = np.load(one), np.load(other)
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return f"{mine.dtype}{list(mine.shape)}, the reference's {theirs.dtype}{list(theirs.shape)}"
        return _differing(mine.tobytes(), theirs.tobytes())
    return _differing(one.read_bytes(), other.read_bytes())


def _differing(one: bytes, other: bytes) -> str:
    if len(one) != len(other):
        return f"{len(one)} bytes, the reference's {len(other)}"
    count = int((np.frombuffer(one, "u1") != np.frombuffer(other, "u1")).sum())
    return f"{count} of {len(one)} bytes" if count else ""


def outputs(document: Any) -> list[str]:
    """List every relative ``dst`` in a test description in order."""
    return list(dict.fromkeys(name for name in _destinations(document) if not Path(name).is_absolute()))


def _destinations(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "dst" and isinstance(inner, str):
                yield inner
            else:
                yield from _destinations(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _destinations(inner)


def _run(program: Program, scenario: Path, target: Path) -> str | None:
    """Run a scenario. Return None, or an error."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            program.arguments([scenario], target), cwd=CHECKOUT, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return None
    text = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return f"exit code {done.returncode}: {text[-1] if text else ''}"[:_SHOWN_LENGTH]


def _is_one(path: Path) -> bool:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(document, dict) and {"commands", "resources"} <= document.keys()


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement", description="Compare the files of two programs, byte by byte."
    )
    parser.add_argument("--reference", metavar="PATH", required=True, help="start script or binary of the reference")
    parser.add_argument("--ours", metavar="PATH", help="our program as installed (default: this checkout's)")
    parser.add_argument(
        "folders", metavar="DIR", nargs="*", default=[str(CHECKOUT / "scenarios")], help="where to look for scenarios"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
