"""Conversion of a TOSA model to a VGF file: check function and shaders, lower with placeholders, write the file."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from math import prod
from typing import Literal, NamedTuple

from scenario_runner.errors import ScenarioRunnerError, UsageError, error_of
from scenario_runner.errors.diagnostic import Diagnostic, Severity, warnings_as_errors
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.tosa import patching
from scenario_runner.tosa.attribute_parsing import examine_attributes
from scenario_runner.tosa.model import Attributes, CustomOperation, Function, Model, Shader, Value, View
from scenario_runner.tosa.model_converter import ConverterCall
from scenario_runner.tosa.model_files import Source, converter_errors, open_source, parse_model
from scenario_runner.tosa.model_layers import Layer, expose
from scenario_runner.tosa.placeholders import simplified, with_placeholders
from scenario_runner.tosa.shader_agreement import check_shaders

Dispatch = Literal["attributes", "cover-output"]
DISPATCHES: tuple[Dispatch, ...] = ("attributes", "cover-output")
_FEW_WORKGROUPS = "SR-CUSTOM-014"
_A_TYPE = "expected a tensor of a TOSA type"
_IN_ORDER = "the operations of a model are in the order of their execution, and form no cycle"
_Problem = tuple[str, Severity, CustomOperation | None, str, str | None]
"""Code, severity, the operation, message and help."""


class ConvertedModel(NamedTuple):
    """A converted model: the ``parts`` of a VGF file in order, with warnings and notes about the model.

    ``source`` is the converted model; ``layers`` are the outputs computed by operators.
    """

    parts: Sequence[bytes | memoryview]
    findings: tuple[Diagnostic, ...]
    source: Source
    layers: tuple[Layer, ...] = ()

    @property
    def content(self) -> bytes:
        """The bytes of the VGF file."""
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
    expose_intermediates: str | None = None,
) -> ConvertedModel:
    """Convert a TOSA model to VGF. Custom operations of the domain com.arm.VulkanCustomShader become compute segments.

    ``model`` is the path or the content of a file with MLIR text, MLIR bytecode or a TOSA FlatBuffer. ``output`` is the
    file to write, which appears complete or not at all; without it nothing is written. ``function`` chooses
    among several functions; the default is the only function, or ``main``.

    By default a shader's dispatch has ``workgroup_sizes`` workgroups. With ``dispatch="cover-output"``
    ``workgroup_sizes`` is the local size, and the dispatch covers the shader's first result; checked shaders use the
    local size in their code. With ``check`` the shaders are compiled by ``compiler`` and compared with their
    attributes. With ``strict`` warnings are errors.

    Arm's model-converter lowers all other operations and gets ``converter_options``. ``expose_intermediates`` turns
    results of operators into further outputs: all results for "*", otherwise results with a matching name or operator
    (`model_layers.expose`).

    Raises FileError, ScenarioError with all problems of the model and shaders, and UnsupportedError if the
    converter is missing or refuses the model.
    """
    if dispatch not in DISPATCHES:
        raise UsageError(f"the dispatch is {dispatch!r}, expected 'attributes' or 'cover-output'")
    path = None if output is None else os.fspath(output)
    if path is not None:
        check_destination(path)
        is_file = not isinstance(model, bytes) and os.path.exists(model)
        if is_file and os.path.exists(path) and os.path.samefile(path, model):
            raise UsageError(f"{path}: the output is the model itself", help="write it to another file")
    source = open_source(model)
    layers: tuple[Layer, ...] = ()
    if expose_intermediates is not None:
        source, layers = expose(source, expose_intermediates)
    if source.is_plain and function is None:
        converted = _without_shaders(source, converter_options)
    else:
        examine = partial(_examined, dispatch=dispatch, check=check, compiler=compiler, use_cache=use_cache)
        converted = _with_shaders(source, function, converter_options, strict, examine)
    converted = converted._replace(layers=layers)
    if path is not None:
        with OutputFile(path, sum(len(part) for part in converted.parts)) as file:
            for part in converted.parts:
                file.write(part)
    return converted


def _without_shaders(source: Source, options: Sequence[str]) -> ConvertedModel:
    """Convert a plain model."""
    with converter_errors(source), ConverterCall(source.input(), options) as call:
        content = call.result()
    if source.function is None:
        return ConvertedModel([content], (), source)
    return ConvertedModel(patching.with_names(content, source.function, source.name), (), source)


def _with_shaders(
    source: Source,
    name: str | None,
    converter_options: Sequence[str],
    strict: bool,
    examine: Callable[[Function, Model], tuple[list[Shader], list[Diagnostic]]],
) -> ConvertedModel:
    """Convert a model through placeholders for its shaders. Raises all errors, with ``strict`` also warnings."""
    model = parse_model(source)
    function = _chosen(model, name)
    findings = list(find_problems(model, function))
    _stop_at(findings, model.path)
    with ExitStack() as stack:
        call = None
        if not function.is_only_shaders:
            with converter_errors(source, model, findings):
                placeholders = with_placeholders(source, model, function)
                call = stack.enter_context(ConverterCall(placeholders, converter_options))
        shaders, problems = examine(function, model)
        findings += problems
        _stop_at(findings, model.path, strict=strict)
        if call is None:
            skeleton = patching.skeleton_of(function)
        else:
            with converter_errors(source, model, findings):
                converted = parse_vgf(call.result(), name=model.path)
                skeleton = patching.skeleton_in(converted, function, partial(simplified, source, model, function))
    parts, problems = patching.patched(skeleton, function, shaders, model.path)
    for problem in problems:
        message = f"the shaders do not fit together: {problem.pointer}: {problem.message}"
        findings.append(Diagnostic("SR-CUSTOM-036", "error", None, message, path=model.path))
    _stop_at(findings, model.path)
    return ConvertedModel(parts, _placed(findings, model.path).problems if findings else (), source)


def _chosen(model: Model, name: str | None) -> Function:
    """Choose the function to convert."""
    names = [function.name for function in model.functions]
    expected = name if name is not None else names[0] if len(names) == 1 else "main"
    for function in model.functions:
        if function.name == expected:
            return function
    there_are = ", ".join(map(repr, names))
    if name is None:
        raise UsageError(f"{model.path}: the model has the functions {there_are}", help="choose one with --function")
    raise UsageError(f"{model.path}: the model has no function {name!r:.100}; it has {there_are}")


def _stop_at(findings: Iterable[Diagnostic], path: str, *, strict: bool = False) -> None:
    checked = warnings_as_errors(findings) if strict else findings
    errors = [finding for finding in checked if finding.severity == "error"]
    if errors:
        raise _placed(errors, path)


def _placed(findings: Iterable[Diagnostic], path: str) -> ScenarioRunnerError:
    """Make an error from findings; each message begins with the model's path."""
    return error_of(findings).of_scenario(path)


