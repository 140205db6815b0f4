"""The dispatch_compute command."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.scenario.bindings import Bindings, binding_contradictions, binding_references
from scenario_runner.scenario.entry import Command, Resources, Use
from scenario_runner.scenario.model import U32, ImplicitBarrier, OptionalReference, Reference
from scenario_runner.scenario.shaders import SHADER, push_data_reference, wrong_stage


class DispatchCompute(Command):
    """Runs a compute shader."""

    kind: ClassVar[str] = "dispatch_compute"

    shader_ref: Reference = Field(description="uid of a compute shader.")
    bindings: Bindings = Field(description="The resources of the shader, each at a set and binding of its own.")
    rangeND: Annotated[tuple[U32, ...], Field(strict=False, min_length=1, max_length=3)] = Field(  # noqa: N815
        description="Number of workgroups in x, y and z. Dimensions that are left out are 1."
    )
    push_data_ref: OptionalReference = Field(
        default=None,
        description=(
            "uid of the raw_data with the push constants: at most push_constants_size bytes, and all that the shader "
            "reads."
        ),
    )
    implicit_barrier: ImplicitBarrier = True

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        counts = definition["properties"]["rangeND"]
        usual = {key: counts.pop(key) for key in ("type", "items", "minItems", "maxItems")}
        longer = {"type": "array", "prefixItems": [usual["items"]] * 3, "items": {"const": 1}, "minItems": 4}
        counts["anyOf"] = [usual, {**longer, "deprecated": True}]
        return definition

    def references(self) -> Iterator[Use]:
        yield "/shader_ref", self.shader_ref, SHADER
        yield from push_data_reference(self.push_data_ref)
        yield from binding_references(self.bindings)

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from wrong_stage("/shader_ref", self.shader_ref, "compute", resources)
        yield from binding_contradictions(self.bindings, resources)

    @property
    def work(self) -> str:
        return f"shader {self.shader_ref!r}"

    def shaders(self) -> tuple[str, ...]:
        return (self.shader_ref,)
