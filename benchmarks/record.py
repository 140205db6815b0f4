"""``python -m benchmarks.record``: the numbers of record, in docs/benchmarks.md and README.md.

A run on a machine writes benchmarks/records/NAME.json; the tables of both pages are generated from all of these files,
so that one machine replaces its own rows only.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.bounds import Spread, ratio
from benchmarks.launcher import Launcher
from benchmarks.measurement import Bench, Outcome, Sample
from benchmarks.programs import CHECKOUT, describe_machine, ours, reference, version
from benchmarks.report import mebibytes, ratio_text, spread_text
from benchmarks.workloads import all_workloads
from scenario_runner.errors import MissingToolError
from scenario_runner.errors.installation import revision

RECORDS = CHECKOUT / "benchmarks" / "records"
WORKLOADS = (
    "small",
    "small-spirv",
    "many",
    "dispatches",
    "drawings",
    "large-buffers",
    "image-copy",
    "graph-small",
    "models-resnet18",
    "shaders-validate",
)
# Rows of README's table: a workload, the quantity, and a title.
QUOTED = (
    ("small", "time", "one small scenario, GLSL"),
    ("small-spirv", "time", "one small scenario, SPIR-V"),
    ("many", "time", "200 small scenarios (Arm's runner: 20, times 10)"),
    ("dispatches", "time", "10,000 dispatches in one scenario"),
    ("dispatches", "memory", "the same, memory"),
    ("models-resnet18", "time", "one inference of ResNet18"),
)


class Record(NamedTuple):
    """A machine's measurements."""

    name: str
    facts: dict[str, str]
    outcomes: dict[str, Outcome]
    left_out: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> "Record":
        content = json.loads(path.read_text(encoding="utf-8"))
        outcomes = {
            name: Outcome(
                all_workloads()[name],
                {program: [Sample(**sample) for sample in samples] for program, samples in runs.items()},
            )
            for name, runs in content["workloads"].items()
        }
        return cls(path.stem, content["facts"], outcomes, content["left_out"])

    def write(self, path: Path) -> None:
        workloads = {
            name: {program: [asdict(sample) for sample in samples] for program, samples in outcome.samples.items()}
            for name, outcome in self.outcomes.items()
        }
        content = {"facts": self.facts, "workloads": workloads, "left_out": self.left_out}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0, or 1 where this program failed or was wrong."""
    options = _parse(argv)
    failed = False
    if not options.tables:
        record = _measure(options)
        failed = any("ours" in outcome.failures for outcome in record.outcomes.values())
        path = options.to or RECORDS / f"{record.name}.json"
        record.write(path)
        print(f"{path}: {len(record.outcomes)} workloads")
    if options.to is None:
        write_pages(CHECKOUT)
    return 1 if failed else 0


def write_pages(root: Path) -> None:
    """Write the tables into the pages below ``root``."""
    records = read_records(RECORDS)
    for page, text in PAGES.items():
        path = root / page
        path.write_text(replace(path.read_text(encoding="utf-8"), text(records)), encoding="utf-8")


def read_records(folder: Path) -> list[Record]:
    return [Record.read(path) for path in sorted(folder.glob("*.json"))]


def replace(page: str, text: str) -> str:
    """Return a page with ``text`` between the markers."""
    before, begin, rest = page.partition("<!-- records: python -m benchmarks.record -->\n")
    _, end, after = rest.partition("<!-- end of records -->\n")
    assert begin, "the page has no marker of the records"
    assert end, "the page has no marker of their end"
    return f"{before}{begin}\n{text}\n{end}{after}"


def tables(records: Sequence[Record]) -> str:
    """Return the section of docs/benchmarks.md: a table for each machine."""
    parts = []
    for record in records:
        facts = "; ".join(f"{name} {value}" if name in _NAMED else value for name, value in record.facts.items())
        lines = [f"### {record.name}", "", f"{facts}.", ""]
        lines += ["| workload | runs | time in s | processor in s | memory in MiB |", "|---|---|---|---|---|"]
        for name, outcome in record.outcomes.items():
            cells = " | ".join(_cell(outcome, what) for what in _VALUES)
            lines.append(f"| `{name}` | {len(outcome.times('ours'))} | {cells} |")
        if record.left_out:
            lines += ["", *(f"- `{name}` is left out: {why}" for name, why in record.left_out.items())]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def figures(records: Sequence[Record]) -> str:
    """Return README's table: medians of this program and the reference, and their ratio."""
    machines = (
        f"{record.facts['device'].partition(' (')[0]}; {record.facts['processor']}, "
        f"load {record.facts['load average'].split()[0]}; {record.facts['date']}"
        for record in records
    )
    lines = [f"| | {' | '.join(machines)} |", "|---" * (len(records) + 1) + "|"]
    for name, what, title in QUOTED:
        lines.append(f"| {title} | {' | '.join(_figure(record.outcomes.get(name), what) for record in records)} |")
    return "\n".join(lines) + "\n"


