"""Files for the content of resources: their writers and their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scenario_runner.files.codec import ContentWriter, codec_of, create_image
from scenario_runner.files.output import CreateOutput

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import ResourcePlan


def create_resource_file(path: str, plan: ResourcePlan, create: CreateOutput) -> ContentWriter:
    """What writes the bytes of a resource to a file of the format that ``path`` names. Raises FileError."""
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
