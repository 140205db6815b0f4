"""Clusters of real workers of Dask."""

from collections.abc import Iterator

import pytest

from tests.suite.cluster.hosts import Cluster, cluster_of


@pytest.fixture(scope="module")  # idle hosts take a tenth of a core
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts. Only the last test of the module kills one."""
    with cluster_of(2, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
