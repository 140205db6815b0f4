"""Output files that know the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from scenario_runner.files.output import OutputFile


class HashedFile(OutputFile):
    """A file whose content is hashed (SHA-256) as it is written."""

    def __init__(self, path: Any, size_bytes: int, *, complete: Callable[[Any], None] | None = None) -> None:
        super().__init__(path, size_bytes, complete=complete)
        self.digest = hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.digest.update(data)
