"""Files of suites on a host that runs them, by the SHA-256 of their content, in the user's cache folder.

They come over the network once. An entry is a file whose name is its hash; it appears when it is complete and its
content has that hash. The files are copied to where a scenario finds them, never linked: what a run does to them stays
out of the store.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

from scenario_runner.content_cache import default_cache_dir, distrust
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import reason_of
from scenario_runner.kept_files import bound

KIND: Final = "contents"
HOST_CANNOT_KEEP_FILES: Final = "SR-CLUSTER-008"
_SUFFIX: Final = ".content"
_MOST_FILES: Final = 100_000
_MOST_BYTES: Final = 8 << 30


class Piece(NamedTuple):
    """Part of a file with this hash: its bytes from ``offset`` on. ``is_last``: the file ends with it."""

    hash: str
    offset: int
    data: bytes
    is_last: bool


class ContentStore:
    """The store of this user on this host. Its errors are those of SR-CLUSTER-008."""

    def __init__(self) -> None:
        self._root = default_cache_dir()
        self._folder = os.path.join(self._root, KIND)
        # Several workers, of one host or of hosts with one home folder, may be sent the same file at the same time.
        self._receiver = f"{socket.gethostname()}-{os.getpid()}"
        try:
            for folder in (self._root, self._folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if reason := distrust(os.stat(folder)):
                    raise _error(folder, reason)
        except OSError as error:
            raise _error(self._folder, reason_of(error)) from error

    def path(self, hash: str) -> str:
        """Where the file with this hash is, if it is there."""
        return os.path.join(self._folder, f"{hash}{_SUFFIX}")

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Those that are not here. The others count as used now, so that they stay."""
        lacks = []
        for hash in hashes:
            try:
                os.utime(self.path(hash))
            except OSError:
                lacks.append(hash)
        return lacks

    def receive(self, pieces: Iterable[Piece]) -> None:
        """Add pieces, which come in their order. A file whose content does not have its hash is dropped."""
        for piece in pieces:
            temporary = os.path.join(self._folder, f"{piece.hash}.{self._receiver}.tmp")
            try:
                with open(temporary, "r+b" if piece.offset else "wb", opener=_private) as file:
                    file.seek(piece.offset)
                    file.write(piece.data)
                    file.truncate()
                if piece.is_last:
                    self._complete(piece.hash, temporary)
            except OSError as error:
                raise _error(temporary, reason_of(error)) from error

    def _complete(self, hash: str, temporary: str) -> None:
        with open(temporary, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found == hash:
            os.replace(temporary, self.path(hash))
        else:
            os.unlink(temporary)

    def evict(self) -> None:
        """Drop what was used longest ago where there is too much. Not while a shard is being laid out."""
        bound(self._root, KIND, _MOST_FILES, _MOST_BYTES)


def _error(path: str, reason: str) -> ScenarioRunnerError:
    message = f"files of suites cannot be kept there: {reason}"
    return error_of([Diagnostic(HOST_CANNOT_KEEP_FILES, "error", None, message, None, path)])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
