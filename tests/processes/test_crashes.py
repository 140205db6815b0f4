"""Crashing drivers and a system without threads, processes or memory: one error names the scenario and the limit."""

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FenceTimeoutError
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import ADD, Scene, glsl

DATA = "layout(binding = 0) buffer B { uint a[]; };\n"
CRASHED = 12
HANGS = 7012  # the size of a buffer that trouble_layer.c does not come back from


@pytest.fixture
def four(scene: Scene) -> list[str]:
    """Four scenarios, each of one dispatch on numbers of its own."""
    names = []
    for number in range(4):
        one = Scene(scene.folder).shader("add", ADD)
        one.buffer(f"x{number}", numpy.full(4, number, numpy.uint32)).dispatch("add", [f"x{number}"], [4])
        names.append(one.write(f"{number}.json").name)
    return names


Crashing = Callable[..., dict[str, str]]


@pytest.fixture
def crashing(fault_layer: dict[str, str]) -> Crashing:
    """The environment in which a call crashes the driver."""

    def crashing(call: str, at: int = 1, by: int = signal.SIGSEGV) -> dict[str, str]:
        return {**fault_layer, "FAULT_CALL": call, "FAULT_AT": str(at), "FAULT_SIGNAL": str(int(by))}

    return crashing


def results(folder: Path) -> dict[int, list[int]]:
    """The outputs that are there, by the number of their scenario."""
    return {int(path.name[1]): numpy.load(path).view("u4").tolist() for path in sorted(folder.glob("x?.out.npy"))}


def test_the_rest_goes_on_after_a_crash(program: Program, scene: Scene, four: list[str], crashing: Crashing) -> None:
    """Every second scenario crashes the driver: each is named with its command, and the others' results are there."""
    ended = program(*four, env=crashing("vkQueueSubmit", at=2), exit_code=CRASHED)
    assert [line.partition(": ok: ")[0] for line in ended.out.splitlines()] == ["0.json", "2.json"]
    message = "the process was ended by SIGSEGV while running this command (shader 'add') [SR-DEVICE-006]"
    first, help, second, help_again = ended.err.splitlines()
    assert first.startswith("error: 1.json:")
    assert first.endswith(f": /commands/0: {message}")
    assert second.startswith("error: 3.json:")
    assert help == help_again
    assert help.startswith("  help: a shader that reads or writes out of bounds is the usual cause: try ")
    assert results(scene.folder) == {0: [1] * 4, 2: [3] * 4}


def test_options_before_the_files(program: Program, scene: Scene, four: list[str], crashing: Crashing) -> None:
    """Isolation follows from the files, wherever they stand among the options and their values."""
    ended = program("--quiet", "--output", "out", *four, "--log-level", "error", env=crashing("vkQueueSubmit", at=2))
    assert (ended.code, ended.out) == (CRASHED, "")
    assert [line.split(":")[1] for line in ended.err.splitlines() if "SIGSEGV" in line] == [" 1.json", " 3.json"]
    assert results(scene.folder / "out") == {0: [1] * 4, 2: [3] * 4}


# A call that crashes, the place that the message begins with, and what the driver was asked to do.
MOMENTS = [
    ("vkCreateInstance", ": ", "while starting the driver"),
    ("vkCreateDevice", ": ", "while opening the device"),
    ("vkCreateBuffer", ": ", "while creating its resources"),
    ("vkCreateComputePipelines", ": /resources/0/shader: ", "while creating the pipeline of shader 'add'"),
    ("vkAllocateDescriptorSets", ": ", "while creating its descriptor sets"),
    ("vkWaitForFences", ": /commands: ", "while running the commands 0 to 1 (shader 'add')"),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment[0])
@pytest.mark.parametrize("by, alone", [(signal.SIGSEGV, True), (signal.SIGABRT, False)])
def test_what_was_being_done(
    program: Program, scene: Scene, crashing: Crashing, moment: tuple[str, str, str], by: signal.Signals, alone: bool
) -> None:
    """The message names the scenario, the signal and the call of the driver, and no output is written."""
    call, place, what = moment
    scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4]).dispatch("add", ["x"], [4]).write()
    Scene(scene.folder).write("empty.json")
    ended = program("scenario.json", *([] if alone else ["empty.json"]), env=crashing(call, by=by))
    assert ended.code == (-by if alone else CRASHED)  # a single file's process is the one that crashes
    line, *help = [line for line in ended.err.splitlines() if "empty.json" not in line]
    assert line.startswith("error: scenario.json")
    if what != "while starting the driver":  # the driver starts on a thread, while the scenario is read
        code = "" if alone else " [SR-DEVICE-006]"
        assert line.endswith(f"{place}the process was ended by {by.name} {what}{code}")
    assert bool(help) is not alone
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_a_crash_when_all_is_done(program: Program, scene: Scene, four: list[str], crashing: Crashing) -> None:
    """A driver that crashes when the device is closed is reported too; every result is there."""
    ended = program(*four, env=crashing("vkDestroyDevice"), exit_code=CRASHED)
    assert len(ended.out.splitlines()) == 4
    assert ended.err.startswith(
        "error: the process was ended by SIGSEGV while closing the device [SR-DEVICE-006]\n  help"
    )
    assert len(results(scene.folder)) == 4


