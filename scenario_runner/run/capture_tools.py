"""Capture tools around runs: RenderDoc inside this process, and gfxreconstruct's layer.

The tools do not report a full disk, so the program checks each capture. Format sources:
RenderDoc 1.x, renderdoc/serialise/rdcfile.cpp, and gfxreconstruct, framework/format/format.h.
"""

import os
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

from scenario_runner.errors import UnsupportedError, file_error, log
from scenario_runner.errors.text import reason_of
from scenario_runner.files.output import check_destination
from scenario_runner.files.sandbox import check_folder_to_write
from scenario_runner.plan.plan import Plan
from scenario_runner.vulkan.frame_capture import FrameCapture, RenderDoc, capture_request
from scenario_runner.vulkan.layers import LAYERS_VARIABLE, available_layers, tools

GFXR_LAYER = "VK_LAYER_LUNARG_gfxreconstruct"
_GFXR_HOW = (
    "install gfxreconstruct (Debian and Ubuntu: apt install gfxreconstruct; elsewhere: the Vulkan SDK), or name the"
    " folder of its VkLayer_gfxreconstruct.json in VK_ADD_LAYER_PATH"
)
# A layer without frames has a description starting so. Newer layers know VK_EXT_frame_boundary and RenderDoc's label.
_WITHOUT_FRAMES = ("Version 0.",)


class RenderDocCaptures:
    """RenderDoc's captures from a Runner, in ``folder``, which may change between runs.

    Make this object before the first instance. `frame_capture.capture_request` explains the request. ``files`` lists
    all captures so far. Raises UsageError and UnsupportedError.
    """

    def __init__(self, request: str, folder: str) -> None:
        self._request = capture_request(request)
        self.folder = folder
        self._renderdoc = RenderDoc()
        self.files: list[str] = []

    def captures_of(self, plan: Plan) -> FrameCapture:
        """Return the captures for a run. Raise UsageError for unknown frames and commands, and FileError."""
        check_folder_to_write(self.folder)
        captures = FrameCapture(self._renderdoc, self._request, plan, self.folder, self._keep)
        os.makedirs(self.folder, exist_ok=True)
        return captures

    def _keep(self, capture: str, path: str) -> None:
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
        raise file_error(named, "is not a capture of gfxreconstruct, which would replace it", help=help)
    present = next((layer for layer in available_layers() if layer[0] == GFXR_LAYER), None)
    if present is None:
        message = f"--gfxr needs gfxreconstruct: its layer {GFXR_LAYER} was not found"
        raise UnsupportedError(message, code="SR-RUN-005", help=_GFXR_HOW)
    if any(version in present[2] for version in _WITHOUT_FRAMES):
        log.warning(
            __name__,
            "this gfxreconstruct (%s) records no frames of programs without a window, so that the whole run is one;"
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
    """Remove an incomplete capture after the last instance, and raise FileError; do nothing without a file."""
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