def _labels(model: Model, function: Function) -> Iterator[tuple[str, CustomOperation]]:
    """Label each shader for messages: the name, and the line if several shaders share the name."""
    names = [shader.name for shader in function.shaders]
    for number, shader in enumerate(function.shaders):
        label = shader.name or "custom operation"
        if names.count(shader.name) > 1 or not shader.name:
            label += f", line {shader.line}" if model.is_users_text else f", shader {number}"
        yield label, shader


def _examined(
    function: Function, model: Model, *, dispatch: Dispatch, check: bool, compiler: str | None, use_cache: bool
) -> tuple[list[Shader], list[Diagnostic]]:
    """Read and check the attributes of all shaders, with options of `convert`. Return the shaders and the findings."""
    all_attributes: list[Attributes] = []
    findings: list[Diagnostic] = []
    for label, shader in _labels(model, function):
        counts = len(shader.operands), len(shader.results)
        attributes, problems = examine_attributes(shader.attributes, label, counts)
        findings += problems
        if attributes is not None:
            all_attributes.append(attributes)
    if len(all_attributes) < len(function.shaders):
        return [], findings
    workgroups = local_sizes = [attributes.workgroup_sizes for attributes in all_attributes]
    if check:
        types = [shader.types for shader in function.shaders]
        checked = check_shaders(all_attributes, types, compiler=compiler, use_cache=use_cache)
        findings += [finding for shader in checked for finding in shader.findings]
        local_sizes = [shader.local_size or shader.attributes.workgroup_sizes for shader in checked]
    if dispatch == "cover-output":
        findings = [finding for finding in findings if finding.code != _FEW_WORKGROUPS]
        shapes = [shader.results[0].type.static_shape or () for shader in function.shaders]
        views = [attributes.outputs[0] for attributes in all_attributes]
        workgroups = list(map(_covering_workgroups, shapes, views, local_sizes))
    return list(map(Shader, function.shaders, all_attributes, workgroups)), findings


