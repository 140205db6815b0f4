"""Vulkan commands as attributes, each looked up once: ``fn.vkCmdDispatch(...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Functions:
    """Looks a command up by name on first use and keeps it; later uses are plain attribute reads."""

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        self._look_up = look_up

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("vk"):
            raise AttributeError(name)
        function = self._look_up(name)
        self.__dict__[name] = function
        return function
