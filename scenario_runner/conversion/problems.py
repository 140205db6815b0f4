"""Problems of the function that is converted: of its operations, of the types of values, of their order."""

from collections.abc import Iterator, Sequence

from scenario_runner.conversion.model import CustomOperation, Function, Model, Value
from scenario_runner.diagnostics import Diagnostic, Severity

_A_TYPE = "expected a tensor of a TOSA type"
_IN_ORDER = "the operations of a model are in the order of their execution, and form no cycle"


def find_problems(model: Model, function: Function) -> Iterator[Diagnostic]:
    """Iterate over what is wrong with a function, at the lines of operations where the model is the user's text."""
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


_Problem = tuple[str, Severity, CustomOperation | None, str, str | None]
"""Code, severity, the operation with its line, message and help."""


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
            yield "SR-CUSTOM-034", "error", None, f"{message}, whose elements no Vulkan format holds", _A_TYPE
    for operation in function.operations:
        if operation.is_shader:
            yield from _types(operation)
            continue
        message = f"the custom operation {operation.name!r} of the domain {operation.domain!r:.100} is no Vulkan shader"
        help = "shaders have the domain_name 'com.arm.VulkanCustomShader'"
        yield "SR-CUSTOM-035", "warning", operation, f"{message}: it is left to the converter", help
    if function.is_only_shaders:
        yield from _order(function)


def _types(shader: CustomOperation) -> Iterator[_Problem]:
    for direction, values in (("operand", shader.operands), ("result", shader.results)):
        for number, value in enumerate(values):
            message = f"{direction} {number} of the shader {shader.name!r} has the type {value.type.text}"
            if value.type.format is None:
                yield "SR-CUSTOM-034", "error", shader, f"{message}, whose elements no Vulkan format holds", _A_TYPE
            elif value.type.static_shape is None:
                message += ", but a shader needs a shape of which all sizes are known"
                yield "SR-CUSTOM-034", "error", shader, message, "give the model static shapes"
    if not shader.results:
        yield "SR-CUSTOM-034", "error", shader, f"the shader {shader.name!r} has no result", None


def _order(function: Function) -> Iterator[_Problem]:
    """Check that values are defined once, and before they are used, where no converter does."""
    known: dict[str, str] = {}
    steps: list[tuple[CustomOperation | None, Sequence[Value], Sequence[Value]]] = [(None, (), function.arguments)]
    steps += [(operation, operation.operands, operation.results) for operation in function.operations]
    steps.append((None, function.returned, ()))
    for operation, reads, defines in steps:
        for index, value in enumerate(reads):
            use = f"operand {index} of the shader {operation.name!r}" if operation else f"the returned value {index}"
            shown, type = value.shown_name, known.get(value.name)
            if type is None:
                message = f"{use} is {shown}, which nothing before it defines"
                yield "SR-CUSTOM-030", "error", operation, message, _IN_ORDER
            elif type != value.type.text:
                message = f"{use} is {shown} as {value.type.text}, but {shown} is {type}"
                yield "SR-CUSTOM-030", "error", operation, message, None
        for value in defines:
            if value.name in known:
                message = f"the value {value.shown_name} is defined twice"
                yield "SR-CUSTOM-030", "error", operation, message, "give it another name"
            known[value.name] = value.type.text
