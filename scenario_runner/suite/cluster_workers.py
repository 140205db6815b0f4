"""Items on a cluster's hosts: the counterpart of `suite_workers` with Dask.

The user names the scheduler, or it is started here with workers on this machine. Dask schedules shards of items.
`cluster_host` has the functions that run on the hosts.
"""

from __future__ import annotations

import json
import os
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, NoReturn

import dask
from distributed import Client, Future, LocalCluster

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.log import silence
from scenario_runner.errors.text import Json
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile
from scenario_runner.files.sandbox import open_file
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.suite import cluster_host as remote
from scenario_runner.suite.cluster_host import HOST_CANNOT_KEEP_FILES, SentItem, sent_item
from scenario_runner.suite.hashes import program_hash
from scenario_runner.suite.outcomes import Item, Outcome, Result, SuiteProblems, refuse
from scenario_runner.suite.suite_workers import rules_of
from scenario_runner.suite.verdicts_and_retries import Expected

_LOCAL: Final = "local:"
_CRITICAL: Final = 50  # logging.CRITICAL
_LARGE_GRAPH: Final = "distributed.admin.large-graph-warning-threshold"
_CONNECT_S: Final = 20
_LOOK_AT_WORKERS_S: Final = 0.2
_EXPECTED: Final = (
    "expected the address of a scheduler such as tcp://host:8786 (or tls://host:8786, with the certificates of this"
    " host in Dask's configuration: docs/cluster.md), the file of dask scheduler --scheduler-file, or local:N for N"
    " workers here"
)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler for the duration of a block.

    The address may also be a scheduler file (``*.json``), or ``local:N`` to start a cluster on this machine. A
    scheduler that does not answer yet gets some time. Raises UsageError if there is no scheduler.
    """
    silence("distributed")  # losses are reported here
    dask.config.set({_LARGE_GRAPH: "1 TiB"})  # a file of a scenario may be large
    with ExitStack() as stack:
        yield stack.enter_context(_local(address, stack) if address.startswith(_LOCAL) else _client(address))


def _local(address: str, stack: ExitStack) -> Client:
    count = address.removeprefix(_LOCAL)
    if not (count.isascii() and count.isdigit() and 0 < int(count[:6]) <= 1000):
        refuse("SR-CLUSTER-002", None, f"--cluster is {address!r}", _EXPECTED)
    cluster = LocalCluster(
        n_workers=int(count), threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=_CRITICAL
    )
    return Client(stack.enter_context(cluster), set_as_default=False)


def _client(address: str) -> Client:
    until = time.monotonic() + _CONNECT_S
    try:
        scheduler = _in_file(address, until) if address.endswith(".json") else address
        return Client(scheduler, timeout=max(1, round(until - time.monotonic())), set_as_default=False)
    except Exception as error:  # any: something else may answer there
        causes = [str(cause) or type(cause).__name__ for cause in (error, error.__cause__) if cause]
        why = ": ".join(dict.fromkeys(causes))
        if isinstance(error, MemoryError):  # Dask took a greeting for a length
            why = "another program answers there"
        refuse("SR-CLUSTER-002", None, f"no scheduler of Dask answers at {address!r}: {why}", _EXPECTED)


def _in_file(path: str, until: float) -> str:
    """Read the address that a scheduler writes into a file. Raises OSError or ValueError after some time."""
    while True:
        try:
            content = json.loads(read_file(path))
            if isinstance(content, dict) and "address" in content:
                return str(content["address"])
            raise ValueError("the file names no scheduler")
        except (FileNotFoundError, json.JSONDecodeError):  # the scheduler has not written all of the file
            if time.monotonic() >= until:
                raise
        time.sleep(_LOOK_AT_WORKERS_S)


def refuse_lost_scheduler(why: str) -> NoReturn:
    """Raise the error for a lost scheduler."""
    help = "run the suite again with --resume, with or without --cluster: the results in the journal stay"
    refuse("SR-CLUSTER-007", None, f"the scheduler of the cluster {why}", help)


def workers_of(client: Client) -> dict[str, Json] | None:
    """Return the scheduler's records of workers by address, or None while the scheduler does not answer.

    Raises NoDeviceError if the connection to the scheduler has ended.
    """
    if client.status == "connecting":  # the client has lost the scheduler, and tries again for some time
        return None
    if client.status != "running" or client.scheduler is None:
        refuse_lost_scheduler("is gone")
    try:
        # Not scheduler_info(): in some versions of Dask it has no more than five workers.
        return dict(client.sync(client.scheduler.identity, callback_timeout=_CONNECT_S)["workers"])
    except OSError:
        return None


RESOURCE: Final = "vulkan"
"""If some Dask workers have this resource, a suite uses only these workers, each for a single shard at a time."""

MOST_LOSSES: Final = 3
"""Losses of all hosts of a shard before the items of the shard run alone."""

_RETRIES: Final = 2  # of Dask, after an error
_SHARDS_PER_HOST: Final = 2  # a running shard and a waiting shard
_SHARD_S: Final = 4.0  # the intended duration of a shard
_FIRST_ITEMS: Final = 1  # of a shard; a host may run each of them for long
_MOST_ITEMS: Final = 50
_BATCH_BYTES: Final = 8 << 20
_LOOK_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_LATE_S: Final = 5.0  # to wait for other hosts after an unusable host
_END_S: Final = 10.0


class _Shard(NamedTuple):
    """Items that run together on any of the ``hosts`` (addresses).

    ``losses`` counts how often all hosts of the shard were lost. While a ``suspect`` runs, no other shard
    does: an item of a lost shard may end each host that runs it.
    """

    items: tuple[SentItem, ...]
    hosts: frozenset[str] = frozenset()
    losses: int = 0
    suspect: bool = False


class ClusterWorkers:
    """Life cycle: connected to the cluster; `run` once; closed.

    Each shard is a Dask future. Dask chooses the host, and chooses again after a loss of the host. A first future on
    each host checks that the host has this program.
    """

    def __init__(
        self,
        address: str,
        options: WorkerOptions,
        problems: SuiteProblems,
        *,
        on_note: Callable[[str], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Connect to a cluster. ``patience_s`` limits the wait for a host. Raises the errors of `connected`."""
        self._options = options
        self._rules = rules_of(options)
        self._problems = problems
        self._note = on_note
        self._patience_s = patience_s
        self._key = uuid.uuid4().hex[:12]
        self._program = program_hash({})
        self._hosts: dict[str, str] = {}  # names by addresses
        self._seen: set[str] = set()  # addresses
        self._resources: dict[str, float] | None = None
        self._checks: dict[Future[Any], str] = {}
        self._running: dict[Future[Any], _Shard] = {}
        self._waiting: deque[_Shard] = deque()
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._shard_items = _FIRST_ITEMS
        self._devices: dict[tuple[str, str], Device] = {}
        self._error: ScenarioRunnerError | None = None  # of the first host that is not used
        self._has_results = False
        self._silent_since: float | None = None  # time since which the scheduler does not answer
        self._stopping = False
        self._stack = ExitStack()
        self._client = self._stack.enter_context(connected(address))

    def find_devices(self) -> None:
        """Return None: nothing is known about devices before hosts run items."""

    def __enter__(self) -> ClusterWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the shards that have ended."""
        return tuple(self._devices.values())

    def run(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> Iterator[Result]:
        """Run items, and yield results when shards end. Without a host, the other items are Missing.

        Raises the error of the first host if no host could run anything, and NoDeviceError if the scheduler is lost.
        """
        self._items = (sent_item(item, expected(item.id)) for item in items)
        alone_since: float | None = None
        looked = 0.0
        while True:
            if time.monotonic() - looked >= _LOOK_S:
                yield from self._look()
                looked = time.monotonic()
            while not self._stopping and self._has_more() and len(self._running) < self._most_shards():
                self._submit(self._waiting.popleft())
            if not self._running and (self._stopping or not self._has_more()):
                return
            patience_s = min(self._patience_s, _LATE_S if self._error else self._patience_s)
            if self._hosts or self._checks or self._silent_since is not None:
                alone_since = None
            elif alone_since is None:
                alone_since = looked
                self._note(f"the cluster has no worker that can be used: waiting {patience_s:.0f} s for one")
            elif looked - alone_since > patience_s:
                yield from self._missing()
                return
            with suppress(Empty):
                yield from self._take(self._ended.get(timeout=_LOOK_S))

    def stop(self) -> None:
        """Begin no further item. Running items end as usual and give results."""
        self._stopping = True
        self._stop_hosts(now=False)

    def close(self) -> None:
        """End the running items, and leave the cluster."""
        self._stop_hosts(now=True)
        self._hosts.clear()
        self._stack.close()

    def _stop_hosts(self, *, now: bool) -> None:
        addresses = list(self._hosts)

        def stop() -> None:
            with suppress(Exception):  # Dask raises any error if a worker or the scheduler is gone
                self._client.run(remote.stop, self._key, now, workers=addresses, on_error="ignore")

        if addresses:
            thread = threading.Thread(target=stop, daemon=True)
            thread.start()
            thread.join(_END_S)  # some worker may not answer

    def _most_shards(self) -> int:
        """Return how many shards may run now."""
        if self._silent_since is not None or not self._hosts:
            return 0
        has_suspect = any(shard.suspect for shard in (self._waiting[0], *self._running.values()))
        return 1 if has_suspect else _SHARDS_PER_HOST * len(self._hosts)

    def _has_more(self) -> bool:
        """Return whether a shard waits. If necessary, first make a shard from the next items."""
        if not self._waiting and (items := tuple(islice(self._items, self._shard_items))):
            self._waiting.append(_Shard(items))
        return bool(self._waiting)

    def _call(
        self, function: Callable[..., object], *arguments: object, hosts: Iterable[str], **options: Any
    ) -> Future[Any]:
        """Submit a call to a function in this program, for any of the hosts."""
        future = self._client.submit(
            _unpickling_call(), pickle.dumps((function, arguments)), workers=list(hosts), pure=False, **options
        )
        future.add_done_callback(self._ended.put)
        return future

    def _submit(self, shard: _Shard, host: str | None = None, lacks: Collection[str] = ()) -> None:
        """Submit a shard for any host, or for ``host`` together with the files that this host lacks."""
        hosts = self._hosts if host is None else (host,)
        arguments = (remote.run_shard, self._key, self._options, shard.items, host is not None)
        needs = [self._call(remote.receive, batch, hosts=hosts) for batch in _batches(shard.items, lacks)]
        future = self._call(*arguments, hosts=hosts, resources=self._resources, retries=_RETRIES, needs=needs)
        self._running[future] = shard._replace(hosts=frozenset(hosts))

    def _look(self) -> Iterator[Result]:
        """Check workers that have joined, and handle the loss of workers that have left."""
        workers = workers_of(self._client)
        if workers is None:
            now = time.monotonic()
            if self._silent_since is None:
                self._silent_since = now
                self._note("the scheduler of the cluster does not answer: waiting for it")
            elif now - self._silent_since > self._patience_s:
                refuse_lost_scheduler("does not answer")
            return
        self._silent_since = None
        if any(about["resources"].get(RESOURCE) for about in workers.values()):
            workers = {address: about for address, about in workers.items() if about["resources"].get(RESOURCE)}
            self._resources = {RESOURCE: 1}
        self._seen &= workers.keys()  # a worker may come back at the same address
        for address in workers.keys() - self._seen:
            self._seen.add(address)
            self._checks[self._call(remote.describe, hosts=[address])] = address
        self._checks = {future: address for future, address in self._checks.items() if address in workers}
        for address in self._hosts.keys() - workers.keys():
            self._note(f"{self._hosts.pop(address)} ({address}) is lost: it has left the cluster")
        for future, shard in list(self._running.items()):
            if shard.hosts.isdisjoint(self._hosts):
                del self._running[future]
                future.cancel()
                yield from self._lost(shard, shard.losses + 1, "all of its hosts have left the cluster")

    def _take(self, future: Future[Any]) -> Iterator[Result]:
        """Handle a future that has ended."""
        address, shard = self._checks.pop(future, None), self._running.pop(future, None)
        if address is None and shard is None:
            return  # the future has sent files, or was cancelled
        reply: Any = None
        error: Exception | None = None
        try:
            reply = future.result(timeout=_CONNECT_S)
        except Exception as caught:  # any error of the function or of Dask
            error = caught
        if address is not None:
            self._checked(address, reply, error)
        elif shard is not None and error is None:
            yield from self._received(shard, reply)
        elif shard is not None and isinstance(error, ScenarioRunnerError):  # of a host that cannot keep files
            for host in shard.hosts & self._hosts.keys():
                self._not_used(host, error.problems[0])
            self._waiting.appendleft(shard)
        elif shard is not None and future.status == "error":
            yield from self._lost(shard, MOST_LOSSES, f"{type(error).__name__}: {error}".splitlines()[0])
        elif shard is not None:  # the result was lost together with a host or the scheduler
            self._waiting.appendleft(shard)

    def _checked(self, address: str, about: dict[str, str], error: Exception | None) -> None:
        """Add a host if it has this program."""
        self._hosts[address] = address
        if error is not None:  # the function cannot be imported, which Dask may raise as another error
            why = f"its Python cannot import this scenario-runner ({error})".splitlines()[0]
            self._not_used(address, Diagnostic("SR-CLUSTER-003", "error", None, why))
            return
        self._hosts[address] = about["host"]
        if about["program"] != self._program:
            why = f"its scenario-runner ({about['version']}) differs from this host's ({own_version()})"
            self._not_used(address, Diagnostic("SR-CLUSTER-003", "error", None, why))

    def _received(self, shard: _Shard, reply: remote.Reply) -> Iterator[Result]:
        """Handle the reply of a host. Items without a result run again."""
        if reply.lacks:
            self._submit(shard, reply.address, reply.lacks)
            return
        for note in reply.notes:
            self._note(f"{self._hosts.get(reply.address, reply.address)}: {note}")
        self._devices.update({(device.uuid, device.name): device for device in reply.devices})
        for result in reply.results:
            self._has_results = True
            self._fetch(reply.address, result)
            yield result
        if reply.problem is None:
            items_per_s = len(shard.items) / max(reply.seconds, 0.001)
            self._shard_items = max(1, min(_MOST_ITEMS, round(_SHARD_S * items_per_s)))
        elif reply.address in self._hosts:
            self._not_used(reply.address, reply.problem)
        done = {result.item.id for result in reply.results}
        left = tuple(sent for sent in shard.items if sent.item.id not in done)
        if left and not self._stopping:
            self._waiting.appendleft(shard._replace(items=left))

    def _fetch(self, address: str, result: Result) -> None:
        """Copy files about failures into the results folder."""
        checks = (check for attempt in result.attempts for check in attempt.outputs)
        for name in dict.fromkeys(name for check in checks for name in check.files.values()):
            try:
                with OutputFile(os.path.join(self._options.task_options.options.results_folder, name)) as file:
                    file.write(self._client.run(remote.take, self._key, name, workers=[address])[address])
            except Exception as error:  # of the local disk, or any error of Dask
                self._note(f"a file about the failure of {result.item.id} was not copied from its host: {error}")

    def _lost(self, shard: _Shard, losses: int, why: str) -> Iterator[Result]:
        """Run a lost shard again, or each item alone. An item lost alone is a crash."""
        if losses < MOST_LOSSES:
            self._waiting.appendleft(shard._replace(losses=losses))
        elif len(shard.items) > 1:
            self._waiting.extendleft(_Shard((sent,), suspect=True) for sent in reversed(shard.items))
        else:
            (sent,) = shard.items
            outcome = Outcome("Crash", reason=f"each host that ran this item was lost: {why}")
            yield self._rules.result(sent.item, sent.expected, outcome)

    def _not_used(self, address: str, problem: Diagnostic) -> None:
        message = f"the host {self._hosts.pop(address)} ({address}) is not used: {problem}"
        code = "SR-CLUSTER-003" if problem.code == HOST_CANNOT_KEEP_FILES else problem.code
        self._error = self._error or error_of([Diagnostic(code, "error", None, message, problem.help)])
        self._problems.found("SR-CLUSTER-004", None, message, problem.help, severity="warning")

    def _missing(self) -> Iterator[Result]:
        """Yield the other items as Missing. Raises the first host error if no item has run."""
        if not self._has_results:
            message = f"the cluster had no worker for {self._patience_s:.0f} s"
            help = "start workers: dask worker SCHEDULER --nworkers 1 --nthreads 1"
            raise self._error or error_of([Diagnostic("SR-CLUSTER-003", "error", None, message, help)])
        why = f": {self._error}" if self._error else ""
        missing = Outcome("Missing", reason=f"no host of the cluster is left{why}")
        waiting = (sent for shard in self._waiting for sent in shard.items)
        for sent in chain(waiting, self._items):
            yield self._rules.result(sent.item, sent.expected, missing)


def _unpickling_call() -> Callable[..., object]:
    """Return a function that Dask pickles by value: the scheduler unpickles tasks, and may lack this program."""

    def call(data: bytes, needs: object = None) -> object:
        function, arguments = pickle.loads(data)
        return function(*arguments)

    return call


def _batches(shard: Iterable[SentItem], hashes: Collection[str]) -> Iterator[dict[str, bytes]]:
    """Read files that a host lacks, about 8 MiB at a time."""
    paths = {hash: path for sent in shard for path, hash in sent.files.items()}
    batch: dict[str, bytes] = {}
    for hash in hashes:
        with suppress(OSError), open(open_file(paths[hash]), "rb") as file:  # without it, the item is Missing
            batch[hash] = file.read()
        if sum(map(len, batch.values())) >= _BATCH_BYTES:
            yield batch
            batch = {}
    if batch:
        yield batch
