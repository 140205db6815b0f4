"""The search for compilers: results, order and memory."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors import CompilerNotFoundError, installation
from scenario_runner.errors.installation import install_here
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.compilers import search
from scenario_runner.shaders.compilers.search import find_compilers
from scenario_runner.shaders.source import CompileRequest
from tests.program import executable
from tests.shaders.modules import MINIMAL, problem_of

MakeProgram = Callable[[str, str], Path]


def found(named: str | None = None, **keywords: Any) -> list[str]:
    """The paths of the compilers, in the order of choice."""
    return [one.path for one in find_compilers(named, **keywords)]


@pytest.fixture(autouse=True)
def empty_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_dxc_library: None) -> None:
    """No compiler beside the interpreter, whatever this environment has installed there."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))


@pytest.fixture
def program(tmp_path: Path) -> MakeProgram:
    """Make a program at a path that answers --version with a text, and counts how often it was asked."""

    def make(path: str, says: str) -> Path:
        return executable(tmp_path / path, f"#!/bin/sh\necho x >> '{tmp_path}/asked'\necho '{says}'\n")

    return make


def test_the_installed_one(glslang: str) -> None:
    """glslangValidator on PATH is found, with the version it prints."""
    compiler = next(one for one in find_compilers(language="GLSL") if one.path == glslang)
    says = subprocess.run([glslang, "--version"], capture_output=True, text=True, check=True).stdout
    assert (compiler.flavour, compiler.languages) == ("glslang", ("GLSL", "HLSL"))
    assert f":{compiler.version}\n" in says


@pytest.mark.parametrize(
    "says, flavour, version, tensors",
    [
        ("Glslang Version: 11:15.3.9", "glslang", "15.3.9", False),
        ("Glslang Version: 11:15.4.0\nESSL Version: x", "glslang", "15.4.0", True),
        (
            '{\n  "version": "0.11.0",\n  "dependencies": [\n    "glslang=vulkan-sdk-1.4.357.0"\n  ]\n}',
            "arm-glslc",
            "0.11.0 (glslang vulkan-sdk-1.4.357.0)",
            True,
        ),
        ("shaderc v2023.2\nspirv-tools v2023.1\nglslang 11:12.0.0", "shaderc", None, False),
    ],
)
def test_versions(program: MakeProgram, says: str, flavour: str, version: str | None, tensors: bool) -> None:
    """The answer to --version tells the kind of a compiler, and the version tells its abilities."""
    path = program("somewhere/any-name", says)
    (compiler,) = find_compilers(str(path))
    assert (compiler.path, compiler.flavour, compiler.knows_tensors) == (str(path), flavour, tensors)
    assert version is None or compiler.version == version


def test_order_of_choice(program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument comes before the variable, the variable before PATH, and on PATH the newest glslang first."""
    old = program("a/glslangValidator", "Glslang Version: 11:12.0.0")
    new = program("b/glslang", "Glslang Version: 11:15.4.0")
    program("b/glslc", "something else entirely")
    arm = program(
        "data/scenario-runner/glslc/scenario_runner/binaries/bin/glslc", '"version": "0.11.0" "glslang=vulkan-sdk-1.4"'
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "glslang").symlink_to(new)
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in "abc"))
    assert found() == [str(new), str(old), str(arm)]
    monkeypatch.setenv("SCENARIO_RUNNER_GLSLANG", "glslangValidator")
    assert found() == [str(old)]
    assert found(str(arm)) == [str(arm)]


def test_compilers_that_come_and_change(program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New, changed and removed compilers are noticed, after a second at the latest."""
    monkeypatch.setattr(search, "_SEARCHED_EVERY_S", -1.0)
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in "ab"))
    first = program("b/glslang", "Glslang Version: 11:15.4.0")
    for _ in range(2):
        assert found(language="GLSL") == [str(first)]
    assert (tmp_path / "asked").read_text() == "x\n"
    second = program("a/glslang", "Glslang Version: 11:16.1.0")
    assert found(language="GLSL") == [str(second), str(first)]
    second.write_text(second.read_text().replace("16.1.0", "14.0"))
    assert found(language="GLSL") == [str(first), str(second)]
    first.unlink()
    assert [one.version for one in find_compilers(language="GLSL")] == ["14.0"]


