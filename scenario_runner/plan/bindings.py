"""What a dispatch binds, against what its shader declares: a sentence for the user instead of a driver crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.plan.model import BufferPlan, Descriptor, DescriptorKind, LayoutBinding, ResourcePlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Binding
    from scenario_runner.spirv import DescriptorBinding

_BUFFER_KINDS: dict[str, DescriptorKind] = {"storage_buffer": "storage_buffer", "uniform_buffer": "uniform_buffer"}
_TENSOR_KINDS: dict[str, DescriptorKind] = {"tensor": "tensor"}
_IMAGE_KINDS: dict[str, DescriptorKind] = {
    "storage_image": "storage_image",
    "sampled_image": "sampled_image",
    "combined_image_sampler": "combined_image_sampler",
    "sampler": "sampler",
}
_KINDS = _BUFFER_KINDS | _IMAGE_KINDS | _TENSOR_KINDS
_ASKED_FOR = {
    "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER": "storage_buffer",
    "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER": "uniform_buffer",
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE": "storage_image",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE": "sampled_image",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER": "combined_image_sampler",
    "VK_DESCRIPTOR_TYPE_TENSOR_ARM": "tensor",
}

SetLayouts = tuple[tuple[LayoutBinding, ...], ...]


def set_layouts(shader: LoadedShader, problems: Problems) -> SetLayouts | None:
    """The descriptor set layouts that the shader asks for, from set 0 on, gaps as empty sets; None where we cannot.

    They come from the shader alone: every descriptor that it uses has its place, and nothing else.
    """
    by_set: dict[int, dict[int, LayoutBinding]] = {}
    for declared in shader.interface.bindings:
        kind = _KINDS.get(declared.kind)
        if kind is None:
            problems.error(
                UnsupportedError,
                shader.pointer,
                f"shader {shader.uid!r} uses {_described(declared)}; scenarios have no resource that can be"
                " bound to it",
            )
            return None
        if declared.count != 1:
            problems.error(
                UnsupportedError,
                shader.pointer,
                f"shader {shader.uid!r} uses {_described(declared)}, an array of descriptors;"
                " a scenario binds one resource to each binding",
            )
            return None
        layout = LayoutBinding(declared.binding, kind)
        same_place = by_set.setdefault(declared.set, {}).setdefault(declared.binding, layout)
        if same_place != layout:
            problems.error(
                ScenarioError,
                shader.pointer,
                f"shader {shader.uid!r} declares {_described(declared)} where it also has"
                f" a {same_place.kind.replace('_', ' ')}",
            )
            return None
    if not by_set:
        return ()
    return tuple(
        tuple(binding for _, binding in sorted(by_set.get(number, {}).items())) for number in range(max(by_set) + 1)
    )


def descriptors(
    shader: LoadedShader,
    bindings: Sequence[Binding],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
) -> tuple[Descriptor, ...]:
    """The descriptors of one dispatch, checked against the shader. What is wrong goes into ``problems``."""
    declared: dict[tuple[int, int], list[DescriptorBinding]] = {}
    for each in shader.interface.bindings:
        declared.setdefault((each.set, each.binding), []).append(each)
    result = []
    for index, binding in enumerate(bindings):
        place = f"{pointer}/bindings/{index}"
        variables = declared.pop((binding.set, binding.id), None)
        if variables is None:
            problems.warn(
                place,
                f"resource {binding.resource_ref!r} is bound to set {binding.set}, binding {binding.id},"
                f" which shader {shader.uid!r} does not use",
            )
            continue
        # several variables may see one resource in different ways: the most demanding block decides
        wanted = max(variables, key=lambda variable: 0 if variable.block is None else variable.block.size_bytes)
        resource = resources.get(binding.resource_ref)
        kind = _KINDS.get(wanted.kind)
        if resource is None or kind is None:
            continue  # reported where the resource is, or by `set_layouts`
        asked = _ASKED_FOR.get(binding.descriptor_type, kind)
        if asked != kind:
            problems.error(
                ScenarioError,
                f"{place}/descriptor_type",
                f"descriptor type {binding.descriptor_type!r} does not match {_described(wanted)}"
                f" in shader {shader.uid!r}",
                "leave descriptor_type out: it is taken from the shader",
            )
        found = _descriptor(binding, wanted, kind, resource, shader, place, problems)
        if found is not None:
            result.append(found)
    for missing in (variable for variables in declared.values() for variable in variables[:1] if variable.used):
        problems.error(
            ScenarioError,
            f"{pointer}/bindings",
            f"nothing is bound to {_described(missing)}, which shader {shader.uid!r} uses",
            f'add {{"set": {missing.set}, "id": {missing.binding}, "resource_ref": "…"}}',
        )
    return tuple(result)


def _descriptor(
    binding: Binding,
    wanted: DescriptorBinding,
    kind: DescriptorKind,
    resource: ResourcePlan,
    shader: LoadedShader,
    place: str,
    problems: Problems,
) -> Descriptor | None:
    """The descriptor for one binding; what does not fit is noted."""
    if kind in _BUFFER_KINDS and isinstance(resource, BufferPlan):
        if wanted.block is not None and wanted.block.size_bytes > resource.size_bytes:
            problems.warn(
                place,
                f"buffer {resource.uid!r} has {resource.size_bytes} bytes; {_described(wanted)} in shader"
                f" {shader.uid!r} declares {wanted.block.size_bytes}",
            )
        return Descriptor(binding.set, binding.id, kind, resource.uid)
    if kind == "tensor" and _name_of(resource) == "tensor":
        from scenario_runner.plan.tensor_bindings import tensor_descriptor

        return tensor_descriptor(binding, wanted, resource, shader, place, problems)  # type: ignore[arg-type]
    if kind in _IMAGE_KINDS and _name_of(resource) == "image":
        from scenario_runner.plan.image_bindings import image_descriptor

        return image_descriptor(binding, kind, resource)  # type: ignore[arg-type]
    problems.error(
        ScenarioError,
        place,
        f"{_described(wanted)} in shader {shader.uid!r} needs {'an' if kind[0] in 'aeiou' else 'a'}"
        f" {'buffer' if kind in _BUFFER_KINDS else kind.replace('_', ' ')}, but {resource.uid!r} is"
        f" {'an' if _name_of(resource)[0] in 'aeiou' else 'a'} {_name_of(resource)}",
    )
    return None


def _name_of(resource: ResourcePlan) -> str:
    """What people call the kind of a resource."""
    return type(resource).__name__.removesuffix("Plan").lower()


def _described(declared: DescriptorBinding) -> str:
    name = f" {declared.name!r}" if declared.name else ""
    return f"{declared.kind.replace('_', ' ')}{name} at set {declared.set}, binding {declared.binding}"