PROGRAMS = ("ours", "reference")
_VALUES: Mapping[str, Callable[[Outcome, str], list[float]]] = {
    "time": Outcome.times,
    "processor": Outcome.cpu_times,
    "memory": Outcome.peaks,
}
PAGES: Mapping[str, Callable[[Sequence[Record]], str]] = {"docs/benchmarks.md": tables, "README.md": figures}
_NAMED = ("commit", "load average", "reference")


def _figure(outcome: Outcome | None, what: str) -> str:
    """Return a cell of README's table: medians of both programs and their ratio."""
    values = [_VALUES[what](outcome, program) for program in PROGRAMS] if outcome is not None else []
    if not values or not all(values):
        return "-"
    mine, theirs = (_short(Spread.of(column).median, what) for column in values)
    return f"{mine} : {theirs} = **{ratio(*values).median:.2f}**"


def _cell(outcome: Outcome, what: str) -> str:
    """Return the medians of both programs and their ratio, or the times of this program alone."""
    show = _in_mebibytes if what == "memory" else "{:.3f}".format
    mine, theirs = (_VALUES[what](outcome, program) for program in PROGRAMS)
    if not mine or not theirs:
        return spread_text(mine or theirs, show)
    medians = " : ".join(show(Spread.of(values).median) for values in (mine, theirs))
    return f"{medians} = {ratio_text(ratio(mine, theirs))}"


def _in_mebibytes(value: float) -> str:
    return mebibytes(value).removesuffix(" MiB")


def _short(value: float, what: str) -> str:
    if what == "memory":
        return mebibytes(value)
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def _measure(options: argparse.Namespace) -> Record:
    """Measure the workloads that can run here, and print a line for each."""
    programs = [ours(), *([reference(options.reference)] if options.reference else [])]
    machine = describe_machine()
    facts = {key: machine[key] for key in ("processor", "memory", "device", "python", "load average")}
    facts |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": options.commit or revision()}
    facts |= {program.name: version(program) for program in programs[1:]}
    name = options.name or re.sub(r"\W+", "-", machine["device"].partition(",")[0].partition(" (")[0]).lower()
    record = Record(name, facts, {}, {})
    workloads = all_workloads()
    with (
        tempfile.TemporaryDirectory(prefix="scenario-benchmarks-", dir=options.folder) as root,
        Launcher() as launcher,
    ):
        bench = Bench(launcher, Path(root), programs, options.runs, options.quick, patience_s=options.patience)
        for workload in (workloads[name] for name in options.only or WORKLOADS):
            reason = workload.missing()
            if reason is None:
                try:
                    outcome = bench.measure(workload)
                except MissingToolError as error:
                    reason = str(error)
            if reason is not None:
                record.left_out[workload.name] = reason
                print(f"{workload.name}: left out, {reason}", flush=True)
                continue
            record.outcomes[workload.name] = outcome
            for program, why in outcome.failures.items():
                record.left_out[f"{workload.name} ({program})"] = f"it failed: {why}"
                print(f"{workload.name}: {program} failed: {why}", flush=True)
            print(f"{workload.name}: {_cell(outcome, 'time')} (seconds)", flush=True)
    return record


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--reference", metavar="PATH", help="start script or binary of the reference runner")
    parser.add_argument("--name", help="name of the record (default: the name of the device)")
    parser.add_argument("--commit", help="the measured commit (default: git's answer)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="most runs of each workload (default 5)")
    parser.add_argument(
        "--patience", type=float, default=25, metavar="S", help="begin no turn after S seconds (default 25)"
    )
    parser.add_argument("--only", action="append", choices=WORKLOADS, metavar="NAME", help=", ".join(WORKLOADS))
    parser.add_argument("--folder", metavar="DIR", help="where temporary files go; the largest workload needs 2 GiB")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write the record to FILE, and no tables")
    parser.add_argument("--tables", action="store_true", help="only write the tables from the records again")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script; needs --to")
    options = parser.parse_args(argv)
    if (options.quick or options.only) and options.to is None:
        parser.error("--quick and --only need --to FILE: a record has all workloads in full size")
    return options


if __name__ == "__main__":
    sys.exit(main())
