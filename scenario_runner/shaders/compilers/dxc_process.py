"""The process that calls a DXC library.

It imports few standard modules: each process starts anew, and `typing` alone takes as long as five shaders. The
arguments are:

    LIBRARY --version
    LIBRARY COUNT SOURCE MODULE LOG INCLUDES OPTION... COUNT ...

COUNT is the number of words that follow for a shader. LOG is a file for the compiler's messages, written before the
module; "-" is standard output. The compiler resolves includes itself only with "own-includes" as INCLUDES. The exit
status is 1 if a shader was rejected.

Source: dxcapi.h of DirectXShaderCompiler. Its objects are COM objects: pointers to function tables that begin with
QueryInterface, AddRef and Release.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # typing has this name, and type checkers know it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COMPILER = "73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"  # CLSID_DxcCompiler
_COMPILER_3 = "228b4687-5a6a-4730-900c-9702b2203f54"  # IDxcCompiler3
_UTILITIES = "6245d6af-66e0-48fd-80b4-4d271796748c"  # CLSID_DxcUtils
_UTILITIES_1 = "4605c4cb-2019-492a-ada4-65f20bb7d67f"  # IDxcUtils
_RESULT = "58346cda-dde7-4497-9461-6f87af5e0659"  # IDxcResult
_VERSION_2 = "fb6904c4-42f0-4b62-9c46-983af7da7c83"  # IDxcVersionInfo2
_VERSION_3 = "5e13e843-9d25-473c-9ad2-03b2d0b44b1e"  # IDxcVersionInfo3
_UTF_8 = 65001
_NAME = "source"  # the name of every source in messages


class _Buffer(ctypes.Structure):
    """DxcBuffer."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", ctypes.c_uint))


class _Object:
    """A COM object. Methods are called by their index in the table."""

    def __init__(self) -> None:
        self.pointer = ctypes.c_void_p()

    def call(self, index: int, *arguments: object, result: Any = ctypes.c_int32) -> Any:
        """Call the method at this index of the virtual table. Arguments are ctypes pointers or unsigned integers."""
        table = ctypes.cast(self.pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
        types = [ctypes.c_void_p if not isinstance(argument, int) else ctypes.c_uint32 for argument in arguments]
        function = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *types)(table[index] or 0)
        return function(self.pointer, *arguments)

    def out(self) -> object:
        """Return the address for an object that a parameter returns."""
        return ctypes.byref(self.pointer)

    def release(self) -> None:
        """Release the object, if there is one."""
        if self.pointer:
            self.call(2, result=ctypes.c_uint32)


def main(arguments: Sequence[str]) -> int:
    """Compile the shaders in ``arguments``, and return the exit status."""
    path, *rest = arguments
    try:
        library = ctypes.CDLL(os.path.abspath(path))
        compiler = _create(library, _COMPILER, _COMPILER_3)
        utilities = _create(library, _UTILITIES, _UTILITIES_1)
    except (OSError, AttributeError) as error:
        _say(f"error: {error}\n".encode())
        return 2
    if rest == ["--version"]:
        _say(f"scenario-runner: DXC library {_version(compiler)}\n".encode())
        return 0
    includes = _Object()
    utilities.call(9, includes.out())  # IDxcUtils::CreateDefaultIncludeHandler
    refused = False
    while rest:
        count = int(rest[0])
        source, module, log, own, *options = rest[1 : count + 1]
        rest = rest[count + 1 :]
        code, messages = _compile(compiler, includes if own == "own-includes" else _Object(), source, options)
        if log == "-":
            _say(messages)
        else:
            _write(log, messages)
        if code:
            _write(module, code)
        refused = refused or not code
    return int(refused)


def _create(library: ctypes.CDLL, kind: str, interface: str) -> _Object:
    """Create an object of the library. Raises OSError if that fails, AttributeError for another library."""
    create = library.DxcCreateInstance
    create.restype = ctypes.c_int32
    instance = _Object()
    status = create(_guid(kind), _guid(interface), instance.out())
    if status < 0:
        raise OSError(f"DxcCreateInstance gave {_hresult(status)}")
    return instance


def _compile(compiler: _Object, includes: _Object, source: str, options: Sequence[str]) -> tuple[bytes, bytes]:
    """Return the module (empty after an error) and the messages.

    ``includes`` opens the files of the remaining directives. A null object opens none.
    """
    with open(source, "rb") as file:
        text = file.read()
    arguments = (ctypes.c_wchar_p * (len(options) + 1))(_NAME, *options)
    buffer = _Buffer(text, len(text), _UTF_8)
    result = _Object()
    status = compiler.call(
        3, ctypes.byref(buffer), arguments, len(arguments), includes.pointer, _guid(_RESULT), result.out()
    )  # IDxcCompiler3::Compile
    if status < 0:
        return b"", f"error: IDxcCompiler3::Compile gave {_hresult(status)}\n".encode()
    outcome = ctypes.c_int32()
    result.call(3, ctypes.byref(outcome))  # IDxcOperationResult::GetStatus
    code, messages = (_bytes(result, method) for method in (4, 5))  # GetResult, GetErrorBuffer
    result.release()
    messages = messages.rstrip(b"\0")
    if outcome.value < 0 or not code:
        return b"", messages or f"error: the compiler gave {_hresult(outcome.value)}\n".encode()
    return code, messages


def _bytes(result: _Object, method: int) -> bytes:
    """Copy the bytes of the IDxcBlob that a method returns."""
    blob = _Object()
    if result.call(method, blob.out()) < 0 or not blob.pointer:
        return b""
    size = blob.call(4, result=ctypes.c_size_t)
    data = ctypes.string_at(blob.call(3, result=ctypes.c_void_p), size) if size else b""
    blob.release()
    return data


def _version(compiler: _Object) -> str:
    """Return version and commit, such as "1.8.0.4597 (fd7e54bc)", as far as the library reports them."""
    text, count = ctypes.c_char_p(), ctypes.c_uint32()
    words = []
    for interface, method, arguments, form in (
        (_VERSION_3, 3, (ctypes.byref(text),), "%s"),
        (_VERSION_2, 5, (ctypes.byref(count), ctypes.byref(text)), "(%s)"),
    ):
        info = _Object()
        if compiler.call(0, _guid(interface), info.out()) >= 0:
            info.call(method, *arguments)
            words.append(form % (text.value or b"").decode("utf-8", "replace"))
            info.release()
    return " ".join(word for word in words if word) or "of unknown version"


def _guid(text: str) -> bytes:
    """Return a GUID as bytes in memory. The first three fields are little-endian numbers."""
    low, middle, high, *rest = text.split("-")
    return b"".join(bytes.fromhex(part)[::-1] for part in (low, middle, high)) + bytes.fromhex("".join(rest))


def _hresult(status: int) -> str:
    return f"0x{status & 0xFFFFFFFF:08x}"


def _say(message: bytes) -> None:
    while message:
        message = message[os.write(1, message) :]


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