def test_the_first_failure_gives_the_exit_code(program: Program, four: list[str], crashing: Crashing) -> None:
    """The first failure gives the exit code, before or after a crash."""
    crash = crashing("vkQueueSubmit", at=2)
    assert program("missing.json", *four[:2], env=crash).code == 4
    ended = program(*four[:2], "missing.json", four[2], env=crash, exit_code=CRASHED)
    assert [line.partition(": ok: ")[0] for line in ended.out.splitlines()] == ["0.json", "2.json"]


def test_a_driver_that_crashes_at_once_ends_every_file(program: Program, four: list[str], crashing: Crashing) -> None:
    """A driver that crashes at once ends the call with one error for each scenario."""
    ended = program.fail(CRASHED, *four, env=crashing("vkCreateInstance"))
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert [line[len("error: ") :].split(":")[0] for line in errors] == four


def test_a_list_of_devices_names_a_crash(program: Program, crashing: Crashing) -> None:
    """A driver that crashes while devices are listed ends in one line."""
    ended = program.fail(-signal.SIGSEGV, "--list-devices", env=crashing("vkCreateInstance"))
    assert ended.err.startswith("error: the process was ended by SIGSEGV while ")


@needs(VGF_LIBRARY)
def test_models_name_a_crash(program: Program, checkout: Path, crashing: Crashing) -> None:
    """A model that crashes the driver ends in one line, also when its layers are compared."""
    crash = crashing("vkCreateInstance")
    model = checkout / "scenarios" / "ml" / "classifier" / "model.vgf"
    picture = model.with_name("picture.npy")  # without it, that it is missing may be said before the driver crashes
    ended = program(model, "--input", f"picture={picture}", "--output-dir", "out", env=crash, exit_code=-signal.SIGSEGV)
    assert f"error: {model}: the process was ended by SIGSEGV while " in ended.err
    model = checkout / "tests" / "tosa" / "fixtures" / "mixed.mlir"
    ended = program.fail(-signal.SIGSEGV, "compare-layers", model, "--expected", "tosa", env=crash)
    assert f"error: {model}: the process was ended by SIGSEGV while " in ended.err


def test_isolation_can_be_chosen(program: Program, four: list[str], crashing: Crashing) -> None:
    """With --isolate one file has a process of its own as well, with --no-isolate several have none."""
    crash = crashing("vkQueueSubmit")
    ended = program(four[0], "--isolate", "--log-level", "debug", env=crash, exit_code=CRASHED)
    assert f"error: {four[0]}:" in ended.err
    assert "was ended by SIGSEGV while running this command (shader 'add') [SR-DEVICE-006]\n" in ended.err
    assert "debug: Fatal Python error: Segmentation fault\n" in ended.err
    ended = program.fail(-signal.SIGSEGV, *four, "--no-isolate", env=crash)
    what = "the process was ended by SIGSEGV while running this command (shader 'add')"
    assert ended.err == f"error: /commands/0: {what}\n"


def test_the_native_stack_of_a_run(program: Program, scene: Scene, four: list[str], crashing: Crashing) -> None:
    """With --core-dumps, where the system writes core files and there is gdb: from the layer to our call of it."""
    ended = program(four[0], "--core-dumps", env=crashing("vkCreateBuffer"), exit_code=CRASHED)
    error, _, stack = ended.err.partition("\nstack: ")
    assert "was ended by SIGSEGV while creating its resources [SR-DEVICE-006]\n" in error
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|"):
        assert stack.startswith(f"no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}")
    elif shutil.which("gdb"):
        frames = [line.split()[-1] for line in stack.splitlines() if " from " in line]
        assert any("fault" in Path(frame).name for frame in frames)
        assert "_cffi_backend" in frames[-1]
        assert "Python/" not in stack
        assert "  core file: " in stack
    else:
        assert stack.startswith("the stack needs gdb, which is not installed\n  core file: ")


