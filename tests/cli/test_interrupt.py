"""Long commands: an interrupt, and ``--repeat`` with its progress."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest

from scenario_runner.cli.arguments import parse
from scenario_runner.cli.suites.test import settle
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.reports.summary import Repeat
from tests.cli.long_run import LongRun, slow_scenario
from tests.cli.test_test_command import doubled, item, page_data
from tests.program import COMMAND, Program, all_of, process_state, python_path, wait_until
from tests.scenes import ADD, Scene

WORK = " while running this command (shader 'slow') at /commands/2"
"""The work of the slow scenario, as messages name it."""


@pytest.fixture
def slow(scene: Scene) -> Path:
    """A scenario that would run for minutes, with a quick frame before."""
    return slow_scenario(scene)


def test_time_limit(program: Program, scene: Scene, slow: Path) -> None:
    """Work that does not finish within --timeout ends with exit code 10, and nothing is written."""
    ended = program.fail(10, slow, "--timeout", "0.5")
    assert re.fullmatch(
        rf"error: {re.escape(str(slow))}:\d+:\d+: /commands/2: command 2 \(shader 'slow'\) did not finish within "
        r"0\.5 s \[SR-DEVICE-004\]\n"
        r"  help: give more time with --timeout, or look for an endless loop in the shaders\n",
        ended.err,
    )
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


@pytest.fixture
def other(scene: Scene) -> Scene:
    """A quick scenario in a folder of its own, with the result y."""
    quick = Scene(scene.folder / "other").shader("add", ADD).buffer("y", size=16)
    return quick.dispatch("add", ["y"], [4])


def test_the_next_file_runs_after_a_time_limit(program: Program, slow: Path, other: Scene) -> None:
    """A scenario that does not finish does not keep the next one from running, on a device of its own."""
    assert program(slow, other.write(), "--timeout", "3").code == 10
    assert other.output("y", "u4").tolist() == [1, 1, 1, 1]


Start = Callable[..., LongRun]


@pytest.fixture
def start(slow: Path, shader_cache: Path, tmp_path: Path) -> Start:
    """Run the slow scenario with further arguments, and wait; no output exists by then."""
    return partial(LongRun, slow, tmp_path / "captured")


@pytest.fixture(params=[[], ["missing.json"]], ids=["one file", "several files"])
def more(request: pytest.FixtureRequest) -> list[str]:
    """Further arguments after the slow scenario: several files run in a process of their own."""
    return list(request.param)


@pytest.mark.parametrize(
    "number, times, code, said",
    [
        (signal.SIGINT, 1, 130, "interrupted"),
        (signal.SIGINT, 2, 130, "interrupted"),
        (signal.SIGTERM, 2, 143, "interrupted by SIGTERM"),
        (signal.SIGHUP, 2, 129, "interrupted by SIGHUP"),
    ],
)
def test_interrupt(
    start: Start, scene: Scene, more: list[str], number: signal.Signals, times: int, code: int, said: str
) -> None:
    """A signal during a long shader ends the call soon, with its own exit code and nothing half-written."""
    with start(*more) as run:
        for _ in range(times):
            run.process.send_signal(number)
            time.sleep(0.2)
        work = "" if more else WORK  # the worker is gone, and the caller does not know what it did
        assert run.ended() == (code, "", f"{said}{work}\n")
        assert not list(scene.folder.glob("*.out.npy"))
        assert scene.leftovers() == []


def test_ignored_hangup(start: Start, more: list[str]) -> None:
    """A run that was started with SIGHUP ignored, as nohup does it, goes on when one comes."""
    with start(*more, ignored=signal.SIGHUP) as run:
        for process_id in (run.process.pid, run.child):
            os.kill(process_id, signal.SIGHUP)
        time.sleep(0.5)
        assert process_state(run.child)
        run.process.send_signal(signal.SIGTERM)
        assert run.ended().code == 143


@pytest.mark.parametrize("key, code, said", [(b"\x03", 130, "interrupted"), (b"\x1c", -signal.SIGQUIT, "")])
def test_keys_of_a_terminal(start: Start, more: list[str], key: bytes, code: int, said: str) -> None:
    """Ctrl-C on a terminal reaches every process and is told once; Ctrl-\\ ends all at once."""
    terminal, end = os.openpty()
    with start(*more, terminal=end) as run:
        os.close(end)
        os.write(terminal, key)
        assert run.ended().code == code
        shown = all_of(terminal).decode()
        assert shown.count("interrupted") == (1 if said else 0)
        assert "Traceback" not in shown


def test_a_long_run_shows_its_work(start: Start) -> None:
    """After a second, a terminal shows the command in work and the time. Ctrl-C repeats the command."""
    terminal, end = os.openpty()
    with start(terminal=end) as run:
        os.close(end)
        shown = ""
        while f"{WORK.removeprefix(' while ')}, 2 s (" not in shown:
            shown += os.read(terminal, 1 << 16).decode()
        os.write(terminal, b"\x03")
        assert run.ended().code == 130
        assert f"interrupted{WORK}\r\n" in all_of(terminal).decode()


def test_suspending(start: Start, more: list[str]) -> None:
    """Ctrl-Z stops both processes, as it does for every process of a job, and SIGCONT lets them go on."""
    with start(*more, process_group=0) as run:
        both = (run.process.pid, run.child)
        for _ in range(20):  # SIGCONT may come while the process between both stops its workers
            os.killpg(run.process.pid, signal.SIGTSTP)
            wait_until(lambda: [process_state(process) for process in both] == ["T", "T"], "both are stopped")
            os.killpg(run.process.pid, signal.SIGCONT)
            wait_until(lambda: "T" not in [process_state(process) for process in both], "both go on")
        run.process.send_signal(signal.SIGTERM)
        assert run.ended().code == 143


def test_killed(start: Start, scene: Scene, more: list[str]) -> None:
    """SIGKILL, which nobody can pass on, ends the process that runs the scenario as well."""
    with start(*more) as run:
        run.process.kill()
        _, said = run.process.communicate(timeout=30)
        wait_until(lambda: not process_state(run.child), "the child ends")
        assert said == ""
        assert not list(scene.folder.glob("*.out.npy"))


def test_killed_for_want_of_memory(start: Start, slow: Path, other: Scene) -> None:
    """When the process that runs the scenarios is killed alone, that is said, and the next scenario runs."""
    quick = other.write()
    with start(quick) as run:
        os.kill(run.child, signal.SIGKILL)
        ended = run.ended()
        assert ended.code == 12
        assert ended.out.startswith(f"{quick}: ok: ")
        error, help = ended.err.splitlines()
        assert error.startswith(f"error: {slow}:")
        what = "the process was ended by SIGKILL while running this command (shader 'slow') [SR-DEVICE-006]"
        assert error.endswith(f": /commands/2: {what}")
        assert "memory that has run out" in help
        assert other.output("y", "u4").tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "destination, message",
    [
        ("folder", "is a folder, expected the name of a file to write"),
        ("file/x.npy", "cannot be created: not a directory"),
        ("/proc/nothing/x.npy", "cannot be created: no such file or directory"),
        ("/dev/null", "is a pipe, a device or a socket, expected the name of a file to write"),
        ("n" * 300, "cannot be created: file name too long"),
    ],
)
def test_output_that_cannot_be_written(program: Program, scene: Scene, destination: str, message: str) -> None:
    """An output that cannot be written ends with exit code 4, a folder also in a dry run; other files stay."""
    (scene.folder / "folder").mkdir()
    old = scene.file("first.out.npy", b"old content")
    scene.file("file", "")
    scene.shader("add", ADD).buffer("first", size=16).buffer("x", size=16, dst=destination).buffer("last", size=16)
    scene.dispatch("add", ["x"], [4]).write()
    place = r"scenario\.json:\d+:\d+: /resources/2/buffer/dst: "
    ended = program.fail(4, "scenario.json")
    assert re.match(rf"error: {place}{re.escape(destination)}: {message} \[SR-FILE-\d+\]\n", ended.err)
    if destination == "folder":
        assert program("scenario.json", "--dry-run").code == 4
    assert old.read_bytes() == b"old content"
    assert list(scene.folder.glob("*.out.npy")) == [old]
    assert scene.leftovers() == []


# As NumPy's own import does where a signal strikes in its C part.
INTERRUPTED_NUMPY = """
import os, signal
try:
    os.kill(os.getpid(), signal.{name})
