"""Workers that end, stay or become unusable: one item pays for it, and names the reason."""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from scenario_runner.errors import DriverCrashError, LimitError
from scenario_runner.processes.isolated_process import join, start
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.suite_workers import SuiteWorkers
from tests.processes.conftest import TROUBLES, TWICE, Folder, options
from tests.program import executable, process_state

LATE = "took more than 3 s (the default of --timeout)"
FENCE, CRASHED, LOST = 10, 12, 11


def by_id(results: list[Result]) -> dict[str, tuple[Outcome, ...]]:
    return {result.item.id: result.attempts for result in results}


@pytest.mark.usefixtures("trouble")
def test_a_crash_costs_one_item(folder: Folder) -> None:
    """The crashed item has its signal, place, Python stack and earlier items, and runs once more alone. The other
    items pass. An item that crashes only after others passes alone."""
    items = [folder.good("a"), folder.crashing("b"), folder.good("c"), folder.troubled("crashes_later")]
    with SuiteWorkers(options(jobs=1, rules=TWICE)) as workers:
        outcomes = by_id(list(workers.run(items)))
    first, second = outcomes["b"]
    assert (first.status, first.exit_code) == ("Crash", CRASHED)
    what = "the process was ended by SIGSEGV while running this command (shader 'x')"
    assert first.reason == f"/commands/0: {what}"
    (problem,) = first.diagnostics
    assert (problem["code"], problem["pointer"], problem["path"]) == ("SR-DEVICE-006", "/commands/0", items[1].path)
    assert problem["line"] is not None
    assert first.python_stack.startswith("Fatal Python error: Segmentation fault")
    assert "scenario_runner/vulkan/device.py" in first.python_stack
    assert (first.before, first.before_count) == (("a",), 1)
    assert (second.status, second.before, second.before_count) == ("Crash", (), 0)
    assert [each.status for each in (*outcomes["a"], *outcomes["c"])] == ["Pass", "Pass"]
    crash, again = outcomes["crashes_later"]
    assert (crash.status, crash.before, again) == ("Crash", ("c",), Outcome("Pass"))


def test_endless_work_ends_at_its_limit(folder: Folder) -> None:
    """The wait for the device ends first: the error names the work. The item's own limit holds, and all of it."""
    endless = folder.endless()
    Path(endless.path + ".limit").write_text("2")
    with SuiteWorkers(options(jobs=1, task_options="limits")) as workers:
        outcomes = by_id(list(workers.run([folder.good(), endless, folder.good("b")])))
    assert (outcomes["endless"][0].status, outcomes["endless"][0].exit_code) == ("Timeout", FENCE)
    assert outcomes["endless"][0].reason.endswith("command 0 (shader 'x') did not finish within 2 s")
    assert outcomes["b"][0].status == "Pass"


ENDS = {
    "exits": "ended by itself with exit code 3",
    "aborts": "was ended by SIGABRT",
    "garbage": "was killed, since it sent an invalid message (b'\\xff{'),",
    "is_killed": "was ended by SIGKILL",
    "floods": "was ended by SIGSEGV",
    "leaves_a_child": "was ended by SIGSEGV",
    "closes_files": "was killed, since it closed its connection,",
}
LAST_WORDS = {"aborts": "driver: assertion 'false' failed\n", "floods": "x\nthe last words\n"}


