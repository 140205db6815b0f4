"""``--watch`` of ``run``, ``validate`` and ``test``: files are replaced as editors do, by renaming."""

import io
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy
import pytest

from tests.cli.long_run import slow_scenario
from tests.cli.test_test_command import DATA, doubled, item
from tests.crash import crash_shader
from tests.program import COMMAND, Program, python_path
from tests.scenes import Scene, glsl

DOUBLE = glsl("data[gl_GlobalInvocationID.x] *= FACTOR;", f'#include "factor.h"\n{DATA}').replace(
    "\n", "\n#extension GL_GOOGLE_include_directive : enable\n", 1
)


class Watching:
    """The program with --watch in ``folder``; `round` returns the output up to the next wait."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        command = [*COMMAND, *arguments, "--watch"]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert self.process.stdout is not None
        self._lines = io.TextIOWrapper(self.process.stdout)  # type: ignore[type-var]

    def __enter__(self) -> "Watching":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._lines.close()

    def round(self, **files: str) -> str:
        """Replace files at once, each by its name with a "_" for the dot."""
        for name, text in files.items():
            self.replace(name.replace("_", "."), text)
        return self.rest()

    def replace(self, name: str, text: str) -> None:
        partial_file = self.folder / "saved~"
        partial_file.write_text(text)
        partial_file.replace(self.folder / name)

    def rest(self) -> str:
        lines = []
        for line in self._lines:
            assert "Traceback" not in line
            if line.startswith("watching: "):
                return "".join(lines)
            lines.append(line)
        raise AssertionError("it has ended: " + "".join(lines))

    def end(self) -> tuple[int, str]:
        """Send Ctrl-C, and return the exit code and the output since the last round."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60), self._lines.read()


Start = Callable[..., Watching]


@pytest.fixture
def start(tmp_path: Path, shader_cache: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Watching(tmp_path, *arguments))


@pytest.fixture
def doubling(scene: Scene) -> str:
    """Return the text of a scenario with a shader that includes a factor."""
    scene.file("factor.h", "#define FACTOR 2\n")
    scene.shader("double", DOUBLE).buffer("x", numpy.arange(4, dtype="uint32"), dst="x.out.npy")
    return scene.dispatch("double", ["x"], [4]).write("a.json").read_text()


def test_a_run_follows_its_files(scene: Scene, start: Start, doubling: str) -> None:
    """A change of an include starts a run, and a change of an output does not. A broken or missing file is an error
    until it is right again. Ctrl-C ends with the exit code of an interrupt."""
    other = Scene(scene.folder).shader("double", DOUBLE).buffer("z", src="x.out.npy", size=16, dst="z.out.npy")
    other.dispatch("double", ["z"], [4]).write("b.json")
    watching = start("run", "a.json", "b.json")
    assert watching.rest().count(": ok: ") == 2
    assert scene.output("z", "u4").tolist() == [0, 4, 8, 12]
    assert watching.round(factor_h="#define FACTOR 3\n").startswith("changed: factor.h\na.json: ok: ")
    assert scene.output("z", "u4").tolist() == [0, 9, 18, 27]
    broken = watching.round(a_json=doubling[:-3])
    assert broken.startswith("changed: a.json\nerror: a.json:")
    assert "b.json: ok: " in broken
    (scene.folder / "factor.h").unlink()
    assert watching.rest().startswith("changed: factor.h\nerror: a.json:")
    assert "a.json: ok" not in watching.round(factor_h="#define FACTOR 4\n")
    assert watching.round(a_json=doubling).startswith("changed: a.json\na.json: ok: ")
    assert scene.output("z", "u4").tolist() == [0, 16, 32, 48]
    assert watching.end() == (130, "interrupted\n")


def test_a_crash_does_not_end_the_watching(scene: Scene, start: Start, device_name: str) -> None:
    """After each crash a new process waits for the next change, and runs the remaining files."""
    shader = crash_shader(device_name)
    scene.shader("x", shader).buffer("a", numpy.ones(4, "uint32"), dst="a.out.npy").dispatch("x", ["a"], [1])
    scene.write("a.json")
    scene.file("b.json", '{"resources": [], "commands": []}')
    watching = start("run", "a.json", "b.json")
    crashed = watching.rest()
    assert "was ended by SIGSEGV while running this command (shader 'x')" in crashed
    assert "b.json: ok: " in crashed
    assert "was ended by SIGSEGV" in watching.round(x_comp=f"{shader}// again")
    mended = watching.round(x_comp=glsl("a[0] = 5u;", "layout(binding = 0) buffer B { uint a[]; };"))
    assert mended.startswith("changed: x.comp\na.json: ok: ")
    assert watching.end() == (130, "interrupted\n")


