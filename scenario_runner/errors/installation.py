"""Packages of distributions that hold what this program uses (system_packages.toml), and their installation.

Standard library only: the set-up of a checkout reads this before anything is installed.
"""

import os
import sys
from collections.abc import Iterable
from functools import cache

from scenario_runner.errors.arm_glslc import WHEEL

_KIN = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "archlinux": "arch"}


@cache
def families() -> dict[str, dict[str, str]]:
    """The table of system_packages.toml: a family of systems, and "elsewhere" → each of its keys."""
    import tomllib  # which is no part of a run that finds everything

    with open(os.path.join(os.path.dirname(__file__), "system_packages.toml"), "rb") as file:
        return tomllib.load(file)


def family_here(root: str | os.PathLike[str] = "/", platform: str = sys.platform) -> str | None:
    """The key in `families` whose package names apply to the system at ``root``; None for any other system."""
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
    """The packages that hold these parts."""
    return tuple(name for part in parts for name in families()[family][part].split())


def has_package_lists(family: str, root: str | os.PathLike[str] = "/") -> bool:
    """Return whether the package manager of the system at ``root`` can install packages without fetching its lists
    first."""
    from glob import glob

    lists = families()[family]["lists"]
    return not lists or bool(glob(lists, root_dir=root))


def install_command(
    family: str, packages: Iterable[str], *, superuser: bool, root: str | os.PathLike[str] = "/"
) -> str:
    """The shell command that installs ``packages``. It fetches the package lists first where there are none."""
    commands = families()[family]
    sudo = "" if superuser or family == "macos" else "sudo "
    install = f"{sudo}{commands['install']} {' '.join(packages)}"
    return install if has_package_lists(family, root) else f"{sudo}{commands['update']} && {install}"


def install_here(*parts: str) -> str:
    """Tell how to install these parts on this machine: a shell command, or words for a system that is not in the
    table."""
    family = family_here()
    if family is None:
        return "; ".join(families()["elsewhere"][part] for part in parts)
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    return install_command(family, package_names(family, parts), superuser=superuser)


# Arm's wheel ai_ml_sdk_scenario_runner in the folder of this package: both install an import package scenario_runner.
#
# Whichever is installed last writes its ``__init__.py`` over the other's, and whichever is removed takes it along.

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARMS = WHEEL.partition(">")[0]
FIX = (
    f"pip uninstall {ARMS}, then install scenario-runner again with pip's --force-reinstall --no-deps; "
    "install Arm's package into an environment of its own"
)
_PROGRAMS = os.path.join(FOLDER, "binaries", "bin")  # pip leaves empty folders beside it when it removes the wheel


def are_mixed() -> bool:
    """Tell whether files of Arm's are in the folder, or ``__init__.py`` is not this program's."""
    return os.path.exists(_PROGRAMS) or not hasattr(sys.modules["scenario_runner"], "_HOME")


def problem() -> str | None:
    """Say which files are whose and what does not work, None where this package is alone in its folder."""
    package = sys.modules["scenario_runner"]
    if not are_mixed():
        return None
    if not package.__file__:
        return f"{FOLDER} lacks __init__.py, as after a removal of {ARMS}: 'import scenario_runner' gives no names"
    whose = (  # the folder cli/ hides Arm's cli.py, which its command imports
        f"{FOLDER} holds binaries/ and cli.py of {ARMS}, whose import package has the same name; "
        "Arm's command scenario_runner starts this program"
    )
    if hasattr(package, "_HOME"):
        return whose
    return f"{whose}, and 'import scenario_runner' gives Arm's names, not Runner or load: __init__.py is Arm's"
