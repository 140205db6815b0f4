"""What shaders do with a resource against what the scenario says they do (``shader_access``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, warning

if TYPE_CHECKING:
    from scenario_runner.spirv import DescriptorBinding


def check_readonly(
    variables: Sequence[tuple[str, DescriptorBinding]], kind: str, uid: str, place: str
) -> list[Diagnostic]:
    """A warning where a shader writes the resource ``uid``, which the scenario calls readonly.

    Nothing stops such a write: the results are as the shader says, but the file says otherwise, and a readonly resource
    is not returned as a result. Writes that are only assumed, since a pointer could not be followed, do not count.
    """
    return [
        warning(
            "SR-ACCESS-001",
            place,
            f"shader {shader!r} writes {kind} {uid!r} through {_called(variable)}, but its shader_access is 'readonly'",
            f"give {uid!r} the shader_access 'readwrite', or declare {_called(variable)} readonly in the shader",
        )
        for shader, variable in variables
        if variable.writes and variable.writable and variable.followed
    ][:1]


def check_writeonly_input(kind: str, uid: str, graph: str, place: str) -> Diagnostic:
    """The warning for a graph that reads the resource ``uid``, which the scenario calls writeonly."""
    return warning(
        "SR-ACCESS-002",
        place,
        f"graph {graph!r} reads {kind} {uid!r}, but its shader_access is 'writeonly'",
        f"give {uid!r} the shader_access 'readonly', or 'readwrite' where something writes it",
    )


def _called(variable: DescriptorBinding) -> str:
    return repr(variable.name) if variable.name else f"set {variable.set}, binding {variable.binding}"
