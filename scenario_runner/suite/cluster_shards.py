"""Shards of a suite, and the thread that sends them, with their files, to one worker of Dask."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner import __version__
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.output import OutputFile
from scenario_runner.suite import cluster_host as host
from scenario_runner.suite.cluster_host import Ended, Job, Order, Ran, Reply, job_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.running.options import Finished
from scenario_runner.suite.verdicts import Expected

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_LOSSES: Final = 3
"""An item is given up after so many hosts were lost with it."""

_MOST_ITEMS: Final = 50
_FIRST_ITEMS: Final = 10
_SHARD_S: Final = 4.0  # the duration of a shard, estimated from the previous one
_BATCH_BYTES: Final = 8 << 20
REST_S: Final = 5.0
"""A host that has failed waits so long, and its items run on others."""
TASK: Final = "scenario-runner-shard"


class Suite(NamedTuple):
    """State that the threads of a suite share."""

    client: Client
    order: Order
    program: str


Message = Finished | Ended | ConnectionError | str | None
"""A message of a thread about its host: a result, the end of a shard, the loss of the host, or a note for the user.
None means that the host waits for a shard."""


class Host:
    """Life cycle: starts its thread, which ends after `abandon`, or after a message that the host is lost or cannot run
    anything.

    ``pending`` has the items of its shard that have no result yet; ``size`` and ``seconds`` describe the previous
    shard. Only the receiver of the messages changes them.
    """

    def __init__(
        self, suite: Suite, address: str, resources: dict[str, float], tell: Callable[[Host, Message], None]
    ) -> None:
        self.address = address
        self.name = address
        self.pending: dict[str, Job] = {}
        self.size = 0
        self.started_s = self.seconds = 0.0
        self._suite = suite
        self._resources = resources
        self._tell = tell
        self._shards: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._topic = f"{TASK}-{suite.order.session}-{address}-{id(self):x}"
        self._answers = SimpleQueue[Reply | None]()
        self._future: Future[None] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def give(self, jobs: list[Job]) -> None:
        """Queue a shard for the host."""
        self.pending = {job.item.id: job for job in jobs}
        self.size = len(jobs)
        self.started_s = time.monotonic()
        self._shards.put(jobs)

    def abandon(self) -> None:
        """End the thread, and do not wait for the shard that runs."""
        if self._future is not None:
            with suppress(Exception):
                self._future.cancel()
        self._answers.put(None)
        self._shards.put(None)

    def _work(self) -> None:
        try:
            refusal = self._refusal()
            if refusal:
                self._tell(self, Ended((Diagnostic("SR-CLUSTER-003", "error", None, refusal),)))
                return
            # The handler outlives a shard, and each shard has answers of its own.
            self._suite.client.subscribe_topic(self._topic, lambda event: self._answers.put(pickle.loads(event[1])))
            self._tell(self, None)
            while (jobs := self._shards.get()) is not None:
                try:
                    self._send(jobs)
                    ended = self._run(jobs)
                except ScenarioRunnerError as error:  # of that host
                    ended = Ended(error.problems)
                self._tell(self, ended)
                if ended.problems:
                    time.sleep(REST_S)
                self._tell(self, None)
        except Exception as error:  # Dask raises any error if a worker or the scheduler is gone
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            if self._suite.client.status != "running":
                why = "there is no connection to the scheduler"
            self._tell(self, ConnectionError(why))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of `cluster_host` on the host."""
        return self._suite.client.run(function, *arguments, workers=[self.address])[self.address]

    def _refusal(self) -> str:
        """Return why this worker cannot run items; empty if it can."""
        try:
            about = self._call(host.describe)
        except OSError:  # the connection is lost
            raise
        except Exception as error:  # it cannot import the function: Dask may raise that as another error
            return f"its Python has no such scenario-runner as this one ({error})".splitlines()[0]
        self.name = about["host"]
        if about["program"] == self._suite.program:
            return ""
        theirs = about["version"]
        if theirs != __version__:
            return f"it has scenario-runner {theirs}, and this one is {__version__}"
        return f"its scenario-runner {theirs} has other source files than this one"

    def _send(self, jobs: list[Job]) -> None:
        """Send the files of a shard that the host lacks."""
        paths = {hash: path for job in jobs for path, hash in job.files.items() if path not in job.absolute}
        batch: dict[str, bytes] = {}
        for hash in self._call(host.missing, list(paths)) if paths else ():
            with suppress(OSError), open(paths[hash], "rb") as file:  # else it is Missing there
                batch[hash] = file.read()
            if sum(map(len, batch.values())) >= _BATCH_BYTES:
                self._call(host.receive, batch)
                batch = {}
        if batch:
            self._call(host.receive, batch)

    def _run(self, jobs: list[Job]) -> Ended:
        """Run a shard on the host, and pass on its results as they arrive."""
        suite = self._suite
        answers = self._answers = SimpleQueue[Reply | None]()
        future = self._future = suite.client.submit(
            host.run_shard,
            *(suite.order, jobs, self._topic),
            key=f"{TASK}-{suite.order.session}-{jobs[0].item.id}-{id(jobs):x}",
            workers=[self.address],
            resources=self._resources or None,
            retries=0,
            pure=False,
        )
        future.add_done_callback(lambda _: answers.put(None))
        while (reply := answers.get()) is not None:
            if isinstance(reply, Ended):
                return reply
            if isinstance(reply, Ran):
                self._fetch(reply)
                self._tell(self, reply.finished)
            else:
                self._tell(self, reply)
        future.result()  # raises the reason
        raise OSError("it has ended without a word")

    def _fetch(self, ran: Ran) -> None:
        """Copy files about failures into the folder of the results."""
        for name, path in ran.files.items():
            try:
                with OutputFile(os.path.join(self._suite.order.options.task_options.results_folder, name)) as file:
                    file.write(self._call(host.take, path))
            except ScenarioRunnerError as error:  # of this host
                self._tell(self, f"a file about {ran.finished.item.id} is not kept: {error}")


