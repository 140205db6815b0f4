"""The entry point of a shader resource: it exists, for the right stage, with a workgroup size that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, error

if TYPE_CHECKING:
    from scenario_runner.spirv import EntryPoint, Interface, Module

MODELS = {"compute": "GLCompute", "vertex": "Vertex", "fragment": "Fragment"}
"""A stage of a scenario → SPIR-V's execution model."""
_MOST_NAMED = 20
_MOST_CHARACTERS = 200


def find_entry_point(
    module: Module, uid: str, name: str, stage: str, pointer: str
) -> tuple[EntryPoint | None, list[Diagnostic]]:
    """The entry point of this name and stage, or what there is instead; ``pointer`` is the shader's."""
    model = MODELS[stage]
    entry = module.entry_point(name, model)
    if entry is not None:
        return entry, []
    there_are = [f"{_clipped(entry.name)!r} ({entry.execution_model})" for entry in module.entry_points[:_MOST_NAMED]]
    there_are += [f"{_clipped(graph.name)!r} (a graph)" for graph in module.graph_entry_points[:_MOST_NAMED]]
    listed = ", ".join(there_are[:_MOST_NAMED]) or "none"
    wrong_stage = module.entry_point(name) is not None
    return None, [
        error(
            "SR-SHADER-002" if wrong_stage else "SR-SHADER-001",
            f"{pointer}/entry" if name != "main" else pointer,
            f"shader {uid!r} has no entry point {name!r} for the {stage} stage;"
            f" the module's entry points are: {listed}",
        )
    ]


def check_workgroup(interface: Interface, stage: str, uid: str, pointer: str) -> list[Diagnostic]:
    """A workgroup without invocations (a size or specialization constant of 0), and a compute shader without a size."""
    size = interface.local_size()
    if size is None and stage == "compute":
        message = f"shader {uid!r} has no workgroup size: expected LocalSize, LocalSizeId or the built-in WorkgroupSize"
        return [error("SR-SHADER-003", pointer, message)]
    if size is None or all(size):
        return []
    shown = " x ".join(map(str, size))
    return [
        error("SR-SHADER-003", pointer, f"shader {uid!r} has a workgroup of {shown} invocations, expected at least 1")
    ]


def _clipped(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[:_MOST_CHARACTERS]}…"
