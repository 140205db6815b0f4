"""Items for other hosts, and the functions that a worker of Dask calls on its host: they keep files and run shards.

Files are kept in the user's cache folder, named by the SHA-256 of their content, and sent once. They are copied, never
linked, so that a run cannot change them: a file /a/b of the host that started the suite becomes SCRATCH/a/b here, which
keeps relative paths valid. SCRATCH is removed from all paths in results.
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

from scenario_runner.errors import NoDeviceError, ScenarioRunnerError, version
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.files.cache_folder import bound, default_cache_dir, distrust, replace_own
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.suite.hashes import file_hash, files_of, program_hash, texts_of
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.problems import refuse
from scenario_runner.suite.suite_workers import SuiteWorkers, rules_of
from scenario_runner.suite.verdicts import Expected

KIND: Final = "contents"
HOST_CANNOT_KEEP_FILES: Final = "SR-CLUSTER-008"
_IDLE_S: Final = 60.0  # without a shard: the suite may have been killed


class SentItem(NamedTuple):
    """An item for another host.

    ``files`` has the files that a run of it reads: absolute path on the host that started the suite → SHA-256 of the
    content. ``absolute`` are those that a file of the item names by absolute paths.
    """

    item: Item
    expected: Expected
    files: dict[str, str]
    absolute: tuple[str, ...] = ()


def sent_item(item: Item, expected: Expected) -> SentItem:
    """Add to an item its files as they are now. Files that are missing here will be missing there."""
    files: dict[str, str] = {}
    absolute: list[str] = []
    folder = os.path.join(os.path.dirname(item.path), "")
    spelled = b"".join(texts_of(item))
    for path, hash in files_of(item):
        if not hash:
            continue
        # "a/../b" is b on another host, where no part of it is a link.
        plain = os.path.normpath(path)
        files[plain] = hash
        if path not in item.defaults and (not path.startswith(folder) or json.dumps(path).encode() in spelled):
            absolute.append(plain)
    return SentItem(item, expected, files, tuple(absolute))


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
    return {"host": socket.gethostname(), "version": version.__version__, "program": program_hash({})}


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


class Layout:
    """Life cycle: items are placed, run, and `clear` removes their files."""

    def __init__(self, folder: str) -> None:
        """``folder`` need not exist; its path must occur nowhere else in the messages of a run."""
        self._folder = folder
        self._placed: dict[str, str] = {}

    def place(self, job: SentItem) -> Item:
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
        for path in filter(None, (item.expectations, *item.defaults)):
            if path not in job.files:
                refuse("SR-CLUSTER-006", path, "the expectations cannot be read")
        expectations = item.expectations and self.here(item.expectations)
        defaults = tuple(map(self.here, item.defaults))
        return item._replace(path=self.here(item.path), expectations=expectations, defaults=defaults)

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


class Reply(NamedTuple):
    """The answer of a host to a shard: the hashes of files that it ``lacks``, or the results of the items that ran.

    ``problem`` tells why this host can run nothing more; items without a result run elsewhere.
    """

    address: str
    lacks: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    devices: tuple[Device, ...] = ()
    notes: tuple[str, ...] = ()
    problem: Diagnostic | None = None
    seconds: float = 0.0


class _HostSession:
    """The processes that run a suite on this host. They stay from shard to shard.

    Life cycle: created for the first shard; `run` for each; closed when the suite ends, or after a minute without a
    shard.
    """

    def __init__(self, options: WorkerOptions) -> None:
        self.notes: list[str] = []
        self._rules = rules_of(options)
        with ExitStack() as stack:
            stack.callback(bound, default_cache_dir(), KIND)
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
        """Run items, by their ids. Raises NoDeviceError after the last result if no device is left."""
        unplaced: list[Result] = []
        for result in self.workers.run(self._placed(shard.values(), unplaced), lambda name: shard[name].expected):
            # an item for which no device of this host is left may run on another host
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
        """Return why no device is left; empty if one is."""
        reasons = [device.given_up for device in self.workers.devices]
        return "; ".join(reasons) if all(reasons) else ""

    def _placed(self, shard: Iterable[SentItem], unplaced: list[Result]) -> Iterator[Item]:
        for sent in shard:
            try:
                yield self._layout.place(sent)
            except ScenarioRunnerError as error:
                if error.problems[0].code == HOST_CANNOT_KEEP_FILES:
                    raise  # another host may
                diagnostics = tuple(problem.as_json() for problem in error.problems)
                outcome = Outcome("Missing", 0.0, str(error.problems[0]), error.exit_code, diagnostics)
                result = self._rules.result(sent.item, sent.expected, outcome)
                unplaced.append(result._replace(host=socket.gethostname()))


_sessions: dict[str, _HostSession] = {}  # by the keys of suites
_ended: set[str] = set()  # keys of suites
_timers: dict[str, threading.Timer] = {}
_turn = threading.Lock()  # of one shard at a time


def run_shard(key: str, options: WorkerOptions, shard: Sequence[SentItem], is_complete: bool) -> Reply:
    """Run a shard of a suite. Unless it ``is_complete``, a host that lacks files returns their hashes instead.

    The folder of results in ``options`` belongs to the host that started the suite.
    """
    from distributed import get_worker  # an optional package

    begun = time.monotonic()
    reply = Reply(get_worker().address)
    results: list[Result] = []
    try:
        hashes = {hash for sent in shard for path, hash in sent.files.items() if path not in sent.absolute}
        lacks = missing(hashes)
        if lacks and not is_complete:
            return reply._replace(lacks=tuple(lacks))
        with _turn:
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
    with _turn:
        session = _sessions.pop(key, None)
        if session is not None:
            session.close()


def take(key: str, name: str) -> bytes:
    """Read and remove a file about a failure by its name below the results."""
    path = os.path.join(_sessions[key].results, name)
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return data


def stop(key: str, now: bool) -> None:
    """Begin no further item of a suite. ``now`` ends its processes too, without waiting for their ends."""
    _ended.add(key)
    session = _sessions.get(key)
    if session is not None:
        session.workers.stop(now=now)
        if now:
            _end_later(key, 0.0)
