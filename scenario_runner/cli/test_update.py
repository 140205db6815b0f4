"""``scenario-runner test --update``: write expectations from a run, and show what changes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator

from scenario_runner.cli.messages import write
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.records import Item, Outcome, OutputCheck
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.update import FILE, TASK, refused
from scenario_runner.text import counted, one_line


def update(
    options: argparse.Namespace, items: Iterable[Item], worker_options: WorkerOptions, problems: SuiteProblems
) -> int:
    """Update expectations. Returns 0, or 1 where the expectations of some items could not be updated.

    Items run first to find out what would change. Then those run again whose changes destroy nothing, and write them.
    """
    updates = []
    failed = 0
    for item, outcome in _outcomes(items, worker_options, write_files=False):
        updates.append((item, outcome))
        failed += outcome.status not in ("Pass", "NotSupported")
        if outcome.status != "Pass" or (options.verbose and not _changes(outcome)):
            _show(item, outcome)
    reasons, ids = refused(updates)
    for problem in reasons:
        problems.found(problem.code, problem.path, problem.message, problem.help)
    changing = [(item, outcome) for item, outcome in updates if _changes(outcome) and item.id not in ids]
    if not options.dry_run and changing:
        written = _outcomes([item for item, _ in changing], worker_options, write_files=True)
        changing = []
        for item, outcome in written:
            changing.append((item, outcome))
            failed += outcome.status != "Pass"
            _show(item, outcome)
    elif options.dry_run:
        for item, outcome in changing:
            _show(item, outcome)
    changed = sum(len(_changes(outcome)) for _, outcome in changing)
    would = "would change" if options.dry_run else "changed"
    print(f"{counted(changed, 'expectation')} of {counted(len(updates), 'item')} {would}")
    return 1 if failed or ids else 0


def _outcomes(items: Iterable[Item], options: WorkerOptions, *, write_files: bool) -> Iterator[tuple[Item, Outcome]]:
    options = options._replace(task=TASK, task_options=write_files)
    with Workers(options, on_note=lambda text: write("warning", text)) as workers:
        for finished in workers.run(items):
            yield finished.item, finished.attempts[-1]


def _changes(outcome: Outcome) -> list[OutputCheck]:
    return [output for output in outcome.outputs if output.status == "Warn"]


def _show(item: Item, outcome: Outcome) -> None:
    changes = _changes(outcome)
    if outcome.status != "Pass":
        print(f"{one_line(item.id)}: no change: {outcome.status}: {one_line(outcome.reason)}")
    elif not changes:
        print(f"{one_line(item.id)}: no change")
    for output in changes:
        path = os.path.relpath(output.files[FILE])
        print(f"{one_line(item.id)}: {one_line(f'{output.name}: {output.message}: {path}'.removeprefix(': '))}")
