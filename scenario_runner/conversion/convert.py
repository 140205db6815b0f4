"""Convert a TOSA model to a VGF file: check its shaders, lower it with placeholders for them, write the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, NamedTuple

from scenario_runner.conversion.converter import ConverterCall, ConverterFailedError, ConverterRefusedError
from scenario_runner.conversion.model import CustomOperation, Function, Model, Value, format_name_of_element
from scenario_runner.conversion.placeholders import equal_operands, simplified, with_placeholders
from scenario_runner.conversion.source import Source, open_source, parse_model, refused
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, UsageError, error_of
from scenario_runner.files.output import OutputFile, check_destination

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
        check_destination(path)
        if not isinstance(model, bytes) and os.path.exists(path) and os.path.samefile(path, model):
            raise UsageError(f"{path}: the output is the model itself", help="write it to a file of its own")
    source = open_source(model)
    if source.is_plain and function is None:
        converted = _without_shaders(source, converter_options)
    else:
        conversion = _MixedConversion(source, function, converter_options)
        converted = conversion.run(dispatch, strict, check=check, compiler=compiler, use_cache=use_cache)
    if path is not None:
        with OutputFile(path, sum(len(part) for part in converted.parts)) as file:
            for part in converted.parts:
                file.write(part)
    return converted


def _without_shaders(source: Source, options: Sequence[str]) -> ConvertedModel:
    """The model as the converter converts it."""
    try:
        with ConverterCall(source.input(), options) as call:
            from scenario_runner.conversion import patching  # takes as long to import as many models to convert

            content = call.result()
    except (ConverterRefusedError, ConverterFailedError) as error:
        raise refused(source, error) from error
    except ScenarioRunnerError as error:
        raise error.at(path=source.name) from error
    if source.function is None:
        return ConvertedModel([content], ())
    return ConvertedModel(patching.with_names(content, source.function, source.name), ())


def _chosen(model: Model, name: str | None) -> Function:
    """The function to convert."""
    names = [function.name for function in model.functions]
    name_of_function = name
    if name_of_function is None:
        name_of_function = names[0] if len(names) == 1 else "main"
    for function in model.functions:
        if function.name == name_of_function:
            return function
    there_are = ", ".join(map(repr, names))
    if name is None:
        raise UsageError(f"{model.path}: the model has the functions {there_are}", help="choose one with --function")
    raise UsageError(f"{model.path}: the model has no function {name!r:.100}; it has {there_are}")


class _MixedConversion:
    """One conversion; problems are collected in ``found``."""

    def __init__(self, source: Source, function: str | None, converter_options: Sequence[str]) -> None:
        self._source = source
        self._model = parse_model(source)
        self._function = _chosen(self._model, function)
        self._converter_options = converter_options
        self.found: list[Diagnostic] = []

    def run(
        self, dispatch: Dispatch, strict: bool, *, check: bool, compiler: str | None, use_cache: bool
    ) -> ConvertedModel:
        """Convert; raises everything that is wrong, with ``strict`` also for warnings."""
        self._check_function()
        self._stop_at(("error",))
        with ExitStack() as stack:
            call = None if self._function.is_only_shaders else stack.enter_context(self._call())
            from scenario_runner.conversion import examining, patching

            shaders, findings = examining.examine(
                list(self._labels()), dispatch, check=check, compiler=compiler, use_cache=use_cache
            )
            self.found += findings
            self._stop_at(("error", "warning") if strict else ("error",))
            equal = equal_operands(self._function)
            if call is None:
                skeleton = patching.skeleton_of(self._function)
            else:
                with self._refusals():
                    converted = call.result()
                    skeleton, equal = patching.skeleton_in(
                        converted, self._function, equal, self._simplified, self._model.path
                    )
        parts, problems = patching.patched(skeleton, self._function, shaders, equal, self._model.path)
        for problem in problems:
            self._add("SR-CUSTOM-036", f"the shaders do not fit together: {problem.pointer}: {problem.message}")
        self._stop_at(("error",))
        return ConvertedModel(parts, self._placed(self.found).problems if self.found else ())

    def _call(self) -> ConverterCall:
        try:
            return ConverterCall(with_placeholders(self._source, self._model, self._function), self._converter_options)
        except ScenarioRunnerError as error:
            raise error.at(path=self._model.path) from error

    def _stop_at(self, severities: tuple[str, ...]) -> None:
        problems = [finding for finding in self.found if finding.severity in severities]
        if problems:
            raise self._placed([problem._replace(severity="error") for problem in problems])

    def _placed(self, findings: Sequence[Diagnostic]) -> ScenarioRunnerError:
        """The error of findings, each of which begins with the path of the model."""
        return error_of(findings).of_scenario(self._model.path)

    def _add(
        self,
        code: str,
        message: str,
        help: str | None = None,
        *,
        at: CustomOperation | None = None,
        severity: Literal["error", "warning", "note"] = "error",
    ) -> None:
        line = at.line if at is not None and self._model.is_users_text else None
        self.found.append(Diagnostic(code, severity, None, message, help, self._model.path, line))

    def _check_function(self) -> None:
        function = self._function
        others = [each.name for each in self._model.functions if each is not function]
        if others:
            names = ", ".join(map(repr, others))
            message = f"only the function {function.name!r} is converted, not {names}"
            self._add("SR-CUSTOM-037", message, "choose another one with --function", severity="note")
        for operation in function.nested:
            if operation.is_shader:
                message = f"the shader {operation.name!r} is inside of a region of another operation"
                help = "only operations of the function itself can become segments: move it out of the region"
                self._add("SR-CUSTOM-038", message, help, at=operation)
        read = {operand.name for shader in function.shaders for operand in shader.operands}
        for argument in function.arguments:
            if argument.name not in read and format_name_of_element(argument.type.element) is None:
                message = f"the argument {argument.shown_name} has the type {argument.type.text}"
                message += ", whose elements no Vulkan format holds"
                self._add("SR-CUSTOM-034", message, "expected a tensor of a TOSA type")
        for operation in function.operations:
            if operation.is_shader:
                self._check_types(operation)
            else:
                self._check_domain(operation)
        self._check_order()

    def _check_domain(self, operation: CustomOperation) -> None:
        message = (
            f"the custom operation {operation.name!r} has the domain {operation.domain!r:.100}, which is not that of "
            "Vulkan shaders: it is left to the converter"
        )
        help = "shaders have the domain_name 'com.arm.VulkanCustomShader'"
        self._add("SR-CUSTOM-035", message, help, at=operation, severity="warning")

    def _check_types(self, operation: CustomOperation) -> None:
        for direction, values in (("operand", operation.operands), ("result", operation.results)):
            for number, value in enumerate(values):
                what = f"{direction} {number} of the shader {operation.name!r} has the type {value.type.text}"
                if format_name_of_element(value.type.element) is None:
                    message = f"{what}, whose elements no Vulkan format holds"
                    self._add("SR-CUSTOM-034", message, "expected a tensor of a TOSA type", at=operation)
                elif value.type.static_shape is None:
                    message = f"{what}, but a shader needs a shape of which all sizes are known"
                    self._add("SR-CUSTOM-034", message, "give the model static shapes", at=operation)
        if not operation.results:
            self._add("SR-CUSTOM-034", f"the shader {operation.name!r} has no result", at=operation)

    def _check_order(self) -> None:
        """Check that values are made once, before they are used, and returned as declared, where no converter does."""
        function = self._function
        if not function.is_only_shaders:
            return
        known: dict[str, str] = {}
        results = {result.name for operation in function.operations for result in operation.results}
        steps: list[tuple[CustomOperation | None, Sequence[Value], Sequence[Value]]] = [(None, (), function.arguments)]
        steps += [(operation, operation.operands, operation.results) for operation in function.operations]
        steps.append((None, function.returned, ()))
        for at, reads, makes in steps:
            for number, value in enumerate(reads):
                where = f"operand {number} of the shader {at.name!r}" if at else f"the returned value {number}"
                shown, help = value.shown_name, None
                if value.name not in known and value.name in results:
                    message = f"{where} is {shown}, which is made by the same operation or a later one"
                    help = "the operations of a model are in the order of their execution, and form no cycle"
                elif value.name not in known:
                    message = f"{where} is {shown}, which nothing defines"
                elif known[value.name] != value.type.text:
                    message = f"{where} is {shown} as {value.type.text}, but {shown} is {known[value.name]}"
                else:
                    continue
                self._add("SR-CUSTOM-030", message, help, at=at)
            for value in makes:
                if value.name in known:
                    message = f"the value {value.shown_name} is defined twice"
                    self._add("SR-CUSTOM-030", message, "give it another name", at=at)
                known[value.name] = value.type.text
        returned, declared = (
            f"({', '.join(type.text for type in types)})"
            for types in ([value.type for value in function.returned], function.result_types)
        )
        if returned != declared and not any(finding.severity == "error" for finding in self.found):
            message = f"the function {function.name!r} has the results {declared}, but returns {returned}"
            self._add("SR-CUSTOM-030", message)

    def _labels(self) -> Iterator[tuple[str, CustomOperation]]:
        """Name each shader as messages do: its name, with the line where there are several of that name."""
        shaders = self._function.shaders
        names = [shader.name for shader in shaders]
        for number, shader in enumerate(shaders):
            label = shader.name or "custom operation"
            if names.count(shader.name) > 1 or not shader.name:
                label += f", line {shader.line}" if self._model.is_users_text else f", shader {number}"
            yield label, shader

    def _simplified(self) -> Function:
        return simplified(with_placeholders(self._source, self._model, self._function), self._model.path)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors of the converter become those of the model."""
        try:
            yield
        except (ConverterRefusedError, ConverterFailedError) as error:
            # what was left to the converter may be the reason
            left = [each for each in self.found if each.code == "SR-CUSTOM-035"]
            why = refused(self._source, error, has_lines=self._model.is_users_text)
            raise error_of([*why.problems, *left]) from error
        except ScenarioRunnerError as error:
            raise error.at(path=self._model.path) from error
