"""The sandbox: a border around the files that a scenario, a check file, a list or a shader may name.

`open_file` opens every such file. It checks the path before and the descriptor after opening, and so notices a link
exchanged in between. The caller's own names are free, except that a link in a scenario's folder must not lead out of
the folder: the scenario's author may have planted the link.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from scenario_runner.errors import FileError, MissingFileError, SandboxError, file_error
from scenario_runner.errors.diagnostic import Diagnostic

StrPath = str | os.PathLike[str]

CODE = "SR-SANDBOX-001"
_HELP = "move it into the scenario's folder, or run without --sandbox if you trust the author of the scenario"
_HELP_LINK = "remove the link, or run without --sandbox if you trust the author of the scenario"
READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_MOST_LINKS = 40  # in a path, as the system allows


class _Allowed(NamedTuple):
    """Real paths. Files must lie in ``folders`` (None: anywhere) or be listed in ``files``.

    No link in ``homes`` may lead out of them, except a link to an entry of ``files``.
    """

    folders: tuple[str, ...] | None
    files: frozenset[str]
    homes: tuple[str, ...]


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed", default=None)


@contextmanager
def confined(
    folders: Iterable[StrPath] | None, files: Iterable[StrPath] = (), homes: Iterable[StrPath] = ()
) -> Iterator[None]:
    """Refuse files outside ``folders`` during the block, except ``files``. With None as ``folders``, refuse only links.

    No link in ``folders`` or ``homes`` may lead out of them. The sandbox holds for this thread and copies of its
    context.
    """
    outer = _allowed.get() or _Allowed(None, frozenset(), ())
    own = _real_folders(folders or ())
    allowed = _Allowed(
        None if folders is None else own,
        outer.files.union(map(os.path.realpath, files)),
        tuple(dict.fromkeys((*outer.homes, *own, *_real_folders(homes)))),
    )
    with _set(allowed):
        yield


@contextmanager
def allowing(*chosen: StrPath | None) -> Iterator[None]:
    """During the block, allow the caller's folders and files, unless a link in a home leads there."""
    allowed = _allowed.get()
    if allowed is not None and allowed.folders is not None:
        more = _real_folders(path for path in chosen if path is not None)
        allowed = allowed._replace(folders=allowed.folders + more)
    with _set(allowed):
        yield


@contextmanager
def around(path: str, *chosen: StrPath | None) -> Iterator[None]:
    """Within a sandbox, confine the names in a file to the file's folder and to ``chosen``."""
    if not is_confined():
        yield
        return
    with confined([os.path.dirname(os.path.abspath(path))]), allowing(*chosen):
        yield


@contextmanager
def _set(allowed: _Allowed | None) -> Iterator[None]:
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def distrusting(paths: Collection[str]) -> AbstractContextManager[None]:
    """Refuse links out of these scenarios' folders during the block. The scenarios themselves may be links."""
    folders = [path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path)) for path in paths]
    return confined(None, [path for path in paths if not os.path.isdir(path)], folders)


def is_confined() -> bool:
    """Return whether a sandbox is active."""
    return _allowed.get() is not None


def check_path(path: str) -> None:
    """Raise SandboxError for a path that leads out of the sandbox, also through links. Nothing is opened."""
    allowed = _allowed.get()
    if allowed is None:
        return
    try:
        real = os.path.realpath(path)
        if real in allowed.files:
            return
        link = _link_out(path, allowed.homes)
    except (OSError, ValueError):
        return  # an impossible path: opening it gives an error
    where = "" if real == path else f" ({real!r})"
    if allowed.folders is not None and not f"{real}{os.sep}".startswith(allowed.folders):
        message = f"leads out of the scenario's folder{where}, which the sandbox forbids"
        raise SandboxError(Diagnostic(CODE, "error", None, message, _HELP, path=path))
    if link is not None:
        message = f"leads out of the scenario's folder by the link {link!r}{where}, which the sandbox forbids"
        raise SandboxError(Diagnostic(CODE, "error", None, message, _HELP_LINK, path=path))


def allows(path: str) -> bool:
    """Return whether the sandbox lets a path be opened."""
    try:
        check_path(path)
    except SandboxError:
        return False
    return True


def check_opened(path: str, descriptor: int, target: str | None = None) -> None:
    """Raise SandboxError if the path of an open file leads to another file now.

    For a temporary file the name of the ``target`` in the same folder is checked.
    """
    allowed = _allowed.get()
    if allowed is None:
        return
    check_path(target or path)
    real = os.path.realpath(path)
    if real in allowed.files:
        return
    try:
        same = os.path.samestat(os.stat(real), os.fstat(descriptor))
    except OSError:
        same = False
    if not same:
        message = "changed while it was opened, which the sandbox forbids"
        raise SandboxError(Diagnostic(CODE, "error", None, message, path=path))


def open_file(path: str, flags: int = READ_FLAGS, mode: int = 0o666) -> int:
    """Open a file and return the descriptor, without waiting for a pipe. Raises SandboxError, OSError, ValueError."""
    if _allowed.get() is None:
        return os.open(path, flags, mode)
    check_path(path)
    descriptor = os.open(path, flags, mode)
    try:
        check_opened(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _real_folders(folders: Iterable[StrPath]) -> tuple[str, ...]:
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)


def _link_out(path: str, homes: tuple[str, ...]) -> str | None:
    """Return the first link in ``path`` that leads out of ``homes``, or None. Raises OSError and ValueError."""
    if not homes:
        return None
    here, count = os.path.abspath(os.sep), 0
    left = os.path.join(os.getcwd(), path).split(os.sep)[::-1]
    while left:
        name = left.pop()
        if name in ("", os.curdir, os.pardir):
            here = os.path.dirname(here) if name == os.pardir else here
            continue
        there = os.path.join(here, name)
        if not os.path.islink(there):
            here = there
            continue
        around = tuple(home for home in homes if os.path.join(here, "").startswith(home))
        if around and not f"{os.path.realpath(there)}{os.sep}".startswith(around):
            return there
        count += 1
        if count > _MOST_LINKS:
            return None  # opening the path gives an error
        target = os.readlink(there)
        here = os.path.abspath(os.sep) if os.path.isabs(target) else here
        left += target.split(os.sep)[::-1]
    return None


def check_existing_folder(path: str) -> None:
    """Check that a folder exists and is writable. Raises MissingFileError, FileError or SandboxError."""
    check_path(path)
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: no such folder", help="make the folder first")
    if not os.path.isdir(path):
        raise FileError(f"{path}: is not a folder")
    reason = _why_not_writable(path)
    if reason is not None:
        raise FileError(f"{path}: no file can be written to this folder: {reason}")


def check_folder_to_write(path: str) -> None:
    """Check that a folder is writable, or can be made. Raises FileError or SandboxError."""
    check_path(path)
    existing = os.path.realpath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    reason = _why_not_writable(existing)
    if reason is not None:
        raise file_error(path, f"cannot be written to: {reason}", code="SR-FILE-015")


def _why_not_writable(folder: str) -> str | None:
    """Explain why the system refuses a new file in a folder; None if it does not."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if read_only else errno.EACCES).lower()
