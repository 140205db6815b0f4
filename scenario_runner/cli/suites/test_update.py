"""``scenario-runner test --update``: write expectations from a run, and show the changes."""

import argparse
import os
from collections.abc import Iterable, Iterator

from scenario_runner.cli.console import write
from scenario_runner.errors.text import counted, one_line
from scenario_runner.processes.jobs import WorkerOptions
from scenario_runner.suite.outcomes import Item, Outcome, SuiteProblems
from scenario_runner.suite.suite_workers import ONCE, SuitePolicy, SuiteWorkers
from scenario_runner.suite.update import TASK, Change, changes_of, refused


def update(
    options: argparse.Namespace, items: Iterable[Item], worker_options: WorkerOptions, problems: SuiteProblems
) -> int:
    """Update expectations. Return 0, or 1 if a problem keeps an item's old expectations.

    All items run once to find the changes. Items with harmless changes then run again and write them.
    """
    updates = []
    failed = 0
    for item, outcome in _outcomes(items, worker_options, write_files=False):
        updates.append((item, outcome))
        failed += outcome.status not in ("Pass", "NotSupported")
        if outcome.status != "Pass" or (options.verbose and not _changes(outcome)):
            _show(item, outcome)
    reasons, ids = refused((item, changes_of(outcome)) for item, outcome in updates)
    for problem in reasons:
        problems.found(problem.code, os.path.relpath(problem.path or ""), problem.message, problem.help)
    changing = [(item, outcome) for item, outcome in updates if _changes(outcome) and item.id not in ids]
    shown: Iterable[tuple[Item, Outcome]] = changing
    if changing and not options.dry_run:
        shown = _outcomes([item for item, _ in changing], worker_options, write_files=True)
    changed = 0
    for item, outcome in shown:
        failed += outcome.status != "Pass"
        changed += len(_changes(outcome))
        _show(item, outcome)
    would = "would change" if options.dry_run else "changed"
    print(f"{counted(changed, 'expectation')} of {counted(len(updates), 'item')} {would}")
    return 1 if failed or ids else 0


def _outcomes(items: Iterable[Item], options: WorkerOptions, *, write_files: bool) -> Iterator[tuple[Item, Outcome]]:
    work = options.task_options._replace(function=TASK, options=write_files)
    options = options._replace(policy=SuitePolicy(ONCE), task_options=work)
    with SuiteWorkers(options, on_note=lambda text: write("warning", text)) as workers:
        for finished in workers.run(items):
            yield finished.item, finished.attempts[-1]


def _changes(outcome: Outcome) -> list[Change]:
    return [change for change in changes_of(outcome) if change.is_written]


def _show(item: Item, outcome: Outcome) -> None:
    changes = _changes(outcome)
    if outcome.status != "Pass":
        print(f"{one_line(item.id)}: no change: {outcome.status}: {one_line(outcome.reason)}")
    elif not changes:
        print(f"{one_line(item.id)}: no change")
    for path, output, kind, message, _ in changes:
        text = f"{output}: {kind}: {message}: {os.path.relpath(path)}".removeprefix(": ")
        print(f"{one_line(item.id)}: {one_line(text)}")
