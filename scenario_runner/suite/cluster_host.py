"""Jobs of a cluster, and the functions that a worker of Dask calls on its host: they keep files and run shards.

Files are kept in the user's cache folder, named by the SHA-256 of their content, and sent once. They are copied, never
linked, so that a run cannot change them: a file /a/b of the host that started the suite becomes SCRATCH/a/b here, which
keeps relative paths valid. SCRATCH is removed from all paths in results.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple, NoReturn

from scenario_runner import __version__
from scenario_runner.content_cache import bound, default_cache_dir, distrust, replace_own
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.source import reason_of
from scenario_runner.suite.hashes import content, file_hash, files_of, program_hash
from scenario_runner.suite.problems import refuse
from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.options import Device, Finished, WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.verdicts import Expected, Rules
from scenario_runner.temporary import temporary_folder

KIND: Final = "contents"
HOST_CANNOT_KEEP_FILES: Final = "SR-CLUSTER-008"
_IDLE_S: Final = 60.0  # without a shard: the suite may have been killed


class Order(NamedTuple):
    """Options for a host that runs items. The folder of results in ``options`` is that of the host that started the
    suite."""

    session: str
    options: WorkerOptions
    rules: Rules


class Job(NamedTuple):
    """An item for another host.

    ``files`` has the files that a run of it reads: absolute path on the host that started the suite → SHA-256 of the
    content. ``absolute`` are those that a file of the item names by absolute paths.
    """

    item: Item
    expected: Expected
    files: dict[str, str]
    absolute: tuple[str, ...] = ()


class Ran(NamedTuple):
    """The result of an item; ``files`` are those about its failures: the name below the results → the path."""

    finished: Finished
    files: dict[str, str]


class Ended(NamedTuple):
    """The end of a shard. ``problems`` are the reasons if it ended early."""

    problems: tuple[Diagnostic, ...]
    devices: tuple[Device, ...] = ()


Reply = Ran | Ended | str
"""A message of a host; a text is a note for the user."""


def job_of(item: Item, expected: Expected) -> Job:
    """Make a job of an item with its files as they are now. Files that are missing here will be missing there."""
    files: dict[str, str] = {}
    absolute: list[str] = []
    folder = os.path.join(os.path.dirname(item.path), "")
    spelled = b"".join(content(path) or b"" for path in (item.path, item.expectations))
    for path, hash in files_of(item):
        if not hash:
            continue
        # "a/../b" is b on another host, where no part of it is a link.
        plain = os.path.normpath(path)
        files[plain] = hash
        if not path.startswith(folder) or json.dumps(path).encode() in spelled:
            absolute.append(plain)
    return Job(item, expected, files, tuple(absolute))


def kept_path(hash: str) -> str:
    """Return the path of the file with this hash, once it is kept."""
    return os.path.join(default_cache_dir(), KIND, f"{hash}.content")


def check_store() -> None:
    """Create the folder of the kept files. Raises the error of HOST_CANNOT_KEEP_FILES if it cannot be used."""
    root = default_cache_dir()
    for folder in (root, os.path.join(root, KIND)):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            reason = distrust(os.stat(folder))
        except OSError as error:
            reason = reason_of(error)
        if reason:
            _refuse_to_keep(folder, reason)


def _refuse_to_keep(path: str, reason: str) -> NoReturn:
    refuse(HOST_CANNOT_KEEP_FILES, path, f"files of suites cannot be kept there: {reason}")


def describe() -> dict[str, str]:
    """Describe this host, and the program on it."""
    return {"host": socket.gethostname(), "version": __version__, "program": program_hash({})}


def missing(hashes: Iterable[str]) -> list[str]:
    """List the hashes of files that this host lacks. The others count as used now, so that they stay in the cache."""
    check_store()
    lacks = []
    for hash in hashes:
        try:
            os.utime(kept_path(hash))
        except OSError:
            lacks.append(hash)
    return lacks


def receive(files: Mapping[str, bytes]) -> None:
    """Keep files by their hashes. A file whose content has another hash has changed meanwhile, and is dropped."""
    for hash, data in files.items():
        if hashlib.sha256(data).hexdigest() == hash:
            try:
                replace_own(kept_path(hash), data)
            except OSError as error:
                _refuse_to_keep(kept_path(hash), reason_of(error))


def take(path: str) -> bytes:
    """Read and remove a file about a failure."""
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return data


class Layout:
    """Life cycle: items are placed, run, and `clear` removes their files."""

    def __init__(self, folder: str) -> None:
        """``folder`` need not exist; its path must occur nowhere else in the messages of a run."""
        self._folder = folder
        self._placed: dict[str, str] = {}

    def place(self, job: Job) -> Item:
        """Copy the files of an item to where its scenario finds them, and return the item with its paths here.

        Raises ScenarioRunnerError for a file that is not available, with the code HOST_CANNOT_KEEP_FILES if this host
        is the cause.
        """
        item = job.item
        for path in job.absolute:
            if file_hash(path) != job.files[path]:
                message = f"{path!r} is an absolute path, and this host has no such file with the same content"
                refuse("SR-CLUSTER-005", item.path, message, "name files relative to the scenario")
        for path, hash in job.files.items():
            if self._placed.get(path) == hash:
                continue
            target = self.here(path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(kept_path(hash), target)
            except FileNotFoundError:
                refuse("SR-CLUSTER-006", path, "it changed while the suite ran, so that this host has not got it")
            except OSError as error:
                refuse(HOST_CANNOT_KEEP_FILES, path, f"it cannot be copied: {reason_of(error)}")
            self._placed[path] = hash
        if item.expectations is None:
            return Item(item.id, self.here(item.path))
        if item.expectations not in job.files:
            refuse("SR-CLUSTER-006", item.expectations, "the expectations cannot be read")
        return Item(item.id, self.here(item.path), self.here(item.expectations))

    def here(self, path: str) -> str:
        """Return the path on this host of a file of the other one."""
        return self._folder + os.path.abspath(path)

    def there(self, outcome: Outcome) -> Outcome:
        """Return an outcome with all paths as on the other host."""
        text = json.dumps(outcome.as_json()).replace(json.dumps(self._folder)[1:-1], "")
        return Outcome.of_json(json.loads(text))

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._placed.clear()


class _Supervisor:
    """Runs the shards of a suite on this host, in workers that stay from shard to shard.

    Life cycle: created for the first shard; closes itself after a minute without a shard; `close` ends items that run.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._say: Callable[[Reply], None] = lambda reply: None
        self._shard = threading.Lock()
        self._idle = threading.Timer(0.0, lambda: None)
        with ExitStack() as stack:
            stack.callback(bound, default_cache_dir(), KIND)
            scratch = os.path.realpath(stack.enter_context(temporary_folder()))
            self._layout = Layout(os.path.join(scratch, "files"))
            self._results = os.path.join(scratch, "results")
            task_options = order.options.task_options
            if task_options.results_folder is not None:
                task_options = task_options._replace(results_folder=self._results)
            options = order.options._replace(task_options=task_options)
            self.workers = stack.enter_context(Workers(options, on_note=lambda text: self._say(text)))
            self._stack = stack.pop_all()

    def run(self, jobs: list[Job], say: Callable[[Reply], None]) -> None:
        """Run a shard, and send its results; the last message is `Ended`."""
        with self._shard:
            self._idle.cancel()
            self._say = say
            say(Ended(self._problems({job.item.id: job for job in jobs}), self.workers.devices))
            self._layout.clear()
            self._idle = threading.Timer(_IDLE_S, _close, [self._order.session])
            self._idle.daemon = True
            self._idle.start()

    def _problems(self, jobs: Mapping[str, Job]) -> tuple[Diagnostic, ...]:
        """Run a shard. Return the problems that ended it early, if any."""

        def again(item: Item, attempts: tuple[Outcome, ...]) -> bool:
            return self._order.rules.again(jobs[item.id].expected, attempts)

        try:
            for finished in self.workers.run(self._placed(jobs.values()), again=again):
                # an item for which no device of this host is left may run on another host
                is_left = finished.attempts[-1].status == "Missing" and not finished.attempts[-1].diagnostics
                if not (is_left and self._lost_devices()):
                    self._finish(finished._replace(item=jobs[finished.item.id].item))
        except ScenarioRunnerError as error:
            return error.problems
        lost = self._lost_devices()
        return (Diagnostic("SR-DEVICE-002", "error", None, f"no device is left: {lost}"),) if lost else ()

    def _lost_devices(self) -> str:
        """Return why no device is left; empty if one is."""
        reasons = [device.given_up for device in self.workers.devices]
        return "; ".join(reasons) if all(reasons) else ""

    def _placed(self, jobs: Iterable[Job]) -> Iterator[Item]:
        for job in jobs:
            try:
                yield self._layout.place(job)
            except ScenarioRunnerError as error:
                if error.problems[0].code == HOST_CANNOT_KEEP_FILES:
                    raise  # another host may
                diagnostics = tuple(problem.as_json() for problem in error.problems)
                outcome = Outcome("Missing", 0.0, str(error.problems[0]), error.exit_code, diagnostics)
                self._finish(Finished(job.item, (outcome,), "", ""))

    def _finish(self, finished: Finished) -> None:
        attempts = tuple(map(self._layout.there, finished.attempts))
        named = [file for attempt in attempts for output in attempt.outputs for file in output.files.values()]
        files = {file: os.path.join(self._results, file) for file in dict.fromkeys(named)}
        self._say(Ran(finished._replace(attempts=attempts, host=socket.gethostname()), files))

    def close(self) -> None:
        """End the items that run."""
        self.workers.stop(now=True)
        with self._shard:
            self._idle.cancel()
            self._stack.close()


_supervisors: dict[str, _Supervisor] = {}
_ended: set[str] = set()


def run_shard(order: Order, jobs: list[Job], topic: str) -> None:
    """Run a shard as a task of Dask, and log each `Reply`, pickled, as an event of a topic.

    It must not run twice at a time in one process. It returns nothing, since Dask repeats a task if it fails to fetch
    the result.
    """
    from distributed import get_worker

    worker = get_worker()

    def say(reply: Reply) -> None:
        worker.log_event(topic, pickle.dumps(reply))

    if order.session in _ended:
        return
    try:
        supervisor = _supervisors[order.session] = _supervisors.get(order.session) or _Supervisor(order)
    except ScenarioRunnerError as error:
        say(Ended(error.problems))
    else:
        supervisor.run(jobs, say)


def stop(session: str) -> None:
    """Begin no further item of the current shard."""
    if session in _supervisors:
        _supervisors[session].workers.stop()


def end(session: str) -> None:
    """End a suite, which gets no further shard, without waiting for its processes."""
    _ended.add(session)
    threading.Thread(target=_close, args=[session]).start()


def _close(session: str) -> None:
    supervisor = _supervisors.pop(session, None)
    if supervisor is not None:
        supervisor.close()