def test_the_shaders_of_a_frame(program: Program, scene: Scene, crashing: Crashing) -> None:
    """Three of them are named, each once."""
    scene.buffer("x", size=16)
    for name in ("a", "b", "c", "d"):
        scene.shader(name, ADD.replace("1u", f"{ord(name)}u")).dispatch(name, ["x"], [4]).dispatch(name, ["x"], [4])
    scene.write()
    ended = program("scenario.json", "--isolate", env=crashing("vkQueueSubmit"))
    assert "while running the commands 0 to 7 (shader 'a', shader 'b', shader 'c', …) [" in ended.err


def test_a_driver_that_hangs_is_ended(
    program: Program, scene: Scene, four: list[str], trouble_layer: dict[str, str]
) -> None:
    """With --isolate and --timeout a call that does not come back costs its scenario; the others run."""
    Scene(scene.folder).shader("add", ADD).buffer("y", size=HANGS).dispatch("add", ["y"], [4]).write("hangs.json")
    ended = program(four[0], "hangs.json", four[1], "--isolate", "--timeout", "2", env=trouble_layer)
    assert ended.code == FenceTimeoutError.exit_code
    error, help = ended.err.splitlines()
    assert error == (
        "error: hangs.json: the process was killed, since it had done nothing for 2 s (--timeout),"
        " while creating its resources [SR-DEVICE-004]"
    )
    assert help.startswith("  help: give more time with --timeout")
    assert results(scene.folder) == {0: [1] * 4, 1: [2] * 4}


# A thread's stack is as large as this limit; one that is larger than the address space is never had.
STACK_BYTES, ADDRESS_SPACE_BYTES = 8 << 30, 4 << 30
# RLIMIT_NPROC does not bind root: another real user id, and none of the capabilities that overrule the limit.
ANOTHER_USER = ("setpriv", "--ruid", "65534", "--bounding-set", "-sys_resource,-sys_admin")


def few_processes(most: int) -> tuple[str, ...]:
    return (*(ANOTHER_USER if os.getuid() == 0 else ()), "prlimit", f"--nproc={most}")


@pytest.fixture
def small(scene: Scene) -> Scene:
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer A { uint a[]; };"))
    scene.buffer("x", numpy.arange(4, dtype=numpy.uint32)).dispatch("add", ["x"], [4]).write()
    return scene


LAUNCHERS = {
    "ulimit -u": (
        lambda: few_processes(1),
        r"processes and threads of this user \(ulimit -u\): [1-9]\d* of 1 in use, 1 more asked for",
    ),
    "ulimit -v": (
        lambda: ("prlimit", f"--stack={STACK_BYTES}", f"--as={ADDRESS_SPACE_BYTES}"),
        rf"bytes of address space \(ulimit -v\): \d+ of {ADDRESS_SPACE_BYTES} in use, {STACK_BYTES} more asked for",
    ),
}


@pytest.mark.parametrize("limit", LAUNCHERS)
def test_a_thread_that_cannot_be_started(program: Program, small: Scene, limit: str) -> None:
    """The first refused thread ends the run with exit code 15, the limit and a help."""
    launcher, named = LAUNCHERS[limit]
    ended = program.fail(15, "scenario.json", launcher=launcher())
    expected = rf"error: the system refuses to start another thread \({named}\)\n  help: raise the limit, or end .*\n"
    assert re.fullmatch(expected, ended.err)
    assert not list(small.folder.glob("*.out.npy"))
    assert small.leftovers() == []


@pytest.mark.parametrize("limit", LAUNCHERS)
def test_a_compiler_that_cannot_be_started(program: Program, small: Scene, limit: str, tmp_path: Path) -> None:
    """A command that needs no driver and compiles a shader says the same."""
    launcher, named = LAUNCHERS[limit]
    cache = {"SCENARIO_RUNNER_CACHE": str(tmp_path / "empty")}
    ended = program.fail(15, "validate", "scenario.json", launcher=launcher(), env=cache)
    place = r"error: scenario\.json:\d+:\d+: /resources/0/shader: shader 'add': "
    assert re.match(rf"{place}the system refuses to start another (thread|process) \({named}\)\n  help: ", ended.err)


def test_a_suite_without_file_handles(program: Program, small: Scene) -> None:
    """The error names the limit of open files, and not the distant limit of processes."""
    ended = program("test", "scenario.json", launcher=("prlimit", "--nofile=10"), exit_code=15)
    named = r"open files \(ulimit -n\): \d+ of 10 in use, 6 more asked for"
    assert re.search(rf"^error: the system refuses to start another process \({named}\)$", ended.err, re.M)


def test_doctor_reports_a_thread_that_cannot_be_started(program: Program, scene: Scene) -> None:
    """doctor reports the refused thread, and the other facts stay."""
    launcher, named = LAUNCHERS["ulimit -v"]
    ended = program("doctor", launcher=launcher(), exit_code=1)
    assert re.search(rf"could not be started: the system refuses to start another thread \({named}\)", ended.out)
