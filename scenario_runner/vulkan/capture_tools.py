"""Capture tools around runs: RenderDoc inside this process, and gfxreconstruct's layer.

RenderDoc captures frames, single commands or a whole run through its in-application API (renderdoc_app.h).
The tools do not report a full disk, so the program checks each capture. Format sources:
RenderDoc 1.x, renderdoc/serialise/rdcfile.cpp, and gfxreconstruct, framework/format/format.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from scenario_runner.errors import UnsupportedError, UsageError, file_error, log
from scenario_runner.errors.text import reason_of
from scenario_runner.files.output import check_destination
from scenario_runner.files.sandbox import check_folder_to_write
from scenario_runner.plan.plan import FramePlan, Operation, Plan, frame_folder
from scenario_runner.vulkan.layers import (
    LAYERS_VARIABLE,
    RENDERDOC_LAYER,
    RENDERDOC_VARIABLE,
    available_layers,
    tools,
)

LIBRARY_VARIABLE = "SCENARIO_RUNNER_RENDERDOC"
"""Environment variable with the path of librenderdoc.so, for installations outside the system's search path."""

_NAMES = ("librenderdoc.so", "renderdoc.dll")
_MANIFEST = "renderdoc_capture.json"
_MANIFEST_FOLDERS = ("/etc", "/usr/local/share", "/usr/share", "~/.local/share")
_VERSION = 10102  # 1.1.2, the oldest version that RenderDoc 1.x still provides; every version has these functions
# Places of functions in RENDERDOC_API_1_1_2.
_SET_TEMPLATE, _COUNT, _GET, _START, _END = 11, 13, 14, 19, 21
_HOW = (
    "install RenderDoc (Debian and Ubuntu: apt install renderdoc; elsewhere: https://renderdoc.org), or set"
    f" {LIBRARY_VARIABLE} to the path of librenderdoc.so"
)


class RenderDoc:
    """RenderDoc in this process. Create it before the first Vulkan instance, which then gets RenderDoc's layer.

    Raises UnsupportedError if the library is missing, too old, or not RenderDoc, and if the loader does not find
    RenderDoc's layer.
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
        """Begin a capture. RenderDoc extends ``path`` to the name of the file."""
        self._set_template(os.fsencode(os.path.abspath(path)))
        self._start(None, None)

    def end(self) -> str | None:
        """End the capture. Return the path of the capture file; None if RenderDoc made no file."""
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
    """Load the library: already loaded, else from the variable's path, the layer's manifest, or the system."""
    own = os.environ.get(LIBRARY_VARIABLE)
    paths = (own,) if own else (*_of_layers(), *_NAMES)
    attempts = [(path, ctypes.DEFAULT_MODE) for path in paths]
    if hasattr(os, "RTLD_NOLOAD"):
        attempts[:0] = [(name, os.RTLD_NOLOAD | os.RTLD_NOW) for name in _NAMES]
    reason = None
    for path, mode in attempts:
        try:
            return ctypes.CDLL(path, mode=mode), path
        except OSError as failure:
            reason = str(failure)
    raise _missing("RenderDoc was not found", reason if own else None)


def _of_layers() -> Iterator[str]:
    """Find the libraries in the manifests of RenderDoc's layer. The Vulkan loader reads the same manifests."""
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
    return UnsupportedError(message, code="SR-RUN-005", help=help)


_REQUEST = re.compile(r"run|command:\d{1,9}|\d{1,20}", re.ASCII)


class CaptureRequest(NamedTuple):
    """The requested captures: frames by id, commands by index, the whole run."""

    frames: frozenset[int] = frozenset()
    commands: frozenset[int] = frozenset()
    run: bool = False


def capture_request(text: str) -> CaptureRequest:
    """Read ``N[,N...]``, ``command:K`` and ``run``, in any mixture. Raises UsageError."""
    parts = text.split(",")
    if not all(_REQUEST.fullmatch(part) for part in parts):
        raise UsageError(f"--capture-frame is {text!r}, expected frame ids, 'command:K' or 'run', separated by commas")
    commands = frozenset(int(part[8:]) for part in parts if part.startswith("command:"))
    frames = frozenset(int(part) for part in parts if part.isdigit())
    if "run" in parts and (commands or frames):
        message = f"--capture-frame is {text!r}: 'run' captures everything"
        raise UsageError(message, help="captures cannot be inside each other")
    return CaptureRequest(frames, commands, "run" in parts)


