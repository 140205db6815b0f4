"""The files of items on a host that runs them: the folders of the host that started the suite, below a scratch folder.

A file /a/b of that host stands at SCRATCH/a/b here, so that relative paths mean the same, whatever folder they lead out
of. In what a run says, SCRATCH is taken away again, and all paths are those that the user knows.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import reason_of
from scenario_runner.suite.cluster.contents import HOST_CANNOT_KEEP_FILES, ContentStore
from scenario_runner.suite.cluster.jobs import Job
from scenario_runner.suite.hashes import file_hash
from scenario_runner.suite.records import Item


class Layout:
    """Life cycle: items are placed, run, and `clear` removes their files."""

    def __init__(self, store: ContentStore, folder: str) -> None:
        """``folder`` need not exist; its path must occur nowhere else in what a run says."""
        self._store = store
        self._folder = folder
        self._placed: dict[str, str] = {}

    def place(self, job: Job) -> Item:
        """Copy the files of an item to where its scenario finds them; the item as it is here.

        Raises ScenarioRunnerError where a file cannot be had, with the code HOST_CANNOT_KEEP_FILES where that is so
        because of this host.
        """
        for path in job.absolute:
            if file_hash(path) != job.files[path]:
                raise _refusal(
                    "SR-CLUSTER-005",
                    job.item.path,
                    f"{path!r} is an absolute path, and this host has no such file with the same content",
                )
        for path, hash in job.files.items():
            if self._placed.get(path) == hash:
                continue
            target = self.here(path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(self._store.path(hash), target)
            except FileNotFoundError:
                message = "it changed while the suite ran, so that this host has not got it"
                raise _refusal("SR-CLUSTER-006", path, message) from None
            except OSError as error:
                raise _refusal(HOST_CANNOT_KEEP_FILES, path, f"it cannot be copied: {reason_of(error)}") from error
            self._placed[path] = hash
        item = job.item
        expectations = None if item.expectations is None else self.here(item.expectations)
        if expectations is None or item.expectations in job.files:
            return Item(item.id, self.here(item.path), expectations)
        raise _refusal("SR-CLUSTER-006", item.expectations or "", "the expectations cannot be read")

    def here(self, path: str) -> str:
        """Where a file of the other host is on this one."""
        return self._folder + os.path.abspath(path)

    def there(self, said: Any) -> Any:
        """JSON with all paths as they are on the other host."""
        if isinstance(said, str):
            return said.replace(self._folder, "")
        if isinstance(said, dict):
            return {self.there(key): self.there(value) for key, value in said.items()}
        if isinstance(said, list | tuple):
            return [self.there(each) for each in said]
        return said

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._placed.clear()


def _refusal(code: str, path: str, message: str) -> ScenarioRunnerError:
    help = "name files relative to the scenario" if code == "SR-CLUSTER-005" else None
    return error_of([Diagnostic(code, "error", None, message, help, path)])
