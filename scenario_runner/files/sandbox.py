"""Which files may be touched while a scenario from somebody else is planned and run.

Every file that a scenario names is opened by `SourceFile` or `OutputFile` (or, for shader sources, by what also asks
here). They check the path before they open it and the file afterwards, so that a link that is exchanged in between is
noticed as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import SandboxError

CODE = "SR-SANDBOX-001"
_HELP = "move it into the scenario's folder, or run without --sandbox if you trust whoever wrote the scenario"


class _Allowed(NamedTuple):
    """Real paths: ``folders`` with all that is below them, and single ``files``."""

    folders: tuple[str, ...]
    files: frozenset[str]


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed", default=None)


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
    """Whether there is a sandbox."""
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
    """Refuse a file that was opened by ``path`` and is not what the path, checked again, leads to.

    Raises SandboxError.
    """
    if _allowed.get() is None:
        return
    check_path(path)
    try:
        same = os.path.samestat(os.stat(os.path.realpath(path)), os.fstat(descriptor))
    except OSError:
        same = False
    if not same:
        raise SandboxError(
            Diagnostic(CODE, "error", None, "changed while it was opened, which the sandbox forbids", path=path)
        )
