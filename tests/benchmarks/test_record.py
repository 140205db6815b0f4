"""The numbers of record: tables of the pages are those of the records, and a machine records what it can run."""

import json
import statistics
import sys
from pathlib import Path

import pytest

from benchmarks.record import PAGES, RECORDS, main, read_records, replace


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


def test_a_machine_without_the_converter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A workload that cannot run is left out with the reason; others are recorded with machine, date and commit."""
    monkeypatch.setitem(sys.modules, "model_converter", None)  # as where the package is not installed
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    target = tmp_path / "records" / "this.json"
    only = ("--only", "small", "--only", "models-resnet18")
    assert main(["--quick", "--runs", "3", "--patience", "0", "--to", str(target), "--commit", "c0ffee", *only]) == 0
    assert "models-resnet18: left out, it needs pip install ai_ml_sdk_model_converter" in capsys.readouterr().out
    [record] = read_records(target.parent)
    assert record.name == "this"
    assert record.facts["commit"] == "c0ffee"
    assert {"processor", "device", "date", "load average"} < record.facts.keys()
    assert len(record.outcomes["small"].times("ours")) == 1, "the turn after the patience is the last"
    table = PAGES["docs/benchmarks.md"]([record])
    assert "| `small` | 1 | 0." in table
    assert "- `models-resnet18` is left out: it needs pip install ai_ml_sdk_model_converter" in table


def test_a_part_is_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    """Some workloads, or tiny ones, replace no record of this machine."""
    with pytest.raises(SystemExit):
        main(["--quick"])
    assert "--quick and --only need --to FILE" in capsys.readouterr().err
