"""Reads a VGF file: header, four sections, then every cross reference."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from scenario_runner.errors import FileError, Problem, file_error_class
from scenario_runner.vgf.check import find_problems
from scenario_runner.vgf.constants import read_constants
from scenario_runner.vgf.header import Section, read_header
from scenario_runner.vgf.model import Vgf
from scenario_runner.vgf.modules import read_modules
from scenario_runner.vgf.resources import read_resources
from scenario_runner.vgf.sequence import read_sequence

_Table = TypeVar("_Table")


def read_vgf(path: str | os.PathLike[str]) -> Vgf:
    """Read the VGF file at ``path`` (formats 0.3 to 0.5).

    The file is mapped, not read: the data of its constants are views of the mapping, which lives as long as one of
    them does. Every index, size and cross reference is checked (`find_problems`), so that users of the result need
    not. Raises FileError when the file cannot be read or is no sound VGF file, and UnsupportedError without the
    ``ml`` extra.
    """
    name = os.fspath(path)
    try:
        # Before opening, because opening a named pipe waits for its other end.
        status = Path(name).stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileError(Problem("expected a VGF file, but this is no regular file", path=name))
        with open(name, "rb") as file:
            # An empty file cannot be mapped; the header check has the words for it.
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if status.st_size else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise file_error_class(error)(Problem(f"cannot read the VGF file: {reason.lower()}", path=name)) from error
    return parse_vgf(content, name=name)


def parse_vgf(content: bytes | bytearray | memoryview | mmap.mmap, *, name: str = "<memory>") -> Vgf:
    """Read a VGF file that is in memory; the data of its constants are views of ``content``. ``name`` is for messages.

    Raises like `read_vgf`.
    """
    file = memoryview(content).cast("B")
    header = read_header(file, name)
    # The tables are decoded from copies: the library verifies them once and then trusts them, so they must not change.
    sequence = _table(read_sequence, header.sequence, file, name)
    vgf = Vgf(
        version=header.version,
        modules=_table(read_modules, header.modules, file, name),
        resources=_table(read_resources, header.resources, file, name),
        segments=sequence.segments,
        constants=read_constants(header.constants.view(file), name),
        inputs=sequence.inputs,
        outputs=sequence.outputs,
        input_names=sequence.input_names,
        output_names=sequence.output_names,
    )
    if problems := find_problems(vgf, name):
        raise FileError(problems)
    return vgf


def _table(read: Callable[[bytes, str], _Table], section: Section, file: memoryview, name: str) -> _Table:
    try:
        return read(bytes(section.view(file)), name)
    except UnicodeDecodeError as error:
        message = f"a text of the {section.name} section is not valid UTF-8"
        raise FileError(Problem(message, path=name, help="the file is damaged")) from error
