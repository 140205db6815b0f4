"""The version of this program: of the checkout that it runs from, or of the installed package."""

import os
import re
from functools import cache
from pathlib import Path

# The modules that `_version` needs are imported there, and git is asked there: most runs show no version.
__version__: str

_CHECKOUT = Path(__file__).parents[1]
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
