"""Reads a VGF file: header, four sections, then every cross reference."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from scenario_runner import log
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError, UnsupportedError, error_of
from scenario_runner.files.source import SourceFile, file_error
from scenario_runner.vgf.check import find_problems
from scenario_runner.vgf.constants import read_constants
from scenario_runner.vgf.content import Content, DiskContent, MemoryContent
from scenario_runner.vgf.executorch import is_program, joined_models, read_program
from scenario_runner.vgf.header import SIZE_BYTES, Section, read_header
from scenario_runner.vgf.joined import join_by_number
from scenario_runner.vgf.model import Vgf
from scenario_runner.vgf.modules import read_modules
from scenario_runner.vgf.resources import read_resources
from scenario_runner.vgf.sequence import read_sequence

_Table = TypeVar("_Table")


def read_vgf(path: str | os.PathLike[str]) -> Vgf:
    """Read the VGF file at ``path`` (formats 0.3 to 0.5).

    The data of its constants are not read, only where they lie. Every index, size and cross reference is checked
    (`find_problems`), so that users of the result need not. Raises FileError when the file cannot be read or is not
    a valid VGF file, and UnsupportedError without the ``ml`` extra.
    """
    with SourceFile(path) as file:
        return read_open_vgf(file)


def read_open_vgf(file: SourceFile) -> Vgf:
    """As `read_vgf`, of a file that is open. Of an ExecuTorch program these are the models that it calls, as one."""
    if not is_program(file):
        return _parsed(DiskContent(file), file.path)
    program = read_program(file)
    others = ", ".join(dict.fromkeys(program.others))
    if others and len(program.calls) > 1:
        raise UnsupportedError(
            f"{file.path}: between its {len(program.calls)} VGF models the ExecuTorch program runs other operators:"
            f" {others:.300}",
            help="scenario-runner vgf extract writes the models, to be run one by one",
        )
    if others:
        log.warning(
            __name__, "%s: operators of the ExecuTorch program around its model are not run: %s", file.path, others
        )
    models = [_parsed(DiskContent(file, *call.part), file.path) for call in program.calls]
    if len(models) == 1:
        return models[0]
    try:
        whole = joined_models(program, models)
    except ValueError as error:
        raise file_error(file.path, "is a damaged ExecuTorch program", code="SR-FILE-013") from error
    if problems := find_problems(whole, file.path):
        raise error_of(problems)
    return whole


def parse_vgf(content: bytes | bytearray | memoryview, *, name: str = "<memory>") -> Vgf:
    """Read a VGF file that is in memory; the data of its constants are views of ``content``. ``name`` is for messages.

    Raises like `read_vgf`.
    """
    return _parsed(MemoryContent(content), name)


def _parsed(content: Content, name: str) -> Vgf:
    header = read_header(content.part(0, SIZE_BYTES), content.size_bytes, name)

    def table(read: Callable[[bytes, str], _Table], section: Section) -> _Table:
        # The tables are decoded from copies: the library verifies them once and then trusts them, so they must not
        # change.
        copied = bytes(content.part(section.offset_bytes, section.size_bytes))
        try:
            return read(copied, name)
        except UnicodeDecodeError as error:
            message = f"a text of the {section.name} section is not valid UTF-8"
            raise FileError(
                Diagnostic("SR-FILE-013", "error", None, message, "the file is damaged", path=name)
            ) from error

    sequence = table(read_sequence, header.sequence)
    vgf = Vgf(
        version=header.version,
        modules=table(read_modules, header.modules),
        resources=table(read_resources, header.resources),
        segments=sequence.segments,
        constants=read_constants(content, header.constants, name),
        inputs=sequence.inputs,
        outputs=sequence.outputs,
        input_names=sequence.input_names,
        output_names=sequence.output_names,
    )
    vgf = join_by_number(vgf)
    if problems := find_problems(vgf, name):
        raise error_of(problems)
    return vgf
