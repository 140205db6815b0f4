"""The one door to ``vgfpy``, the library that decodes the FlatBuffers tables of a VGF file."""

from __future__ import annotations

from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError, MissingPackageError


def decoder(factory: str, section: bytes | memoryview, path: str, name: str) -> Any:
    """The ``vgfpy`` decoder that ``vgfpy.<factory>`` makes of a section; the caller keeps ``section`` alive while
    using it.

    Raises MissingPackageError when the library is not installed and FileError when it refuses the section.
    """
    try:
        import vgfpy
    except ImportError as error:
        raise MissingPackageError(
            "reading VGF files needs the package ai_ml_sdk_vgf_library, which is not installed",
            help="install it with 'scenario-runner doctor --fix', or: pip install ai_ml_sdk_vgf_library",
        ) from error
    made = getattr(vgfpy, factory)(section, len(section)) if len(section) else None
    if made is None:
        message = f"the {name} section ({len(section)} bytes) holds no valid table"
        raise FileError(
            Diagnostic("SR-FILE-013", "error", None, message, "the file is damaged or was cut short", path=path)
        )
    return made


def kind_number(value: Any, path: str, pointer: str, names: tuple[str, ...]) -> int:
    """The number of an enumeration value. Raises FileError when it is not one of ``names``."""
    number = int(value)
    if not 0 <= number < len(names):
        message = f"the number {number} is unknown, expected 0 to {len(names) - 1} ({', '.join(names)})"
        raise FileError(Diagnostic("SR-FILE-014", "error", pointer, message, path=path))
    return number
