"""Many items in few processes: results, order of work, repeats, devices, and the end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenario_runner.doctor.manifests import drivers
from scenario_runner.errors import NoDeviceError
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.suite_workers import SuiteWorkers
from tests.processes.conftest import TWICE, Folder, options
from tests.program import process_state


def test_items_run_and_name_their_device(folder: Folder) -> None:
    """Each item comes back once with its outcome, and with the device and driver that it ran on."""
    items = [folder.good(f"{number}") for number in range(5)]
    started: list[tuple[str, int]] = []
    with SuiteWorkers(options(), on_start=lambda item, worker: started.append((item.id, worker))) as workers:
        finished = list(workers.run(iter(items)))
        (device,) = workers.devices
    assert sorted(each.item for each in finished) == items
    assert {each.attempts[0].status for each in finished} == {"Pass"}
    assert {(each.device, each.driver) for each in finished} == {(device.uuid, device.driver)}
    assert (bool(device.uuid), device.given_up) == (True, "")
    assert sorted(item for item, _ in started) == ["0", "1", "2", "3", "4"]
    assert {worker for _, worker in started} <= {1, 2}
    assert [folder.result(each) for each in items] == [[2, 2, 2, 2]] * 5


def test_a_list_is_read_as_it_is_needed() -> None:
    """Workers take only a few items each from an endless list."""
    taken = 0

    def endless() -> Iterator[Item]:
        nonlocal taken
        while True:
            taken += 1
            yield Item(str(taken), "missing.json")

    with SuiteWorkers(options()) as workers:
        run = workers.run(endless())
        for _ in range(10):
            next(run)
            assert taken <= 20
        workers.stop()
        assert len(list(run)) <= 4  # those that were running, or had just ended


def quick_items(folder: Path, numbers: range) -> list[Item]:
    """Items of the task `note_end`, which workers get several at a time."""
    return [Item(str(number), str(folder / "x.json")) for number in numbers]


def test_no_item_waits_behind_a_slow_item(tmp_path: Path) -> None:
    """A free worker gets the items that another worker has received and not begun."""
    slow = Item("slow", str(tmp_path / "x.json"))
    items = [*quick_items(tmp_path, range(100)), slow, *quick_items(tmp_path, range(100, 200))]
    with SuiteWorkers(options(task="note_end", task_options=len(items) - 1)) as workers:
        results = list(workers.run(items))
    assert {result.verdict for result in results} == {"Pass"}
    assert results[-1].item == slow
    assert sorted((tmp_path / "ended").read_text().split()) == sorted(item.id for item in items)


def test_items_received_before_a_crash_run_once(tmp_path: Path) -> None:
    """Another process runs the rest of a crashed worker's items, and no item runs twice."""
    crash = Item("crash", str(tmp_path / "x.json"))
    first, rest = quick_items(tmp_path, range(100)), quick_items(tmp_path, range(100, 200))
    with SuiteWorkers(options(task="note_end", jobs=1)) as workers:
        results = list(workers.run([*first, crash, *rest]))
    assert [result.item for result in results] == [*first, crash, *rest]
    assert [result.item for result in results if result.verdict != "Pass"] == [crash]
    assert results[100].attempts[0].before_count == 100
    assert (tmp_path / "ended").read_text().split() == [item.id for item in [*first, *rest]]


def test_workers_stay_for_later_items(folder: Folder) -> None:
    """Items that are run one by one share a process."""
    with SuiteWorkers(options()) as workers:
        for number in range(3):
            finished = workers.run_one(folder.good(f"{number}"))
            assert finished.attempts[0].status == "Pass"
        crash = workers.run_one(folder.crashing()).attempts[0]
    assert (crash.status, crash.before) == ("Crash", ("0", "1", "2"))


def test_a_process_waits_after_a_crash(folder: Folder) -> None:
    """From the first crash on there is one process more than run items."""
    good = folder.good()
    with SuiteWorkers(options(jobs=1, rules=TWICE)) as workers:
        workers.run_one(good)
        assert len(processes(workers)) == 1
        workers.run_one(folder.crashing())
        assert any(len(processes(workers)) == 2 for _ in workers.run([good] * 10_000))


def test_an_item_that_crashed_runs_again_at_once(folder: Folder) -> None:
    """The process that waits after a crash is for the item that crashed, and not for another one."""
    good, crash = folder.good(), folder.crashing()
    with SuiteWorkers(options(rules=TWICE)) as workers:
        workers.run_one(crash)
        ends = (finished.item for finished in workers.run([*[good] * 20, crash, *[good] * 10_000]))
        position = next((position for position, item in enumerate(ends) if item == crash), None)
    assert position is not None
    assert position < 9_000  # how many others end meanwhile depends on the machine


