"""Run items on the hosts of a cluster: the counterpart of `processes.workers.Workers` with Dask.

The user names the scheduler, or it is started here with workers on this machine. One thread takes items and yields
results; one more for each worker of Dask sends it shards (`cluster_shards`). Unfinished items are scheduled here: Dask
would repeat whole shards, and blame all tasks of a worker for its end.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NoReturn

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.log import silence
from scenario_runner.errors.text import Json
from scenario_runner.files.input import read_file
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.suite import cluster_host as remote
from scenario_runner.suite.cluster_host import HOST_CANNOT_KEEP_FILES
from scenario_runner.suite.cluster_shards import MOST_LOSSES, Failure, Host, Message, Shards, Suite, next_size
from scenario_runner.suite.hashes import program_hash
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.suite_workers import rules_of
from scenario_runner.suite.verdicts import Expected

if TYPE_CHECKING:
    from distributed import Client

_LOCAL: Final = "local:"
_CONNECT_S: Final = 20
_LOOK_AT_WORKERS_S: Final = 0.2
_EXPECTED: Final = (
    "expected the address of a scheduler such as tcp://host:8786 (or tls://host:8786, with the certificates of this"
    " host in Dask's configuration: docs/cluster.md), the file of dask scheduler --scheduler-file, or local:N for N"
    " workers here"
)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address or in a scheduler file ``*.json``, or start a cluster on this machine
    (``local:N``), for the duration of the block. Wait some time for a scheduler that does not answer yet.

    Raises UnsupportedError without the package ``distributed``, UsageError where there is no scheduler.
    """
    if find_spec("distributed") is None:
        message = "--cluster needs the package 'distributed', which is not installed"
        refuse("SR-CLUSTER-001", None, message, "pip install distributed")
    silence("distributed")  # losses are reported here
    with ExitStack() as stack:
        yield stack.enter_context(_local(address, stack) if address.startswith(_LOCAL) else _client(address))


def _local(address: str, stack: ExitStack) -> Client:
    from distributed import Client, LocalCluster

    count = address.removeprefix(_LOCAL)
    if not (count.isascii() and count.isdigit() and 0 < int(count[:6]) <= 1000):
        refuse("SR-CLUSTER-002", None, f"--cluster is {address!r}", _EXPECTED)
    # 50 is logging.CRITICAL
    cluster = LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50)
    return Client(stack.enter_context(cluster), set_as_default=False)


def _client(address: str) -> Client:
    from distributed import Client

    until = time.monotonic() + _CONNECT_S
    try:
        scheduler = _in_file(address, until) if address.endswith(".json") else address
        return Client(scheduler, timeout=max(1, round(until - time.monotonic())), set_as_default=False)
    except Exception as error:  # any: something else may answer there
        why = ": ".join(
            dict.fromkeys(str(cause) or type(cause).__name__ for cause in (error, error.__cause__) if cause)
        )
        if isinstance(error, MemoryError):  # it has taken a greeting for a length
            why = "it is something else that answers there"
        refuse("SR-CLUSTER-002", None, f"no scheduler of Dask answers at {address!r}: {why}", _EXPECTED)


def _in_file(path: str, until: float) -> str:
    """Read the address that a scheduler writes into a file. Raises OSError or ValueError if it does not in time."""
    while True:
        try:
            content = json.loads(read_file(path))
            if isinstance(content, dict) and "address" in content:
                return str(content["address"])
            raise ValueError("the file names no scheduler")
        except (FileNotFoundError, json.JSONDecodeError):  # it is not written yet, or not completely
            if time.monotonic() >= until:
                raise
        time.sleep(_LOOK_AT_WORKERS_S)


def refuse_lost_scheduler(why: str) -> NoReturn:
    """Raise the error of a suite whose scheduler is lost."""
    help = "run the suite again with --resume, which keeps the results that came, on a cluster or without --cluster"
    refuse("SR-CLUSTER-007", None, f"the scheduler of the cluster {why}", help)


