"""SPIR-V made by the real compiler and assembler, while the tests run."""

import subprocess
from pathlib import Path

import pytest

from scenario_runner.shaders.spirv import read_module
from tests.shaders.modules import Bindings, Compile, Entry, by_name


@pytest.fixture
def glsl(tmp_path: Path) -> Compile:
    """``glsl(source, *options, stage="comp")`` compiles with glslangValidator and gives the module's bytes."""

    def compile(source: str, *options: str, stage: str = "comp") -> bytes:
        text, binary = tmp_path / f"shader.{stage}", tmp_path / "shader.spv"
        text.write_text(source if source.lstrip().startswith("#version") else "#version 450\n" + source)
        command = ["glslangValidator", "-V", *options, str(text), "-o", str(binary)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return binary.read_bytes()

    return compile


@pytest.fixture
def entry_point(glsl: Compile) -> Entry:
    """``entry_point(source, *options, stage="comp")`` compiles a shader and reads its entry point."""
    return lambda *arguments, **stage: read_module(glsl(*arguments, **stage)).entry_points[0]


@pytest.fixture
def bindings_of(entry_point: Entry) -> Bindings:
    """``bindings_of(source, *options, stage="comp")`` gives the bindings of a shader by their names."""
    return lambda *arguments, **stage: by_name(entry_point(*arguments, **stage))
