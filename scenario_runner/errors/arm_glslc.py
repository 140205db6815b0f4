"""Arm's glslc, which compiles GLSL with tensors (GL_ARM_tensors): where it is, and the command that installs it.

Its wheel holds an import package that is named like this program's, so that it must not be on an import path: it is
installed into a folder of its own, which is searched for the program only. Standard library only: the set-up of a
checkout uses this before anything is installed.
"""

import os
import shlex
import sys

WHEEL = "ai_ml_sdk_scenario_runner>=0.11"
# In an environment; without ``share``, in the user's data folder.
FOLDER = os.path.join("share", "scenario-runner", "glslc")
PROGRAM = os.path.join("scenario_runner", "binaries", "bin", "glslc.exe" if sys.platform == "win32" else "glslc")


def has_wheels() -> bool:
    """Tell whether Arm's wheels exist for this kind of machine: Linux with glibc, and macOS on Arm."""
    if sys.platform == "darwin":
        return os.uname().machine == "arm64"
    return has_glibc("x86_64", "aarch64")


def has_glibc(*machines: str) -> bool:
    """Tell whether this is Linux with glibc on one of these kinds of machines."""
    import platform  # takes 2 ms

    return platform.libc_ver()[0] == "glibc" and platform.machine() in machines


def folders() -> list[str]:
    """List the folders of Arm's package: in the environment of this interpreter, then in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.expanduser("~/.local/share")
    return [os.path.join(sys.prefix, FOLDER), os.path.join(data, *FOLDER.split(os.sep)[1:])]


def programs() -> list[str]:
    """List the paths where the program may be."""
    return [os.path.join(folder, PROGRAM) for folder in folders()]


def pip_arguments(folder: str) -> list[str]:
    """List the arguments of ``pip install`` that install it into ``folder``, or there again.

    Every wheel holds the same program: that for CPython 3.12 serves any version of Python."""
    return ["--no-deps", "--upgrade", "--target", folder, "--only-binary", ":all:", "--python-version", "3.12", WHEEL]


def install_command() -> list[str]:
    """The command that installs the compiler into the first of `folders` that this user can write."""
    candidates = folders()
    folder = next((candidate for candidate in candidates if _can_be_made(candidate)), candidates[-1])
    return pip_install(*pip_arguments(folder))


def pip_install(*arguments: str) -> list[str]:
    """The command that installs packages into this interpreter's environment: uv's where this has no pip.

    Environments of ``uv venv``, ``uv tool`` and pipx have none."""
    import shutil
    from importlib.util import find_spec

    uv = None if find_spec("pip") else shutil.which("uv")
    command = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    return [*command, *arguments]


def install_line() -> str:
    """`install_command` as it is typed into a shell."""
    return shlex.join(install_command())


def _can_be_made(folder: str) -> bool:
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
