"""Writes the input files and the expected results of the scenarios in this folder.

    python scenarios/generate.py [CASE…]        for instance basics/add; by default all of them

Each case has an `expected.py` with two functions: ``inputs()`` returns the arrays of the .npy files by name, and
``expected(**inputs)`` computes with NumPy alone what the scenario must give, by file name under ``expected/``.
Running this again changes nothing, which the tests check.
"""

import argparse
import runpy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
Arrays = dict[str, NDArray[np.generic]]


def cases() -> list[Path]:
    """Return every scenario's folder, sorted."""
    return sorted(path.parent for path in HERE.rglob("scenario.json"))


def make_inputs(case: Path) -> Arrays:
    """Make the case's input files with `expected.py`."""
    made: Arrays = runpy.run_path(str(case / "expected.py"))["inputs"]()
    return made


def read_inputs(case: Path) -> Arrays:
    """Read the case's input files from disk."""
    return {path.stem: np.load(path) for path in sorted(case.glob("*.npy"))}


def compute_expected(case: Path) -> Arrays:
    """Compute the scenario's results with NumPy from the input files on disk."""
    computed: Arrays = runpy.run_path(str(case / "expected.py"))["expected"](**read_inputs(case))
    return computed


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the input files and expected results of scenarios.")
    parser.add_argument("case", nargs="*", help="for instance basics/add; by default all")
    chosen = [HERE / name for name in parser.parse_args().case] or cases()
    for case in chosen:
        for name, array in make_inputs(case).items():
            np.save(case / f"{name}.npy", array)
        for name, array in compute_expected(case).items():
            path = case / "expected" / f"{name}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, array)


if __name__ == "__main__":
    main()
