"""Clusters of real workers of Dask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.program import python_path


class Cluster(NamedTuple):
    """``folder`` has a folder host-N for each worker, where it keeps everything."""

    address: str
    processes: list[int]
    folder: Path

    def kept(self) -> list[set[str]]:
        """The names of the files that each host has been sent."""
        caches = [self.folder / f"host-{number}" / "cache" / "contents" for number in range(len(self.processes))]
        return [{path.name for path in cache.glob("*.content")} for cache in caches]


@contextmanager
def cluster_of(count: int, folder: Path, checkout: Path, **variables: str) -> Iterator[Cluster]:
    """A cluster for as long as the block runs."""
    command = [sys.executable, str(Path(__file__).parent / "hosts.py"), str(folder), str(count)]
    command += [f"{name}={value}" for name, value in variables.items()]
    environment = {**os.environ, "PYTHONPATH": python_path(checkout)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder, text=True
    ) as process:
        assert process.stdout is not None
        address, processes = json.loads(process.stdout.readline())
        yield Cluster(address, processes, folder)
        process.communicate("")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[Cluster]:
    """Two hosts that no test does harm to."""
    with cluster_of(2, tmp_path_factory.mktemp("cluster"), checkout) as cluster:
        yield cluster
