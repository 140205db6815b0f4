"""The programs that are compared, and how a user starts each."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Program:
    """``command`` starts it; ``runs_many`` says whether one process takes several scenarios."""

    name: str
    command: tuple[str, ...]
    runs_many: bool

    def arguments(self, scenarios: list[Path], output: Path) -> list[str]:
        """The command line that runs ``scenarios`` with relative outputs under ``output``."""
        if self.runs_many:
            return [*self.command, *map(str, scenarios), "--output", str(output)]
        (scenario,) = scenarios
        return [*self.command, "--scenario", str(scenario), "--output", str(output)]


def ours(command: str | None = None) -> Program:
    """This program: ``command``, or the package of this checkout in the interpreter that runs the benchmark."""
    return Program("ours", (command,) if command else (sys.executable, "-m", "scenario_runner"), runs_many=True)


def reference(command: str) -> Program:
    """The reference runner, started by ``command``: its binary or a script that sets up its layers."""
    return Program("reference", (str(Path(command).resolve()),), runs_many=False)


def version(program: Program) -> str:
    """What the program says of its version."""
    done = subprocess.run(
        [*program.command, "--version"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
    )
    try:
        return str(json.loads(done.stdout)["version"])
    except (ValueError, KeyError, TypeError):
        return done.stdout.strip() or f"unknown (exit code {done.returncode})"
