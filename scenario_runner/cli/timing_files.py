"""The files of ``--profiling-dump-path``, ``--perf-counters-dump-path`` and ``--trace``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from scenario_runner.errors import FileError, UnsupportedError, UsageError
from scenario_runner.files.output import OutputFile
from scenario_runner.plan.plan import Plan
from scenario_runner.run.timings import Timings
from scenario_runner.run.traces import counters, profile, trace

_WRITERS: dict[str, Callable[[Timings], str]] = {
    "--profiling-dump-path": profile,
    "--perf-counters-dump-path": counters,
    "--trace": trace,
}
OPTIONS = tuple(_WRITERS)


class TimingFiles:
    """Files with the times of a run, created before it and given their names when it has ended well."""

    def __init__(self, options: argparse.Namespace, scenario: str) -> None:
        """Raises UsageError for contradictions and FileError for a file that cannot be written."""
        self.timings = Timings()
        self.timings.on_start = self._check
        given = {name: getattr(options, name.lstrip("-").replace("-", "_")) for name in OPTIONS}
        self._paths: dict[str, str] = {name: path for name, path in given.items() if path is not None}
        owners = {os.path.realpath(scenario): "the scenario"}
        for name, path in self._paths.items():
            owner = owners.setdefault(os.path.realpath(path), name)
            if owner != name:
                raise UsageError(f"{name}: {path} is also the file of {owner}", help="give each a file of its own")
        self._outputs: dict[str, OutputFile] = {}
        try:
            for name, path in self._paths.items():
                self._outputs[name] = OutputFile(path)
        except BaseException:
            self.discard()
            raise

    def _check(self, plan: Plan) -> None:
        """Refuse files that are the scenario's own, and a profile of a device that has no timestamps.

        Raises FileError and UnsupportedError.
        """
        if "--profiling-dump-path" in self._paths and self.timings.why_none is not None and not self.timings.dry_run:
            raise UnsupportedError(
                self.timings.why_none, help="run without --profiling-dump-path, or on a device that has them"
            )
        taken = {os.path.realpath(path): "reads it" for path in plan.reads}
        for output in plan.outputs:
            if output.destination is not None:
                taken[os.path.realpath(output.destination)] = "has it as a dst"
        for name, path in self._paths.items():
            why = taken.get(os.path.realpath(path))
            if why is not None:
                raise FileError(f"{name}: {path} is a file of the scenario, which {why}", help="choose another file")

    def write(self) -> None:
        """Write the files, after a run that ended well. Raises FileError."""
        try:
            for name, file in self._outputs.items():
                file.write(_WRITERS[name](self.timings).encode())
            for file in self._outputs.values():
                file.commit()
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove what is not complete; after `write` it does nothing."""
        for file in self._outputs.values():
            file.discard()
