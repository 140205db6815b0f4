"""The version of this program: of the checkout that it runs from, or of the installed package."""

import os
import re
import zlib
from functools import cache
from pathlib import Path

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # scenario_runner/

# The modules that `_version` needs are imported there, and git is asked there: most runs show no version.
__version__: str

_CHECKOUT = Path(__file__).parents[2]
_DESCRIPTION = re.compile(r"v(?P<tag>[0-9].*)-(?P<commits>[0-9]+)-g(?P<hash>[0-9a-f]+)")


@cache
def revision() -> str:
    """The name that git gives to the checkout's commit, with "-dirty" where files differ from it; else the version."""
    named = _git("describe", "--tags", "--long", "--always", "--dirty", "--match=v[0-9]*")
    return named or f"v{_version()}"


def __getattr__(name: str) -> str:
    """Return ``__version__``, which takes 15 to 50 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _version()


@cache
def _version() -> str:
    """Return what setuptools-scm computes for the commit of a checkout: that of an editable installation is older."""
    described = _git("describe", "--tags", "--long", "--always", "--match=v[0-9]*")
    if tagged := _DESCRIPTION.fullmatch(described):
        tag, commits, hash = tagged.groups()
        following = re.sub(r"[0-9]+$", lambda number: str(int(number[0]) + 1), tag)
        return tag if commits == "0" else f"{following}.dev{commits}+g{hash}"
    if described:  # there is no tag yet
        return f"0.1.dev{_git('rev-list', '--count', 'HEAD')}+g{described}"
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("scenario-runner")
    except PackageNotFoundError:
        return "0.0"


def _git(*arguments: str) -> str:
    """Return what git prints about the checkout; empty where this is none, or where git fails or is missing."""
    if not (_CHECKOUT / ".git").exists():
        return ""
    import subprocess

    command = ["git", "-C", str(_CHECKOUT), *arguments]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # hooks name theirs
    try:
        ended = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


@cache
def program_version(root: str = _PACKAGE) -> tuple[object, ...]:
    """Identify the version of the program in the folder ``root``: each module and table, by size and time.

    So a plan is as old as the code that it comes from, in a checkout as where it is installed; 260 modules take 1 ms.
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
