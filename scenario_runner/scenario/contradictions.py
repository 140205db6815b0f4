"""Parts of a scenario that are right alone and wrong together, as far as the JSON alone can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from scenario_runner.byte_spans import Span, collisions
from scenario_runner.diagnostics import Diagnostic, Severity

_ERROR: Final[Severity] = "error"
_WARNING: Final[Severity] = "warning"
_WHOLE_SIZE = 2**64 - 1
_REMAINING = 2**32 - 1

Finding = tuple[str, str, str] | tuple[str, str, str, str]
"""The code, where in the entry (a JSON pointer), what is wrong there, and perhaps what to do."""

Resources = dict[str, Any]


def check_contradictions(
    resources: Sequence[Any],
    commands: Sequence[Any],
    resource_keys: Sequence[str] | None = None,
    command_keys: Sequence[str] | None = None,
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Errors and warnings, each as a problem with its pointer. References that lead nowhere are passed over here.

    Entries that could not be parsed are ``None``, as in `check_references`.
    """
    errors: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    by_uid = {resource.uid: resource for resource in resources if resource is not None}
    for name, entries, keys in (("resources", resources, resource_keys), ("commands", commands, command_keys)):
        for index, entry in enumerate(entries):
            if entry is None:
                continue
            for rules, severity, found in ((_ERRORS, _ERROR, errors), (_WARNINGS, _WARNING, warnings)):
                rule = rules.get(entry.kind)
                if rule is None:
                    continue
                for code, inside, message, *help in rule(entry, by_uid):
                    here = f"/{name}/{index}/{keys[index] if keys else entry.kind}{inside}"
                    found.append(Diagnostic(code, severity, here, message, help[0] if help else None))
    for index, message in _memory_groups(resources):
        here = f"/resources/{index}/{resource_keys[index] if resource_keys else resources[index].kind}"
        errors.append(Diagnostic("SR-MEMORY-001", "error", f"{here}/memory_group", message))
    return errors, warnings


def _image(image: Any, by_uid: Resources) -> Iterator[Finding]:
    color = image.custom_border_color
    if color is not None and "border_color" not in image.model_fields_set:
        yield "SR-CONFLICT-003", "/custom_border_color", "needs a border_color of INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT"
    if image.border_color == "INT_CUSTOM_EXT":
        if color is None:
            yield "SR-CONFLICT-003", "/border_color", "INT_CUSTOM_EXT needs a custom_border_color"
        for index, value in enumerate(color or ()):
            if type(value) is not int or not -(2**31) <= value < 2**32:
                yield (
                    "SR-CONFLICT-003",
                    f"/custom_border_color/{index}",
                    f"INT_CUSTOM_EXT needs 32-bit integers, got {value!r}",
                )


def _image_warnings(image: Any, by_uid: Resources) -> Iterator[Finding]:
    standard = "border_color" in image.model_fields_set and not image.border_color.endswith("_CUSTOM_EXT")
    if image.custom_border_color is not None and standard:
        yield "SR-CONFLICT-002", "/custom_border_color", f"has no effect with the border_color {image.border_color!r}"


def _constants(constants: Sequence[Any], inside: str) -> Iterator[Finding]:
    seen: dict[int, int] = {}
    for index, constant in enumerate(constants):
        first = seen.setdefault(constant.id, index)
        if first != index:
            yield (
                "SR-CONFLICT-004",
                f"{inside}/{index}/id",
                f"the constant {constant.id} already has a value in entry {first}",
            )


def _shader(shader: Any, by_uid: Resources) -> Iterator[Finding]:
    yield from _constants(shader.specialization_constants, "/specialization_constants")


def _graph(graph: Any, by_uid: Resources) -> Iterator[Finding]:
    for index, target in enumerate(graph.specialization_constants_map):
        yield from _constants(
            target.specialization_constants, f"/specialization_constants_map/{index}/specialization_constants"
        )
    yield from _unique_targets(graph.specialization_constants_map, "shader_target", "specialization_constants_map")
    yield from _substitutions(graph, by_uid)


def _substitutions(entry: Any, by_uid: Resources) -> Iterator[Finding]:
    yield from _unique_targets(entry.shader_substitutions, "target", "shader_substitutions")
    for index, substitution in enumerate(entry.shader_substitutions):
        yield from _stage(f"/shader_substitutions/{index}/shader_ref", substitution.shader_ref, "compute", by_uid)


def _unique_targets(entries: Sequence[Any], name: str, inside: str) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        target = getattr(entry, name)
        first = seen.setdefault(target, index)
        if first != index:
            yield (
                "SR-CONFLICT-004",
                f"/{inside}/{index}/{name}",
                f"the node {target!r:.100} is already the target of entry {first}",
            )


