"""``--watch``: run again whenever an input file changes."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from scenario_runner.cli import console
from scenario_runner.errors import LimitError, MissingPackageError, NoDeviceError, ScenarioRunnerError, UsageError
from scenario_runner.errors.installation import pip_install
from scenario_runner.errors.text import Json, counted, first_of
from scenario_runner.files.input import is_stream
from scenario_runner.processes import progress
from scenario_runner.suite.discovery import Discovery
from scenario_runner.suite.hashes import dependencies, file_hash, sources_of
from scenario_runner.suite.outcomes import SuiteProblems

if TYPE_CHECKING:
    from scenario_runner.suite.suite_workers import SuiteWorkers

_DEBOUNCE_MS, _STEP_MS = 50, 10  # changes within this time count as a single change
_FIRST_LOOK_MS = 500
_MOST_SHOWN = 5

Files = dict[str, str]
"""SHA-256 by path, "" for an unreadable file."""


def check_watchable(paths: Iterable[str]) -> None:
    """Raise MissingPackageError if watchfiles is missing, and UsageError for pipes and standard input."""
    try:
        import watchfiles  # noqa: F401 - an optional package
    except ModuleNotFoundError as error:
        message = "--watch needs the Python package 'watchfiles', which is not installed"
        raise MissingPackageError(message, help=shlex.join(pip_install("watchfiles"))) from error
    for path in paths:
        if path == "-" or (is_stream(path) and not os.path.isdir(path)):
            raise UsageError(f"{path}: --watch cannot read a pipe or standard input again", help="name a file")


def hashes_of(paths: Iterable[str], model_files: Sequence[str], parameters: Mapping[str, Json]) -> Files:
    """Hash the files read by scenarios or models, and the model files given by options."""
    return dict(file for path in paths for file in sources_of(path, model_files, parameters))


def watch(run: Callable[[], object], reads: Callable[[], Files], folders: Callable[[], set[str]] = set) -> NoReturn:
    """Call ``run`` now, and again whenever a file of ``reads`` changes, until Ctrl-C.

    After a failed run, the error is printed and the watch goes on. New files in ``folders`` count as changes. Raises
    KeyboardInterrupt, NoDeviceError, and LimitError if the system refuses to watch more folders.
    """
    before = reads()
    while True:
        try:
            run()
        except NoDeviceError:  # no change of a file helps
            raise
        except ScenarioRunnerError as error:
            console.show_error(error)
        progress.set_work("waiting for changes of its files")
        sys.stdout.flush()
        console.write("watching", f"{counted(len(set(map(os.path.realpath, before))), 'file')} (Ctrl-C to end)")
        changed = _next_changes(before, reads, folders)
        screen = console.terminal(sys.stdout)
        if screen is not None:
            screen.clear()
            sys.stdout.flush()
        console.write("changed", first_of(list(map(_shortest, changed)), _MOST_SHOWN))
        before = reads()


def watch_suite(options: Namespace, run: Callable[[list[SuiteWorkers]], object]) -> NoReturn:
    """Run the suite, then after each change the items that `--resume` would run, until Ctrl-C.

    ``run`` takes workers from a list and leaves them there. Raises KeyboardInterrupt, MissingPackageError and
    UsageError.
    """
    lists = [path[1:] if path.startswith("@") else path for path in options.paths]
    files = [*options.skips, *options.flakes, *options.baseline, *filter(os.path.isfile, options.include_tests)]
    check_watchable([*lists, *files])
    files += (path[1:] for path in options.paths if path.startswith("@"))
    kept: list[SuiteWorkers] = []

    def run_changed() -> None:
        run(kept)
        options.resume = True

    def reads() -> Files:
        items = Discovery(options.root, SuiteProblems(lambda problem: None)).items(options.paths)
        hashes = {path: hash for item in items for path, hash in dependencies(item)}
        return hashes | {path: file_hash(path) for path in files}

    def folders() -> set[str]:
        places: set[str] = set()
        for path in options.paths:
            for folder, below, _ in os.walk(path, followlinks=True):
                place = os.path.realpath(folder)
                below[:] = [] if place in places else [name for name in below if not name.startswith(".")]
                places.add(place)
        return places

    try:
        watch(run_changed, reads, folders)
    finally:
        for workers in kept:
            workers.close()


def _shortest(path: str) -> str:
    return min(os.path.abspath(path), os.path.relpath(path), key=len)


def _next_changes(before: Files, reads: Callable[[], Files], folders: Callable[[], set[str]]) -> Sequence[str]:
    """Wait until files differ from ``before``, and return these files. Ignore other files in the folders."""
    from watchfiles import watch

    while True:
        watched = _folders_of(before) | _folders_of(reads()) | folders()
        has_looked = False
        try:
            for events in watch(
                *watched,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=_FIRST_LOOK_MS,
                yield_on_timeout=True,
                recursive=False,
            ):
                if has_looked and not events:
                    continue
                has_looked = True  # the first look finds changes made since `before`
                changed = [path for path in before if file_hash(path) != before[path]]
                if changed:
                    return changed
                now = reads()  # takes seconds for thousands of scenarios
                if new := [path for path in now if now[path] and path not in before]:
                    known = set(map(os.path.realpath, before))
                    return [path for path in new if os.path.realpath(path) not in known] or new
                if not (_folders_of(now) | folders()) <= watched:
                    break
        except FileNotFoundError:  # someone removed a folder
            continue
        except (OSError, RuntimeError) as error:  # RuntimeError is from the part in Rust
            message = f"cannot watch the folders of the files: {error}"
            help = "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl"
            raise LimitError(message, help=help) from error


def _folders_of(files: Iterable[str]) -> set[str]:
    """Find the existing folders to watch for these files. A link needs the link's folder and the target's folder."""
    paths = {os.path.abspath(path) for path in files}
    paths |= {os.path.realpath(path) for path in paths if os.path.islink(path)}
    folders = set()
    for folder in {os.path.dirname(path) for path in paths}:
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        folders.add(folder)
    return folders
