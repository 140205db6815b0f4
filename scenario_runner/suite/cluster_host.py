"""Functions called by Dask workers on other hosts: they keep files and run shards.

A host receives each file once and keeps the file in the user's cache folder, named by the content's SHA-256. A run uses
copies. The file /a/b of the first host, which started the suite, becomes SCRATCH/a/b, so relative paths stay valid.
Results name the paths of the first host.
"""

import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple, NoReturn

from distributed import get_worker

from scenario_runner.errors import NoDeviceError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.text import reason_of
from scenario_runner.files.cache_folder import default_cache_dir, enforce_limits, reason_to_distrust, replace_own
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.suite.hashes import dependencies, file_hash, program_hash, texts_of
from scenario_runner.suite.outcomes import Item, Outcome, Result, refuse
from scenario_runner.suite.suite_workers import SuiteWorkers, rules_of
from scenario_runner.suite.verdicts_and_retries import Expected

KIND: Final = "contents"
HOST_CANNOT_KEEP_FILES: Final = "SR-CLUSTER-008"
_IDLE_S: Final = 60.0  # without a shard; the suite may have been killed


class SentItem(NamedTuple):
    """An item for another host.

    ``files`` maps each path on the first host that a run reads to the content's SHA-256. ``absolute`` lists the files
    with absolute paths in the scenario or expectations.
    """

    item: Item
    expected: Expected
    files: dict[str, str]
    absolute: tuple[str, ...] = ()


def sent_item(item: Item, expected: Expected) -> SentItem:
    """Add the present files to an item. Files that are missing here will be missing on other hosts."""
    files: dict[str, str] = {}
    absolute: list[str] = []
    folder = os.path.join(os.path.dirname(item.path), "")
    spelled = b"".join(texts_of(item))
    for path, hash in dependencies(item):
        if not hash:
            continue
        # "a/../b" is b on another host, which has no links.
        plain = os.path.normpath(path)
        files[plain] = hash
        if path not in item.defaults and (not path.startswith(folder) or json.dumps(path).encode() in spelled):
            absolute.append(plain)
    return SentItem(item, expected, files, tuple(absolute))


def kept_path(hash: str) -> str:
    """Return this host's path for the kept file with a hash."""
    return os.path.join(default_cache_dir(), KIND, f"{hash}.content")


def check_store() -> None:
    """Create the folder of kept files. Raises FileError with the code HOST_CANNOT_KEEP_FILES."""
    root = default_cache_dir()
    for folder in (root, os.path.join(root, KIND)):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            reason = reason_to_distrust(os.stat(folder))
        except OSError as error:
            reason = reason_of(error)
        if reason:
            _refuse_to_keep(folder, reason)


def _refuse_to_keep(path: str, reason: str) -> NoReturn:
    refuse(HOST_CANNOT_KEEP_FILES, path, f"this host cannot keep files of suites: {reason}")


def describe() -> dict[str, str]:
    """Return this host's name, and the program's version and hash."""
    return {"host": socket.gethostname(), "version": own_version(), "program": program_hash({})}


def missing(hashes: Iterable[str]) -> list[str]:
    """Return the hashes of files that this host lacks. Kept files count as used now."""
    check_store()
    lacks = []
    for hash in hashes:
        try:
            os.utime(kept_path(hash))
        except OSError:
            lacks.append(hash)
    return lacks


def receive(files: Mapping[str, bytes]) -> None:
    """Keep files. Drop a file if the content no longer has the hash."""
    for hash, data in files.items():
        if hashlib.sha256(data).hexdigest() == hash:
            try:
                replace_own(kept_path(hash), data)
            except OSError as error:
                _refuse_to_keep(kept_path(hash), reason_of(error))


