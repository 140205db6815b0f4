"""``scenario-runner test --update``: write expectations from a run, and show what changes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from scenario_runner.cli.messages import write
from scenario_runner.suite.records import Item, Outcome, OutputCheck
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.update import DIGEST, FILE, TASK, UpdateOptions
from scenario_runner.text import counted, one_line


def update(options: argparse.Namespace, items: Iterable[Item], worker_options: WorkerOptions) -> int:
    """Returns 0, or 1 where some items gave nothing that could be expected."""
    changed = failed = done = 0
    contents: dict[str, tuple[Item, OutputCheck]] = {}
    worker_options = worker_options._replace(task=TASK, task_options=UpdateOptions(not options.dry_run))
    with Workers(worker_options, on_note=lambda text: write("warning", text)) as workers:
        for finished in workers.run(items):
            last = finished.attempts[-1]
            done += 1
            changes = [output for output in last.outputs if output.status == "Warn"]
            changed += len(changes)
            failed += last.status not in ("Pass", "NotSupported")
            failed += sum(_contradicts(contents, finished.item, output) for output in last.outputs)
            if changes or last.status != "Pass" or options.verbose:
                _show(finished.item, last, changes)
    would = "would change" if options.dry_run else "changed"
    print(f"{counted(changed, 'expectation')} of {counted(done, 'item')} {would}")
    return 1 if failed else 0


def _contradicts(contents: dict[str, tuple[Item, OutputCheck]], item: Item, output: OutputCheck) -> bool:
    """Whether another item gives the same file another content, and one of the two changes it; it is said then.
    ``contents`` has the first item with each file, and its output."""

    path = os.path.realpath(output.files[FILE])
    other, before = contents.setdefault(path, (item, output))
    if before.files[DIGEST] == output.files[DIGEST] or before.status == output.status == "Pass":
        return False
    message = f"{os.path.relpath(path)}: is what both {other.id!r} and {item.id!r} must give, but they differ"
    write("error", message, "expect a file of its own of each")
    return True


def _show(item: Item, last: Outcome, changes: list[OutputCheck]) -> None:
    if last.status != "Pass":
        print(f"{one_line(item.id)}: no change: {last.status}: {one_line(last.reason)}")
    elif not changes:
        print(f"{one_line(item.id)}: no change")
    for output in changes:
        path = os.path.relpath(output.files[FILE])
        print(f"{one_line(item.id)}: {one_line(f'{output.name}: {output.message}: {path}'.removeprefix(': '))}")
