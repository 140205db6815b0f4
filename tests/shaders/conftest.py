"""Shaders are compiled by the real glslangValidator, with a cache of the test's own."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner import arm_glslc as arm_glslc_files
from scenario_runner.shaders import CompileRequest, compile_all, compilers

Compile = Callable[..., bytes]


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCENARIO_RUNNER_GLSLANG", "SCENARIO_RUNNER_DXC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert shutil.which("glslangValidator"), "these tests need glslangValidator (Debian: glslang-tools)"


@pytest.fixture
def no_dxc_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package with dxc's library were not installed."""
    monkeypatch.setattr(compilers, "DXC_PLACE", "not-installed.so")


@pytest.fixture
def dxc() -> str:
    """The path of dxc's library, which the tests' environment has from the extra ``hlsl``."""
    path = next(filter(os.path.isfile, compilers.DxcLibrary.candidates()), None)
    assert path, f"these tests need dxc's library: pip install '{compilers.DXC_PACKAGE}'"
    return path


@pytest.fixture
def glslang() -> str:
    """The path of the installed glslangValidator."""
    path = shutil.which("glslangValidator")
    assert path is not None
    return path


@pytest.fixture
def compile_text(glslang: str) -> Compile:
    """Compile one text by glslangValidator; keywords go to the request."""

    def compile_text(source: str, **keywords: object) -> bytes:
        request = CompileRequest(source=source, name="shader.comp", **keywords)  # type: ignore[arg-type]
        return compile_all([request], compiler=glslang)[0]

    return compile_text


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Make a program that says it is glslangValidator and, asked to compile, runs the shell commands given."""

    def make(commands: str) -> str:
        path = tmp_path / "compiler.sh"
        path.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Glslang Version: 11:12.0.0"; exit; fi\n{commands}\n'
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@pytest.fixture(scope="session")
def arm_glslc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Arm's glslc: the installed one, else installed apart for these tests."""
    installed = next(filter(os.path.isfile, arm_glslc_files.programs()), None)
    if installed is not None:
        return installed
    target = str(tmp_path_factory.mktemp("arm-glslc"))
    command = [sys.executable, "-m", "pip", "install", "-q", *arm_glslc_files.pip_arguments(target)]
    subprocess.run(command, check=True, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
    return os.path.join(target, arm_glslc_files.PROGRAM)


@pytest.fixture
def found_arm_glslc(arm_glslc: str, tmp_path: Path) -> None:
    """Arm's glslc in the user's data folder."""
    folder = tmp_path / "data/scenario-runner/glslc/scenario_runner/binaries/bin"
    folder.mkdir(parents=True)
    (folder / "glslc").symlink_to(arm_glslc)
