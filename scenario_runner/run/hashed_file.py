"""Output files that know the hash of their content."""

from __future__ import annotations

import hashlib
import os

from scenario_runner.files.output import OutputFile, OutputSet


class HashedFile(OutputFile):
    """A file whose content is hashed (SHA-256) as it is written."""

    def __init__(self, path: str | os.PathLike[str], size_bytes: int, *, files: OutputSet | None = None) -> None:
        super().__init__(path, size_bytes, files=files)
        self.digest = hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.digest.update(data)
