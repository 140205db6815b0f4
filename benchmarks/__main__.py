"""``python -m benchmarks``: measure the workloads, print a table, write JSON."""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.launcher import Launcher
from benchmarks.measurement import Bench, Outcome, RunError
from benchmarks.programs import Program, describe_machine, ours, reference, version
from benchmarks.report import HEADINGS, as_json, print_table, rows
from benchmarks.workloads import all_workloads
from benchmarks.workloads.small import write_small


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0, or 1 if our program failed or was wrong. A missed bound is reported, but is no failure."""
    options = _parse(argv, list(all_workloads()))
    workloads = all_workloads(options.suite_items)
    programs = [ours(options.ours)]
    if options.reference is not None:
        programs.append(reference(options.reference))
    chosen = [workloads[name] for names in options.only or [workloads] for name in names]
    facts = describe_machine()
    for program in programs:
        facts[f"{program.name} is"] = f"{' '.join(program.command)}, version {version(program)}"
    for name, value in facts.items():
        print(f"{name}: {value}")
    for workload in chosen:
        if (why := workload.missing()) is not None:
            print(f"{workload.name}: left out, {why}")
    with (
        tempfile.TemporaryDirectory(prefix="scenario-benchmarks-", dir=options.folder) as root,
        Launcher() as launcher,
    ):
        bench = Bench(launcher, Path(root), programs, options.runs, options.quick, _progress)
        if options.phases:
            return _show_phases(bench, programs[0])
        outcomes = [bench.measure(workload) for workload in chosen if workload.missing() is None]
    if options.quick:
        print("\nTiny sizes: the times and verdicts mean nothing.")
    print(f"\nMedian of {options.runs} runs after one to warm up (least to greatest); programs ran in turns.\n")
    print_table(HEADINGS, [line for outcome in outcomes for line in rows(outcome)])
    if options.json is not None:
        _write_json(options.json, facts, programs, outcomes)
    return 1 if any("ours" in outcome.failures for outcome in outcomes) else 0


def _show_phases(bench: Bench, program: Program) -> int:
    try:
        lines = [(what, f"{seconds * 1e3:.1f}") for what, seconds in phases(bench, program.command)]
    except RunError as error:
        print(f"failed: {error}")
        return 1
    print(f"\nOne small scenario, step by step; milliseconds, median of {bench.runs} runs after one to warm up:\n")
    print_table(("", "ms"), lines)
    return 0


def phases(bench: Bench, command: tuple[str, ...]) -> list[tuple[str, float]]:
    """Measure the median seconds of each phase, from starting Python to a whole run. Raises RunError."""
    folder = bench.root / "phases"
    folder.mkdir()
    scenario = str(write_small(folder, "small", spirv=False))
    run = [*command, scenario, "--output", str(folder)]
    steps = [
        ("start Python", [sys.executable, "-c", "pass"]),
        ("start the program (--help)", [*command, "--help"]),
        ("read and check the scenario (validate)", [*command, "validate", scenario]),
        ("start the driver (--list-devices)", [*command, "--list-devices"]),
        ("everything but the submission (--dry-run)", [*run, "--dry-run"]),
        ("whole run", run),
    ]
    times: dict[str, list[float]] = {what: [] for what, _ in steps}
    for turn in range(bench.runs + 1):
        for what, line in steps:
            wall_s = bench.time(line)
            if turn:
                times[what].append(wall_s)
    return [(what, statistics.median(values)) for what, values in times.items()]


def _write_json(path: str, facts: dict[str, str], programs: Sequence[Program], outcomes: Sequence[Outcome]) -> None:
    commands = {program.name: {"command": list(program.command)} for program in programs}
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(as_json(facts, commands, outcomes), indent=2) + "\n", encoding="utf-8")


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="" if text else "\n", file=sys.stderr, flush=True)


def _parse(argv: Sequence[str] | None, names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure scenario-runner's workloads.")
    parser.add_argument("--reference", metavar="PATH", help="start script or binary of the reference runner")
    parser.add_argument("--ours", metavar="PATH", help="our program as installed (default: this checkout's)")
    parser.add_argument(
        "--only",
        action="append",
        type=lambda text: [text] if text in names else _group(text, names),
        metavar="NAME",
        help=f"one of {', '.join(names)}, or how several begin (models)",
    )
    parser.add_argument("--runs", type=_count, default=5, metavar="N", help="measured runs of each program (default 5)")
    parser.add_argument("--suite-items", type=_count, metavar="N", help="items of each suite (4,000 to 20,000)")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    parser.add_argument("--folder", metavar="DIR", help="where temporary files go; the largest workload needs 2 GiB")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that the benchmark works, nothing else")
    parser.add_argument("--phases", action="store_true", help="only show where the time of a small scenario goes")
    return parser.parse_args(argv)


def _group(text: str, names: list[str]) -> list[str]:
    """Find workloads with names beginning with ``text`` and a dash. Raises ArgumentTypeError if there are none."""
    group = [name for name in names if name.startswith(f"{text}-")]
    if not group:
        raise argparse.ArgumentTypeError(f"no workload {text!r}, expected one of: {', '.join(names)}")
    return group


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


if __name__ == "__main__":
    sys.exit(main())
