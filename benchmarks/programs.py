"""The programs that are compared, and how a user starts each."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Program:
    """A program that ``command`` starts. With ``runs_many`` a process takes several scenarios."""

    name: str
    command: tuple[str, ...]
    runs_many: bool

    def arguments(self, scenarios: list[Path], output: Path) -> list[str]:
        """Return the command line that runs ``scenarios`` with relative outputs under ``output``."""
        if self.runs_many:
            return [*self.command, *map(str, scenarios), "--output", str(output)]
        (scenario,) = scenarios
        return [*self.command, "--scenario", str(scenario), "--output", str(output)]


def ours(command: str | None = None) -> Program:
    """Return our program: ``command``, or the package of this checkout in this interpreter."""
    return Program("ours", (command,) if command else (sys.executable, "-m", "scenario_runner"), runs_many=True)


def reference(command: str) -> Program:
    """Return the reference runner; ``command`` is the binary, or a script that sets up layers."""
    return Program("reference", (str(Path(command).resolve()),), runs_many=False)


def version(program: Program) -> str:
    """Ask a program for its version."""
    done = subprocess.run(
        [*program.command, "--version"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
    )
    try:
        return str(json.loads(done.stdout)["version"])
    except (ValueError, KeyError, TypeError):
        return done.stdout.strip() or f"unknown (exit code {done.returncode})"
