"""The environment of the set-up, and the packages of the machine that it asks for."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors.installation import install_here
from tests.program import executable
from tools.bootstrap import machine
from tools.bootstrap.__main__ import alone
from tools.bootstrap.environment import Environment
from tools.bootstrap.machine import NEEDED, WELCOME, WORDS, examine, find, install, look
from tools.bootstrap.steps import SetUpError, step


@pytest.fixture
def environment(tmp_path):
    """An environment in an existing folder, marked as the environment of its checkout."""
    environment = Environment(tmp_path, {"PATH": os.defpath})
    environment.python.parent.mkdir(parents=True)
    environment.python.symlink_to(sys.executable)
    environment.whole.write_text(str(tmp_path), encoding="utf-8")
    return environment


def test_an_environment_of_another_checkout_is_not_sound(environment):
    """An environment that came along when a checkout was copied is made anew."""
    environment.whole.write_text("/some/other/place", encoding="utf-8")
    assert not environment.is_sound()


def test_an_interpreter_that_belongs_elsewhere_is_not_sound(environment):
    """A script that calls some other interpreter is not an environment: its packages are in another folder."""
    environment.python.unlink()
    executable(environment.python, f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    assert not environment.is_sound()


def test_a_second_set_up_waits(checkout, tmp_path):
    """Two set-ups of one checkout do not overlap: the second says that it waits, and goes on when the first is done."""
    program = (
        "import sys; from pathlib import Path; from tools.bootstrap.__main__ import alone\n"
        "with alone(Path(sys.argv[1])): print('its turn', file=sys.stderr)"
    )
    with alone(tmp_path):
        command = [sys.executable, "-c", program, str(tmp_path)]
        second = subprocess.Popen(command, cwd=checkout, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        assert second.stderr.readline() == "scenario-runner: waiting for another set-up of this checkout\n"
        assert second.poll() is None
    assert second.communicate(timeout=60)[1] == "its turn\n"
    assert second.returncode == 0


def test_a_failed_step_shows_the_end_of_its_output(tmp_path, capfd):
    """A step that fails raises with its last lines and the advice; before that it printed its title only."""
    script = "i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done; echo broken >&2; exit 4"
    with pytest.raises(SetUpError) as caught:
        step("doing it", ["sh", "-c", script], folder=tmp_path, environ={"PATH": os.defpath}, advice="try again")
    lines = str(caught.value).splitlines()
    assert lines[0] == "doing it: failed (exit status 4). The end of its output:"
    assert lines[1:-2] == [f"  | line {number}" for number in range(86, 100)]
    assert lines[-2:] == ["  | broken", "try again"]
    assert capfd.readouterr() == ("", "scenario-runner: doing it\n")


def test_a_step_that_cannot_start_says_so(tmp_path):
    """A missing program is one message with the advice."""
    with pytest.raises(SetUpError, match=r"^no-such-program cannot be started: .*\ntry again$"):
        step("doing it", ["no-such-program"], folder=tmp_path, environ={"PATH": os.defpath}, advice="try again")


def test_settings_that_lead_pip_elsewhere_are_dropped(tmp_path):
    """PIP_TARGET and its like do not reach pip; indexes, proxies and certificates do."""
    environ = {"PIP_TARGET": "/x", "PIP_USER": "1", "PYTHONPATH": "/y", "PIP_INDEX_URL": "i", "HTTPS_PROXY": "p"}
    assert Environment(tmp_path, environ).environ == {"PIP_INDEX_URL": "i", "HTTPS_PROXY": "p"}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Doctor's report of this machine, where all parts for these tests are installed."""
    return examine(Path(sys.executable))


@pytest.mark.parametrize("level", ["run", "test"])
def test_nothing_is_missing_here(report: dict[str, Any], level: str) -> None:
    """Loader, driver and compilers are found as files, which must exist for the set-up to stay current."""
    assert look(report, level).needed == ()
    assert Path(find(report, level)["driver"] or "").is_file()
    assert look(report, level).advice() == ""


@pytest.mark.parametrize("level", ["run", "test"])
def test_everything_that_is_missing_is_named(
    report: dict[str, Any], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a bare machine each missing part is named, and one command installs all parts, useful ones included."""
    monkeypatch.setenv("PATH", "/nowhere")
    nothing = report | {"drivers": [], "loader": {"found": False}, "layers": {"validation": {"found": False}}}
    nothing["compilers"] = {"GLSL": []}
    *parts, command = look(nothing, level).advice().splitlines()
    assert parts == [
        *(f"missing: {WORDS[part]}" for part in NEEDED[level]),
        *(f"useful: {WORDS[part]}" for part in WELCOME[level]),
    ]
    assert command == f"install: {install_here(*NEEDED[level], *WELCOME[level])}"


def test_a_driver_that_packages_do_not_bring(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor's advice stands where a variable or a container hides a driver. Mesa is not added."""
    finding = {"id": "driver-missing", "message": "VK_DRIVER_FILES names no driver", "fix": "unset it"}
    lack = look(report | {"drivers": [], "findings": [finding]}, "run")
    assert (lack.needed, lack.installable) == (("driver",), ())
    assert lack.advice() == f"missing: {WORDS['driver']}\nVK_DRIVER_FILES names no driver: unset it"
    monkeypatch.setattr(machine, "glob", lambda _: ["/usr/local/vendor/share/vulkan/icd.d/gpu.json"])
    finding["fix"] = install_here("driver")
    lack = look(report | {"drivers": [], "findings": [finding]}, "run")
    assert lack.installable == ()
    assert lack.hint.endswith(": set VK_DRIVER_FILES=/usr/local/vendor/share/vulkan/icd.d/gpu.json")


def test_nothing_to_install(capfd: pytest.CaptureFixture[str]) -> None:
    """A complete machine starts no apt-get, and no line announces one."""
    install(())
    assert capfd.readouterr() == ("", "")


def test_an_environment_that_does_not_work(tmp_path: Path) -> None:
    """The message of a failing doctor is shown."""
    program = executable(tmp_path / "python", "#!/bin/sh\necho broken >&2\nexit 1\n")
    with pytest.raises(SetUpError, match="looking at this machine failed:\nbroken"):
        examine(program)