def next_size(size: int, seconds: float) -> int:
    """Choose the size of the shard after one of ``size`` items that took ``seconds``; 0 and 0 before the first."""
    if not size:
        return _FIRST_ITEMS
    return max(1, min(_MOST_ITEMS, round(size * min(4.0, _SHARD_S / max(seconds, 0.001)))))


class Shards:
    """The items that no host has, taken from ``items`` as needed."""

    def __init__(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> None:
        self._items = iter(items)
        self._expected = expected
        self._ahead: deque[Item] = deque()
        self._losses: Counter[str] = Counter()

    def has_more(self) -> bool:
        """Return whether an item is left; one may be taken from the iterator to find out."""
        if not self._ahead:
            item = next(self._items, None)
            if item is None:
                return False
            self._ahead.append(item)
        return True

    def take(self, size: int) -> list[Job]:
        """Make the next shard, of at most ``size`` items. An item of a lost host is a shard alone, since it may be the
        cause."""
        jobs: list[Job] = []
        while len(jobs) < size and self.has_more():
            if self._losses[self._ahead[0].id]:
                if jobs:
                    break
                size = 1
            item = self._ahead.popleft()
            jobs.append(job_of(item, self._expected(item.id)))
        return jobs

    def back(self, jobs: Iterable[Job]) -> None:
        """Return items that did not run."""
        self._ahead.extendleft(job.item for job in reversed(list(jobs)))

    def lost(self, jobs: Iterable[Job]) -> list[Item]:
        """Return items whose host, or the process that ran them, is lost. Gives back those that are not tried again."""
        jobs = list(jobs)
        self._losses.update(job.item.id for job in jobs)
        given_up = [job.item for job in jobs if self._losses[job.item.id] >= MOST_LOSSES]
        self.back(job for job in jobs if self._losses[job.item.id] < MOST_LOSSES)
        return given_up

    def rest(self) -> Iterator[Item]:
        """Yield all items that are left."""
        while self.has_more():
            yield self._ahead.popleft()
