"""The border of the sandbox: which files a scenario may name."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from scenario_runner.errors import FileError, MissingFileError, SandboxError, file_error
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of

_allowed: ContextVar[_Allowed | None] = ContextVar("allowed", default=None)

_HELP = "move it into the scenario's folder, or run without --sandbox if you trust whoever wrote the scenario"

CODE = "SR-SANDBOX-001"


class _Allowed(NamedTuple):
    """Real paths: ``folders`` with all that is below them, and single ``files``."""

    folders: tuple[str, ...]
    files: frozenset[str]


@contextmanager
def confined(folders: Iterable[str | os.PathLike[str]], files: Iterable[str | os.PathLike[str]] = ()) -> Iterator[None]:
    """As long as the block runs, files outside of ``folders`` are refused, but for ``files``.

    It holds for this thread and for what runs in copies of its context.
    """
    real = tuple(os.path.join(os.path.realpath(os.fspath(folder)), "") for folder in folders)
    token = _allowed.set(_Allowed(real, frozenset(os.path.realpath(file) for file in files)))
    try:
        yield
    finally:
        _allowed.reset(token)


def is_confined() -> bool:
    """Return whether there is a sandbox."""
    return _allowed.get() is not None


def check_path(path: str) -> None:
    """Refuse a path that leads out of the sandbox, also through links; nothing is opened. Raises SandboxError."""
    allowed = _allowed.get()
    if allowed is None:
        return
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return  # a path that no file can have: opening it reports that
    if real not in allowed.files and not real.startswith(allowed.folders):
        where = "" if real == path else f" ({real!r})"
        message = f"leads out of the scenario's folder{where}, which the sandbox forbids"
        raise SandboxError(Diagnostic(CODE, "error", None, message, _HELP, path=path))


def check_opened(path: str, descriptor: int) -> None:
    """Refuse a file that was opened by ``path`` and is not what the path, checked again, leads to, in a sandbox.

    Raises SandboxError.
    """
    if not is_confined():
        return
    check_path(path)
    try:
        same = os.path.samestat(os.stat(os.path.realpath(path)), os.fstat(descriptor))
    except OSError:
        same = False
    if not same:
        message = "changed while it was opened, which the sandbox forbids"
        raise SandboxError(Diagnostic(CODE, "error", None, message, path=path))


def check_existing_folder(path: str) -> None:
    """Raise MissingFileError or FileError for what is not a folder that files can be written to."""
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: no such folder", help="make the folder first")
    if not os.path.isdir(path):
        raise FileError(f"{path}: is not a folder")
    reason = _why_not_writable(path)
    if reason is not None:
        raise FileError(f"{path}: no file can be written to this folder: {reason}")


def check_folder_to_write(path: str) -> None:
    """Raise FileError for a folder that no file can be written to, or where it is missing, that cannot be made."""
    existing = os.path.realpath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    reason = _why_not_writable(existing)
    if reason is not None:
        raise file_error(path, f"cannot be written to: {reason}", code="SR-FILE-015")


def _why_not_writable(folder: str) -> str | None:
    """Tell why the system refuses a new file in a folder; None where it does not."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    code = errno.EROFS if read_only else errno.EACCES
    return reason_of(OSError(code, os.strerror(code)))
