"""The benchmark measures what it says; no test here depends on how fast anything is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import captures, comparing, conversion, labels, timestamps
from benchmarks.__main__ import main
from benchmarks.bounds import Bound, Spread, ratio
from benchmarks.launcher import Launcher
from benchmarks.measurement import Bench, Outcome, Sample, environment
from benchmarks.programs import CHECKOUT, Program, ours
from benchmarks.report import HEADINGS, as_json, print_table, rows
from benchmarks.workloads import all_workloads
from benchmarks.workloads.graphs import GraphConstants
from benchmarks.workloads.shaders import Shaders
from benchmarks.workloads.small import Small

# A program that takes the options of the reference and runs nothing, successfully.
IDLE = Program("reference", (sys.executable, "-c", "pass"), runs_many=False)


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as launcher:
        yield launcher


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workloads, as in a whole benchmark: its cache is theirs."""
    return tmp_path_factory.mktemp("benchmark")


@pytest.mark.parametrize("name", all_workloads())
def test_a_workload_runs_and_is_right(launcher: Launcher, root: Path, name: str) -> None:
    """Each workload in its tiny size gives the results that NumPy computed. The run to warm up does it here."""
    outcome = Bench(launcher, root, [ours()], runs=0, quick=True).measure(all_workloads()[name])
    assert (outcome.failures, outcome.samples) == ({}, {})


@pytest.mark.parametrize(
    "names",
    [("small", "large-buffers", "graph-constants"), pytest.param(tuple(all_workloads()), marks=pytest.mark.heavy)],
    ids=["some", "all"],
)
def test_workloads_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]) -> None:
    """What is measured is in the table and in the JSON."""
    target = tmp_path / "results" / "benchmark.json"
    only = [word for name in names for word in ("--only", name)]
    assert main(["--quick", "--runs", "1", "--folder", str(tmp_path), "--json", str(target), *only]) == 0
    results = json.loads(target.read_text(encoding="utf-8"))
    assert set(results["workloads"]) == set(names)
    for name, workload in results["workloads"].items():
        assert workload["failures"] == {}, name
        (sample,) = workload["runs"]["ours"]
        assert sample["wall_s"] > 0
        assert sample["peak_bytes"] > 10 << 20, "an interpreter with a driver is larger than that"
    assert len(results["workloads"]["large-buffers"]["limit"]) == 1
    constants = results["workloads"]["graph-constants"]["memory / file"]
    assert constants["file_bytes"] > 4 * 500 * 100 * 4, "four tables and what is around them"
    printed = capsys.readouterr().out
    assert all(all_workloads()[name].title in printed for name in names)
    assert not list(tmp_path.glob("scenario-benchmarks-*")), "temporary files are gone"


def test_a_workload_that_cannot_run_here_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the packages of the ml extra a graph is named as left out, and the table has no line for it."""
    monkeypatch.setitem(sys.modules, "vgfpy", None)  # as Python treats a package that cannot be imported
    target = tmp_path / "benchmark.json"
    options = ["--quick", "--runs", "1", "--folder", str(tmp_path), "--json", str(target)]
    assert main([*options, "--only", "graph-small"]) == 0
    printed = capsys.readouterr().out
    assert "graph-small: left out, it needs pip install 'scenario-runner[ml]' (no vgfpy)\n" in printed
    assert all_workloads()["graph-small"].title not in printed
    assert json.loads(target.read_text(encoding="utf-8"))["workloads"] == {}


def test_memory_is_held_against_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a workload has a bound for it, a line compares our peak with the size of the file that is loaded."""
    outcome = Outcome(GraphConstants(), {"ours": [Sample(1.0, 131 << 20)]}, file_bytes=100 << 20)
    print_table(HEADINGS, rows(outcome))
    line = " ".join(capsys.readouterr().out.splitlines()[-1].split())
    assert line == "memory / file file of 100 MiB 1.310 (1.310 to 1.310) <= 1.3 missed"
    described = as_json({}, {}, [outcome])["workloads"]["graph-constants"]["memory / file"]
    assert described["reached"] == "missed"