def _stage(inside: str, uid: str, stage: str, by_uid: Resources) -> Iterator[Finding]:
    shader = by_uid.get(uid)
    if shader is not None and shader.kind == "shader" and shader.stage != stage:
        yield (
            "SR-CONFLICT-006",
            inside,
            f"expected a shader of the stage {stage!r}, got {uid!r:.100} of the stage {shader.stage!r}",
        )


def _bindings(bindings: Sequence[Any]) -> Iterator[Finding]:
    seen: dict[tuple[int, int], int] = {}
    for index, binding in enumerate(bindings):
        first = seen.setdefault((binding.set, binding.id), index)
        if first != index:
            where = f"set {binding.set}, id {binding.id}"
            yield "SR-CONFLICT-005", f"/bindings/{index}", f"{where} is already bound by entry {first}"


def _lods(command: Any, by_uid: Resources) -> Iterator[Finding]:
    for index, binding in enumerate(command.bindings):
        if binding.lod:
            kind = getattr(by_uid.get(binding.resource_ref), "kind", "image")
            if kind != "image":
                yield (
                    "SR-CONFLICT-002",
                    f"/bindings/{index}/lod",
                    f"has no effect on the {kind} {binding.resource_ref!r:.100}",
                )


def _levels(bindings: Iterator[tuple[str, Any]], by_uid: Resources) -> Iterator[Finding]:
    for inside, binding in bindings:
        if binding.lod:
            image = by_uid.get(binding.resource_ref)
            if image is not None and image.kind == "image" and binding.lod >= image.mips:
                last = image.mips - 1
                yield (
                    "SR-CONFLICT-007",
                    f"{inside}/lod",
                    f"the last mip level of {image.uid!r:.100} is {last}, got {binding.lod}",
                )


