"""A cluster of Dask for tests: each worker is a process with a folder and a cache of its own.

``python hosts.py FOLDER COUNT`` prints the address of the scheduler and the process ids of the workers as JSON. It ends
when its standard input does.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scenario_runner.errors import file_error
from scenario_runner.suite.cluster_host import Layout, check_store, receive, sent_item
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.verdicts_and_retries import Expected


class Cluster(NamedTuple):
    """``folder`` has a folder host-N for each worker, where it keeps everything."""

    address: str
    processes: list[int]
    folder: Path
    scheduler: int  # the id of its process

    def kept(self) -> list[set[str]]:
        """The names of the files that each host has been sent."""
        caches = [self.folder / f"host-{number}" / "cache" / "contents" for number in range(len(self.processes))]
        return [{path.name for path in cache.glob("*.content")} for cache in caches]


@contextmanager
def cluster_of(count: int, folder: Path, program: Path | None = None) -> Iterator[Cluster]:
    """A cluster for as long as the block runs, of the program in this folder or the checkout."""
    command = [sys.executable, __file__, str(folder), str(count)]
    first = [] if program is None else [str(program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*first, os.environ["PYTHONPATH"]])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder, text=True
    ) as process:
        assert process.stdout is not None
        address, processes = json.loads(process.stdout.readline())
        try:
            yield Cluster(address, processes, folder, process.pid)
        finally:
            process.communicate("")


def placed_elsewhere(item: Item, folder: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Item:
    """Send an item's files to this host, remove the folder of the item, and return the item with its new paths."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(scratch / "cache"))
    check_store()
    sent = sent_item(item, Expected())
    assert sent.absolute == ()
    receive({hash: Path(path).read_bytes() for path, hash in sent.files.items()})
    shutil.rmtree(folder)
    return Layout(str(scratch)).place(sent)


def end_of_host(item: Item, runners: object, options: object) -> Outcome:
    """Kill the worker of Dask, two processes above this one, for the item "a"."""
    if item.id == "a":
        pool = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(pool.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(60)  # until this process is ended with it
    return Outcome("Pass")


def full_disk(files: dict[str, bytes]) -> None:
    """Refuse files like a host whose disk is full."""
    raise file_error("/cache", "no space is left", code="SR-CLUSTER-008")


def main() -> None:
    from distributed import Client, Nanny, Scheduler, SpecCluster

    folder, count = sys.argv[1:]
    workers: dict[int, Any] = {}
    for number in range(int(count)):
        own = Path(folder, f"host-{number}")
        own.mkdir()
        options = {
            "nthreads": 1,
            "local_directory": str(own),
            "env": {"SCENARIO_RUNNER_CACHE": str(own / "cache"), "TMPDIR": str(own), "LP_NUM_THREADS": "1"},
            "dashboard": False,
        }
        workers[number] = {"cls": Nanny, "options": options}
    address = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, **address}}
    with SpecCluster(workers, scheduler, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as client:
        processes = list(client.run(os.getpid).values())
        print(json.dumps([cluster.scheduler_address, processes]), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
