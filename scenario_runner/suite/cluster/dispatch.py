"""One worker of Dask, as the host that started a suite sees it: a thread that gives it shards and files."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner import __version__
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.cluster import host
from scenario_runner.suite.cluster.host import Piece
from scenario_runner.suite.cluster.jobs import Job
from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.options import Finished
from scenario_runner.suite.running.process import Device

if TYPE_CHECKING:
    from distributed import Client, Future

_PIECE_BYTES: Final = 8 << 20
TASK: Final = "scenario-runner-shard"


class Suite(NamedTuple):
    """What the threads of a suite share. ``order`` is that of `shard.Order`, as JSON."""

    client: Client
    session: str
    order: str
    program: str
    results_folder: str | None


class Message(NamedTuple):
    """What a thread tells: "ready" for a shard, "finished" with an item, "note", "refused" for good, "ended" with a
    shard (and what cut it short: ``problems``, or the last output of the process that ran it), "lost" contact."""

    what: str
    host: Host
    finished: Finished | None = None
    text: str = ""
    problems: tuple[Diagnostic, ...] = ()


class Host:
    """Life cycle: its thread starts with it, and ends after `leave`, or when it has told that it was refused or lost.

    ``pending`` are the items of its shard that have no result yet, ``size`` and ``seconds`` those of its shard before,
    ``rests_until`` is the time before which it gets none; only who receives the messages changes them.
    """

    def __init__(
        self, suite: Suite, address: str, resources: dict[str, float], tell: Callable[[Message], None]
    ) -> None:
        self.address = address
        self.name = address
        self.pending: dict[str, Job] = {}
        self.devices: tuple[Device, ...] = ()
        self.size = 0
        self.started_s = self.seconds = self.rests_until = 0.0
        self._suite = suite
        self._resources = resources
        self._tell = tell
        self._shards: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._topic = f"{TASK}-{suite.session}-{address}-{id(self):x}"
        self._answers = SimpleQueue[str | None]()
        self._future: Future[None] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def give(self, jobs: list[Job]) -> None:
        """Have it run a shard."""
        self.pending = {job.item.id: job for job in jobs}
        self.size = len(jobs)
        self.started_s = time.monotonic()
        self._shards.put(jobs)

    def leave(self) -> None:
        """It gets no further shard."""
        self._shards.put(None)

    def abandon(self) -> None:
        """It is gone: nobody waits for it."""
        future = self._future
        if future is not None:
            with suppress(Exception):
                future.cancel()
        self._answers.put(None)
        self.leave()

    def _work(self) -> None:
        try:
            refusal = self._refusal()
            if refusal:
                self._tell(Message("refused", self, text=refusal))
                return
            # The handler outlives a shard, and each shard has answers of its own.
            self._suite.client.subscribe_topic(self._topic, lambda event: self._answers.put(event[1]))
            self._tell(Message("ready", self))
            while (jobs := self._shards.get()) is not None:
                try:
                    self._send(jobs)
                except ScenarioRunnerError as error:  # of that host
                    self._tell(Message("ended", self, problems=error.problems))
                else:
                    self._run(jobs)
        except Exception as error:  # whatever Dask raises when a worker or the scheduler is gone
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            if self._suite.client.status != "running":
                why = "there is no connection to the scheduler"
            self._tell(Message("lost", self, text=why))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of `host` returns there."""
        return self._suite.client.run(function, *arguments, workers=[self.address])[self.address]

    def _refusal(self) -> str:
        """Why this worker cannot run anything, empty where it can."""

        try:
            about = self._call(host.describe)
        except OSError:  # contact is lost
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
        """Bring the files of a shard that are not there."""
        paths = {hash: path for job in jobs for path, hash in job.files.items() if path not in job.absolute}
        batch: list[Piece] = []
        size = 0
        for hash in self._call(host.missing, list(paths)) if paths else ():
            for piece in _pieces(hash, paths[hash]):
                batch.append(piece)
                size += len(piece.data)
                if size >= _PIECE_BYTES:
                    self._call(host.receive, batch)
                    batch, size = [], 0
        if batch:
            self._call(host.receive, batch)

    def _run(self, jobs: list[Job]) -> None:
        suite = self._suite
        answers = self._answers = SimpleQueue[str | None]()
        shard = json.dumps([job.as_json() for job in jobs])
        future = self._future = suite.client.submit(
            host.run_shard,
            *(suite.session, suite.order, shard, self._topic),
            key=f"{TASK}-{suite.session}-{jobs[0].item.id}-{id(jobs):x}",
            workers=[self.address],
            resources=self._resources or None,
            retries=0,
            pure=False,
        )
        future.add_done_callback(lambda _: answers.put(None))
        for said in _said(answers):
            if "finished" in said:
                job = next(each for each in jobs if each.item.id == said["finished"])
                self._fetch(job.item, said["files"])
                attempts = tuple(map(Outcome.of_json, said["attempts"]))
                finished = Finished(job.item, attempts, said["device"], said["driver"], said["host"])
                self._tell(Message("finished", self, finished))
            elif "note" in said:
                self._tell(Message("note", self, text=said["note"]))
            else:
                problems = tuple(Diagnostic(**each) for each in said["end"])
                self.devices = tuple(Device(**each) for each in said["devices"])
                self._tell(Message("ended", self, text=said.get("failure", ""), problems=problems))
                return
        future.result()  # raises why it has not told that it ended
        raise OSError("it has ended without a word")

    def _fetch(self, item: Item, files: dict[str, str]) -> None:
        """Copy files about failures into the folder of the results."""
        folder = self._suite.results_folder
        if folder is None or not files:
            return
        for name, path in files.items():
            offset = 0
            try:
                with OutputFile(os.path.join(folder, name)) as file:
                    while data := self._call(host.read, path, offset, _PIECE_BYTES):
                        file.write(data)
                        offset += len(data)
            except ScenarioRunnerError as error:  # of this host
                self._tell(Message("note", self, text=f"a file about {item.id} is not kept: {error}"))
        self._call(host.remove, list(files.values()))


def _said(answers: SimpleQueue[str | None]) -> Iterator[dict[str, Any]]:
    """What comes in lines of JSON, until None does."""
    while (lines := answers.get()) is not None:
        yield from map(json.loads, lines.split("\n"))


def _pieces(hash: str, path: str) -> Iterator[Piece]:
    """A file in parts; none where it cannot be read any more."""
    try:
        with open(path, "rb") as file:
            data = file.read(_PIECE_BYTES)
            while True:
                following = file.read(_PIECE_BYTES)
                yield Piece(hash, file.tell() - len(following) - len(data), data, not following)
                if not following:
                    return
                data = following
    except OSError:
        return