@pytest.mark.usefixtures("trouble")
def test_ways_to_end(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told from the others; the next item finds a worker as if nothing had been."""
    child = folder.path / "child"
    monkeypatch.setenv("TROUBLE_FILE", str(child))
    items = [folder.troubled(what) for what in ENDS]
    with SuiteWorkers(options()) as workers:
        outcomes = by_id(list(workers.run([*items, folder.good()])))
        while process_state(int(child.read_text())):  # it ends with its parent
            time.sleep(0.01)
    for what, end in ENDS.items():
        (outcome,) = outcomes[what]
        assert (outcome.status, outcome.exit_code) == ("Crash", CRASHED)
        assert outcome.reason == f"the process {end} while creating its resources"
        assert outcome.output.endswith(LAST_WORDS.get(what, ""))
        assert len(outcome.output) <= 16 << 10
    assert outcomes["good"][0].status == "Pass"


@pytest.mark.usefixtures("trouble")
def test_a_slow_end_is_not_waited_for(folder: Folder) -> None:
    """A worker that waits for the driver forever is killed at the time limit, and the stack shows the call of the
    driver. Other items run while the killed process is still there, as one that its driver holds."""
    hanging = folder.troubled("sleeps")
    task = "run_unkillable"
    with SuiteWorkers(options(jobs=1, timeout_s=3, task=task)) as workers:
        outcomes = by_id(list(workers.run([hanging, folder.good("a"), folder.good("b")])))
        process, other = map(int, Path(hanging.path + ".processes").read_text().split())
        assert process_state(process)
    os.kill(process, signal.SIGKILL)
    os.kill(other, signal.SIGKILL)
    assert [outcomes[each][0].status for each in ("sleeps", "a", "b")] == ["Timeout", "Pass", "Pass"]
    (outcome,) = outcomes["sleeps"]
    assert outcome.exit_code == FENCE
    assert outcome.reason == f"the process was killed, since it {LATE}, while creating its resources"
    assert outcome.diagnostics[0]["code"] == "SR-DEVICE-004"
    assert "create_buffer" in outcome.python_stack


@pytest.mark.usefixtures("trouble")
def test_a_spoiled_process_runs_nothing_more(folder: Folder) -> None:
    """A worker with a lost device or without file handles ends with its item, and another worker continues."""
    names = ("loses_the_device", "leaks_files")
    items = [item for name in names for item in (folder.troubled(name), folder.good(f"after {name}"))]
    with SuiteWorkers(options(jobs=1)) as workers:
        outcomes = by_id(list(workers.run([*items, folder.crashing()])))
    (lost,), (leaking,) = (outcomes[name] for name in names)
    assert (lost.status, lost.exit_code) == ("Fail", LOST), lost.reason
    assert "VK_ERROR_DEVICE_LOST" in lost.reason
    assert (leaking.status, leaking.exit_code) == ("Crash", LimitError.exit_code), leaking.reason
    assert "has run out of file handles" in leaking.reason
    assert [outcomes[f"after {name}"][0].status for name in names] == ["Pass", "Pass"]
    assert leaking.before == ("after loses_the_device",)
    assert outcomes["crash"][0].before == ("after leaks_files",)


@pytest.mark.usefixtures("trouble")
def test_a_process_that_has_grown_is_replaced(folder: Folder) -> None:
    """After so many items, or so much memory, a worker is replaced, between two items."""
    items = [folder.good("a"), folder.troubled("grows"), folder.crashing("b")]
    with SuiteWorkers(options(jobs=1, most_bytes=32 << 20)) as workers:
        # what a failure leads to is that it is looked at: memory is not looked at after each item
        finished = list(workers.run([items[0], items[1], folder.item("c", "void"), items[2]]))
    assert by_id(finished)["b"][0].before == ()
    with SuiteWorkers(options(jobs=1, most_items=2)) as workers:
        finished = list(workers.run([items[0], items[0], items[0], items[2]]))
    assert by_id(finished)["b"][0].before == ("a",)


@pytest.mark.usefixtures("trouble")
@pytest.mark.parametrize(
    "how, message", [("aborts", "was ended by SIGABRT"), ("sleeps", "was killed, since it was not")]
)
def test_a_driver_that_cannot_be_started(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, how: str, message: str
) -> None:
    """Workers that end at their start are tried a few times, and then give one error."""
    monkeypatch.setenv("TROUBLE_START", str(TROUBLES.index(how)))
    with (
        SuiteWorkers(options(start_timeout_s=1.5)) as workers,
        pytest.raises(DriverCrashError, match=message) as raised,
    ):
        list(workers.run([folder.good()]))
    assert str(raised.value).endswith("while starting the driver, 3 times in a row")


def test_the_pool_ends(folder: Folder) -> None:
    """When the process that workers are forked from is ended, there is one error."""
    with SuiteWorkers(options(jobs=1)) as workers:
        workers.run_one(folder.good())
        os.kill(workers._pool.process.pid, signal.SIGKILL)
        with pytest.raises(DriverCrashError, match="the process that workers are forked from was ended by SIGKILL"):
            workers.run_one(folder.good("b"))


def start_sleep(pid: str) -> int:
    """Fork a process that goes on after this one, and note the id."""
    child = os.fork()
    if not child:
        time.sleep(1000)
    Path(pid).write_text(str(child))
    return 0


def test_the_end_of_a_process_that_leaves_another(tmp_path: Path) -> None:
    """A process has ended although a process that it has forked, and that cannot end, keeps its pipes open."""
    process = start("spawn", start_sleep, str(tmp_path / "pid"))
    join(process, 1000)
    assert process.exitcode == 0
    left = int((tmp_path / "pid").read_text())
    assert process_state(left)
    os.kill(left, signal.SIGKILL)


def test_messages_that_no_worker_sends() -> None:
    """JSON of other types, or of unlimited depth, ends only the worker that sent it."""
    messages = ('["used", [1]]', '["done", {"status": 5}, ""]', '["done", {"status": "Good"}, ""]', "[" * 100_000)
    with SuiteWorkers(options(jobs=1, task="send")) as workers:
        outcomes = by_id(list(workers.run([Item(message, "x.json") for message in messages])))
    for message in messages:
        assert "sent an invalid message" in outcomes[message][0].reason


def test_gdb_takes_no_time_of_other_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that ends while the stack of another one is read has kept its limit, however late that is noticed."""
    executable(tmp_path / "gdb", "#!/bin/sh\nsleep 4\n")
    monkeypatch.chdir(tmp_path)  # where the system usually writes the core file
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    task = "crash_or_sleep"
    with SuiteWorkers(options(task=task, timeout_s=0.5, core_dumps=True)) as workers:
        outcomes = by_id(list(workers.run([Item(name, f"{name}.json") for name in ("crash", "other")])))
    assert [outcomes[name][0].status for name in ("crash", "other")] == ["Crash", "Pass"]


@pytest.mark.parametrize("name", ["crash", "killed"])
def test_files_of_a_process_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A worker that crashes, or is killed at the end, leaves no temporary file, and no folder for files to come."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    item = Item(name, str(tmp_path / "a.json"))
    with SuiteWorkers(options(task="leave_files", jobs=1)) as workers:
        if name == "crash":
            assert workers.run_one(item).verdict == "Crash"
        else:
            workers.listen(lambda item, worker: workers.stop(now=until_begun(item)), print)
            assert list(workers.run([item])) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.begun", "temporary"]
    assert list(temporary.iterdir()) == []


def until_begun(item: Item) -> bool:
    """Wait until the item is at work."""
    while not Path(item.path + ".begun").exists():
        time.sleep(0.01)
    return True


def test_core_files_of_processes_that_crash_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each crash has a core file of its own, also where the system names all alike, in the current folder."""
    monkeypatch.chdir(tmp_path)
    items = [Item(name, str(tmp_path / f"{name}.json")) for name in "ab"]
    with SuiteWorkers(options(task="crash_together", task_options=2, core_dumps=True)) as workers:
        stacks = [result.attempts[0].stack.splitlines()[-1] for result in workers.run(items)]
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|"):
        assert all(line.startswith("no core file was found") for line in stacks)
    else:
        paths = {line.removeprefix("core file: ") for line in stacks}
        assert len(paths) == 2
        assert {Path(path).read_bytes()[:4] for path in paths} == {b"\x7fELF"}


def test_a_process_that_cannot_be_ended(folder: Folder, device_name: str) -> None:
    """The item of a worker that cannot be ended is a Timeout at once. Then the device is given up, and later items
    are Missing."""
    notes: list[str] = []
    endless = folder.endless()
    first, good = folder.good("a"), folder.good()
    items = [first, endless, *(good._replace(id=str(number)) for number in range(1000))]
    task = "run_unkillable"
    with SuiteWorkers(options(jobs=1, task=task, timeout_s=3, kill_wait_s=0), on_note=notes.append) as workers:
        outcomes = by_id(list(workers.run(items)))
    for process in Path(endless.path + ".processes").read_text().split():
        os.kill(int(process), signal.SIGKILL)
    assert outcomes["endless"][0].status == "Timeout"
    assert outcomes["endless"][0].reason.endswith(
        f"was killed, since it {LATE}, while running this command (shader 'x')"
    )
    assert (outcomes["a"][0].status, outcomes["999"][0].status) == ("Pass", "Missing")
    assert len(notes) == 1, notes
    (note,) = notes
    assert note.startswith(f"process 1 on the device {device_name!r}")
    assert note.endswith("no further scenario runs on this device")
    assert outcomes["999"][0].reason == note
