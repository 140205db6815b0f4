"""cli/report.py and suite/verdicts.py: two runs side by side, and the files of deqp-runner."""

import csv
from pathlib import Path

import numpy
import pytest

from scenario_runner.cli.report import changes
from scenario_runner.errors import FileError
from scenario_runner.suite.suite_run import read_baselines
from scenario_runner.suite.verdicts import Row, write_tables
from tests.suite.collected import Collected


def rows(**verdicts: str) -> dict[str, Row]:
    return {id: Row(verdict, 1.0) for id, verdict in verdicts.items()}


def test_changes_of_verdicts() -> None:
    """What fails now, what does not any more, what is otherwise different, what came and went."""
    before = rows(a="Pass", b="Fail", c="Pass", d="Fail", e="Skip", gone="Pass", same="Fail")
    after = rows(a="Fail", b="Pass", c="Flake", d="Crash", e="Pass", new="Pass", bad="Crash", same="Fail")
    parts = {title: list(lines.values()) for title, lines in changes(before, after).items() if lines}
    assert parts == {
        "new failures": ["a: Pass -> Fail", "bad: new -> Crash"],
        "fixed": ["b: Fail -> Pass"],
        "changed": ["c: Pass -> Flake", "d: Fail -> Crash", "e: Skip -> Pass"],
        "new items": ["bad", "new"],
        "items without a result now": ["gone"],
    }


def slower(before: numpy.ndarray, after: numpy.ndarray) -> tuple[str, list[str]]:
    """The title of the items that take longer, and their ids."""
    runs = ({f"{n:04}": Row("Pass", float(seconds)) for n, seconds in enumerate(times)} for times in (before, after))
    parts = changes(*runs)
    (title,) = (title for title in parts if title.startswith("slower"))
    return title, list(parts[title])


def test_slower_items_stand_out_of_noise() -> None:
    """On a machine of half the speed, with noise of 20 %, only those are slower that take longer still."""
    random = numpy.random.default_rng(1)
    before = random.uniform(0.1, 1, 500)
    after = before * 2 * random.normal(1, 0.2, 500).clip(0.5, 1.5)
    after[[7, 70]] = before[[7, 70]] * 10
    title, ids = slower(before, after)
    assert ids == ["0007", "0070"]
    assert float(title.split()[-4]) == pytest.approx(2, rel=0.05)


def test_times_without_noise() -> None:
    """Differences of a few milliseconds and of a few percent are none."""
    before = numpy.full(20, 0.004)
    after = before.copy()
    after[3], after[4] = 0.01, 0.0041
    assert slower(before, after)[1] == []
    assert slower(before * 100, after * 100)[1] == ["0003"]


def test_few_items_must_be_twice_as_slow() -> None:
    """Two times say nothing about noise."""
    assert slower(numpy.array([1.0, 1.0]), numpy.array([1.9, 2.1]))[1] == ["0001"]


def test_tables(tmp_path: Path) -> None:
    """Names in order, what is not supported is a Skip, and the failures are a baseline."""
    given = rows(b="Fail", a="Pass", c="NotSupported", d="UnexpectedImprovement(Pass)", e="KnownFlake")
    given["f,g"] = Row("Crash", 0.25)
    write_tables(str(tmp_path / "new"), given)
    assert (tmp_path / "new" / "results.csv").read_text() == (
        "a,Pass,1.000000\nb,Fail,1.000000\nc,Skip,1.000000\nd,UnexpectedImprovement(Pass),1.000000\n"
        'e,KnownFlake,1.000000\n"f,g",Crash,0.250000\n'
    )
    failures = tmp_path / "new" / "failures.csv"
    with failures.open(newline="") as file:
        assert list(csv.reader(file)) == [["b", "Fail"], ["d", "UnexpectedImprovement(Pass)"], ["f,g", "Crash"]]
    baseline = read_baselines([str(failures)], Collected())
    assert [baseline.get(name, (None,))[0] for name in ("b", "d", "f,g")] == ["Fail", "Pass", "Crash"]


def test_names_that_look_like_comments(tmp_path: Path) -> None:
    """They are quoted, so that the next run reads them as names."""
    write_tables(str(tmp_path), {"#x": Row("Fail", 0), " y ": Row("Fail", 0)})
    baseline = read_baselines([str(tmp_path / "failures.csv")], Collected())
    assert [baseline.get(name, (None,))[0] for name in ("#x", " y ")] == ["Fail", "Fail"]


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    """It is an error with the name of the file."""
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(FileError, match=r"results\.csv"):
        write_tables(str(tmp_path), {})