class RenderDocCaptures:
    """RenderDoc's captures from a Runner, in ``folder``, which may change between runs.

    Make this object before the first instance. `capture_request` explains the request. ``files`` lists all captures so
    far. Raises UsageError and UnsupportedError.
    """

    def __init__(self, request: str, folder: str) -> None:
        self.request = capture_request(request)
        self.folder = folder
        self.renderdoc = RenderDoc()
        self.files: list[str] = []

    def captures_of(self, plan: Plan) -> FrameCapture:
        """Return the captures for a run. Raise UsageError for unknown frames and commands, and FileError."""
        check_folder_to_write(self.folder)
        captures = FrameCapture(self, plan)
        os.makedirs(self.folder, exist_ok=True)
        return captures

    def keep(self, capture: str, path: str) -> None:
        """Check a capture and rename it to ``path``. Raise FileError."""
        try:
            if is_whole_rdc(capture):
                os.replace(capture, path)
                self.files.append(path)
                return
            os.unlink(capture)
        except OSError as error:
            raise file_error(path, f"cannot be written: {reason_of(error)}", code="SR-FILE-015") from error
        raise _not_whole("RenderDoc", path)


class FrameCapture:
    """A run's captures, in the first iteration only. If frames share an id, later file names get a number.

    Raises UsageError for frames and commands that the plan lacks.
    """

    def __init__(self, captures: RenderDocCaptures, plan: Plan) -> None:
        self._captures, self._renderdoc = captures, captures.renderdoc
        self._what = what = captures.request
        name = os.path.splitext(os.path.basename(plan.name))[0] or "scenario"
        self._stem = os.path.join(captures.folder, name)
        self._running: str | None = None
        self._seen: dict[int, int] = {}
        frames = {frame.frame_id for frame in plan.frames if frame.operations or frame.boundary}
        # the commands after the last boundary are a frame, unless another frame has their number
        self._bounded = {frame.frame_id for frame in plan.frames if frame.boundary}
        commands = {operation.command for frame in plan.frames for operation in frame.operations}
        for kind, unknown, known in (
            ("frame", what.frames - frames, frames),
            ("command", what.commands - commands, commands),
        ):
            if unknown:
                numbers = ", ".join(map(str, sorted(known)[:20])) or "none"
                raise UsageError(
                    f"--capture-frame: {kind} {min(unknown)} does not exist, or does no work",
                    help=f"the {kind}s of {plan.name}: {numbers}" + (" and more" if len(known) > 20 else ""),
                )
        for frame in plan.frames:
            for operation in frame.operations if self._is_captured(frame) else ():
                if operation.command in what.commands:
                    place = f"command {operation.command} is in frame {frame.frame_id}"
                    message = f"--capture-frame: {place}, which is captured as well"
                    raise UsageError(message, help="captures cannot be inside each other")

    def _is_captured(self, frame: FramePlan) -> bool:
        return frame.frame_id in self._what.frames and (frame.boundary or frame.frame_id not in self._bounded)

    def parts(self, frame: FramePlan) -> list[FramePlan]:
        """Split a frame into parts for separate submissions: a part for each captured command."""

        def captured(operation: Operation) -> int | None:
            return operation.command if operation.command in self._what.commands else None

        parts = [tuple(operations) for _, operations in groupby(frame.operations, captured)]
        return [frame._replace(operations=part) for part in parts] or [frame]

    def begin_run(self) -> None:
        """Start a capture of the whole run, before resources are filled."""
        if self._what.run:
            self._start("run")

    def begin(self, part: FramePlan, *, first: bool) -> None:
        """Start a capture before a part of a frame is recorded. ``first`` marks the frame's first part."""
        if first and self._is_captured(part):
            count = self._seen[part.frame_id] = self._seen.get(part.frame_id, 0) + 1
            self._start(frame_folder(part.frame_id, count))
        elif part.operations and part.operations[0].command in self._what.commands:
            self._start(f"command_{part.operations[0].command}")

    def end(self, part: FramePlan, *, last: bool) -> None:
        """End a capture after a part of a frame has finished."""
        if self._running is None or self._running == "run":
            return
        if last or not self._running.startswith("frame_"):
            self.end_run()

    def end_run(self) -> None:
        """End the current capture. Raises UnsupportedError if RenderDoc made no file."""
        name, self._running = self._running, None
        if name is None:
            return
        capture = self._renderdoc.end()
        if capture is None or not os.path.isfile(capture):
            message = f"--capture-frame: RenderDoc captured nothing of {name.replace('_', ' ')}"
            help = "the file could not be written, or this version of RenderDoc does not know what the scenario uses"
            raise UnsupportedError(message, code="SR-RUN-005", help=help)
        self._captures.keep(capture, f"{self._stem}-{name}.rdc")

    def _start(self, name: str) -> None:
        self._running = name
        self._renderdoc.start(f"{self._stem}-{name}")


GFXR_LAYER = "VK_LAYER_LUNARG_gfxreconstruct"
_GFXR_HOW = (
    "install gfxreconstruct (Debian and Ubuntu: apt install gfxreconstruct; elsewhere: the Vulkan SDK), or name the"
    " folder of its VkLayer_gfxreconstruct.json in VK_ADD_LAYER_PATH"
)
# A layer without frames has a description starting so. Newer layers know VK_EXT_frame_boundary and RenderDoc's label.
_WITHOUT_FRAMES = ("Version 0.",)


