"""The benchmark commands: workloads, comparison with a reference runner, and records for the pages."""

import json
import stat
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import agreement, record
from benchmarks.__main__ import _parse, main
from benchmarks.agreement import difference, outputs
from benchmarks.launcher import Launcher
from benchmarks.measurement import Bench
from benchmarks.programs import CHECKOUT, ours
from benchmarks.record import PAGES, RECORDS, read_records, replace
from benchmarks.workloads import all_workloads
from tests.left_out import VGF_LIBRARY, needs


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
# They differ from suites-4 in the number of processes alone.
ALIKE = ("suites-1", "suites-2", "suites-8", "suites-14")


@needs(VGF_LIBRARY, "graph-")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.heavy] if name in LARGE + ALIKE else []) for name in all_workloads()],
)
def test_a_workload_runs_and_is_right(launcher: Launcher, root: Path, name: str) -> None:
    """Each workload in its tiny size gives the results of NumPy, checked in the warm-up run."""
    outcome = Bench(launcher, root, [ours()], runs=0, quick=True).measure(all_workloads()[name])
    assert (outcome.failures, outcome.samples) == ({}, {})


@needs(VGF_LIBRARY)
@pytest.mark.parametrize(
    "names",
    [
        ("small", "large-buffers", "graph-constants", "suites-14"),
        pytest.param(tuple(all_workloads()), marks=pytest.mark.heavy),
    ],
    ids=["some", "all"],
)
def test_workloads_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]) -> None:
    """The table and the JSON hold each measured value. Workloads that this machine cannot run are named."""
    target = tmp_path / "results" / "benchmark.json"
    only = [word for name in names for word in ("--only", name)]
    assert main(["--quick", "--runs", "1", "--folder", str(tmp_path), "--json", str(target), *only]) == 0
    results = json.loads(target.read_text(encoding="utf-8"))
    lacks = {name: why for name in names if (why := all_workloads()[name].missing())}
    assert all(name.startswith(("models-", "suites-")) for name in lacks), "only these need a converter or processors"
    assert set(results["workloads"]) == set(names) - lacks.keys()
    for name, workload in results["workloads"].items():
        assert workload["failures"] == {}, name
        (sample,) = workload["runs"]["ours"]
        assert sample["wall_s"] > 0
        assert sample["peak_bytes"] > 10 << 20, "an interpreter with a driver is larger than that"
        assert {line["reached"] for line in workload["table"]} <= {"", "must", "aim", "missed"}
    constants = results["workloads"]["graph-constants"]["file_bytes"]
    assert constants > 4 * 500 * 100 * 4, "four tables and what is around them"
    printed = capsys.readouterr().out
    assert all(all_workloads()[name].title in printed for name in results["workloads"])
    assert all(f"{name}: left out, {why}\n" in printed for name, why in lacks.items())
    assert not list(tmp_path.glob("scenario-benchmarks-*")), "temporary files are gone"


def test_workloads_are_chosen_by_the_beginning_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A whole name selects one workload, even if others begin with this name. An unknown beginning is an error."""
    assert _parse(["--only", "models", "--only", "small"], list(all_workloads())).only == [
        ["models-resnet18", "models-mobilenet-v2", "models-efficientnet-b0", "models-transformer"],
        ["small"],
    ]
    with pytest.raises(SystemExit):
        _parse(["--only", "mode"], list(all_workloads()))
    assert "no workload 'mode', expected one of: small, " in capsys.readouterr().err


ADD = CHECKOUT / "scenarios" / "basics" / "add"


def program(path: Path, body: str) -> str:
    """A program with the reference's options."""
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_same_results_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our own program, called as the reference is, agrees with itself."""
    itself = program(
        tmp_path / "itself", 'os.execv(sys.executable, [sys.executable, "-m", "scenario_runner", *sys.argv[1:]])'
    )
    assert agreement.main(["--reference", itself, str(ADD)]) == 0
    assert "1 equal" in capsys.readouterr().out


def test_what_differs_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another result is shown with the number of bytes, and the exit code is 1."""
    zeros = program(
        tmp_path / "zeros",
        'import numpy\nnumpy.save(os.path.join(sys.argv[-1], "out", "sum.npy"), numpy.zeros(400, "i1"))',
    )
    assert agreement.main(["--reference", zeros, str(ADD)]) == 1
    output = capsys.readouterr().out
    assert "out/sum.npy: " in output
    assert "1 different" in output


