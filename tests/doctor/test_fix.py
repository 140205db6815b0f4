"""`scenario-runner doctor --fix` for real: pip installs Arm's compiler, from a folder of wheels instead of an index."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from scenario_runner.cli import main
from scenario_runner.errors.installation import (
    GLSLC_FOLDER,
    GLSLC_PROGRAM,
    glslc_command,
    glslc_folders,
    has_arm_wheels,
)
from scenario_runner.shaders.compilers import search
from tests.program import all_of, executable, old_glslang

CHECKOUT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not has_arm_wheels(), reason="there are no wheels for this kind of machine")


def as_wheel(installed: Path, folder: Path) -> None:
    """Put the wheel that was installed with ``pip install --target`` into ``folder``, as that for CPython 3.12."""
    (information,) = installed.glob("*.dist-info")
    tags = [line for line in (information / "WHEEL").read_text().splitlines() if line.startswith("Tag: ")]
    name = f"{information.stem}-cp312-cp312-{tags[0].rpartition('-')[2]}.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for path in sorted(installed.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                wheel.write(path, path.relative_to(installed))


class Interpreter:
    """An interpreter that has all Python packages of this one, and no compiler for shaders with tensors."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.program = folder / "venv/bin/python"
        self.glslc = folder / "venv" / GLSLC_FOLDER / GLSLC_PROGRAM
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")} | {
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            "PATH": str(old_glslang(folder).parent),
            "XDG_DATA_HOME": str(folder / "data"),
            "SCENARIO_RUNNER_CACHE": str(folder / "cache"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }

    def command(self, *arguments: str | Path) -> list[str]:
        return [str(self.program), "-P", "-m", "scenario_runner", *map(str, arguments)]

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def run_on_terminal(self, typed: str, *arguments: str) -> tuple[int, str]:
        """Run a command on a terminal where a person has typed a text. Return the exit code and the printed text."""
        ours, theirs = os.openpty()
        os.write(ours, typed.encode())
        with subprocess.Popen(
            self.command(*arguments), env=self.environ, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            printed = all_of(ours)
        return process.returncode, printed.decode()


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    return Interpreter(tmp_path)


def test_fix_installs_the_compiler_for_tensors(interpreter: Interpreter, checkout: Path, tmp_path: Path) -> None:
    """Doctor names the command and --fix runs it; then a shader with tensors runs, and nothing is left to install."""
    installed = [folder for folder in glslc_folders() if Path(folder, GLSLC_PROGRAM).is_file()]
    assert installed, "tools/test installs Arm's glslc"
    as_wheel(Path(installed[0]), interpreter.wheels)
    scenario = checkout / "scenarios/ml/tensor_shader/scenario.json"
    before = interpreter.run(scenario, "--output", tmp_path / "out")
    assert before.returncode != 0
    assert "GL_ARM_tensors" in before.stderr

    plain = interpreter.run("doctor")
    assert not interpreter.glslc.exists()
    done = interpreter.run("doctor", "--fix")
    assert done.returncode == 0, done.stderr
    (command,) = [line for line in done.stderr.splitlines() if line.startswith("info: running: ")]
    assert f"    fix: {command.removeprefix('info: running: ')}" in plain.stdout.splitlines()
    assert "GL_ARM_tensors" in plain.stdout
    assert "no GLSL compiler found knows GL_ARM_tensors" not in done.stdout
    assert interpreter.glslc.is_file()

    after = interpreter.run(scenario, "--output", tmp_path / "out")
    assert (after.returncode, after.stderr) == (0, "")
    again = interpreter.run("doctor", "--fix")
    assert (again.returncode, again.stderr) == (0, "")


def test_a_fix_that_fails_is_said(interpreter: Interpreter) -> None:
    """A failed pip command shows its output and one error on standard error before the report."""
    done = interpreter.run("doctor", "--fix")
    assert done.returncode == 1
    assert "No matching distribution found for ai_ml_sdk_scenario_runner" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: the command ended with exit code 1: ")
    assert "no GLSL compiler found knows GL_ARM_tensors" in done.stdout
    assert not interpreter.glslc.exists()


@pytest.mark.parametrize(
    "typed, words, runs",
    [("\n", [], True), ("YES\n", [], True), ("n\n", [], False), ("\x04", [], False), ("n\n", ["--yes"], True)],
    ids=["Enter", "yes", "no", "end of input", "--yes"],
)
def test_a_person_is_asked(interpreter: Interpreter, typed: str, words: list[str], runs: bool) -> None:
    """On a terminal, --fix shows the commands and runs them after Enter or yes. With --yes it does not ask."""
    code, printed = interpreter.run_on_terminal(typed, "doctor", "--fix", *words)
    assert ("would run: " in printed, "run these commands? [Y/n] " in printed) == (not words, not words)
    assert ("running: " in printed) == runs
    assert code == (1 if runs else 0)  # pip has no index here, so that each command fails


def test_the_report_after_a_fix_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compiler that is installed faster than searches are made again is in the report."""
    found = tmp_path / "bin/glslang"
    found.parent.mkdir()
    python, compiler = tmp_path / "python", tmp_path / "glslang"
    executable(compiler, "#!/bin/sh\necho 'Glslang Version: 11:99.1.0'\n")
    install = f'[ "$2" = pip ] && exec /bin/cp "{compiler}" "{found}"'
    executable(python, f'#!/bin/sh\n{install}\nexec "{sys.executable}" "$@"\n')
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(old_glslang(found.parent).parent))
    monkeypatch.setattr(search, "_SEARCHED_EVERY_S", 60.0)
    main(["doctor", "--fix"])
    assert f"glslang 99.1.0, {found}" in capsys.readouterr().out


def test_an_environment_without_pip(tmp_path: Path) -> None:
    """uv installs where there is no pip, as in an environment that uv or pipx has made."""
    uv = tmp_path / "uv"
    uv.touch(mode=0o755)
    venv.create(tmp_path / "venv", symlinks=True)
    program = "from scenario_runner.errors import installation; print(*installation.pip_install('x'))"
    for path, command in ((str(tmp_path), f"{uv} pip install --python {{}} x"), ("", "{} -m pip install x")):
        python = str(tmp_path / "venv/bin/python")
        environ = {"PATH": path, "PYTHONPATH": str(CHECKOUT)}
        ended = subprocess.run([python, "-c", program], env=environ, capture_output=True, text=True, check=True)
        assert ended.stdout == f"{command.format(python)}\n"


def test_a_prefix_that_cannot_be_written_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command installs below the interpreter's prefix, or where that cannot be written into the data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    (tmp_path / "prefix").mkdir()
    assert str(tmp_path / "prefix" / GLSLC_FOLDER) in glslc_command()
    (tmp_path / "prefix/share").touch()  # a file: no folder can be made in it, whoever asks
    assert str(tmp_path / "data/scenario-runner/glslc") in glslc_command()
