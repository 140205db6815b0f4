"""``python -m benchmarks.comparing``: the processor time to compare an output with an expected file.

The time includes reading the file. The benchmark holds it against only reading the file into a new array.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Bound, ratio
from benchmarks.turns import in_turns, judged, shown
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.plan.records import BufferPlan
from scenario_runner.suite.expectations.format import Check
from scenario_runner.suite.expectations.format import Output as Expected
from scenario_runner.suite.expectations.outputs import Output
from scenario_runner.suite.expectations.reading import Expectations
from scenario_runner.suite.expectations.rules import check_output
from scenario_runner.suite.expectations.validation import bind_output

BOUND = Bound(must=3.0)

# Comparisons: a name, the type, and the keys of the expectation. With keys, all elements differ.
CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("equal bytes", "float32", {}),
    ("float32, atol", "float32", {"atol": 1e-3}),
    ("float32, rtol", "float32", {"rtol": 1e-5}),
    ("float32, atol and rtol", "float32", {"atol": 1e-6, "rtol": 1e-5}),
    ("float32, ulp", "float32", {"ulp": 2}),
    ("float32, ulp and zero", "float32", {"ulp": 2, "zero": 1e-6}),
    ("float64, rtol", "float64", {"rtol": 1e-9}),
    *(
        (f"{name}, {' and '.join(keys)}", name, keys)
        for name, atol, rtol in (
            ("float16", 0.01, 0.01),
            ("bfloat16", 0.05, 0.05),
            ("float8_e4m3", 0.6, 0.26),
            ("float8_e5m2", 1.1, 0.51),
        )
        for keys in ({"atol": atol}, {"rtol": rtol}, {"atol": atol, "rtol": rtol}, {"ulp": 2})
    ),
    ("uint8, atol", "uint8", {"atol": 1}),
)


def main(argv: list[str] | None = None) -> int:
    """Return 0. A missed bound is reported, but is no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    parser.add_argument("--runs", type=int, default=11, metavar="N", help="measured pairs of runs (default 11)")
    parser.add_argument("--size", type=int, default=64, metavar="MIB", help="size of the output (default 64 MiB)")
    parser.add_argument("--quick", action="store_true", help="1 MiB: shows that the benchmark works")
    options = parser.parse_args(argv)
    size = (1 if options.quick else options.size) << 20
    with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder:
        for name, dtype, keys in CASES:
            read, compare = _case(Path(folder) / "expected.npy", size, dtype, keys)
            times = in_turns({"reading": read, "comparing": compare}, options.runs, clock=time.thread_time)
            found = ratio(times["comparing"], times["reading"]).median
            print(f"{name}: {shown(times['comparing'])}; / reading: {judged(found, BOUND)}")
    return 0


def _case(path: Path, size: int, dtype: str, keys: dict[str, Any]) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return functions that read a file with an expected output, and compare an output with the file."""
    element = ELEMENTS[dtype]
    if dtype == "uint8":
        expected = np.random.default_rng(1).integers(0, 255, size, "u1")
    else:
        numbers = np.random.default_rng(1).normal(size=size // element.size_bytes)
        expected = np.frombuffer(element.encoded(numbers), element.dtype)  # type: ignore[arg-type]
    np.save(path, expected)
    actual = (expected.view(f"u{element.size_bytes}") + (1 if keys else 0)).astype(f"u{element.size_bytes}")
    output = Output("x", "x", BufferPlan("x", "", size), size)
    # relative to a denormal value a step is large
    allowed: dict[str, Any] = {"allowed_share": 0.02} if list(keys) == ["rtol"] else {}
    check = Check(outputs={"x": Expected(**keys, **allowed, dtype=dtype)} if keys else {})
    expectation = bind_output(Expectations(check, check, "", ""), output, str(path))
    assert not expectation.misfits

    def compare() -> None:
        result = check_output(expectation, actual.data.cast("B"))
        assert result.status == "Pass", result.message

    return lambda: np.load(path), compare


if __name__ == "__main__":
    sys.exit(main())
