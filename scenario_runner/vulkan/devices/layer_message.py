"""What caused a message of the validation layer: the command or resource of the scenario, and uids."""

from __future__ import annotations

import re
from typing import Any

from scenario_runner.vulkan.api.ffi import ffi

_COMMAND = re.compile(r"command (\d+)\b")


def place_of(data: Any, subject: str | None) -> tuple[str | None, list[str]]:
    """JSON pointer and names of the objects of a VkDebugUtilsMessengerCallbackDataEXT.

    ``subject`` is what is being created or recorded; where it is unknown, the labels of the command buffer tell.
    """
    names = []
    for each in data.pObjects[0 : data.objectCount]:
        name = "" if each.pObjectName == ffi.NULL else _text(each.pObjectName)
        if name and name not in names:
            names.append(name)
    if subject is None:
        for label in data.pCmdBufLabels[0 : data.cmdBufLabelCount]:
            found = _COMMAND.match(_text(label.pLabelName))
            if found:
                subject = f"/commands/{found[1]}"
    return subject, names


def with_place(text: str, pointer: str | None, names: list[str]) -> str:
    """A message that begins with its place."""
    parts = [] if pointer is None else [pointer]
    if names:
        parts.append(", ".join(map(repr, names)))
    return ": ".join([*parts, text])


def _text(chars: Any) -> str:
    return str(ffi.string(chars).decode(errors="replace"))