def test_a_slow_search_is_used_for_a_second_after_it(
    program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second in which found compilers are used again begins when the search ends, however long it took."""
    path = program("a/glslang", "Glslang Version: 11:15.4.0")
    path.write_text(path.read_text() + "sleep 0.5\n")
    monkeypatch.setenv("PATH", str(path.parent) + os.pathsep + os.environ["PATH"])
    monkeypatch.setattr(search, "_SEARCHED_EVERY_S", 0.4)
    first = found(language="GLSL")
    path.unlink()
    assert str(path) in first == found(language="GLSL")


def test_dxc_comes_first_for_hlsl(program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dxc is taken for HLSL only, from the variable or PATH."""
    dxc = program("a/dxc", "libdxcompiler.so: 1.8(dev;5066-aaaa) - 1.8.0.5066 (aaaa)")
    other = program("b/glslang", "Glslang Version: 11:15.4.0")
    monkeypatch.setenv("PATH", str(tmp_path / "b"))
    assert found(language="HLSL") == [str(other)]
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", str(dxc))
    assert [one.flavour for one in find_compilers(language="HLSL")] == ["dxc"]
    assert [one.flavour for one in find_compilers(language="GLSL")] == ["glslang"]
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", str(other))
    with pytest.raises(CompilerNotFoundError, match="it is not dxc"):
        find_compilers(language="HLSL")


def test_a_compiler_whose_question_for_its_version_fails(glslang: str, tmp_path: Path) -> None:
    """A compiler that says its version and ends with another exit code than 0 is used."""
    text = f'#!/bin/sh\n"{glslang}" "$@"\ncode=$?\n[ "$1" = --version ] && exit 1\nexit $code\n'
    path = executable(tmp_path / "compiler", text)
    assert compile_all([CompileRequest(source=MINIMAL)], compiler=str(path))[0][:4] == b"\x03\x02\x23\x07"


@pytest.mark.parametrize("executable", ["", None])
def test_without_a_python_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None) -> None:
    """A library of dxc cannot be used where Python does not know its own program, as embedded in another one."""
    (tmp_path / "libdxcompiler.so").touch()
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", str(tmp_path / "libdxcompiler.so"))
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(CompilerNotFoundError, match="it cannot be started: "):
        find_compilers(language="HLSL")


def test_arm_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Arm's glslc is looked for below the Python installation and below the user's data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert installation.glslc_folders() == [
        f"{sys.prefix}/share/scenario-runner/glslc",
        f"{tmp_path}/scenario-runner/glslc",
    ]


def test_an_installed_file_without_run_bit(glslang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real compiler in the place of Arm's package is found and used although the installer left no run bit."""
    path = tmp_path / "data/scenario-runner/glslc/scenario_runner/binaries/bin/glslc"
    path.parent.mkdir(parents=True)
    shutil.copyfile(glslang, path)
    assert not path.stat().st_mode & stat.S_IXUSR
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert [(one.path, one.flavour) for one in find_compilers(use_cache=False)] == [(str(path), "glslang")]
    assert compile_all([CompileRequest(source=MINIMAL)])[0][:4] == b"\x03\x02\x23\x07"


@pytest.mark.parametrize(
    "says, message",
    [("true (something) 1.0", r"--version says 'true \(something\) 1.0'"), ("", "--version says ''")],
)
def test_a_named_program_that_is_no_compiler(program: MakeProgram, says: str, message: str) -> None:
    """A named program that is not a known compiler is an error that quotes it."""
    path = program("x", says)
    with pytest.raises(CompilerNotFoundError, match=r"named by --glslang\) is not a known shader compiler: " + message):
        find_compilers(str(path))


def test_a_named_file_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named file that is missing or no program is an error with the option or variable that named it."""
    monkeypatch.setenv("SCENARIO_RUNNER_GLSLANG", str(tmp_path / "none"))
    with pytest.raises(CompilerNotFoundError, match=r"none' \(named by SCENARIO_RUNNER_GLSLANG\) does not exist"):
        find_compilers()
    (tmp_path / "text").write_text("just text")
    with pytest.raises(
        CompilerNotFoundError, match=r"not a known shader compiler: it cannot be started: exec format error"
    ):
        find_compilers(str(tmp_path / "text"))


def test_nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any compiler the error has one line with packages to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    problem = problem_of(CompileRequest(source=MINIMAL, label="s"), CompilerNotFoundError)
    assert problem.message == "shader 's': no GLSL compiler was found"
    assert problem.help == (f"{install_here('glslang')}, or name one by --glslang or SCENARIO_RUNNER_GLSLANG")


def test_versions_are_remembered(program: MakeProgram, tmp_path: Path) -> None:
    """A compiler is asked once, and again when its file changed or the memory is damaged."""
    path = program("x", "Glslang Version: 11:15.4.0")
    asked = tmp_path / "asked"
    first = find_compilers(str(path))
    assert find_compilers(str(path)) == first
    assert asked.read_text() == "x\n"
    (kept,) = (tmp_path / "cache" / "checked").iterdir()
    search._answers.clear()  # as in another process
    assert find_compilers(str(path)) == first
    assert asked.read_text() == "x\n"
    for damage in (kept.read_bytes()[:-1], b"\xff\0\n\t\t\t\t\n", b""):
        kept.write_bytes(damage)
        search._answers.clear()  # as in another process
        assert find_compilers(str(path)) == first
    assert asked.read_text() == "x\n" * 4
    path.write_text(path.read_text().replace("15.4.0", "16.1.0"))
    (changed,) = find_compilers(str(path))
    assert changed.version == "16.1.0"
    assert changed.identity != first[0].identity
    assert find_compilers(str(path), use_cache=False) == [changed]


def test_another_compiler_is_another_entry(program: MakeProgram, glslang: str, tmp_path: Path) -> None:
    """A module is not taken from the cache when another build of the compiler would make it."""
    paths = []
    for version in ("15.0.0", "15.1.0"):
        answer = f'[ "$1" = --version ] && echo "Glslang Version: 11:{version}" && exit'
        text = f'#!/bin/sh\n{answer}\necho x >> "{tmp_path}/compiled"\nexec "{glslang}" "$@"\n'
        paths.append(str(executable(tmp_path / version, text)))
    for path in (*paths, *paths):
        compile_all([CompileRequest(source=MINIMAL)], compiler=path)
    assert (tmp_path / "compiled").read_text() == "x\n" * 2
