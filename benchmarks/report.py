"""The results as a table and as JSON."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.bounds import Bound, Spread
from benchmarks.measurement import Outcome

HEADINGS = ("workload", "", "ours", "reference", "ours / reference", "must", "aim", "reached")


def rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """Return a workload's table lines."""
    workload = outcome.workload
    ratios = outcome.ratios() or (None, None)
    lines = [
        _line(workload.title, "time", outcome, Outcome.times, seconds, ratios[0], workload.time_bound),
        _line("", "memory", outcome, Outcome.peaks, mebibytes, ratios[1], workload.memory_bound),
    ]
    if workload.items:
        rates = [workload.items / took for took in outcome.times("ours")]
        lines.append(("", "items / s", spread_text(rates, "{:.0f}".format), "", "", "", "", ""))
    absolute = workload.seconds_bound
    if absolute is not None and outcome.times("ours"):
        took = Spread.of(outcome.times("ours")).median
        lines.append(("", "seconds", "", "", seconds(took), f"<= {absolute.must:g}", "", absolute.verdict(took)))
    held, bound = outcome.file_ratio(), workload.file_bound
    if held is not None and bound is not None:
        what = f"file of {mebibytes(outcome.file_bytes)}"
        lines.append(
            ("", "memory / file", what, "", ratio_text(held), f"<= {bound.must:g}", "", bound.verdict(held.median))
        )
    lines += [("", "failed", f"{program}: {why}", "", "", "", "", "") for program, why in outcome.failures.items()]
    return lines


def print_table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table with aligned columns."""
    table = [tuple(headings), *map(tuple, lines)]
    # messages of failures may be wider than their column
    narrow = [line for line in table if line[1] != "failed"]
    widths = [max(len(cell) for cell in column) for column in zip(*narrow, strict=True)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def as_json(machine: dict[str, str], programs: dict[str, dict[str, Any]], outcomes: Iterable[Outcome]) -> Any:
    """Return all measurements for `json.dump`; times are in seconds, memory in bytes."""
    return {
        "machine": machine,
        "programs": programs,
        "workloads": {outcome.workload.name: _outcome(outcome) for outcome in outcomes},
    }


def _line(
    title: str,
    what: str,
    outcome: Outcome,
    values: Any,
    show: Any,
    ratio: Spread | None,
    bound: Bound | None,
) -> tuple[str, ...]:
    cells = [spread_text(values(outcome, program), show) for program in ("ours", "reference")]
    return (
        title,
        what,
        *cells,
        "" if ratio is None else ratio_text(ratio),
        "" if bound is None else f"<= {bound.must:g}",
        "" if bound is None or bound.aim is None else f"<= {bound.aim:g}",
        "" if bound is None or ratio is None else bound.verdict(ratio.median),
    )


def spread_text(values: Sequence[float], show: Callable[[float], str]) -> str:
    """Format median, least and greatest; empty without values."""
    if not values:
        return ""
    spread = Spread.of(values)
    return f"{show(spread.median)} ({show(spread.least)} to {show(spread.greatest)})"


def ratio_text(value: Spread) -> str:
    """Format median, least and greatest ratio."""
    return f"{value.median:.3f} ({value.least:.3f} to {value.greatest:.3f})"


def seconds(value: float) -> str:
    return f"{value:.3f} s"


def mebibytes(value: float) -> str:
    return f"{value / (1 << 20):.0f} MiB"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "title": outcome.workload.title,
        "runs": {program: [asdict(sample) for sample in samples] for program, samples in outcome.samples.items()},
        "failures": outcome.failures,
        "file_bytes": outcome.file_bytes,
        "table": [dict(zip(HEADINGS[1:], line[1:], strict=True)) for line in rows(outcome)],
    }
