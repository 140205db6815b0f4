"""The virtual environment in the checkout, and the packages in it."""

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from scenario_runner.errors import installation
from scenario_runner.errors.installation import family_here, system_command

from .machine import can_install, install
from .steps import SetUpError, step

# Settings that would install packages outside the environment. Indexes, proxies and certificates stay.
ELSEWHERE = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PYTHONPATH", "PYTHONHOME")
ADVICE = "look at the network and at pip's settings (proxy, index), then run this again"


class Environment:
    """A checkout's folder ``.venv``. The methods do not touch parts that are in order."""

    def __init__(self, checkout: Path, environ: Mapping[str, str]) -> None:
        self.checkout = checkout
        self.folder = checkout / ".venv"
        self.python = self.folder / "bin" / "python"
        self.glslc = self.folder / installation.GLSLC_FOLDER / installation.GLSLC_PROGRAM
        self.environ = {name: value for name, value in environ.items() if name not in ELSEWHERE}
        # Holds the checkout's path. The file is missing while pip works, and so after an interruption. Stamps name it.
        self.whole = self.folder / "whole"

    def stamp(self, level: str) -> Path:
        return self.folder / f"ready-{level}"

    def was_installed(self, level: str, key: str) -> bool:
        """Return whether the packages of `level` were installed with this `key`."""
        try:
            lines = self.stamp(level).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return False
        return lines[:2] == [key, str(self.checkout)] and self.is_sound()

    def write_stamps(self, level: str, key: str, must_exist: list[str]) -> None:
        """Record that `level` (and ``run`` with ``test``) is ready as long as every path of `must_exist` exists."""
        text = "\n".join([key, str(self.checkout), str(self.python), str(self.whole), *must_exist, ""])
        for each in ("run", level):
            partial = self.folder / "ready.partial"
            partial.write_text(text, encoding="utf-8")
            partial.replace(self.stamp(each))

    def is_sound(self) -> bool:
        """Return whether the environment belongs to this checkout and has a supported interpreter with pip."""
        try:
            if self.whole.read_text(encoding="utf-8") != str(self.checkout) or not self.python.exists():
                return False
        except (OSError, UnicodeDecodeError):
            return False
        program = (
            "import sys, pip; from os.path import samefile;"
            "sys.exit(not (sys.version_info >= (3, 11) and samefile(sys.prefix, sys.argv[1])))"
        )
        command = [str(self.python), "-I", "-c", program, str(self.folder)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0

    def create(self) -> None:
        """Make a new environment from the real interpreter behind shims, links and other environments."""
        base = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
        self._need_venv_module(base)
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        elif self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        version = platform.python_version()
        self._step(f"making the environment .venv (Python {version})", [base, "-I", "-m", "venv", str(self.folder)])
        self._mark_whole()

    def install_package(self, level: str) -> None:
        """Install the package, editable, with the dependencies for runs or tests.

        A run has the extra ``ml`` (11 MB), so that each example runs. The tests also need ``hlsl`` (15 MB), ``convert``
        (21 MB), ``cluster`` (4 MB) and ``tosa`` (25 MB).
        """
        names = [] if level == "run" else ["dev", "hlsl", "cluster"]
        if installation.has_arm_wheels():
            names += ["ml"] if level == "run" else ["ml", "convert"]
        extras = f"[{','.join(names)}]" if names else ""
        size = "about 50 MB" if level == "run" else "about 150 MB"
        # The path is relative to the checkout, so that brackets and spaces in the checkout's name do not matter.
        target = ["--editable", f".{extras}"]
        self.whole.unlink()
        try:
            self._pip(f"installing Python packages into .venv ({size})", target)
            if level == "test" and installation.has_arm_wheels():
                # Without dependencies: the tools' pins are exact or old (numpy<2.2), but tests use current versions.
                with open(self.checkout / "pyproject.toml", "rb") as file:
                    tools = tomllib.load(file)["project"]["optional-dependencies"]["tosa"]
                self._pip("installing TOSA's tools (25 MB)", ["--no-deps", *tools])
        except SetUpError:
            self._mark_whole()  # a failed pip has restored everything
            raise
        # Compile byte code, even if the user's settings forbid imports to write it. Errors show at the import.
        compiling = [str(self.python), "-I", "-m", "compileall", "-q", "scenario_runner"]
        subprocess.run(compiling, cwd=self.checkout, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self._mark_whole()

    def install_glslc(self) -> None:
        """Install Arm's GLSL compiler (18 MB) outside the import path."""
        if self.glslc.exists():
            return
        partial = self.folder / "glslc.partial"
        shutil.rmtree(partial, ignore_errors=True)
        self._pip("installing the GLSL compiler glslc (18 MB)", installation.glslc_arguments(str(partial)))
        (partial / installation.GLSLC_PROGRAM).chmod(0o755)
        target = self.folder / installation.GLSLC_FOLDER
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)

    def _need_venv_module(self, base: str) -> None:
        probe = [base, "-I", "-c", "import ensurepip, venv"]
        if subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
            return
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if can_install():
            install((name,))
        elif family_here() == "debian":
            command = system_command("debian", (name,), superuser=os.geteuid() == 0)
            raise SetUpError(f"{base} lacks the venv module; install it: {command}")
        else:
            raise SetUpError(f"{base} lacks the venv module: name another interpreter with SCENARIO_RUNNER_PYTHON")

    def _mark_whole(self) -> None:
        self.whole.write_text(str(self.checkout), encoding="utf-8")

    def _pip(self, title: str, arguments: list[str]) -> None:
        quiet = ["--disable-pip-version-check", "--no-input", "--no-user"]
        self._step(title, [str(self.python), "-m", "pip", "install", *quiet, *arguments])

    def _step(self, title: str, command: list[str]) -> None:
        step(title, command, folder=self.checkout, environ=self.environ, advice=ADVICE)
