"""The writer of items, which all importers use: resources, commands, expectations and files with unique names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

import numpy

from scenario_runner.errors.text import Json, numbered
from scenario_runner.files.input import CHECK_FILE, SCENARIO_FILE
from scenario_runner.importers.item_folders import write_file, write_json
from scenario_runner.importers.memory_layouts import as_json

JsonObject = dict[str, Json]
_MOST_INLINE: Final = 64
"""The most numbers that a scenario has in the text; more become a file."""
_LONGEST_STEM: Final = 100


def filled(keys: JsonObject) -> JsonObject:
    """Return the keys with a value that is not empty."""
    return {key: value for key, value in keys.items() if value}


class ItemWriter:
    """The parts of an item. Files are written to ``folder`` at once; `finish` writes the scenario and expectations.

    ``taken`` are names of later resources.
    """

    def __init__(self, folder: str, taken: Iterable[str] = ()) -> None:
        self.folder = folder
        self.commands: list[Json] = []
        self.outputs: dict[str, list[JsonObject]] = {}
        self.resources: dict[str, tuple[str, JsonObject]] = {}
        self._taken = {name.casefold() for name in taken}

    def new_name(self, stem: str, extension: str = "") -> str:
        """Return a name that no resource and no file has."""
        name = numbered(stem, extension, lambda name: name.casefold() in self._taken)
        self._taken.add(name.casefold())
        return name

    def file_name(self, stem: str, extension: str) -> str:
        """Return the name of a new file."""
        return self.new_name(re.sub(r"[^\w.-]|^\.", "_", stem)[:_LONGEST_STEM], extension)

    def write(self, stem: str, extension: str, content: bytes) -> str:
        """Write a file, and return the name."""
        name = self.file_name(stem, extension)
        write_file(self.folder, name, content)
        return name

    def save(self, stem: str, array: numpy.ndarray) -> str:
        """Write an array, and return the name of the file."""
        name = self.file_name(stem, ".npy")
        numpy.save(os.path.join(self.folder, name), array)
        return name

    def source(self, stem: str, numbers: numpy.ndarray, *, may_fill: bool = True) -> Json:
        """Return the content of a resource for ``src``: numbers in the scenario, or the name of a new file."""
        dtype, count = numbers.dtype.name, len(numbers)
        items = numbers.view(numpy.uint8).reshape(count, -1)
        if numbers.dtype.kind == "f" and numpy.isnan(numbers).any():
            return self.save(stem, numbers)  # the text "nan" has no payload
        if may_fill and count > 1 and (items == items[0]).all():
            return {"fill": as_json(numbers[:1], dtype)[0], "dtype": dtype}
        if count <= _MOST_INLINE:
            return {"values": as_json(numbers, dtype), "dtype": dtype}
        return self.save(stem, numbers)

    def add(self, kind: str, uid: str, keys: JsonObject) -> JsonObject:
        """Add a resource unless the uid is known, and return the keys of the resource."""
        return self.resources.setdefault(uid, (kind, {"uid": uid} | keys))[1]

    def add_sampler(self, uid: str, keys: JsonObject) -> None:
        """Add an image without content, which carries a sampler."""
        image: JsonObject = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 1, 1, 1], "shader_access": "readonly"}
        self.add("image", uid, image | keys)

    def add_command(self, kind: str, keys: JsonObject) -> None:
        """Add a command."""
        self.commands.append({kind: keys})

    def finish(self, check: JsonObject) -> None:
        """Write the scenario and the expectations. Each output gets a file, except captured frames."""
        for uid in self.outputs:
            if uid in self.resources:
                self.resources[uid][1]["dst"] = self.file_name(f"{uid}_output", ".npy")
        resources: list[Json] = [{kind: keys} for kind, keys in self.resources.values()]
        outputs: JsonObject = {
            uid: list[Json](rules) if len(rules) > 1 else rules[0] for uid, rules in self.outputs.items()
        }
        write_json(self.folder, SCENARIO_FILE, {"resources": resources, "commands": self.commands})
        write_json(self.folder, CHECK_FILE, filled({"outputs": outputs} | check))
