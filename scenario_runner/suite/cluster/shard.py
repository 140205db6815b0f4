"""``python -m scenario_runner.suite.cluster.shard``: the supervisor of a host, a process that a worker of Dask starts.

It is given lines of JSON on standard input, first the `order.Order`, then shards, and answers each shard with lines on
standard output: a result as soon as there is one, and at last that the shard has ended, and why if it was cut short.
Workers stay warm from shard to shard. It ends when its input does, whatever runs: whoever started it is gone then; and
when it gets no shard for a minute: whoever started the suite may be gone.
SIGTERM begins no further item of the shard that runs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Final

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.cluster.host import HOST_CANNOT_KEEP_FILES, ContentStore, Layout
from scenario_runner.suite.cluster.jobs import Job, Order
from scenario_runner.suite.records import EvaluationOptions, Item, Outcome
from scenario_runner.suite.running.options import Finished, WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.verdicts import Expected
from scenario_runner.temporary import temporary_folder

_EVICTED_AFTER: Final = 20  # shards: it looks at all files that are kept
_IDLE_S: Final = 60.0
_END_S: Final = 10.0  # so long has what runs to end

Say = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Serve the process that holds the other ends of standard input and output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what a driver prints is no answer
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    order = Order.of_json(json.loads(lines.get()))

    def say(value: Mapping[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")

    with temporary_folder() as scratch:
        _serve(order, os.path.realpath(scratch), lines, say)


def _listen(lines: SimpleQueue[str]) -> None:
    """Hand on the lines of standard input; when there are no more, end what runs, and this process."""
    with open(0, encoding="utf-8", closefd=False) as given:
        for line in given:
            lines.put(line)
    lines.put("")
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_END_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _serve(order: Order, scratch: str, lines: SimpleQueue[str], say: Say) -> None:
    store = ContentStore()
    layout = Layout(store, os.path.join(scratch, "files"))
    results = os.path.join(scratch, "results")
    options = WorkerOptions(
        devices=order.devices,
        jobs=order.jobs,
        timeout_s=order.timeout_s,
        timeout_origin=order.timeout_origin,
        runner=order.runner,
        task_options=EvaluationOptions(results if order.evidence else None),
    )
    with Workers(options, on_note=lambda text: say({"note": text})) as workers:
        shard = _Shard(order, workers, layout, results, say)
        signal.signal(signal.SIGTERM, lambda *_: workers.stop())
        signal.signal(signal.SIGINT, lambda *_: workers.stop(now=True))
        for number in count(1):
            try:
                line = lines.get(timeout=_IDLE_S)
            except Empty:
                break
            if not line:
                break
            jobs = [Job.of_json(each) for each in json.loads(line)]
            say({"end": shard.run(jobs), "devices": [device._asdict() for device in workers.devices]})
            layout.clear()
            if number % _EVICTED_AFTER == 0:
                store.evict()
    store.evict()


class _Shard:
    def __init__(self, order: Order, workers: Workers, layout: Layout, results: str, say: Say) -> None:
        self._order = order
        self._workers = workers
        self._layout = layout
        self._results = results
        self._say = say
        self._jobs: dict[str, Job] = {}
        self._host = socket.gethostname()

    def run(self, jobs: list[Job]) -> list[dict[str, Any]]:
        """Run items; the diagnostics of what ended it before its time, none where nothing did."""
        self._jobs = {job.item.id: job for job in jobs}
        try:
            for finished in self._workers.run(self._placed(jobs), self._again):
                if not self._is_without_device(finished):
                    self._finished(finished)
        except ScenarioRunnerError as error:
            return [problem.as_json() for problem in error.problems]
        devices = self._workers.devices
        if devices and all(device.given_up for device in devices):
            reasons = "; ".join(device.given_up for device in devices)
            return [Diagnostic("SR-DEVICE-002", "error", None, f"no device is left: {reasons}").as_json()]
        return []

    def _is_without_device(self, finished: Finished) -> bool:
        """Whether it could not run because this host has no device left; another host may have one."""
        last = finished.attempts[-1]
        is_missing = last.status == "Missing" and not last.diagnostics
        return is_missing and all(device.given_up for device in self._workers.devices)

    def _placed(self, jobs: list[Job]) -> Iterator[Item]:
        for job in jobs:
            try:
                yield self._layout.place(job)
            except ScenarioRunnerError as error:
                if error.problems[0].code == HOST_CANNOT_KEEP_FILES:
                    raise  # another host may
                diagnostics = tuple(problem.as_json() for problem in error.problems)
                outcome = Outcome("Missing", 0.0, str(error.problems[0]), error.exit_code, diagnostics)
                self._finished(Finished(job.item, (outcome,), "", ""))

    def _again(self, item: Item, attempts: tuple[Outcome, ...]) -> bool:
        return self._order.rules.again(Expected(*self._jobs[item.id].expected), attempts)

    def _finished(self, finished: Finished) -> None:
        attempts = [self._layout.there(each.as_json()) for each in finished.attempts]
        named = [file for each in finished.attempts for output in each.outputs for file in output.files.values()]
        self._say(
            {
                "finished": finished.item.id,
                "attempts": attempts,
                "device": finished.device,
                "driver": finished.driver,
                "host": self._host,
                "files": {file: os.path.join(self._results, file) for file in dict.fromkeys(named)},
            }
        )


if __name__ == "__main__":
    main()