def test_time_is_held_against_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a workload has a bound in seconds, a line compares our median with it."""
    outcome = Outcome(Shaders("validate", cold=True), {"ours": [Sample(1.0, 1), Sample(2.5, 1), Sample(2.25, 1)]})
    print_table(HEADINGS, rows(outcome))
    assert " ".join(capsys.readouterr().out.splitlines()[-1].split()) == "seconds 2.250 s <= 2 missed"
    described = as_json({}, {}, [outcome])["workloads"]["shaders-validate-cold"]["seconds"]
    assert described == {"median": 2.25, "must": 2.0, "reached": "missed"}


def test_results_that_are_wrong_are_no_measurement(launcher: Launcher, tmp_path: Path) -> None:
    """A program that ends well without having written the results has a failure and no runs; ours is measured still."""
    bench = Bench(launcher, tmp_path, [ours(), IDLE], runs=1, quick=True)
    outcome = bench.measure(Small())
    assert list(outcome.samples) == ["ours"]
    assert list(outcome.failures) == ["reference"]
    assert outcome.failures["reference"].startswith("wrong results: ")
    assert "small_sum.npy" in outcome.failures["reference"]


def test_a_run_that_fails_tells_why(launcher: Launcher, tmp_path: Path) -> None:
    """What a failing program printed is in the report."""
    broken = Program("reference", (sys.executable, "-c", "raise SystemExit('no such layer')"), runs_many=False)
    outcome = Bench(launcher, tmp_path, [broken], runs=1, quick=True).measure(Small())
    assert outcome.failures == {"reference": "exit code 1: no such layer"}
    assert rows(outcome)[-1][1:3] == ("failed", "reference: exit code 1: no such layer")


def test_peak_memory_is_that_of_the_program(launcher: Launcher, tmp_path: Path) -> None:
    """The peak counts what the program held, even for a moment, and not what this large process holds."""
    ballast = np.ones(40 << 20, np.uint8)
    script = "block = bytearray(100 << 20); block[::4096] = bytes([1]) * len(block[::4096]); del block"
    usages = [
        launcher.run(
            [sys.executable, "-I", "-S", "-c", code],
            environment=environment(tmp_path),
            folder=str(tmp_path),
            timeout_s=60,
            log=str(tmp_path / "log"),
        )
        for code in (script, "pass")
    ]
    assert ballast.nbytes == 40 << 20
    assert [usage.exit_code for usage in usages] == [0, 0]
    assert 100 << 20 <= usages[0].peak_bytes < 140 << 20
    assert usages[1].peak_bytes < 40 << 20


def test_a_program_that_hangs_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    """A program is given its time and no more."""
    usage = launcher.run(
        [sys.executable, "-c", "import time; print('started', flush=True); time.sleep(600)"],
        environment=environment(tmp_path),
        folder=str(tmp_path),
        timeout_s=2,
        log=str(tmp_path / "log"),
    )
    assert usage.exit_code == -9
    assert usage.output == "started\n"


def test_programs_find_the_package_and_a_cache_of_their_own(tmp_path: Path) -> None:
    """Children import this checkout, may keep byte code, and leave the user's shader cache alone."""
    variables = environment(tmp_path)
    assert variables["PYTHONPATH"].startswith(str(CHECKOUT))
    assert variables["SCENARIO_RUNNER_CACHE"] == str(tmp_path / "cache")
    assert "PYTHONDONTWRITEBYTECODE" not in variables


@pytest.mark.parametrize(
    "value, bound, verdict",
    [
        (0.05, Bound(must=0.25, aim=0.1), "aim"),
        (0.1, Bound(must=0.25, aim=0.1), "aim"),
        (0.11, Bound(must=0.25, aim=0.1), "must"),
        (0.26, Bound(must=0.25, aim=0.1), "missed"),
        (0.5, Bound(must=0.5), "must"),
    ],
)
def test_a_bound_judges_a_ratio(value: float, bound: Bound, verdict: str) -> None:
    """A ratio reaches the aim, what it must, or neither."""
    assert bound.verdict(value) == verdict


def test_ratios_compare_neighbours() -> None:
    """The ratio is that of the medians; its spread is over runs that were neighbours in time."""
    assert ratio([1.0, 2.0, 9.0], [2.0, 8.0, 10.0]) == Spread(2 / 8, 0.25, 0.9)


def test_the_table_shows_ratios_and_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    """A line says what both took, their ratio, the bound and whether it was reached."""
    outcome = Outcome(Small(), {"ours": [Sample(0.11, 64 << 20)], "reference": [Sample(0.1, 128 << 20)]})
    print_table(HEADINGS, rows(outcome))
    time, memory = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:])
    assert time == (
        "one small scenario, GLSL, whole process time 0.110 s (0.110 s to 0.110 s) 0.100 s (0.100 s to 0.100 s)"
        " 1.100 (1.100 to 1.100) <= 1.3 <= 1 must"
    )
    assert memory == "memory 64 MiB (64 MiB to 64 MiB) 128 MiB (128 MiB to 128 MiB) 0.500 (0.500 to 0.500)"
    described = as_json({}, {}, [outcome])["workloads"]["small"]
    assert described["reached"] == {"time": "must"}
    assert described["ratios"]["memory"]["median"] == 0.5


def test_phases_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--phases` shows what each step of a small run takes, from starting Python to the whole of it."""
    assert main(["--phases", "--runs", "1", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "start Python" in printed
    assert "whole run" in printed


def test_the_cost_of_timestamps_is_measured(shader_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark of timestamps runs, and shows both times and their ratio with the bound."""
    assert timestamps.main(["--quick", "--runs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["device", "without timestamps", "with timestamps"]
    assert ", must <= 1.02: " in lines[3]


def test_the_cost_of_comparing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of comparison has a line with its time, and its ratio with the bound."""
    assert comparing.main(["--quick", "--runs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [name for name, _, _ in comparing.CASES]
    assert all(" x reading (" in line and ", must <= 3: " in line for line in lines)


def test_the_cost_of_labels_is_measured(shader_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark of labels runs, and shows both times and their ratio with the bound."""
    assert labels.main(["--quick", "--runs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["device", "without labels", "with labels"]


def test_the_cost_of_captures_is_measured(
    shader_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark of captures runs, and its captures are right."""
    assert captures.main(["--quick", "--runs", "1", "--folder", str(tmp_path)]) == 0
    assert "with captures / plain copies: " in capsys.readouterr().out


def test_the_cost_of_conversions_is_measured(shader_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark of conversions runs, and compares three ways with the existing converter."""
    assert conversion.main(["--operations", "20", "--runs", "1"]) == 0
    assert capsys.readouterr().out.count(" / model-converter: ") == 3
