"""Files for the content of resources: their names and their writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from scenario_runner.errors import FileError
from scenario_runner.files.codec import ContentWriter, codec_of, create_image
from scenario_runner.files.output import CreateOutput
from scenario_runner.plan.destinations import at_pointer
from scenario_runner.plan.plan import Plan, ResourcePlan


def create_resource_file(path: str, plan: ResourcePlan, create: CreateOutput) -> ContentWriter:
    """Open the writer of the bytes of a resource to a file of the format that ``path`` names. Raises FileError."""
    if plan.npy is not None:
        return codec_of(path, plan.kind).create_array(path, *plan.npy, create)
    return create_image(path, plan.format, plan.width, plan.height, plan.plane_sizes_bytes, create=create)


_MOST_BYTES = 200  # of a name: file systems mostly take 255, with all that is put behind it


class FileNames:
    """Gives each uid of a run the name of a file, unlike that of any other uid, always the same one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, uid: str) -> str:
        """The name without an extension: characters that file systems refuse become underscores, and long names are
        cut."""
        name = self._names.get(uid)
        if name is None:
            plain = name = "".join(letter if letter.isalnum() or letter in "-_. " else "_" for letter in uid) or "_"
            plain = name = os.fsencode(plain)[:_MOST_BYTES].decode(errors="ignore")
            count = 1
            while name.casefold() in self._taken:  # some file systems do not tell capitals from small letters
                count += 1
                name = f"{plain}~{count}"
            self._names[uid] = name
            self._taken.add(name.casefold())
        return name


def at_resource(error: FileError, pointer: str) -> FileError:
    """Give problems of a file the JSON pointer of the resource whose file it is."""
    error.problems = tuple(at_pointer(problem, pointer) for problem in error.problems)
    return error


class ResourceWriter:
    """Takes pieces of resources, one resource after the other, and writes each one to its files.

    ``open_files`` gives what writes a resource, by its uid. ``key`` ends the JSON pointers of problems, after the
    pointer of the resource.
    """

    def __init__(self, plan: Plan, open_files: Callable[[str], Iterable[Any]], key: str = "") -> None:
        self._plan = plan
        self._open_files = open_files
        self._key = key
        self._writers: list[Any] = []
        self._left = 0

    def receive(self, uid: str, view: memoryview) -> None:
        """Write a piece. Raises FileError with the pointer of the resource."""
        try:
            if not self._left:
                self._left = self._plan.resources[uid].size_bytes
                for writer in self._open_files(uid):  # one by one: what is open is closed where the next cannot be made
                    self._writers.append(writer)
            self._left -= len(view)
            for writer in self._writers:
                writer.write(view)
            while not self._left and self._writers:
                self._writers.pop(0).__exit__(None, None, None)
        except FileError as error:
            raise at_resource(error, f"{self._plan.resources[uid].pointer}{self._key}") from error.__cause__

    def finish(self) -> None:
        """All is there; nothing to do."""

    def discard(self) -> None:
        """Remove files whose last pieces never came."""
        writers, self._writers = self._writers, []
        for writer in writers:
            with suppress(FileError):
                writer.__exit__(KeyboardInterrupt, None, None)
