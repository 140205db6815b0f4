"""Shaders are compiled by the real glslangValidator, with a cache of the test's own."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.errors import installation
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.compilers import table
from scenario_runner.shaders.source import CompileRequest
from tests.program import executable
from tests.shaders.modules import Compile


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
    monkeypatch.setattr(table, "DXC_PLACE", "not-installed.so")


@pytest.fixture
def dxc() -> str:
    """The path of dxc's library, which the tests' environment has from the extra ``hlsl``."""
    path = next(filter(os.path.isfile, table.DxcLibrary.candidates()), None)
    assert path, f"these tests need dxc's library: pip install '{table.DXC_PACKAGE}'"
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
        answer = 'if [ "$1" = --version ]; then echo "Glslang Version: 11:12.0.0"; exit; fi'
        return str(executable(tmp_path / "compiler.sh", f"#!/bin/sh\n{answer}\n{commands}\n"))

    return make


@pytest.fixture
def arm_glslc() -> str:
    """The path of Arm's glslc, which the tests' environment has."""
    path = next(filter(os.path.isfile, installation.glslc_programs()), None)
    assert path, "these tests need Arm's glslc: scenario-runner doctor --fix"
    return path
