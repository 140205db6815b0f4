"""From a TOSA model to a VGF file: read, checked, lowered, and written only when everything is right."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from scenario_runner.conversion.converter import ConverterCall, ConverterFailedError, ConverterRefusedError
from scenario_runner.conversion.source import Source, open_source, refused
from scenario_runner.errors import ScenarioRunnerError, UsageError

if TYPE_CHECKING:
    from scenario_runner.diagnostics import Diagnostic

Dispatch = Literal["attributes", "cover-output"]
DISPATCHES: tuple[Dispatch, ...] = ("attributes", "cover-output")


class ConvertedModel(NamedTuple):
    """A converted model: ``parts`` are the VGF file, one after the other, ``findings`` warnings and notes about the
    model."""

    parts: Sequence[bytes | memoryview]
    findings: tuple[Diagnostic, ...]

    @property
    def content(self) -> bytes:
        """The VGF file."""
        return b"".join(self.parts)


def convert(
    model: str | os.PathLike[str] | bytes,
    output: str | os.PathLike[str] | None = None,
    *,
    function: str | None = None,
    dispatch: Dispatch = "attributes",
    check: bool = True,
    strict: bool = False,
    compiler: str | None = None,
    use_cache: bool = True,
    converter_options: Sequence[str] = (),
) -> ConvertedModel:
    """Convert a TOSA model to VGF, custom operations of the domain com.arm.VulkanCustomShader to compute segments.

    ``model`` is the path of a file with MLIR text, MLIR bytecode or a TOSA FlatBuffer, or the content of one.
    ``output`` is the file to write, which appears complete or not at all; without it nothing is written.
    ``function`` names the function where the model has several; without it that is the only one, or ``main``.
    The dispatch of a shader has ``workgroup_sizes`` workgroups, or with ``dispatch="cover-output"`` as many of that
    local size as its first result needs (where shaders are checked: of the local size that the code has).
    Shaders are compiled and compared with their attributes, unless ``check`` is false; ``compiler`` is the GLSL
    compiler, and ``use_cache`` says whether the caches are used. With ``strict`` warnings are
    errors. ``converter_options`` are given to Arm's model-converter, which lowers all other operations.

    Raises FileError, ScenarioError for what is wrong with the model and its shaders, and UnsupportedError for what
    the converter refuses, and where it is not installed; all problems of the shaders travel in one error.
    """
    if dispatch not in DISPATCHES:
        raise UsageError(f"the dispatch is {dispatch!r}, expected 'attributes' or 'cover-output'")
    path = None if output is None else os.fspath(output)
    if path is not None:
        from scenario_runner.files.output import check_destination

        check_destination(path)
        if not isinstance(model, bytes) and os.path.exists(path) and os.path.samefile(path, model):
            raise UsageError(f"{path}: the output is the model itself", help="write it to a file of its own")
    source = open_source(model)
    if source.is_plain and function is None:
        converted = _without_shaders(source, converter_options)
    else:
        from scenario_runner.conversion.examining import CheckOptions
        from scenario_runner.conversion.mixed import MixedConversion

        options = CheckOptions(check, compiler, use_cache)
        conversion = MixedConversion(source, function, dispatch == "cover-output", options, converter_options)
        converted = ConvertedModel(*conversion.run(strict))
    if path is not None:
        from scenario_runner.files.output import OutputFile

        with OutputFile(path, sum(len(part) for part in converted.parts)) as file:
            for part in converted.parts:
                file.write(part)
    return converted


def _without_shaders(source: Source, options: Sequence[str]) -> ConvertedModel:
    """The model as the converter converts it."""
    try:
        with ConverterCall(source.input(), options) as call:
            # what is imported from here on is imported while the converter is at work
            from scenario_runner.graphs import parse_vgf
            from scenario_runner.graphs.writer import vgf_parts

            parts: Sequence[bytes | memoryview] = [call.result()]
    except (ConverterRefusedError, ConverterFailedError) as error:
        raise refused(source, error) from error
    except ScenarioRunnerError as error:
        raise error.at(path=source.name) from error
    if source.form == "flatbuffer":
        parts = vgf_parts(source.named(parse_vgf(parts[0], name=source.name)))
    return ConvertedModel(parts, ())
