"""Inputs for the codes of clusters."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import scenario_runner
from scenario_runner.errors import error_class
from scenario_runner.suite import cluster_workers as workers
from scenario_runner.suite.cluster_host import Layout, check_store, job_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import Expected
from tests.codes.case import Case, Codes, Input
from tests.program import run_program
from tests.scenes import Scene
from tests.suite.cluster.hosts import cluster_of


def without_package(case: Case) -> Codes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "find_spec", lambda name: None)
        return case.raised(workers.connected("local:2").__enter__)


def no_scheduler(case: Case) -> Codes:
    return case.raised(workers.connected("local:many").__enter__)


def other_version(case: Case) -> Codes:
    return _other_version()


@cache
def _other_version() -> Codes:
    """A cluster whose only host has a program with another source."""
    with TemporaryDirectory() as folder:
        other, hosts = Path(folder, "other"), Path(folder, "hosts")
        hosts.mkdir()
        ignored = shutil.ignore_patterns("__pycache__")
        copy = shutil.copytree(Path(scenario_runner.__file__).parent, other / "scenario_runner", ignore=ignored)
        with open(copy / "clock.py", "a") as file:
            file.write("# changed\n")
        path = Scene(Path(folder)).write()
        with cluster_of(1, hosts, other) as cluster:
            ended = run_program(Path(folder), "test", path, "--cluster", cluster.address)
    assert "has other source files" in ended.err, ended
    found = set(re.findall(r"SR-CLUSTER-\d+", ended.err))
    return found | {code for code in ("SR-CLUSTER-003",) if ended.code == error_class(code).exit_code}


def placed(*, absolute: bool) -> Input:
    """A scenario whose only file the host cannot have."""

    def codes(case: Case) -> Codes:
        data = case.scene.file("data.npy", "x")
        case.scene.resource("raw_data", uid="data", src=str(data) if absolute else "data.npy")
        path = str(case.scene.write())
        job = job_of(Item("scenario.json", path), Expected())
        data.write_text("y")
        layout = Layout(str(case.scene.folder / "scratch"))
        return case.raised(lambda: layout.place(job))

    return codes


def scheduler_gone(case: Case) -> Codes:
    """A client that has given up."""
    hosts = case.scene.folder / "hosts"
    hosts.mkdir()
    with cluster_of(0, hosts) as cluster, workers.connected(cluster.address) as client:
        client.close()
        return case.raised(lambda: workers.workers_of(client))


def no_room(case: Case) -> Codes:
    """A cache whose folder is a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCENARIO_RUNNER_CACHE", str(case.scene.file("cache", "")))
        return case.raised(check_store)


INPUTS: dict[str, Input] = {
    "SR-CLUSTER-001": without_package,
    "SR-CLUSTER-002": no_scheduler,
    "SR-CLUSTER-003": other_version,
    "SR-CLUSTER-004": other_version,
    "SR-CLUSTER-005": placed(absolute=True),
    "SR-CLUSTER-006": placed(absolute=False),
    "SR-CLUSTER-007": scheduler_gone,
    "SR-CLUSTER-008": no_room,
}
