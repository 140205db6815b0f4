"""Where the files that a scenario names are: sources beside the scenario, results in the output folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenario_runner.errors import FileError, Problem
from scenario_runner.files.npy import NpyReader, open_npy

if TYPE_CHECKING:
    from scenario_runner.files.image_file import ImageReader
    from scenario_runner.formats import Format


@dataclass(frozen=True, slots=True)
class Store:
    """The two folders that relative names start from: ``src`` in the scenario's, ``dst`` in the output folder.

    Absolute names are taken as they are. The output folder is the scenario's unless the user chose another.
    """

    scenario_folder: str
    output_folder: str

    def source_path(self, src: str) -> str:
        """The path of a file that is read."""
        return os.path.join(self.scenario_folder, src)

    def destination_path(self, dst: str) -> str:
        """The path of a file that is written."""
        return os.path.join(self.output_folder, dst)

    def check_sources(self, sources: Iterable[tuple[str, str]]) -> None:
        """Raise one `FileError` for all of the (uid, src) pairs whose file is missing or is no file."""
        problems = [problem for uid, src in sources if (problem := _problem_with(uid, self.source_path(src)))]
        if problems:
            raise FileError(problems)

    def open_npy(self, uid: str, src: str) -> NpyReader:
        """Open the .npy source of ``uid``. Raises `FileError`."""
        self.check_sources([(uid, src)])
        return open_npy(self.source_path(src))

    def open_image(
        self, uid: str, src: str, format: Format, width: int, height: int, mip_count: int = 1
    ) -> ImageReader:
        """Open the image source of ``uid``, which was declared so. Raises `FileError`."""
        from scenario_runner.files.image_file import open_image  # scenarios without images need none of it

        self.check_sources([(uid, src)])
        return open_image(self.source_path(src), format, width, height, mip_count)


def _problem_with(uid: str, path: str) -> Problem | None:
    if os.path.isdir(path):
        return Problem(f"the source of {uid!r} is a folder, expected a file", path=path)
    if not os.path.exists(path):
        return Problem(f"source file does not exist, but {uid!r} reads it", path=path)
    return None