def test_a_program_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that fails on a scenario is shown with its message, and nothing is compared."""
    failing = program(tmp_path / "failing", 'sys.exit("no such device")')
    assert agreement.main(["--reference", failing, str(ADD)]) == 0
    assert "only ours runs it" in (output := capsys.readouterr().out)
    assert "exit code 1: no such device" in output


def test_arrays_are_equal_whatever_their_headers(tmp_path: Path) -> None:
    """Elements, type and shape of a .npy file count, not the padding of its header; other files count byte by byte."""
    array = np.arange(4, dtype="i1")
    np.save(tmp_path / "a.npy", array)
    payload = (tmp_path / "a.npy").read_bytes()
    header = b"{'descr': '|i1', 'fortran_order': False, 'shape': (4,), }\n"
    short = payload[:8] + len(header).to_bytes(2, "little") + header + array.tobytes()
    (tmp_path / "b.npy").write_bytes(short)
    assert len(short) != len(payload)
    assert difference(tmp_path / "a.npy", tmp_path / "b.npy") == ""
    np.save(tmp_path / "c.npy", array.astype("u1"))
    assert difference(tmp_path / "a.npy", tmp_path / "c.npy") == "int8[4], the reference's uint8[4]"
    (tmp_path / "a.dds").write_bytes(payload)
    (tmp_path / "b.dds").write_bytes(payload[:-1] + b"\xff")
    assert difference(tmp_path / "a.dds", tmp_path / "b.dds") == f"1 of {len(payload)} bytes"
    assert difference(tmp_path / "a.dds", tmp_path / "none.dds") == "reference: no such file"


def test_outputs_are_found_wherever_they_are() -> None:
    """Every relative dst counts once."""
    document = {"resources": [{"buffer": {"dst": "a.npy"}}, {"image": {"dst": "b.dds"}}], "x": {"dst": "a.npy"}}
    assert outputs(document) == ["a.npy", "b.dds"]


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_those_of_the_records(checkout: Path, page: str) -> None:
    """Generating the table again changes nothing; `python -m benchmarks.record --tables` writes it."""
    text = (checkout / page).read_text(encoding="utf-8")
    assert replace(text, PAGES[page](read_records(RECORDS))) == text


def test_readme_quotes_the_medians(checkout: Path) -> None:
    """A row of README has, for each machine, the medians of both programs and their ratio."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    cells = []
    for path in sorted(RECORDS.glob("*.json")):
        runs = json.loads(path.read_text(encoding="utf-8"))["workloads"]["dispatches"]
        ours, reference = (
            statistics.median(sample["wall_s"] for sample in runs[name]) for name in ("ours", "reference")
        )
        shown = [f"{value:.{1 if value >= 10 else 2}f} s" for value in (ours, reference)]
        cells.append(f"{shown[0]} : {shown[1]} = **{ours / reference:.2f}**")
    assert cells
    assert f"| 10,000 dispatches in one scenario | {' | '.join(cells)} |\n" in text


@needs(VGF_LIBRARY)
def test_a_machine_without_the_converter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A workload that cannot run is left out with the reason; others are recorded with machine, date and commit."""
    monkeypatch.setitem(sys.modules, "model_converter", None)  # as where the package is not installed
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    target = tmp_path / "records" / "this.json"
    only = ("--only", "small", "--only", "models-resnet18")
    words = ["--quick", "--runs", "3", "--patience", "0", "--to", str(target), "--commit", "c0ffee", *only]
    assert record.main(words) == 0
    assert "models-resnet18: left out, it needs pip install ai_ml_sdk_model_converter" in capsys.readouterr().out
    [found] = read_records(target.parent)
    assert found.name == "this"
    assert found.facts["commit"] == "c0ffee"
    assert {"processor", "device", "date", "load average"} < found.facts.keys()
    assert len(found.outcomes["small"].times("ours")) == 1, "the turn after the patience is the last"
    table = PAGES["docs/benchmarks.md"]([found])
    assert "| `small` | 1 | 0." in table
    assert "- `models-resnet18` is left out: it needs pip install ai_ml_sdk_model_converter" in table


def test_a_part_is_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    """Some workloads, or tiny ones, replace no record of this machine."""
    with pytest.raises(SystemExit):
        record.main(["--quick"])
    assert "--quick and --only need --to FILE" in capsys.readouterr().err
