"""The scheduler of Dask that a suite is given, or one of its own with workers on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

from scenario_runner.log import silence
from scenario_runner.streams import read_file
from scenario_runner.suite.problems import refuse

if TYPE_CHECKING:
    from distributed import Client

_LOCAL: Final = "local:"
_CONNECT_S: Final = 20
_LOOK_S: Final = 0.2
_EXPECTED: Final = (
    "expected the address of a scheduler such as tcp://host:8786, the file of dask scheduler --scheduler-file, "
    "or local:N for N workers here"
)
_ENCRYPTED: Final = (
    "give the address as tls://host:8786, and the certificates of this host in Dask's configuration: "
    "distributed.comm.tls (docs/suites.md)"
)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address, of the one that a file ``*.json`` of it names, or of a cluster on this
    machine (``local:N``) for as long as the block runs. Waits some time for a scheduler that is not there yet.

    Raises UnsupportedError without the package ``distributed``, UsageError where there is no scheduler.
    """
    if find_spec("distributed") is None:
        refuse(
            "SR-CLUSTER-001",
            None,
            "--cluster needs the package 'distributed', which is not installed",
            "pip install 'scenario-runner[cluster]'",
        )
    import distributed

    silence(distributed.__name__)  # what is lost is ours to report
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
            silence_logs=50,  # logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _client(address: str) -> Iterator[Client]:
    from distributed import Client

    until = time.monotonic() + _CONNECT_S
    try:
        found = _in_file(address, until) if address.endswith(".json") else address
        client = Client(found, timeout=max(1, round(until - time.monotonic())), set_as_default=False)
    except Exception as error:  # anything: what answers there may be no scheduler
        why = ": ".join(dict.fromkeys(str(each) or type(each).__name__ for each in (error, error.__cause__) if each))
        if isinstance(error, MemoryError):  # it has taken a greeting for a length
            why = "it is something else that answers there"
        is_encrypted = address.startswith("tls://") or "encryption" in why
        help = _ENCRYPTED if is_encrypted else _EXPECTED
        refuse("SR-CLUSTER-002", None, f"no scheduler of Dask answers at {address!r}: {why}", help)
    with client:
        yield client


def _in_file(path: str, until: float) -> str:
    """The address that a scheduler has written into a file. Raises OSError or ValueError where it has not, for long."""
    while True:
        try:
            said = json.loads(read_file(path))
            if isinstance(said, dict) and "address" in said:
                return str(said["address"])
            raise ValueError("the file names no scheduler")
        except (FileNotFoundError, json.JSONDecodeError):  # it is not there yet, or not all of it
            if time.monotonic() >= until:
                raise
        time.sleep(_LOOK_S)


def refuse_lost_scheduler(why: str) -> NoReturn:
    """Raise the error of a scheduler that a suite cannot go on with."""
    help = "run the suite again with --resume, which keeps the results that came, on a cluster or without --cluster"
    refuse("SR-CLUSTER-007", None, f"the scheduler of the cluster {why}", help)


def workers_of(client: Client) -> dict[str, Any] | None:
    """What the scheduler knows of its workers, by their addresses; None while it does not answer.

    Raises NoDeviceError when the connection to the scheduler has ended.
    """
    if client.status == "connecting":  # again: it has lost the scheduler, and tries for as long as at the start
        return None
    if client.status != "running" or client.scheduler is None:
        refuse_lost_scheduler("is gone")
    try:
        # Not scheduler_info(): in some versions of Dask it tells of no more than five workers.
        return dict(client.sync(client.scheduler.identity, callback_timeout=_CONNECT_S)["workers"])
    except OSError:
        return None