def workers_of(client: Client) -> dict[str, Json] | None:
    """Get the scheduler's records of its workers, by their addresses; None while it does not answer.

    Raises NoDeviceError when the connection to the scheduler has ended.
    """
    if client.status == "connecting":  # it has lost the scheduler, and tries for as long as at the start
        return None
    if client.status != "running" or client.scheduler is None:
        refuse_lost_scheduler("is gone")
    try:
        # Not scheduler_info(): in some versions of Dask it has no more than five workers.
        return dict(client.sync(client.scheduler.identity, callback_timeout=_CONNECT_S)["workers"])
    except OSError:
        return None


RESOURCE: Final = "vulkan"
"""If workers of Dask have this resource, only those are used, each for one shard at a time."""

_MOST_FAILURES: Final = 3  # of a host in a row
_LOOK_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_LATE_S: Final = 5.0  # to wait for other hosts after one that cannot be used
_END_S: Final = 10.0


class ClusterWorkers:
    """Life cycle: connected to the cluster; `run` once; closed."""

    def __init__(
        self,
        address: str,
        options: WorkerOptions,
        problems: SuiteProblems,
        *,
        on_note: Callable[[str], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """``patience_s`` bounds the wait for a first or another host. Raises the errors of `connected`."""
        self._rules = rules_of(options)
        self._problems = problems
        self._note = on_note
        self._patience_s = patience_s
        self._messages: SimpleQueue[tuple[Host, Message]] = SimpleQueue()
        self._hosts: dict[str, Host] = {}
        self._failures: Counter[str] = Counter()  # of hosts in a row, by their addresses
        self._devices: dict[tuple[str, str], Device] = {}
        self._error: ScenarioRunnerError | None = None  # of the first host that is not used
        self._has_results = False
        self._silent_since: float | None = None  # the scheduler
        self._stopping = False
        self._stack = ExitStack()
        client = self._stack.enter_context(connected(address))
        self._suite = Suite(client, uuid.uuid4().hex[:12], options, program_hash({}))

    def find_devices(self) -> None:
        """Return None: the devices of hosts are unknown before they run items."""

    def __enter__(self) -> ClusterWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that were used, as far as they are known."""
        return tuple(self._devices.values())

    def run(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> Iterator[Result]:
        """Run items; see `processes.workers.Workers.run`.

        When no host can run anything any more, what is left is Missing. Raises the error of the first host where none
        could from the start, and NoDeviceError when the scheduler is gone.
        """
        self._expected = expected
        self._shards = Shards(items, expected)
        alone_since: float | None = None
        looked = 0.0
        while True:
            if time.monotonic() - looked >= _LOOK_S:
                yield from self._look()
                looked = time.monotonic()
            self._hand_out()
            if not any(host.pending for host in self._hosts.values()):
                if self._stopping or not self._shards.has_more():
                    return
                patience_s = min(self._patience_s, _LATE_S if self._error else self._patience_s)
                if self._hosts or self._silent_since is not None:
                    alone_since = None
                elif alone_since is None:
                    alone_since = looked
                    self._note(f"the cluster has no worker that can be used: waiting {patience_s:.0f} s for one")
                elif looked - alone_since > patience_s:
                    yield from self._missing()
                    return
            try:
                host, message = self._messages.get(timeout=_LOOK_S)
            except Empty:
                continue
            if host is self._hosts.get(host.address):
                yield from self._take(host, message)

    def stop(self) -> None:
        """Begin no further item; those that run end in their time, and are given."""
        self._stopping = True
        self._stop_hosts([host.address for host in self._hosts.values() if host.pending], now=False)

    def close(self) -> None:
        """End what runs, and leave the cluster."""
        self._stop_hosts(list(self._hosts), now=True)
        for host in self._hosts.values():
            host.abandon()
        self._hosts.clear()
        self._stack.close()

    def _stop_hosts(self, addresses: list[str], *, now: bool) -> None:
        def stop() -> None:
            with suppress(Exception):  # Dask raises any error if a worker or the scheduler is gone
                self._suite.client.run(remote.stop, self._suite.session, now, workers=addresses, on_error="ignore")

        if addresses:
            thread = threading.Thread(target=stop, daemon=True)
            thread.start()
            thread.join(_END_S)  # a worker that does not answer is abandoned

    def _look(self) -> Iterator[Result]:
        """Note the workers that have joined or left."""
        workers = workers_of(self._suite.client)
        if workers is None:
            now = time.monotonic()
            if self._silent_since is None:
                self._silent_since = now
                self._note("the scheduler of the cluster does not answer: waiting for it")
            elif now - self._silent_since > self._patience_s:
                refuse_lost_scheduler("does not answer")
            return
        self._silent_since = None
        has_resource = any(worker["resources"].get(RESOURCE) for worker in workers.values())
        for address, about in workers.items():
            failures = self._failures[address]
            is_new = address not in self._hosts and failures < _MOST_FAILURES
            if is_new and (not has_resource or about["resources"].get(RESOURCE)):
                self._hosts[address] = Host(self._suite, address, self._hear, has_failed=failures > 0)
        for host in list(self._hosts.values()):
            if host.address not in workers:
                problem = Diagnostic("SR-CLUSTER-003", "error", None, "it has left the cluster")
                yield from self._failed(host, Failure(problem))

    def _hear(self, host: Host, message: Message) -> None:
        self._messages.put((host, message))

    def _hand_out(self) -> None:
        for host in self._hosts.values():
            if host.is_waiting and not self._stopping:
                shard = self._shards.take(next_size(host.size, host.seconds))
                if not shard:
                    return
                host.give(shard)

    def _take(self, host: Host, message: Message) -> Iterator[Result]:
        match message:
            case None:
                if not self._stopping:
                    self._shards.back(host.pending.values())
                host.pending.clear()
                host.is_waiting = True
                host.seconds = time.monotonic() - host.started_s
            case Result():
                if host.pending.pop(message.item.id, None):
                    del self._failures[host.address]
                    self._has_results = True
                    yield message
            case Failure():
                yield from self._failed(host, message)
            case str():
                self._note(f"{host.name}: {message}")
            case devices:
                self._devices.update({(device.uuid, device.name): device for device in devices})

    def _failed(self, host: Host, failure: Failure) -> Iterator[Result]:
        """Handle the end of a host, of whose shard items may be left. After too many failures it is not used."""
        del self._hosts[host.address]
        host.abandon()
        problem = failure.problem
        if failure.is_final:
            self._failures[host.address] = _MOST_FAILURES
            self._shards.back(host.pending.values())
        else:
            self._note(f"{host.name} ({host.address}) is lost: {problem}")
            given_up = self._shards.lost(host.pending.values())
            for item in given_up:
                outcome = _given_up(problem)
                yield self._rules.result(item, self._expected(item.id), outcome)._replace(host=host.name)
            self._failures[host.address] += not given_up  # else the item is the likely cause
        if self._failures[host.address] >= _MOST_FAILURES:
            message = f"the host {host.name} ({host.address}) is not used: {problem}"
            code = problem.code if failure.is_final else "SR-CLUSTER-003"
            self._error = self._error or error_of([Diagnostic(code, "error", None, message, problem.help)])
            self._problems.found("SR-CLUSTER-004", None, message, problem.help, severity="warning")

    def _missing(self) -> Iterator[Result]:
        """Yield the other items as Missing when no host is left. Raises the first host's error if no item has run."""
        if not self._has_results:
            message = f"the cluster had no worker for {self._patience_s:.0f} s"
            help = "start workers: dask worker SCHEDULER --nworkers 1 --nthreads 1"
            raise self._error or error_of([Diagnostic("SR-CLUSTER-003", "error", None, message, help)])
        why = f": {self._error}" if self._error else ""
        missing = Outcome("Missing", reason=f"no host of the cluster is left{why}")
        for item in self._shards.rest():
            yield self._rules.result(item, self._expected(item.id), missing)


def _given_up(problem: Diagnostic) -> Outcome:
    """The outcome of an item that is not tried on another host after this problem."""
    if problem.code == HOST_CANNOT_KEEP_FILES:
        reason = f"{MOST_LOSSES} times a host could not run it: {problem}"
        return Outcome("Missing", reason=reason, diagnostics=(problem.as_json(),))
    reason = f"{MOST_LOSSES} times a host was lost while it had this item, the last times with this one alone"
    return Outcome("Crash", reason=reason)
