"""Shards of a suite, and the thread that sends them, with their files, to one worker of Dask."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.errors import ScenarioRunnerError, version
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.output import OutputFile
from scenario_runner.files.sandbox import open_file
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.suite import cluster_host as host
from scenario_runner.suite.cluster_host import SentItem, sent_item
from scenario_runner.suite.outcomes import Item, Result
from scenario_runner.suite.problems import refuse
from scenario_runner.suite.verdicts import Expected

if TYPE_CHECKING:
    from distributed import Client

MOST_LOSSES: Final = 3
"""An item is given up after so many hosts were lost with it."""

_MOST_ITEMS: Final = 50
_FIRST_ITEMS: Final = 10
_SHARD_S: Final = 4.0  # the duration of a shard, estimated from the previous one
_BATCH_BYTES: Final = 8 << 20
REST_S: Final = 5.0
"""A host that has failed waits so long, and its items run on others."""


class Suite(NamedTuple):
    """State that the threads of a suite share."""

    client: Client
    session: str
    options: WorkerOptions
    program: str


class Failure(NamedTuple):
    """The reason for which a host ends. With ``is_final`` it cannot run anything, and items are not to blame."""

    problem: Diagnostic
    is_final: bool = False


Message = Result | Failure | tuple[Device, ...] | str | None
"""A message of a thread about its host: a result, its end, its devices, or a note for the user. None means that the
host waits for a shard."""


class Host:
    """Life cycle: starts its thread, which ends after `abandon` or a `Failure`.

    ``pending`` has the items of its shard that have no result yet; ``size`` and ``seconds`` describe the previous
    shard. Only the receiver of the messages changes them.
    """

    def __init__(
        self, suite: Suite, address: str, tell: Callable[[Host, Message], None], *, has_failed: bool = False
    ) -> None:
        self.address = address
        self.name = address
        self.pending: dict[str, Item] = {}
        self.is_waiting = False
        self.size = 0
        self.started_s = self.seconds = 0.0
        self._suite = suite
        self._key = f"{suite.session}-{id(self):x}"
        self._tell = tell
        self._rest_s = REST_S if has_failed else 0.0
        self._shards: SimpleQueue[list[SentItem] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def give(self, shard: list[SentItem]) -> None:
        """Queue a shard for the host."""
        self.pending = {sent.item.id: sent.item for sent in shard}
        self.is_waiting = False
        self.size = len(shard)
        self.started_s = time.monotonic()
        self._shards.put(shard)

    def abandon(self) -> None:
        """End the thread after the shard that runs."""
        self._shards.put(None)

    def _work(self) -> None:
        try:
            time.sleep(self._rest_s)
            self._check()
            self._tell(self, None)
            while (shard := self._shards.get()) is not None:
                self._send(shard)
                self._run(shard)
                self._tell(self, None)
        except ScenarioRunnerError as error:  # of that host
            problem = error.problems[0]
            self._tell(self, Failure(problem, problem.code != host.HOST_CANNOT_KEEP_FILES))
        except Exception as error:  # Dask raises any error if a worker or the scheduler is gone
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            if self._suite.client.status != "running":
                why = "there is no connection to the scheduler"
            self._tell(self, Failure(Diagnostic("SR-CLUSTER-003", "error", None, why)))

    def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function of `cluster_host` on the host."""
        return self._suite.client.run(function, *arguments, workers=[self.address])[self.address]

    def _check(self) -> None:
        """Raise the error of a worker that cannot run items."""
        try:
            about = self._call(host.describe)
        except OSError:  # the connection is lost
            raise
        except Exception as error:  # it cannot import the function: Dask may raise that as another error
            why = f"its Python has no such scenario-runner as this one ({error})".splitlines()[0]
            refuse("SR-CLUSTER-003", None, why)
        self.name = about["host"]
        if about["program"] != self._suite.program:
            why = f"its scenario-runner {about['version']} has other source files than this one, {version.__version__}"
            refuse("SR-CLUSTER-003", None, why)

    def _send(self, shard: list[SentItem]) -> None:
        """Send the files of a shard that the host lacks."""
        paths = {hash: path for sent in shard for path, hash in sent.files.items() if path not in sent.absolute}
        batch: dict[str, bytes] = {}
        for hash in self._call(host.missing, list(paths)) if paths else ():
            with suppress(OSError), open(open_file(paths[hash]), "rb") as file:  # else it is Missing there
                batch[hash] = file.read()
            if sum(map(len, batch.values())) >= _BATCH_BYTES:
                self._call(host.receive, batch)
                batch = {}
        if batch:
            self._call(host.receive, batch)

    def _run(self, shard: list[SentItem]) -> None:
        """Run a shard on the host, and pass on its results as they arrive."""
        self._call(host.begin, self._suite.session, self._key, self._suite.options, shard)
        while True:
            for reply in self._call(host.replies, self._key):
                if reply is None:
                    return
                if isinstance(reply, Exception):
                    raise reply
                if isinstance(reply, Result):
                    self._fetch(reply)
                self._tell(self, reply)

    def _fetch(self, result: Result) -> None:
        """Copy files about failures into the folder of the results."""
        checks = (check for attempt in result.attempts for check in attempt.outputs)
        for name in dict.fromkeys(name for check in checks for name in check.files.values()):
            try:
                with OutputFile(os.path.join(self._suite.options.task_options.options.results_folder, name)) as file:
                    file.write(self._call(host.take, self._key, name))
            except ScenarioRunnerError as error:  # of this host
                self._tell(self, f"a file about {result.item.id} is not kept: {error}")


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

    def take(self, size: int) -> list[SentItem]:
        """Make the next shard, of at most ``size`` items. An item of a lost host is a shard alone, since it may be the
        cause."""
        shard: list[SentItem] = []
        while len(shard) < size and self.has_more():
            if self._losses[self._ahead[0].id]:
                if shard:
                    break
                size = 1
            item = self._ahead.popleft()
            shard.append(sent_item(item, self._expected(item.id)))
        return shard

    def back(self, items: Iterable[Item]) -> None:
        """Return items that did not run."""
        self._ahead.extendleft(reversed(list(items)))

    def lost(self, items: Iterable[Item]) -> list[Item]:
        """Return items whose host, or the process that ran them, is lost. Gives back those that are not tried again."""
        items = list(items)
        self._losses.update(item.id for item in items)
        given_up = [item for item in items if self._losses[item.id] >= MOST_LOSSES]
        self.back(item for item in items if item not in given_up)
        return given_up

    def rest(self) -> Iterator[Item]:
        """Yield all items that are left."""
        while self.has_more():
            yield self._ahead.popleft()
