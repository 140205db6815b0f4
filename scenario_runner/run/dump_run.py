"""A run with dumps: its plan is split, and what takes its results tells dumps from captures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from scenario_runner.run.dump_files import DumpFiles, DumpRequest
from scenario_runner.run.output_files import FileWriter

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import FramePlan, Plan
    from scenario_runner.scenario import Scenario


class DumpSink:
    """Hands frames with a boundary and outputs to ``writer``, the others to ``dump``."""

    captures = True

    def __init__(self, writer: FileWriter, dump: DumpFiles) -> None:
        self._writer = writer
        self._dump = dump

    def frame(self, iteration: int, frame: FramePlan) -> Any:
        return self._writer.frame(iteration, frame) if frame.boundary else self._dump.frame(iteration)

    def outputs(self) -> Any:
        return self._writer.outputs()


def run_with_dump(
    execute: Callable[..., None],
    scenario: Scenario,
    plan: Plan,
    request: DumpRequest,
    capture_dir: str | os.PathLike[str] | None,
    device: Callable[[], str | None],
    options: Mapping[str, Any],
) -> Plan:
    """Carry out a plan for its files, and dump; returns that plan.

    ``execute`` takes a plan, sinks and ``options``; ``device`` gives the name of the device at the end.

    Raises UsageError for what does not exist, and FileError; what is complete of the dump stays then.
    """
    repeat: int = options["repeat"]
    dump = DumpFiles(scenario, plan, request, repeat, device)
    folder = None if capture_dir is None else os.fspath(capture_dir)
    with FileWriter(dump.whole, capture_dir=folder, repeat=repeat) as writer:
        writer.check()
        dump.check()
        with nullcontext() if options["dry_run"] else dump:
            execute(dump.plan, (DumpSink(writer, dump),), **options)
    return plan
