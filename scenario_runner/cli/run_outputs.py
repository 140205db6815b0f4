"""The outputs of the scenarios of one call: their folders, collisions, and files of earlier runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError
from scenario_runner.files.output import marker_path
from scenario_runner.files.source import MAX_SCENARIO_BYTES, is_stream, read_file, reason_of

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario
    from scenario_runner.scenario.syntax import DeclaredFiles

Streams: TypeAlias = "dict[str, Scenario | ScenarioRunnerError]"
"""Scenarios that are not read from their file when they are run, or what is wrong with them."""
_MOST_SHOWN = 10


def read_streams(files: Sequence[str]) -> Streams:
    """Read the scenarios of standard input and pipes, which can be read only once."""
    read: Streams = {}
    for file in files:
        if file not in read and is_stream(file):
            from scenario_runner.scenario import load

            try:
                read[file] = load(file)
            except ScenarioRunnerError as error:
                read[file] = error
    return read


class RunOutputs:
    """The folders of the outputs and captures of scenarios.

    With --folder-each every scenario gets one of its own in them, named by its path from the folder that is common to
    all.
    """

    def __init__(self, files: Sequence[str], streams: Streams, options: argparse.Namespace) -> None:
        self._files = list(dict.fromkeys(files))
        self._streams = streams
        self._output, self._capture_dir = options.output, options.capture_dir
        self._frame_captures = options.capture_frame is not None
        self._folders = _folders(self._files) if options.folder_each else {}
        self._help = "run them one by one" + ("" if options.folder_each else ", or with --folder-each and --output")
        if options.folder_each and self._output is None and self._capture_dir is None:
            raise UsageError("--folder-each needs --output or --capture-dir", help="folders are made in those")

    def output_dir(self, file: str) -> str | None:
        return self._own(self._output, file)

    def capture_dir(self, file: str) -> str | None:
        return self._own(self._capture_dir, file)

    def frame_capture_dir(self, file: str) -> str:
        """The folder for the files of --capture-frame."""
        return self.capture_dir(file) or self.output_dir(file) or "."

    def _own(self, folder: str | None, file: str) -> str | None:
        return os.path.join(folder, self._folders[file]) if folder is not None and self._folders else folder

    def refuse_collisions(self) -> None:
        """Raise UsageError where two scenarios would write one file, or one the text of another."""
        different = {os.path.realpath(file): file for file in reversed(self._files)}
        if len(different) < 2:
            return
        owners: dict[object, str] = {}

        def claim(key: object, file: str, what: str) -> None:
            owner = owners.setdefault(key, file)
            if owner != file:
                raise UsageError(f"{owner} and {file} would {what}", help=self._help)

        for own, file in reversed(different.items()):
            declared = self._declared(file)
            for path in map(os.path.realpath, declared.writes):
                if path in different and path != own:
                    raise UsageError(f"{file}: would overwrite the scenario {different[path]}: {path}")
                claim(path, file, f"write the same file: {path}")
            folder = self.capture_dir(file)
            for number, uid in declared.captures if folder is not None else ():
                claim((folder, number, uid), file, f"both capture {uid!r} of frame {number} into {folder!r}")
            if self._frame_captures:
                stem = os.path.join(self.frame_capture_dir(file), os.path.splitext(os.path.basename(file))[0])
                claim(os.path.realpath(stem), file, f"both be captured into files called {stem}-….rdc")

    def clean(self, file: str) -> None:
        """Remove the outputs of a scenario. Raises FileError."""
        declared = self._declared(file)
        for path in declared.on_disk():
            try:
                os.unlink(os.path.realpath(path))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise FileError(f"{path}: cannot be removed: {reason_of(error)}") from error
        marker = marker_path(declared.writes)
        if marker is not None:
            with suppress(OSError):
                os.unlink(marker)

    def note_of_failure(self, file: str) -> str | None:
        """A note about outputs of earlier runs, for a run that failed; None where there are none."""
        left = self._declared(file).on_disk()
        if not left:
            return None
        more = f" and {len(left) - _MOST_SHOWN} more" if len(left) > _MOST_SHOWN else ""
        return f"{file}: these outputs are from an earlier run: {', '.join(left[:_MOST_SHOWN])}{more}"

    def _declared(self, file: str) -> DeclaredFiles:
        from scenario_runner.scenario.syntax import DeclaredFiles, declared_files

        scenario = self._streams.get(file)
        if isinstance(scenario, ScenarioRunnerError):
            return DeclaredFiles((), (), frozenset())
        if scenario is not None:
            return declared_files(scenario.text or "", scenario.base_dir, self.output_dir(file))
        try:
            text = read_file(file, MAX_SCENARIO_BYTES).decode(errors="replace")
        except (OSError, ValueError):
            text = ""  # the run says what is wrong
        return declared_files(text, os.path.dirname(os.path.abspath(file)), self.output_dir(file))


def _folders(files: Sequence[str]) -> dict[str, str]:
    """A folder for each file: its path without the extension, unless two files differ in nothing else."""
    paths = {file: os.path.abspath(file) for file in files}
    common = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    names = {file: os.path.relpath(os.path.splitext(path)[0], common) for file, path in paths.items()}
    owners: dict[str, set[str]] = {}
    for file, name in names.items():
        owners.setdefault(name, set()).add(paths[file])
    return {
        file: name if len(owners[name]) == 1 else os.path.relpath(paths[file], common) for file, name in names.items()
    }