except BaseException:
    raise ImportError("numpy._core.multiarray failed to import") from None
"""


INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in ("scenario_runner", "scenario_runner.__main__"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_that_becomes_an_import_error(
    program: Program, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """A signal during an import that makes an ImportError of it is an interrupt still."""
    numpy.save(tmp_path / "a.npy", numpy.zeros(3, "f4"))
    folder = tmp_path / "modules" / "numpy"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(INTERRUPTED_NUMPY.format(name=number.name))
    path = python_path(folder.parent)
    ended = program("view", "a.npy", env={"PYTHONPATH": path})
    said = "interrupted" if number == signal.SIGINT else f"interrupted by {number.name}"
    assert (ended.code, ended.err) == (code, f"{said}\n")


def test_interrupts_of_a_run_with_many_outputs(scene: Scene, shader_cache: Path) -> None:
    """Whenever SIGTERM comes, there are all outputs or none, and no temporary file."""
    scene.shader("add", ADD)
    for index in range(120):
        scene.buffer(f"x{index}", size=16).dispatch("add", [f"x{index}"], [4])
    command = [*COMMAND, str(scene.write())]
    begun = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole_s = time.monotonic() - begun
    for step in range(10):
        for path in scene.folder.glob("*.out.npy"):
            path.unlink()
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            time.sleep(whole_s * (step + 1) / 11)
            process.terminate()
            process.communicate(timeout=60)
        assert len(list(scene.folder.glob("*.out.npy"))) in (0, 120)
        assert scene.leftovers() == []


def test_ctrl_c_while_the_command_line_is_imported(tmp_path: Path) -> None:
    """Ctrl-C at the first import of the program, from the standard library or its own, ends it without a traceback."""
    (tmp_path / "interrupting.py").write_text(INTERRUPTED_IMPORT)
    script = "import interrupting; from scenario_runner.__main__ import console; console()"
    environment = {**os.environ, "PYTHONPATH": python_path(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", script, "--version"], env=environment, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")


EXPECTED = doubled(0, 2, 4, 6)


def commands_of(folder: Path) -> list[dict[str, str]]:
    """Return the commands in the reports j.xml, j.json and j.html by the names of items."""
    junit = {}
    for case in ElementTree.parse(folder / "j.xml").iter("testcase"):
        texts = [each.text or "" for each in case.iter() if each.tag in ("failure", "error", "system-out")]
        found = re.search(r"^repeat: (.*)$", "\n".join(texts), re.M)
        if found:
            junit[str(case.get("name"))] = found[1]
    tests = json.loads((folder / "j.json").read_text())["results"]["tests"]
    ctrf = {test["name"]: test["extra"]["command"] for test in tests if "extra" in test}
    data = page_data(folder / "j.html")
    html = {row[0]: row[6] or f"{data['command']} {row[0]}" for row in data["rows"]}
    return [junit, ctrf, html]


def test_a_result_comes_again(tmp_path: Path, program: Program) -> None:
    """Each verdict depends on an option that was given to the suite: the command has it, in words for a shell."""
    suite = tmp_path / "it's a suite"
    for name in ("improved", "known", "flaky"):
        item(suite, name, EXPECTED if name == "improved" else {"outputs": {"x": {"dtype": "uint32", "values": 7}}})
    item(suite, "slow", {"repeat": 10_000_000, "outputs": {"x": {"unchecked": True}}})
    item(suite, "outside", {"outputs": {"x": {"unchecked": True}}})
    (suite / "outside.json").write_text((suite / "outside.json").read_text().replace("x.npy", "../x.npy"))
    (tmp_path / "x.npy").write_bytes((suite / "x.npy").read_bytes())
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "base line").write_text("improved.json,Crash\nknown.json,Fail\n")
    (lists / "flakes").write_text("^flaky\n")
    reports = ("--junit", "j.xml", "--json", "j.json", "--html", "j.html")
    options = ("--root", suite, "--baseline", "lists/base line", "--flakes", "lists/flakes", "--retries", "0")
    ended = program(
        "test", suite, *options, "--devices", "0", "--timeout", "1.5", "--sandbox", "--results", "r", *reports
    )
    assert ended.code == 1
    verdicts = {
        "improved.json": "UnexpectedImprovement(Pass)",
        "known.json": "ExpectedFail",
        "flaky.json": "KnownFlake",
        "slow.json": "Timeout",
        "outside.json": "Fail",
    }
    written = commands_of(tmp_path)
    assert written[2].keys() == verdicts.keys()
    assert all(each.items() <= written[2].items() for each in written)
    assert written[0].keys() == written[1].keys() == verdicts.keys()
    program("report", "r", *reports)
    assert commands_of(tmp_path) == written
    for name, command in written[2].items():
        if not verdicts[name].startswith(("Expected", "Known")):  # those are no failures
            assert f"\n  {command}\n" in ended.out
        words = shlex.split(command)
        assert words[:2] == ["scenario-runner", "test"]
        again = program(*words[1:], "--verbose", "--retries", "0")
        assert re.search(rf"^{re.escape(verdicts[name])} (.*/)?{name}", again.out, re.M), command


@pytest.mark.parametrize(
    "repeat, device, host, words",
    [
        (Repeat(), "uuid", "", ""),
        (Repeat(devices=("fast device",)), "uuid", "", "'--device=fast device' "),
        (Repeat(devices=("all",)), "uuid", "", "--device=uuid "),
        (Repeat(devices=("0", "1")), "", "", "--devices=0,1 "),
        (Repeat(devices=("all",)), "uuid", "other", ""),
        (Repeat(("--timeout=3",), (("--root", "/suite"),)), "", "", "--timeout=3 --root=/suite "),
    ],
)
def test_devices(repeat: Repeat, device: str, host: str, words: str) -> None:
    """The command names the device of the item if this machine has several, and never takes a path for an option."""
    result = Result(Item("a", "/here/-a"), "Fail", (Outcome("Fail"),), device, host=host)
    assert repeat.command(result, "/here") == f"scenario-runner test {words}./-a"


def test_a_compiler_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command has the absolute path of a compiler. A plain name stays, since PATH finds it."""
    monkeypatch.chdir(tmp_path)
    for path, word in (("bin/glslang", f"--glslang={tmp_path}/bin/glslang"), ("glslang", "--glslang=glslang")):
        options = parse(["test", "--glslang", path, "."])
        settle(options)
        assert options.repeating.options == (word,)