def _numbered(name: str, entries: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for index, entry in enumerate(entries):
        yield f"/{name}/{index}", entry


def _compute(command: Any, by_uid: Resources) -> Iterator[Finding]:
    yield from _stage("/shader_ref", command.shader_ref, "compute", by_uid)
    yield from _bindings(command.bindings)
    yield from _levels(_numbered("bindings", command.bindings), by_uid)
    yield from _push_data(command, (command.shader_ref,), by_uid)


def _push_data(command: Any, shaders: Sequence[str], by_uid: Resources) -> Iterator[Finding]:
    if getattr(by_uid.get(command.push_data_ref), "kind", "") != "raw_data":
        return
    found = [shader for uid in shaders if (shader := by_uid.get(uid)) is not None and shader.kind == "shader"]
    if found and all(shader.push_constants_size == 0 for shader in found):
        names = " and ".join(f"{shader.uid!r:.100}" for shader in found)
        one = len(found) == 1
        takes, its = (f"shader {names} takes", "its") if one else (f"shaders {names} take", "their")
        message = f"the {takes} no push constants: {its} push_constants_size is 0"
        help = 'add "push_constants_size", the size of the data in bytes, to the shader, or remove push_data_ref'
        yield "SR-PUSH-005", "/push_data_ref", message, help


def _spirv_graph(command: Any, by_uid: Resources) -> Iterator[Finding]:
    shader = by_uid.get(command.graph_ref)
    if shader is not None and shader.kind == "shader" and shader.type != "SPIR-V":
        yield (
            "SR-GRAPH-011",
            "/graph_ref",
            f"expected a shader of the type 'SPIR-V', got {shader.uid!r:.100} of the type {shader.type!r}",
        )
    yield from _bindings(command.bindings)
    yield from _levels(_numbered("bindings", command.bindings), by_uid)


def _dispatch_graph(command: Any, by_uid: Resources) -> Iterator[Finding]:
    yield from _bindings(command.bindings)
    yield from _levels(_numbered("bindings", command.bindings), by_uid)
    yield from _unique_targets(command.push_constants, "shader_target", "push_constants")
    yield from _substitutions(command, by_uid)


def _fragment(command: Any, by_uid: Resources) -> Iterator[Finding]:
    yield from _stage("/vertex_shader_ref", command.vertex_shader_ref, "vertex", by_uid)
    yield from _stage("/fragment_shader_ref", command.fragment_shader_ref, "fragment", by_uid)
    if not command.color_attachment_refs and command.render_extent is None:
        yield "SR-ATTACH-009", "", "needs color_attachment_refs or a render_extent"
    yield from _bindings(command.bindings)
    yield from _levels(_numbered("bindings", command.bindings), by_uid)
    yield from _levels(_numbered("color_attachment_refs", command.color_attachment_refs), by_uid)
    yield from _push_data(command, (command.vertex_shader_ref, command.fragment_shader_ref), by_uid)


def _optical_flow(command: Any, by_uid: Resources) -> Iterator[Finding]:
    longer = max(command.width, command.height)
    if command.mean_flow_l1_norm_hint >= longer:
        message = f"expected less than the larger of width and height, {longer}, got {command.mean_flow_l1_norm_hint}"
        yield "SR-CONFLICT-008", "/mean_flow_l1_norm_hint", message
    for index, flag in enumerate(command.execution_flags):
        if flag in command.execution_flags[:index]:
            yield "SR-CONFLICT-004", f"/execution_flags/{index}", f"the flag {flag!r} is given twice"
    images = {name: binding for name, binding in command.bindings if binding is not None}
    seen: dict[tuple[int, int], str] = {}
    for name, binding in images.items():
        first = seen.setdefault((binding.set, binding.id), name)
        if first != name:
            yield (
                "SR-CONFLICT-005",
                f"/bindings/{name}",
                f"set {binding.set}, id {binding.id} is already bound by {first!r}",
            )
    yield from _levels(((f"/bindings/{name}", binding) for name, binding in images.items()), by_uid)


def _buffer_barrier(barrier: Any, by_uid: Resources) -> Iterator[Finding]:
    buffer = by_uid.get(barrier.buffer_resource)
    if buffer is None or buffer.kind != "buffer":
        return
    if barrier.offset >= buffer.size:
        yield (
            "SR-CONFLICT-009",
            "/offset",
            f"the buffer {buffer.uid!r:.100} has {buffer.size} bytes, got the offset {barrier.offset}",
        )
    elif barrier.size != _WHOLE_SIZE and barrier.offset + barrier.size > buffer.size:
        left = buffer.size - barrier.offset
        yield (
            "SR-CONFLICT-009",
            "/size",
            f"the buffer {buffer.uid!r:.100} has {left} bytes from offset {barrier.offset} on, got {barrier.size}",
        )


def _image_barrier(barrier: Any, by_uid: Resources) -> Iterator[Finding]:
    image = by_uid.get(barrier.image_resource)
    if image is None or image.kind != "image":
        return
    part = barrier.subresource_range
    for name, base, count, total in (
        ("mip levels", "base_mip_level", "level_count", image.mips),
        ("array layers", "base_array_layer", "layer_count", 1),
    ):
        first, many = getattr(part, base), getattr(part, count)
        has = f"the image {image.uid!r:.100} has {total} {name if total > 1 else name[:-1]}"
        if first >= total:
            yield "SR-CONFLICT-010", f"/subresource_range/{base}", f"{has}, got the first one {first}"
        elif many != _REMAINING and first + many > total:
            yield "SR-CONFLICT-010", f"/subresource_range/{count}", f"{has}, got {many} from {first} on"


def _memory_groups(resources: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Members of a memory group whose initial contents overlap: which one would win is anyone's guess."""
    groups: dict[str, list[tuple[Span, tuple[int, Any]]]] = {}
    for index, resource in enumerate(resources):
        group = getattr(resource, "memory_group", None)
        if group is not None and (resource.src is not None or resource.data is not None):
            size = resource.size if resource.kind == "buffer" else 1  # what is not a buffer has at least one byte
            span = (group.offset, group.offset + size)
            groups.setdefault(group.id, []).append((span, (index, resource)))
    for name, members in groups.items():
        for (index, resource), (_, other) in collisions(members):
            is_same = resource.src == other.src and resource.memory_group.offset == other.memory_group.offset
            if resource.src is None or not is_same:
                what = f"overlaps that of {other.uid!r:.100} in the memory group {name!r:.100}"
                yield index, f"the initial content of {resource.uid!r:.100} {what}"


Rule = Callable[[Any, Resources], Iterator[Finding]]

_ERRORS: dict[str, Rule] = {
    "image": _image,
    "shader": _shader,
    "graph": _graph,
    "buffer_barrier": _buffer_barrier,
    "image_barrier": _image_barrier,
    "dispatch_compute": _compute,
    "dispatch_graph": _dispatch_graph,
    "dispatch_spirv_graph": _spirv_graph,
    "dispatch_fragment": _fragment,
    "dispatch_optical_flow": _optical_flow,
}
_WARNINGS: dict[str, Rule] = {
    "image": _image_warnings,
    "dispatch_compute": _lods,
    "dispatch_graph": _lods,
    "dispatch_spirv_graph": _lods,
    "dispatch_fragment": _lods,
}
