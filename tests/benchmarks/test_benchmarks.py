"""The benchmark measures what it says; no test here depends on how fast anything is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import _parse, main
from benchmarks.launcher import Launcher
from benchmarks.measurement import Bench
from benchmarks.programs import ours
from benchmarks.workloads import all_workloads


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as launcher:
        yield launcher


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workloads, as in a whole benchmark: its cache is theirs."""
    return tmp_path_factory.mktemp("benchmark")


# Hundreds of pipelines, which software drivers compile for seconds.
LARGE = tuple(name for name in all_workloads() if name.startswith("models-"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.heavy] if name in LARGE else []) for name in all_workloads()]
)
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
        assert {line["reached"] for line in workload["table"]} <= {"", "must", "aim", "missed"}
    constants = results["workloads"]["graph-constants"]["file_bytes"]
    assert constants > 4 * 500 * 100 * 4, "four tables and what is around them"
    printed = capsys.readouterr().out
    assert all(all_workloads()[name].title in printed for name in names)
    assert not list(tmp_path.glob("scenario-benchmarks-*")), "temporary files are gone"


def test_workloads_are_chosen_by_the_beginning_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A whole name is one workload, also where others begin with it; what begins no name is an error."""
    assert _parse(["--only", "models", "--only", "small"], list(all_workloads())).only == [
        ["models-resnet18", "models-mobilenet-v2", "models-efficientnet-b0", "models-transformer"],
        ["small"],
    ]
    with pytest.raises(SystemExit):
        _parse(["--only", "mode"], list(all_workloads()))
    assert "no workload 'mode', expected one of: small, " in capsys.readouterr().err
