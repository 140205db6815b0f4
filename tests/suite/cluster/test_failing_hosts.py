"""A suite with failing hosts or a failing scheduler, on real clusters, from this process."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy
import pytest

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.suite import cluster_workers as workers
from scenario_runner.suite.cluster_workers import ClusterWorkers, connected, workers_of
from scenario_runner.suite.outcomes import EvaluationOptions, Item, Result, SuiteProblems
from scenario_runner.suite.suite_workers import SuiteWork, suite_options
from scenario_runner.suite.verdicts_and_retries import Expected
from tests.scenes import Scene, error_of
from tests.suite.cluster.hosts import Cluster, cluster_of, full_disk

OPTIONS = suite_options(SuiteWork(options=EvaluationOptions(None)), jobs=1)


class Suite:
    """A suite on a cluster, with its notes."""

    def __init__(self, address: str, patience_s: float = 60.0) -> None:
        self.notes: list[str] = []
        self.problems: list[Diagnostic] = []
        self.workers = ClusterWorkers(
            address,
            OPTIONS,
            SuiteProblems(self.problems.append),
            on_note=self.notes.append,
            patience_s=patience_s,
        )

    def run(self, items: list[Item]) -> Iterator[Result]:
        with self.workers:
            yield from self.workers.run(items, lambda name: Expected())


@pytest.fixture(scope="module")
def one_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_of(1, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    paths = [Scene(tmp_path / name).buffer("a", numpy.zeros(4, numpy.uint8)).write() for name in "ab"]
    return [Item(path.parent.name, str(path)) for path in paths]


def failure(running: Iterator[Result]) -> Diagnostic:
    """Return the first problem of the error that ends a suite."""
    return error_of(ScenarioRunnerError, next, running).problems[0]


def test_no_worker_and_then_no_scheduler(items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite waits for workers for some time, and says so; it ends when the scheduler hangs or does not come back."""
    monkeypatch.setattr(workers, "_CONNECT_S", 2)
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    with cluster_of(0, hosts) as cluster:
        suite = Suite(cluster.address, patience_s=0.1)
        problem = failure(suite.run(items))
        assert (problem.code, problem.message) == ("SR-CLUSTER-003", "the cluster had no worker for 0 s")
        assert suite.notes == ["the cluster has no worker that can be used: waiting 0 s for one"]
        suite = Suite(cluster.address, patience_s=0.1)
        os.kill(cluster.scheduler, signal.SIGSTOP)
        try:
            problem = failure(suite.run(items))
        finally:
            os.kill(cluster.scheduler, signal.SIGCONT)
        assert (problem.code, problem.message) == ("SR-CLUSTER-007", "the scheduler of the cluster does not answer")
        suite = Suite(cluster.address)
        ended = threading.Event()
        found: list[Diagnostic] = []
        thread = threading.Thread(target=lambda: (found.append(failure(suite.run(items))), ended.set()))
        thread.start()
        while not suite.notes:
            assert not ended.wait(0.05)
    thread.join(60)
    assert [each.code for each in found] == ["SR-CLUSTER-007"]
    assert suite.notes[1:] == ["the scheduler of the cluster does not answer: waiting for it"]


def test_a_host_that_cannot_keep_files(one_host: Cluster, items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that cannot keep files is not used again. The error of the suite names the reason if no other host is
    left."""
    monkeypatch.setattr(workers, "_LATE_S", 0.0)
    cache = one_host.folder / "host-0" / "cache"
    cache.write_text("no folder")
    try:
        suite = Suite(one_host.address)
        problem = failure(suite.run(items))
        assert problem.code == "SR-CLUSTER-003"
        assert "is not used: " in problem.message
        assert "cannot keep files of suites" in problem.message
        assert [each.code for each in suite.problems] == ["SR-CLUSTER-004"]
    finally:
        cache.unlink()


def test_a_host_with_a_full_disk(one_host: Cluster, items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that cannot keep the sent files is not used any more, and no item is to blame."""
    monkeypatch.setattr(workers, "_LATE_S", 0.0)
    monkeypatch.setattr("scenario_runner.suite.cluster_host.receive", full_disk)
    suite = Suite(one_host.address)
    problem = failure(suite.run(items))
    assert problem.code == "SR-CLUSTER-003"
    assert problem.message.endswith("is not used: /cache: no space is left")
    assert [each.code for each in suite.problems] == ["SR-CLUSTER-004"]


def test_an_item_that_ends_each_host(items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask gives the shard of a lost host to another one. After too many losses its items run alone: one is a crash."""
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    monkeypatch.setattr(workers, "_FIRST_ITEMS", 2)  # both are in one shard
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    deadly = SuiteWork("tests.suite.cluster.hosts:end_of_host", EvaluationOptions(None))
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", suite_options(deadly, jobs=1))
    with cluster_of(2, hosts) as cluster:
        suite = Suite(cluster.address, patience_s=600.0)  # hosts start again, which takes its time under load
        found = {result.item.id: result for result in suite.run(items)}
    assert {name: result.verdict for name, result in found.items()} == {"a": "Crash", "b": "Pass"}
    assert found["a"].attempts[-1].reason.startswith("each host that ran this item was lost: ")
    assert [note for note in suite.notes if "is lost" in note]


def test_a_host_without_the_program(one_host: Cluster, items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without the program is named once, and not asked again."""
    monkeypatch.setattr(workers, "_LATE_S", 0.0)
    module = ModuleType("only_here")
    exec("def describe(): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    monkeypatch.setattr("scenario_runner.suite.cluster_host.describe", module.__dict__["describe"])
    suite = Suite(one_host.address)
    problem = failure(suite.run(items))
    assert problem.code == "SR-CLUSTER-003"
    assert "its Python cannot import this scenario-runner" in problem.message
    assert "only_here" in problem.message
    assert len(suite.problems) == 1


def test_without_the_package(items: list[Item]) -> None:
    """The error names the package to install."""
    hidden = "import sys; sys.modules['distributed'] = None; from scenario_runner.__main__ import console; console()"
    command = [sys.executable, "-c", hidden, "test", items[0].path, "--cluster", "local:2", "--github"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 6
    annotation, *error = done.stderr.splitlines()
    assert annotation.startswith("::error title=SR-CLUSTER-001 package for clusters missing::")
    message = "error: --cluster needs the package 'distributed', which is not installed"
    assert error == [message, "  help: pip install distributed"]


def test_the_file_of_a_scheduler(one_host: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a scheduler names the address as soon as it is complete."""
    path = tmp_path / "scheduler.json"
    path.write_text('{"address": ')
    threading.Timer(0.5, path.write_text, [json.dumps({"address": one_host.address})]).start()
    with connected(str(path)) as client:
        assert len(workers_of(client) or ()) == 1
    monkeypatch.setattr(workers, "_CONNECT_S", 0)
    with pytest.raises(ScenarioRunnerError, match=r"'nowhere\.json': .*No such file"), connected("nowhere.json"):
        pass


def test_something_else_answers() -> None:
    """Another program at the address of a scheduler is refused."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            there, _ = server.accept()
            with there:
                there.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                there.recv(1)

        threading.Thread(target=greet, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ScenarioRunnerError) as caught, connected(address):
            pass
    assert caught.value.problems[0].code == "SR-CLUSTER-002"
    message = f"no scheduler of Dask answers at '{address}': another program answers there"
    assert caught.value.problems[0].message == message
