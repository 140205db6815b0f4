"""The set-up's use of doctor's report: what is missing, the command that brings it, and what it keeps."""

import sys
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors.installation import install_here
from tools.bootstrap import machine
from tools.bootstrap.machine import NEEDED, WELCOME, WORDS, examine, find, install, look
from tools.bootstrap.steps import SetUpError


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Doctor's report of this machine, which has what these tests run on."""
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
    """On a machine with nothing each part is named, and one command brings all, what is merely useful included."""
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
    """Where a variable or a container hides a driver the advice is doctor's, and Mesa is not put beside it."""
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
    """Where no part is missing, apt-get is not started, and no line announces it."""
    install(())
    assert capfd.readouterr() == ("", "")


def test_an_environment_that_does_not_work(tmp_path: Path) -> None:
    """Where doctor cannot be run its message is shown."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(SetUpError, match="looking at this machine failed:\nbroken"):
        examine(program)
