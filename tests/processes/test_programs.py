"""Programs that are started have a time limit, and end with the process that started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.processes.programs import Program
from tests.program import executable, process_state, wait_until

COMMAND = [sys.executable, "-m", "scenario_runner"]
SHADER = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
MODEL = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
# Each command, and the variable that names the program that it starts.
COMMANDS = {
    "convert": ("SCENARIO_RUNNER_MODEL_CONVERTER", ["convert", "model.mlir", "-o", "model.vgf"]),
    "custom-op": ("SCENARIO_RUNNER_GLSLANG", ["custom-op", "attributes", "shader.comp"]),
    "doctor": ("SCENARIO_RUNNER_GLSLANG", ["doctor"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_programs_end_with_us(tmp_path: Path, command: str, sent: int) -> None:
    """A started program and its children end when this process is killed, and the next run removes the temporary
    folder."""
    variable, arguments = COMMANDS[command]
    noted = tmp_path / "noted"
    # The program is tied to this process right after its start, not at its start.
    text = f"#!/bin/sh\nsleep 1000 &\nsleep 0.5\necho $$ $! > {noted}.new\nmv {noted}.new {noted}\nwait\n"
    program = executable(tmp_path / "program", text)
    (tmp_path / "shader.comp").write_text(SHADER)
    (tmp_path / "model.mlir").write_text(MODEL)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": os.getcwd(),
    }
    ours = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env={**environment, variable: str(program)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(noted.exists)
    started = [int(number) for number in noted.read_text().split()]
    assert all(process_state(process) for process in started)
    ours.send_signal(sent)
    ours.wait()
    wait_until(lambda: not any(process_state(process) for process in started))
    if sent == signal.SIGKILL:
        subprocess.run([*COMMAND, *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert os.listdir(temporary) == []


def test_a_time_limit(tmp_path: Path) -> None:
    """A program beyond its time limit is killed with its children."""
    with Program(["sh", "-c", "sleep 1000 & echo $!; wait"], 0.5, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        started = int(program.stdout.read())
        program.wait()
    assert program.failure == "did not finish within 0.5 s"
    wait_until(lambda: not process_state(started))
