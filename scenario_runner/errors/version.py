"""This program's version, from git in a checkout, or from the installed package."""

import os
import re
import zlib
from functools import cache
from pathlib import Path

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # scenario_runner/

# `__getattr__` computes it, because most runs show no version.
__version__: str

_CHECKOUT = Path(__file__).parents[2]
_DESCRIPTION = re.compile(r"v(?P<tag>[0-9].*)-(?P<commits>[0-9]+)-g(?P<hash>[0-9a-f]+)")


@cache
def revision() -> str:
    """Return git's description of the checkout, with "-dirty" for changed files. Without git, return the version."""
    named = _git("describe", "--tags", "--long", "--always", "--dirty", "--match=v[0-9]*")
    return named or f"v{_version()}"


def __getattr__(name: str) -> str:
    """Compute ``__version__``, which takes 15 to 50 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _version()


@cache
def _version() -> str:
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