def set_up_gfxreconstruct(path: str) -> None:
    """Let gfxreconstruct's layer capture every later instance into ``path``.

    The layer reads environment variables. Existing variables stay, except the file. The layer is loaded next to the
    driver, below the ML emulation layers, so a layer version without tensors sees only known calls.

    Raises UnsupportedError if the layer is not installed. Raises FileError for a file that cannot be written, and for
    an existing file other than a capture, because the layer replaces the file at once.
    """
    named, path = path, os.path.abspath(path)
    check_destination(path)
    check_folder_to_write(os.path.dirname(path))
    if os.path.isfile(path) and os.path.getsize(path) and not is_gfxr(path):
        help = "choose another file, or remove this one"
        raise file_error(named, "is not a capture of gfxreconstruct, and a run would replace it", help=help)
    present = next((layer for layer in available_layers() if layer[0] == GFXR_LAYER), None)
    if present is None:
        message = f"--gfxr needs gfxreconstruct: its layer {GFXR_LAYER} was not found"
        raise UnsupportedError(message, code="SR-RUN-005", help=_GFXR_HOW)
    if any(version in present[2] for version in _WITHOUT_FRAMES):
        log.warning(
            __name__,
            "this gfxreconstruct (%s) records no frames without a window, so the whole run is a single frame;"
            " newer versions know frame boundaries",
            present[2].removeprefix("GFXReconstruct Capture Layer "),
        )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    layers = os.environ.get(LAYERS_VARIABLE, "").split(os.pathsep)
    if GFXR_LAYER in layers:  # this variable loads it above all other layers
        os.environ[LAYERS_VARIABLE] = os.pathsep.join(name for name in layers if name != GFXR_LAYER)
    if GFXR_LAYER not in tools:
        tools.append(GFXR_LAYER)
    os.environ["GFXRECON_CAPTURE_FILE"] = path
    os.environ["GFXRECON_CAPTURE_FILE_TIMESTAMP"] = "false"
    os.environ.setdefault("GFXRECON_LOG_LEVEL", "error")
    # by default the layer follows host writes only in buffers beginning with a page
    os.environ.setdefault("GFXRECON_PAGE_GUARD_ALIGN_BUFFER_SIZES", "true")


def check_gfxreconstruct(path: str) -> None:
    """Remove an incomplete capture after the last instance, and raise FileError. Do nothing if there is no file."""
    try:
        if is_whole_gfxr(path):
            return
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}") from error
    raise _not_whole("gfxreconstruct", path)


def _not_whole(tool: str, path: str) -> Exception:
    message = f"{tool} could not write all of its capture, which was removed"
    return file_error(path, message, help="make room on the disk", code="SR-FILE-015")


_RDC_HEADER = struct.Struct("<8sII")  # magic number, version, header size
_RDC_VERSION = 0x102
_RDC_SECTION = struct.Struct("<4sIQQQII")  # text or not, kind, size in the file, size, version, flags, name size
_GFXR_MAGIC = b"GFXR"
_GFXR_HEADER = struct.Struct("<4sIII")  # magic number, version, option count
_GFXR_OPTION_BYTES = 8
_GFXR_BLOCK = struct.Struct("<QI")  # size after this header, kind


def _header(file: BinaryIO, header: struct.Struct, magic: bytes) -> tuple[Any, ...] | None:
    head = file.read(header.size)
    return header.unpack(head) if len(head) == header.size and head.startswith(magic) else None


def is_whole_rdc(path: str) -> bool:
    """Return whether a RenderDoc capture has all sections; for an unknown version, a header is enough.

    Raises OSError.
    """
    with open(path, "rb") as file:
        head = _header(file, _RDC_HEADER, b"RDOC")
        if head is None or head[1] != _RDC_VERSION:
            return head is not None
        return _is_chain(file, head[2], _RDC_SECTION, lambda fields: fields[2] + fields[6])


def is_gfxr(path: str) -> bool:
    """Return whether a file begins like a gfxreconstruct capture. Raise OSError."""
    with open(path, "rb") as file:
        return file.read(len(_GFXR_MAGIC)) == _GFXR_MAGIC


def is_whole_gfxr(path: str) -> bool:
    """Return whether a gfxreconstruct capture ends with a complete block. Raise OSError."""
    with open(path, "rb") as file:
        head = _header(file, _GFXR_HEADER, _GFXR_MAGIC)
        start = _GFXR_HEADER.size + (head[-1] if head else 0) * _GFXR_OPTION_BYTES
        return head is not None and _is_chain(file, start, _GFXR_BLOCK, lambda fields: fields[0])


def _is_chain(file: BinaryIO, start: int, header: struct.Struct, rest_bytes: Callable[[tuple[Any, ...]], int]) -> bool:
    """Return whether complete blocks fill the file from ``start`` on. A block header counts the block's bytes."""
    size, end = os.fstat(file.fileno()).st_size, start
    while end < size:
        file.seek(end)
        head = file.read(header.size)
        if len(head) < header.size:
            return False
        end += header.size + rest_bytes(header.unpack(head))
    return start < end == size