@pytest.mark.heavy
def test_work_that_takes_too_long_ends(scene: Scene, start: Start) -> None:
    """With --timeout: the device does nothing while the next change is waited for."""
    slow_scenario(scene)
    watching = start("run", "scenario.json", "--timeout", "1")
    assert "was killed, since it had done nothing for 1 s (--timeout), while running this command" in watching.rest()
    (child,) = Path(f"/proc/{watching.process.pid}/task/{watching.process.pid}/children").read_text().split()
    ticks = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11]]
    time.sleep(0.5)
    ticks.append(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11])
    assert int(ticks[1]) - int(ticks[0]) < 20, "hundredths of a second"
    mended = watching.round(slow_comp=glsl("a[0] = 5u;", "layout(binding = 0) buffer B { uint a[]; };"))
    assert mended.startswith("changed: slow.comp\nscenario.json: ok: ")


def test_validation_follows_its_files(scene: Scene, start: Start, doubling: str) -> None:
    watching = start("validate", "later/a.json", "a.json")
    assert watching.rest().startswith("error: later/a.json: ")
    assert "'nothing' : undeclared identifier" in watching.round(factor_h="#define FACTOR nothing\n")
    assert "a.json: valid: " in watching.round(factor_h="#define FACTOR 2\n")
    (scene.folder / "later").mkdir()
    text = doubling.replace('"double.comp"', '"../double.comp"').replace('"x.npy"', '"../x.npy"')
    watching.replace("later/a.json", text)
    assert watching.rest().startswith("changed: later/a.json\nlater/a.json: valid: ")
    assert watching.end() == (130, "interrupted\n")


def test_a_suite_runs_what_changed(tmp_path: Path, start: Start) -> None:
    """Lists and expectations count as well, and new folders, also where there was no scenario before. Other items keep
    their results."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "skips.txt").write_text("[")
    watching = start("test", "suite", "--skips", "skips.txt", "--results", "suite/results")
    assert "'[' is not a regular expression" in watching.rest()
    assert "no scenario was found in 'suite'" in watching.round(skips_txt="nothing\n")
    for name in ("a", "b"):
        item(tmp_path / "more", name, doubled(0, 2, 4, 6))
    (tmp_path / "more").rename(tmp_path / "suite" / "more")
    assert "2 Pass\n" in watching.rest()
    watching.replace("suite/more/b.check.json", json.dumps(doubled(0, 2, 4, 7)))
    failed = watching.rest()
    assert failed.startswith("changed: suite/more/b.check.json\n")
    assert "Fail suite/more/b.json: " in failed
    assert "1 result kept from the run before\n" in failed
    watching.replace("suite/more/b.check.json", json.dumps(doubled(0, 2, 4, 6)))
    assert "2 Pass\n" in watching.rest()
    assert watching.end() == (130, "interrupted\n")
    assert (tmp_path / "suite" / "results" / "results.csv").read_text().count(",Pass,") == 2


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("validate /dev/stdin", "/dev/stdin: --watch cannot read a pipe or standard input again\n  help: name a file"),
        ("test -", "-: --watch cannot read a pipe or standard input again\n  help: name a file"),
        (
            "test . --update",
            "--watch and --list or --update contradict each other\n  help: scenario-runner test --help",
        ),
        (
            "test . --cluster local:1",
            "--watch and --cluster: --watch runs scenarios on this machine only\n  help: scenario-",
        ),
        ("run a.json --gfxr f", "--gfxr and --watch contradict each other\n  help: capture with a single run"),
    ],
)
def test_what_cannot_be_watched(program: Program, arguments: str, said: str) -> None:
    ended = program.fail(2, *arguments.split(), "--watch", stdin="{}")
    assert ended.err.startswith(f"error: {said}")


@pytest.mark.parametrize("command", ["run a.json b.json", "test a.json"])
def test_a_device_that_is_not_there(scene: Scene, program: Program, command: str) -> None:
    """No change brings it: the error is said once, and ends the watching."""
    scene.write("a.json")
    scene.write("b.json")
    ended = program(*command.split(), "--watch", "--device", "nothing", exit_code=8)
    assert ended.err.count("no device has the index, name or UUID 'nothing'; devices: 0: ") == 1
    assert ended.err.count("\n") == 1


def test_without_the_package(program: Program, tmp_path: Path) -> None:
    (tmp_path / "watchfiles.py").write_text("raise ModuleNotFoundError(name='watchfiles')\n")
    ended = program.fail(6, "validate", "a.json", "--watch", env={"PYTHONPATH": python_path(tmp_path)})
    message, help = ended.err.splitlines()
    assert message == "error: --watch needs the Python package 'watchfiles', which is not installed"
    assert help.endswith(" -m pip install watchfiles")
