"""The files of a run: each scenario with the folders of its outputs, their collisions, and outputs of earlier runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.errors.text import Json, first_of
from scenario_runner.files.input import MAX_SCENARIO_BYTES, ParameterizedFile, is_stream, read_file
from scenario_runner.files.sandbox import around

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario
    from scenario_runner.scenario.named_files import NamedFiles


class RunFile(NamedTuple):
    """A scenario to run, and the folders that the options name for it.

    ``scenario`` is not a path where the file cannot be read again, or where it is a model. Then it is the scenario, or
    the error of reading it.
    """

    path: str
    scenario: str | ParameterizedFile | Scenario | ScenarioRunnerError
    output_dir: str | None = None
    capture_dir: str | None = None

    @property
    def frame_capture_dir(self) -> str:
        """The folder for the files of --capture-frame."""
        return self.capture_dir or self.output_dir or "."

    def clean(self) -> None:
        """Remove the outputs. Raises FileError."""
        with around(self.path, self.output_dir):
            self.named().remove()

    def note_of_failure(self) -> str | None:
        """A note about outputs of earlier runs, for a run that failed; None where there are none."""
        with around(self.path, self.output_dir):
            left = self.named().on_disk()
        return f"{self.path}: these outputs are from an earlier run: {first_of(left)}" if left else None

    def named(self) -> NamedFiles:
        """Return the files that the scenario names; those of a wrong one may be missing: the run says what is wrong."""
        from scenario_runner.scenario.named_files import named_files
        from scenario_runner.scenario.parameters import replaced
        from scenario_runner.scenario.syntax import LimitError

        text, folder = "", os.path.dirname(os.path.abspath(self.path))
        if isinstance(self.scenario, str | ParameterizedFile):
            with suppress(OSError, ValueError):
                text = read_file(self.path, MAX_SCENARIO_BYTES).decode("utf-8-sig", "replace")
        elif not isinstance(self.scenario, ScenarioRunnerError):
            text, folder = self.scenario.text or "", self.scenario.base_dir
        with suppress(LimitError):
            text = replaced(text, getattr(self.scenario, "parameters", {}))
        return named_files(text, folder, self.output_dir)


def run_files(paths: Sequence[str], options: argparse.Namespace) -> list[RunFile]:
    """The files of a run. Those of standard input and pipes are read, which is possible only once.

    With --folder-each every scenario gets a folder of its own, named by its path from the folder that is common to all.
    Raises UsageError.
    """
    if options.folder_each and options.output is None and options.capture_dir is None:
        raise UsageError("--folder-each needs --output or --capture-dir", help="folders are made in those")
    folders = _own_folders(paths) if options.folder_each else {}

    def own(folder: str | None, path: str) -> str | None:
        return os.path.join(folder, folders[path]) if folder is not None and folders else folder

    scenarios = {path: _scenario(path, dict(options.set)) for path in dict.fromkeys(paths)}
    return [RunFile(path, scenarios[path], own(options.output, path), own(options.capture_dir, path)) for path in paths]


def _scenario(path: str, parameters: Mapping[str, Json]) -> str | ParameterizedFile | Scenario | ScenarioRunnerError:
    """A scenario file with the values of its parameters, or what `RunFile` has in its place."""
    try:
        if is_stream(path):
            from scenario_runner.scenario import load

            return load(path, parameters)
        with suppress(OSError, ValueError):
            if path.endswith("]") or b"${" in read_file(path, MAX_SCENARIO_BYTES):
                from scenario_runner.suite.discovery import scenario_with

                return scenario_with(path, parameters)
    except ScenarioRunnerError as error:
        return error
    return ParameterizedFile(path, parameters) if parameters else path


def _own_folders(files: Sequence[str]) -> dict[str, str]:
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


def refuse_collisions(files: Sequence[RunFile], options: argparse.Namespace) -> None:
    """Raise UsageError where two scenarios would write one file, or one the text of another."""
    different = {os.path.realpath(file.path): file for file in reversed(files)}
    if len(different) < 2:
        return
    help = "run them one by one" + ("" if options.folder_each else ", or with --folder-each and --output")
    owners: dict[object, str] = {}

    def claim(key: object, file: RunFile, what: str) -> None:
        owner = owners.setdefault(key, file.path)
        if owner != file.path:
            raise UsageError(f"{owner} and {file.path} would {what}", help=help)

    for own, file in reversed(different.items()):
        named = file.named()
        for path in map(os.path.realpath, named.writes):
            if path in different and path != own:
                raise UsageError(f"{file.path}: would overwrite the scenario {different[path].path}: {path}")
            claim(path, file, f"write the same file: {path}")
        folder = file.capture_dir
        for number, uid in named.captures if folder is not None else ():
            claim((folder, number, uid), file, f"both capture {uid!r} of frame {number} into {folder!r}")
        if options.capture_frame is not None:
            stem = os.path.join(file.frame_capture_dir, os.path.splitext(os.path.basename(file.path))[0])
            claim(os.path.realpath(stem), file, f"both be captured into files called {stem}-….rdc")
