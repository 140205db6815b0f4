"""RenderDoc's in-application API (renderdoc_app.h): captures of what is submitted between two calls."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import error_of
from scenario_runner.vulkan.devices.layers import RENDERDOC_LAYER, RENDERDOC_VARIABLE, available_layers

LIBRARY_VARIABLE = "SCENARIO_RUNNER_RENDERDOC"
"""Environment variable with the path of librenderdoc.so, for installations outside the system's search path."""

_NAMES = ("librenderdoc.so", "renderdoc.dll")
_MANIFEST = "renderdoc_capture.json"
_MANIFEST_FOLDERS = ("/etc", "/usr/local/share", "/usr/share", "~/.local/share")
_VERSION = 10102  # 1.1.2, the oldest that RenderDoc 1.x still hands out; what is used here is in all of them
# Places of functions in RENDERDOC_API_1_1_2.
_SET_TEMPLATE, _COUNT, _GET, _START, _END = 11, 13, 14, 19, 21
_HOW = (
    "install RenderDoc (Debian and Ubuntu: apt install renderdoc; elsewhere: https://renderdoc.org), or set"
    f" {LIBRARY_VARIABLE} to the path of librenderdoc.so"
)


class RenderDoc:
    """RenderDoc in this process; make it before the first Vulkan instance, which then gets RenderDoc's layer.

    Raises UnsupportedError where the library is not there, is too old, or is not RenderDoc, and where the loader does
    not find its layer.
    """

    def __init__(self) -> None:
        library, self.path = _load()
        try:
            get_api = library.RENDERDOC_GetAPI
        except AttributeError:
            raise _missing(f"{self.path!r} is not RenderDoc: it has no RENDERDOC_GetAPI") from None
        table = ctypes.POINTER(ctypes.c_void_p)()
        if get_api(_VERSION, ctypes.byref(table)) != 1:
            raise _missing(f"{self.path!r} lacks version 1.1.2 of RenderDoc's in-application API: it is too old")
        text, number, pointer = ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p
        self._set_template = ctypes.CFUNCTYPE(None, text)(table[_SET_TEMPLATE])
        self._count = ctypes.CFUNCTYPE(number)(table[_COUNT])
        self._get = ctypes.CFUNCTYPE(number, number, text, ctypes.POINTER(number), pointer)(table[_GET])
        self._start = ctypes.CFUNCTYPE(None, pointer, pointer)(table[_START])
        self._end = ctypes.CFUNCTYPE(number, pointer, pointer)(table[_END])
        os.environ[RENDERDOC_VARIABLE] = "1"
        if RENDERDOC_LAYER not in (name for name, _, _ in available_layers()):
            message = f"{self.path!r} is there, but the Vulkan loader does not find its layer {RENDERDOC_LAYER}"
            raise _missing(message, help="let RenderDoc register it: renderdoccmd vulkanlayer --register --user")

    def start(self, path: str) -> None:
        """Begin a capture; its file will be called ``path`` and what RenderDoc adds to it."""
        self._set_template(os.fsencode(os.path.abspath(path)))
        self._start(None, None)

    def end(self) -> str | None:
        """End the capture; the path of its file, None where RenderDoc made none."""
        if self._end(None, None) != 1:
            return None
        last = self._count() - 1
        size = ctypes.c_uint32()
        if last < 0 or not self._get(last, None, ctypes.byref(size), None):
            return None
        name = ctypes.create_string_buffer(size.value + 1)
        self._get(last, name, ctypes.byref(size), None)
        return os.fsdecode(name.value)


def _load() -> tuple[ctypes.CDLL, str]:
    """The library: the one that is loaded already, else the one that the variable, the system or its layer names."""
    reasons = []
    own = os.environ.get(LIBRARY_VARIABLE)
    loaded = getattr(os, "RTLD_NOLOAD", 0)
    if loaded:
        for name in _NAMES:
            try:
                return ctypes.CDLL(name, mode=loaded | os.RTLD_NOW), name
            except OSError:
                continue
    for path in (own,) if own else (*_of_layers(), *_NAMES):
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            reasons.append(str(error))
    raise _missing("RenderDoc was not found", reasons[0] if own else None)


def _of_layers() -> Iterator[str]:
    """The libraries of RenderDoc's layer: the loader loads the same."""
    for folder in _MANIFEST_FOLDERS:
        path = os.path.join(os.path.expanduser(folder), "vulkan", "implicit_layer.d", _MANIFEST)
        try:
            with open(path, encoding="utf-8") as file:
                library = json.load(file)["layer"]["library_path"]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        yield library if os.path.isabs(library) else os.path.join(os.path.dirname(path), library)


def _missing(what: str, reason: str | None = None, *, help: str = _HOW) -> Exception:
    message = f"--capture-frame needs RenderDoc: {what}" + ("" if reason is None else f" ({reason})")
    return error_of([Diagnostic("SR-RUN-005", "error", None, message, help)])
