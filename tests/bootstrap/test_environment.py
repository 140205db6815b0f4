"""The environment's book-keeping, the lock, and what a failed step says."""

import os
import subprocess
import sys

import pytest

from tools.bootstrap.__main__ import alone
from tools.bootstrap.environment import Environment
from tools.bootstrap.steps import SetUpError, step


@pytest.fixture
def environment(tmp_path):
    """An environment whose folder exists, and which says that it belongs to its checkout."""
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
    environment.python.write_text(f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n", encoding="utf-8")
    environment.python.chmod(0o755)
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