@pytest.fixture
def two_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A software driver that is installed twice gives a machine with two devices (of one UUID)."""
    manifests = [Path(each.path) for each in drivers(os.environ) if "lvp" in each.path]
    if not manifests:
        pytest.skip("there is no lavapipe to install twice")
    copies = [Path(shutil.copy(manifests[0], tmp_path / name)) for name in ("one.json", "two.json")]
    monkeypatch.setenv("VK_DRIVER_FILES", os.pathsep.join(map(str, copies)))


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("chosen", [("0", "1"), ("all",), ("1",)])
def test_several_devices_share_the_items(folder: Folder, chosen: tuple[str, ...]) -> None:
    """Items go to the devices that are chosen, which have workers each."""
    items = [folder.good(f"{number}") for number in range(6)]
    with SuiteWorkers(options(devices=chosen, jobs=1)) as workers:
        finished = list(workers.run(items))
        count = 1 if chosen == ("1",) else 2
        assert (len(workers.devices), len(processes(workers))) == (count, count)
    assert sorted(each.item for each in finished) == items
    assert {each.attempts[0].status for each in finished} == {"Pass"}


@pytest.mark.parametrize("devices", [("7",), ("0", "no such device")])
def test_a_device_that_is_not_there(folder: Folder, devices: tuple[str, ...]) -> None:
    """An unknown device is an error with a list of devices, before anything runs."""
    with SuiteWorkers(options(devices=devices)) as workers, pytest.raises(NoDeviceError, match=r"devices: 0: '"):
        next(workers.run([folder.good()]))


def test_no_driver(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a driver the suite ends with the error of a run."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "none.json"))
    with SuiteWorkers(options()) as workers, pytest.raises(NoDeviceError) as raised:
        next(workers.run([folder.good()]))
    assert raised.value.problems[0].help


def test_what_runs_is_ended_where_nobody_wants_it(folder: Folder) -> None:
    """A run that is left early leaves no item behind, and the next run begins with its own. Stopping kills the running
    items without results, and waits for nothing."""
    items = [folder.good("a"), folder.endless("b"), folder.endless("c")]
    with SuiteWorkers(options()) as workers:
        assert next(iter(workers.run(items))).item.id == "a"
        assert workers.run_one(items[0]).attempts[0].status == "Pass"
        workers.listen(lambda item, worker: workers.stop(now=True), print)
        assert list(workers.run(items[1:])) == []


_SUPERVISOR = """
import sys
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.suite_workers import SuiteWork, suite_options
from scenario_runner.suite.suite_workers import SuiteWorkers
with SuiteWorkers(suite_options(SuiteWork("tests.processes.tasks:show_process"), jobs=1)) as workers:
    for finished in workers.run([Item("a", sys.argv[1])]):
        print(finished)
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_supervisor(folder: Folder, checkout: Path, by: signal.Signals) -> None:
    """Any end of the supervisor ends its workers and their children."""
    item = folder.endless()
    process = subprocess.Popen([sys.executable, "-c", _SUPERVISOR, item.path], cwd=checkout, stderr=subprocess.DEVNULL)
    shown = Path(item.path + ".processes")
    while not shown.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(by)
    process.wait()
    for each in map(int, shown.read_text().split()):
        while process_state(each):
            time.sleep(0.01)


def processes(workers: SuiteWorkers) -> list[str]:
    """The processes that items run in."""
    pool = workers._pool.process.pid
    return Path(f"/proc/{pool}/task/{pool}/children").read_text().split()


def test_workers_import_from_where_the_supervisor_does(folder: Folder) -> None:
    """Packages that an interpreter knows by PYTHONPATH alone are found by the processes of the workers too."""
    item = folder.good("good")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    base = getattr(sys, "_base_executable", sys.executable)  # it has no packages of its own
    command = [base, "-m", "scenario_runner", "test", item.path]
    done = subprocess.run(
        command, env=environment, cwd=folder.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "suite passed: 1 item" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_new_worker_begins_with_what_others_needed(folder: Folder) -> None:
    """A worker in place of a crashed one starts with its modules, Vulkan types and libraries. The process that
    workers are forked from ends without a tear-down, which would copy the shared memory."""
    a, c = (folder.good(name) for name in "ac")
    with SuiteWorkers(options(jobs=1, task="show_start")) as workers:
        outcomes = [result.attempts[0].status for result in workers.run([a, folder.crashing("b"), c])]
    assert outcomes == ["Pass", "Crash", "Pass"]
    (_, loaded), (there, _) = (json.loads(Path(item.path + ".start").read_text()) for item in (a, c))
    assert set(loaded) <= set(there)
    assert workers._pool.process.exitcode == 0
