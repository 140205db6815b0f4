"""The installed program's version, and packages from elsewhere.

The version comes from git in a checkout, or from the installed package. Packages from elsewhere are system packages,
Arm's glslc, and Arm's package with this program's name.

This file imports the standard library only, because the set-up of a checkout uses it before anything is installed.

Linux distributions and Homebrew have compilers, loaders and drivers in packages; system_packages.toml names them.

Arm's glslc compiles GLSL with tensors (GL_ARM_tensors). Its wheel ai_ml_sdk_scenario_runner holds an import package
with the name of this program, so the wheel must not be on an import path. The set-up installs it into a separate
folder, and only the program is searched there. If both are installed into one environment, the wheel that was installed
last has written its ``__init__.py`` over the other, and removing either removes that file.
"""

import os
import re
import shlex
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # scenario_runner/

# `__getattr__` computes it, because most runs show no version.
__version__: str

_CHECKOUT = Path(__file__).parents[2]
_DESCRIPTION = re.compile(r"v(?P<tag>[0-9].*)-(?P<commits>[0-9]+)-g(?P<hash>[0-9a-f]+)")


@cache
def revision() -> str:
    """Return git's description of the checkout, with "-dirty" for changed files. Without git, return the version."""
    named = _git("describe", "--tags", "--long", "--always", "--dirty", "--match=v[0-9]*")
    return named or f"v{own_version()}"


def __getattr__(name: str) -> str:
    """Compute ``__version__``, which takes 15 to 50 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return own_version()


@cache
def own_version() -> str:
    """Return the version that setuptools-scm gives to a checkout. An editable installation stores an older version."""
    described = _git("describe", "--tags", "--long", "--always", "--match=v[0-9]*")
    if tagged := _DESCRIPTION.fullmatch(described):
        tag, commits, hash = tagged.groups()
        following = re.sub(r"[0-9]+$", lambda number: str(int(number[0]) + 1), tag)
        return tag if commits == "0" else f"{following}.dev{commits}+g{hash}"
    if described:  # there is no tag yet
        return f"0.1.dev{_git('rev-list', '--count', 'HEAD')}+g{described}"
    return version_of("scenario-runner") or "0.0"


def version_of(package: str) -> str | None:
    """Return the version of a Python package, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str:
    """Return the output of git in the checkout. It is empty without a checkout or git, and if git fails."""
    if not (_CHECKOUT / ".git").exists():
        return ""
    import subprocess

    command = ["git", "-C", str(_CHECKOUT), *arguments]
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }  # git sets these for hooks
    try:
        ended = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


@cache
def program_version(root: str = _PACKAGE) -> tuple[object, ...]:
    """Identify the program version in the folder ``root``: each module and table, by size and time.

    The plan cache uses it to drop plans of older code, in a checkout and in an installation. 260 modules take 1 ms.
    """
    modules: list[tuple[str, int, int]] = []
    folders = [root]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith((".py", ".csv")):
                    status = entry.stat()
                    modules.append((name, status.st_size, status.st_mtime_ns))
                elif "." not in name and name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    text = repr(sorted(modules)).encode()
    return root, len(text), zlib.crc32(text), zlib.adler32(text)


_KIN = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "archlinux": "arch"}

ARM_WHEEL = "ai_ml_sdk_scenario_runner>=0.11"
# Relative to an environment. In the user's data folder, ``share`` is left out.
GLSLC_FOLDER = os.path.join("share", "scenario-runner", "glslc")
GLSLC_PROGRAM = os.path.join("scenario_runner", "binaries", "bin", "glslc.exe" if sys.platform == "win32" else "glslc")

_ARM_PACKAGE = ARM_WHEEL.partition(">")[0]
MIXED_PACKAGES_FIX = (
    f"pip uninstall {_ARM_PACKAGE}, then install scenario-runner again with pip's --force-reinstall --no-deps; "
    "install Arm's package into an environment of its own"
)
_ARM_PROGRAMS = os.path.join(_PACKAGE, "binaries", "bin")  # pip leaves empty folders beside it without the wheel


@cache
def families() -> dict[str, dict[str, str]]:
    """Read system_packages.toml: for each family of systems and "elsewhere", the packages and commands."""
    import tomllib  # a run that finds everything needs no table

    with open(os.path.join(os.path.dirname(__file__), "system_packages.toml"), "rb") as file:
        return tomllib.load(file)