class Layout:
    """A folder with copies of the files of items. Life cycle: items are placed and run; `clear` removes the copies."""

    def __init__(self, folder: str) -> None:
        """Choose a folder, which need not exist. Messages of a run must not contain the folder's path by chance."""
        self._folder = folder
        self._placed: dict[str, str] = {}

    def place(self, job: SentItem) -> Item:
        """Copy an item's files into the folder, and return the item with the new paths.

        Raises ScenarioRunnerError for a missing file, with the code HOST_CANNOT_KEEP_FILES if this host is the cause.
        """
        item = job.item
        for path in job.absolute:
            if file_hash(path) != job.files[path]:
                message = f"{path!r} is an absolute path, and this host has no file there with the same content"
                refuse("SR-CLUSTER-005", item.path, message, "name files relative to the scenario")
        for path, hash in job.files.items():
            if self._placed.get(path) == hash:
                continue
            target = self.here(path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(kept_path(hash), target)
            except FileNotFoundError:
                refuse("SR-CLUSTER-006", path, "the file changed while the suite ran, and did not reach this host")
            except OSError as error:
                refuse(HOST_CANNOT_KEEP_FILES, path, f"this host cannot copy the file: {reason_of(error)}")
            self._placed[path] = hash
        for path in filter(None, (item.expectations, *item.defaults)):
            if path not in job.files:
                refuse("SR-CLUSTER-006", path, "the expectations cannot be read")
        expectations = item.expectations and self.here(item.expectations)
        defaults = tuple(map(self.here, item.defaults))
        return item._replace(path=self.here(item.path), expectations=expectations, defaults=defaults)

    def here(self, path: str) -> str:
        """Translate a path on the first host into a path on this host."""
        return self._folder + os.path.abspath(path)

    def there(self, outcome: Outcome) -> Outcome:
        """Translate all paths in an outcome into paths on the first host."""
        text = json.dumps(outcome.as_json()).replace(json.dumps(self._folder)[1:-1], "")
        return Outcome.of_json(json.loads(text))

    def clear(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._placed.clear()


class Reply(NamedTuple):
    """A host's answer to a shard: either the hashes of files that the host ``lacks``, or results.

    ``problem`` tells why the host can run nothing more. Items without a result must run on another host.
    """

    address: str
    lacks: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    devices: tuple[Device, ...] = ()
    notes: tuple[str, ...] = ()
    problem: Diagnostic | None = None
    seconds: float = 0.0


class _HostSession:
    """A suite's worker processes on this host, which stay from shard to shard.

    Life cycle: created for the first shard; `run` for each shard; closed at the end of the suite, or after a minute
    without a shard.
    """

    def __init__(self, options: WorkerOptions) -> None:
        self.notes: list[str] = []
        self._rules = rules_of(options)
        with ExitStack() as stack:
            stack.callback(enforce_limits, default_cache_dir(), KIND)
            scratch = os.path.realpath(stack.enter_context(temporary_folder()))
            self._layout = Layout(os.path.join(scratch, "files"))
            self.results = os.path.join(scratch, "results")
            work = options.task_options
            if work.options.results_folder is not None:
                work = work._replace(options=work.options._replace(results_folder=self.results))
            options = options._replace(task_options=work)
            self.workers = stack.enter_context(SuiteWorkers(options, on_note=self.notes.append))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the processes and remove their files."""
        self._stack.close()

    def run(self, shard: Mapping[str, SentItem]) -> Iterator[Result]:
        """Run items, and yield results. Raises NoDeviceError after the last result if no device is left."""
        unplaced: list[Result] = []
        for result in self.workers.run(self._placed(shard.values(), unplaced), lambda name: shard[name].expected):
            # without a device here, the item may run on another host
            last = result.attempts[-1]
            is_left = last.status == "Missing" and not last.diagnostics
            if not (is_left and self._lost_devices()):
                attempts = tuple(map(self._layout.there, result.attempts))
                item = shard[result.item.id].item
                yield result._replace(item=item, attempts=attempts, host=socket.gethostname())
        yield from unplaced
        self._layout.clear()
        if self._lost_devices():
            raise NoDeviceError(f"no device is left: {self._lost_devices()}")

    def _lost_devices(self) -> str:
        """Return why no device is left, or "" if a device is left."""
        reasons = [device.given_up for device in self.workers.devices]
        return "; ".join(reasons) if all(reasons) else ""

    def _placed(self, shard: Iterable[SentItem], unplaced: list[Result]) -> Iterator[Item]:
        for sent in shard:
            try:
                yield self._layout.place(sent)
            except ScenarioRunnerError as error:
                if error.problems[0].code == HOST_CANNOT_KEEP_FILES:
                    raise  # another host may have room
                diagnostics = tuple(problem.as_json() for problem in error.problems)
                outcome = Outcome("Missing", 0.0, str(error.problems[0]), error.exit_code, diagnostics)
                result = self._rules.result(sent.item, sent.expected, outcome)
                unplaced.append(result._replace(host=socket.gethostname()))


# Each key here identifies a suite.
_sessions: dict[str, _HostSession] = {}
_timers: dict[str, threading.Timer] = {}
_ended: set[str] = set()
_one_shard_at_a_time = threading.Lock()


def run_shard(key: str, options: WorkerOptions, shard: Sequence[SentItem], is_complete: bool) -> Reply:
    """Run a shard of the suite with this key. A host that lacks files returns only their hashes.

    With ``is_complete`` the shard runs even if files are missing. The results folder in ``options`` belongs to the
    first host.
    """
    begun = time.monotonic()
    reply = Reply(get_worker().address)
    results: list[Result] = []
    try:
        hashes = {hash for sent in shard for path, hash in sent.files.items() if path not in sent.absolute}
        lacks = missing(hashes)
        if lacks and not is_complete:
            return reply._replace(lacks=tuple(lacks))
        with _one_shard_at_a_time:
            if key in _ended:
                return reply
            if key in _timers:
                _timers.pop(key).cancel()
            session = _sessions[key] = _sessions.get(key) or _HostSession(options)
            try:
                for result in session.run({sent.item.id: sent for sent in shard}):
                    results.append(result)
            finally:
                _end_later(key, _IDLE_S)
        reply = reply._replace(devices=session.workers.devices, notes=tuple(session.notes))
        session.notes.clear()
    except ScenarioRunnerError as error:
        reply = reply._replace(problem=error.problems[0])
    return reply._replace(results=tuple(results), seconds=time.monotonic() - begun)


def _end_later(key: str, seconds: float) -> None:
    timer = _timers[key] = threading.Timer(seconds, _end, [key])
    timer.daemon = True
    timer.start()


def _end(key: str) -> None:
    with _one_shard_at_a_time:
        session = _sessions.pop(key, None)
        if session is not None:
            session.close()


def take(key: str, name: str) -> bytes:
    """Read and remove a file about a failure. The name is relative to the results folder."""
    path = os.path.join(_sessions[key].results, name)
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return data


def stop(key: str, now: bool) -> None:
    """Begin no further item of a suite. ``now`` also kills the running items."""
    _ended.add(key)
    session = _sessions.get(key)
    if session is not None:
        session.workers.stop(now=now)
        if now:
            _end_later(key, 0.0)
