"""Start-up is a feature: what a command does not need, it does not import. Each case is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

# What opens a driver or makes arrays, and what else costs milliseconds to import.
GPU = ("vulkan", "cffi", "_cffi_backend", "scenario_runner.vulkan")
HEAVY = (*GPU, "numpy", "pydantic", "imageio", "PIL", "rich")
STANDARD = ("asyncio", "importlib.metadata", "json", "logging", "subprocess", "tempfile")

PROBE = """
import sys
allowed = set(sys.modules)
try:
    exec(sys.argv[1])
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write("\\n" + " ".join(set(sys.modules) - allowed))
"""


def imported_by(statements: str, **environment: str) -> set[str]:
    """The modules that a fresh interpreter has after `statements`, besides those that every interpreter starts with."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, statements],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def command_line(*arguments: str) -> str:
    return f"from scenario_runner.cli import main; assert main({list(arguments)!r}) == 0"


HELP_OF_ALL = """
from scenario_runner.cli import COMMANDS, main
for name in COMMANDS.keys() - {'help'}:
    assert main([name, "--help"]) == 0
"""


@pytest.mark.parametrize(
    "statements, forbidden",
    [
        ("import scenario_runner", (*HEAVY, *STANDARD, "argparse", "pathlib")),
        ("import scenario_runner.errors", (*HEAVY, *STANDARD, "argparse", "pathlib")),
        ("import scenario_runner.cli", (*HEAVY, *STANDARD, "argparse")),
        (HELP_OF_ALL, (*HEAVY, *STANDARD)),
        (command_line("--version"), HEAVY),
        ("import scenario_runner.cli.test", HEAVY),  # the rest is imported while the pool starts
    ],
)
def test_a_start_imports_only_what_it_needs(statements: str, forbidden: tuple[str, ...]) -> None:
    """Importing the package or the command line, and asking for help, leaves costly modules alone."""
    modules = imported_by(statements)
    assert "scenario_runner" in modules
    assert modules & set(forbidden) == set()


def test_validate_opens_no_gpu_and_needs_no_numpy(shader_cache: Path) -> None:
    """`validate` of a plain scenario imports neither Vulkan nor NumPy, nor what reads pictures."""
    modules = imported_by(command_line("validate", "scenarios/basics/add/scenario.json"))
    assert "scenario_runner.scenario" in modules
    assert modules & {*GPU, "numpy", "imageio", "PIL"} == set()