def _covering_workgroups(shape: Sequence[int], view: View, local_size: Sequence[int]) -> tuple[int, int, int]:
    """Count the workgroups with an invocation for each element of a value.

    x counts the last dimension (an image's width), y the dimension before it, and z all others together. For a buffer
    and one-dimensional workgroups, x counts all elements. A last dimension that holds the format's components counts
    as a single element.
    """
    sizes = list(shape)
    if view.format.components > 1 and sizes and sizes[-1] == view.format.components:
        sizes.pop()
    if view.is_buffer and tuple(local_size[1:]) == (1, 1):
        sizes = [prod(sizes)]
    y, x = [1, 1, *sizes][-2:]
    extent = (x, y, prod(sizes[:-2]))
    return tuple(-(-size // local) for size, local in zip(extent, local_size, strict=True))  # type: ignore[return-value]


def find_problems(model: Model, function: Function) -> Iterator[Diagnostic]:
    """Yield the problems of a function, with the operations' lines if the file is text."""
    others = [other.name for other in model.functions if other is not function]
    if others:
        message = f"only the function {function.name!r} is converted, not {', '.join(map(repr, others))}"
        yield Diagnostic("SR-CUSTOM-037", "note", None, message, "choose another one with --function", model.path)
    problems = list(_problems(function))
    returned, declared = [value.type.text for value in function.returned], [type.text for type in function.result_types]
    if function.is_only_shaders and returned != declared and all(severity != "error" for _, severity, *_ in problems):
        message = f"the function {function.name!r} has the results ({', '.join(declared)})"
        problems.append(("SR-CUSTOM-030", "error", None, f"{message}, but returns ({', '.join(returned)})", None))
    for code, severity, operation, message, help in problems:
        line = operation.line if operation is not None and model.is_users_text else None
        yield Diagnostic(code, severity, None, message, help, model.path, line)


def _problems(function: Function) -> Iterator[_Problem]:
    for operation in function.nested:
        if operation.is_shader:
            message = f"the shader {operation.name!r} is inside of a region of another operation"
            help = "only operations of the function itself can become segments: move it out of the region"
            yield "SR-CUSTOM-038", "error", operation, message, help
    read = {operand.name for shader in function.shaders for operand in shader.operands}
    for argument in function.arguments:
        if argument.name not in read and argument.type.format is None:
            message = f"the argument {argument.shown_name} has the type {argument.type.text}"
            yield "SR-CUSTOM-034", "error", None, f"{message}, but no Vulkan format holds such elements", _A_TYPE
    for operation in function.operations:
        if operation.is_shader:
            yield from _types(operation)
            continue
        message = (
            f"the custom operation {operation.name!r} of the domain {operation.domain!r:.100} is not a Vulkan shader"
        )
        help = "shaders have the domain_name 'com.arm.VulkanCustomShader'"
        yield "SR-CUSTOM-035", "warning", operation, f"{message}: it is left to the converter", help
    if function.is_only_shaders:
        yield from _order(function)


def _types(shader: CustomOperation) -> Iterator[_Problem]:
    for direction, values in (("operand", shader.operands), ("result", shader.results)):
        for number, value in enumerate(values):
            message = f"{direction} {number} of the shader {shader.name!r} has the type {value.type.text}"
            if value.type.format is None:
                yield "SR-CUSTOM-034", "error", shader, f"{message}, but no Vulkan format holds such elements", _A_TYPE
            elif value.type.static_shape is None:
                message += ", but a shader needs a static shape"
                yield "SR-CUSTOM-034", "error", shader, message, "give the model static shapes"
    if not shader.results:
        yield "SR-CUSTOM-034", "error", shader, f"the shader {shader.name!r} has no result", None


def _order(function: Function) -> Iterator[_Problem]:
    """Check that values are defined once and before their use. No converter checks a model of shaders only."""
    known: dict[str, str] = {}
    steps: list[tuple[CustomOperation | None, Sequence[Value], Sequence[Value]]] = [(None, (), function.arguments)]
    steps += [(operation, operation.operands, operation.results) for operation in function.operations]
    steps.append((None, function.returned, ()))
    for operation, reads, defines in steps:
        for index, value in enumerate(reads):
            use = f"operand {index} of the shader {operation.name!r}" if operation else f"the returned value {index}"
            shown, type = value.shown_name, known.get(value.name)
            if type is None:
                message = f"{use} is {shown}, which is not defined before"
                yield "SR-CUSTOM-030", "error", operation, message, _IN_ORDER
            elif type != value.type.text:
                message = f"{use} is {shown} as {value.type.text}, but {shown} is {type}"
                yield "SR-CUSTOM-030", "error", operation, message, None
        for value in defines:
            if value.name in known:
                message = f"the value {value.shown_name} is defined twice"
                yield "SR-CUSTOM-030", "error", operation, message, "give it another name"
            known[value.name] = value.type.text
