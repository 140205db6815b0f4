"""Options for running items in workers, and the records that the pool and its user exchange."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.verdicts import Expected, Rules

_NOTHING: Final[Mapping[str, Any]] = {}


class WorkerOptions(NamedTuple):
    """The devices, the number of workers, and the work of each of them.

    ``devices`` are indexes, UUIDs or (parts of) names, "all" of the fastest kind, or "gpus": all but those of the CPU,
    unless there is nothing else. Without any it is the one that a run would take.
    ``jobs`` is the number of workers for each device, 0 for as many as suit it. ``timeout_s`` bounds each run of an
    item that has no limit of its own, and ``timeout_origin`` says in messages who set it; a worker waits so long for
    the device, and is killed when it takes longer (`progress.ended_after_s`). ``start_timeout_s`` bounds the start of a
    worker, its driver included. ``rules`` decide whether an item runs again.

    ``runner`` has arguments of `Runner` by name, without device and timeout. ``task`` is the function that a worker
    calls, as "module:name", with the item, the worker's `Runners` and ``task_options``, which must be picklable; it
    returns an `Outcome`.

    A worker is replaced after ``most_items`` items, or when it has grown by ``most_bytes`` of memory or ``most_files``
    open files since its first item. A worker that has not ended ``kill_wait_s`` after it was killed cannot be ended:
    its device is given up. With ``core_dumps`` the kernel writes core files of workers that crash.
    """

    devices: tuple[str, ...] = ()
    jobs: int = 0
    timeout_s: float = 60.0
    timeout_origin: str = "the default of --timeout"
    start_timeout_s: float = 60.0
    rules: Rules = Rules(retries=0)
    runner: Mapping[str, Any] = _NOTHING
    task: str = "scenario_runner.suite.evaluation:run_item"
    task_options: Any = None
    most_items: int = 50_000
    most_bytes: int = 1 << 30
    most_files: int = 128
    kill_wait_s: float = 30.0
    core_dumps: bool = False


class Job(NamedTuple):
    """An item to run, with its attempts so far. With ``needs_new_process`` it runs in a process that has run nothing
    before."""

    number: int
    item: Item
    expected: Expected
    attempts: tuple[Outcome, ...] = ()
    needs_new_process: bool = False


class Device(NamedTuple):
    """A device that items run on; the fields about it are empty until a worker has opened it. ``given_up`` says why it
    gets no further items. ``choice`` is the index, UUID or name that it was chosen by."""

    uuid: str = ""
    name: str = ""
    driver: str = ""
    type: str = ""
    given_up: str = ""
    choice: str = ""
