"""The scheduler of Dask that a suite is given, or one of its own with workers on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from scenario_runner.suite.problems import refuse

if TYPE_CHECKING:
    from distributed import Client

_LOCAL: Final = "local:"
_CONNECT_S: Final = 20
_EXPECTED: Final = "expected the address of a scheduler such as tcp://host:8786, or local:N for N workers here"


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address, or of a cluster on this machine (``local:N``) for as long as the block
    runs. Raises UnsupportedError without the package ``distributed``, UsageError where there is no scheduler."""
    if find_spec("distributed") is None:
        refuse(
            "SR-CLUSTER-001",
            None,
            "--cluster needs the package 'distributed', which is not installed",
            "pip install 'scenario-runner[cluster]'",
        )
    if address.startswith(_LOCAL):
        count = address.removeprefix(_LOCAL)
        if not (count.isascii() and count.isdigit() and 0 < int(count[:6]) <= 1000):
            refuse("SR-CLUSTER-002", None, f"--cluster is {address!r}", _EXPECTED)
        with _local(int(count)) as client:
            yield client
    else:
        with _client(address) as client:
            yield client


@contextmanager
def _local(count: int) -> Iterator[Client]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,  # logging.CRITICAL: a worker that ends is ours to report
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _client(address: str) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, ImportError, TypeError) as error:
        refuse("SR-CLUSTER-002", None, f"no scheduler of Dask answers at {address!r}: {error}", _EXPECTED)
    with client:
        yield client