def family_here(root: str | os.PathLike[str] = "/", platform: str = sys.platform) -> str | None:
    """Return the system family at ``root``, a key of `families`; None if the table lacks the system."""
    if platform == "darwin":
        return "macos"
    fields = {}
    for folder in ("etc", "usr/lib"):
        try:
            with open(os.path.join(root, folder, "os-release"), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip().strip("\"'")
        break
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    found = (_KIN.get(name, name) for name in names)
    return next((name for name in found if name in families() and name not in ("macos", "elsewhere")), None)


def package_names(family: str, parts: Iterable[str]) -> tuple[str, ...]:
    """Return the package names for these parts."""
    return tuple(name for part in parts for name in families()[family][part].split())


def has_package_lists(family: str, root: str | os.PathLike[str] = "/") -> bool:
    """Return whether the system at ``root`` already has the package manager's lists."""
    lists = families()[family]["lists"]
    return not lists or any(Path(root).glob(lists))


def system_command(family: str, packages: Iterable[str], *, superuser: bool, root: str | os.PathLike[str] = "/") -> str:
    """Return the shell command that installs ``packages``. It fetches missing package lists first."""
    commands = families()[family]
    sudo = "" if superuser or family == "macos" else "sudo "
    install = f"{sudo}{commands['install']} {' '.join(packages)}"
    return install if has_package_lists(family, root) else f"{sudo}{commands['update']} && {install}"


def install_here(*parts: str) -> str:
    """Return the shell command that installs these parts here, or advice in words if the system is unknown."""
    family = family_here()
    if family is None:
        return "; ".join(families()["elsewhere"][part] for part in parts)
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    return system_command(family, package_names(family, parts), superuser=superuser)


class Requirement(NamedTuple):
    """A package of an extra. ``text`` is for pip. ``newest_python`` is the last with wheels, or empty."""

    text: str
    newest_python: str

    @property
    def without_wheels(self) -> str:
        """Advice for an interpreter that is too new for the package's wheels; empty for other interpreters."""
        if not self.newest_python or sys.version_info[:2] <= tuple(map(int, self.newest_python.split("."))):
            return ""
        return f"use CPython {self.newest_python} or older: the package has no wheels for newer versions"


@cache
def requirement(package: str) -> Requirement:
    """Read a package's version bounds from this program's metadata, which come from pyproject.toml."""
    from importlib.metadata import PackageNotFoundError, requires  # takes 15 ms

    try:
        lines = requires("scenario-runner") or []
    except PackageNotFoundError:  # a checkout without an installation
        lines = []
    for line in lines:
        text, _, marker = line.partition(";")
        if re.split(r"[^\w-]", text)[0] == package:
            before = re.search(r'python_version < "3\.(\d+)"', marker)
            return Requirement(text.strip(), f"3.{int(before[1]) - 1}" if before else "")
    return Requirement(package, "")


def has_arm_wheels() -> bool:
    """Return whether Arm publishes wheels for this kind of machine: Linux with glibc, or macOS on Arm."""
    if sys.platform == "darwin":
        return os.uname().machine == "arm64"
    return has_glibc("x86_64", "aarch64")


def has_glibc(*machines: str) -> bool:
    """Return whether this is Linux with glibc on one of these machine types."""
    import platform  # takes 2 ms

    return platform.libc_ver()[0] == "glibc" and platform.machine() in machines


def glslc_folders() -> list[str]:
    """List the folders for glslc: in this interpreter's environment, then in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.expanduser("~/.local/share")
    return [os.path.join(sys.prefix, GLSLC_FOLDER), os.path.join(data, *GLSLC_FOLDER.split(os.sep)[1:])]


def glslc_programs() -> list[str]:
    """List the paths where glslc may be."""
    return [os.path.join(folder, GLSLC_PROGRAM) for folder in glslc_folders()]


def glslc_arguments(folder: str) -> list[str]:
    """Return the arguments for ``pip install`` that install glslc into ``folder``. They replace an older copy.

    All wheels hold the same program, so the wheel for CPython 3.12 serves any version of Python."""
    return [
        "--no-deps",
        "--upgrade",
        "--target",
        folder,
        "--only-binary",
        ":all:",
        "--python-version",
        "3.12",
        ARM_WHEEL,
    ]


def glslc_command() -> list[str]:
    """Return the command that installs glslc into the first of `glslc_folders` that this user can write."""
    candidates = glslc_folders()
    folder = next((candidate for candidate in candidates if _can_be_made(candidate)), candidates[-1])
    return pip_install(*glslc_arguments(folder))


def pip_install(*arguments: str) -> list[str]:
    """Return the command that installs packages into this interpreter's environment, with pip or else with uv.

    Environments of ``uv venv``, ``uv tool`` and pipx have no pip."""
    import shutil
    from importlib.util import find_spec

    uv = None if find_spec("pip") else shutil.which("uv")
    command = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    return [*command, *arguments]


def glslc_command_line() -> str:
    """Return `glslc_command` as a line for a shell."""
    return shlex.join(glslc_command())


def _can_be_made(folder: str) -> bool:
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def mixed_packages_problem() -> str | None:
    """Describe the damage of Arm's package in this package's folder; None if there is no damage."""
    package = sys.modules["scenario_runner"]
    is_own = hasattr(package, "_HOME")
    if is_own and not os.path.exists(_ARM_PROGRAMS):
        return None
    if not package.__file__:
        lacks = f"{_PACKAGE} lacks __init__.py, as after a removal of {_ARM_PACKAGE}"
        return f"{lacks}: 'import scenario_runner' gives no names"
    whose = (  # the folder cli/ hides Arm's cli.py, which Arm's command imports
        f"{_PACKAGE} holds binaries/ and cli.py of {_ARM_PACKAGE}, whose import package has the same name; "
        "Arm's command scenario_runner starts this program"
    )
    if is_own:
        return whose
    return f"{whose}, and 'import scenario_runner' gives Arm's names, not Runner or load: __init__.py is Arm's"
