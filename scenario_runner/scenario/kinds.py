"""The registry of kinds: each resource's and command's key, model and older spellings.

`read_models` reads entries that follow the format exactly, by the model of their kind. It diagnoses nothing.

Other packages have tables by kind: `plan.resolve` the resolvers, `vulkan.execute` the creators and
`vulkan.frame_recording` the recorders.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.text import Json
from scenario_runner.files.json_text import has_null
from scenario_runner.scenario import commands, drawing, resources, shaders, transfer_commands
from scenario_runner.scenario.entries import Model, built


class Kind(NamedTuple):
    """A kind of resource or command: the ``key`` in the JSON, the pydantic model, and older spellings of the key."""

    key: str
    model: type[Model]
    older: tuple[str, ...] = ()


_RESOURCES = (
    Kind("image", resources.Image),
    Kind("tensor", resources.Tensor),
    Kind("buffer", resources.Buffer),
    Kind("raw_data", resources.RawData),
    Kind("shader", shaders.Shader),
    Kind("graph", shaders.Graph),
    Kind("graph_constant", shaders.GraphConstant),
    Kind("memory_barrier", resources.MemoryBarrier),
    Kind("buffer_barrier", resources.BufferBarrier),
    Kind("image_barrier", resources.ImageBarrier),
    Kind("tensor_barrier", resources.TensorBarrier),
)
_COMMANDS = (
    Kind("dispatch_compute", commands.DispatchCompute),
    Kind("dispatch_graph", commands.DispatchGraph, older=("dispatch_vgf",)),
    Kind("dispatch_spirv_graph", commands.DispatchSpirvGraph, older=("dispatch_data_graph",)),
    Kind("dispatch_fragment", drawing.DispatchFragment),
    Kind("dispatch_optical_flow", commands.DispatchOpticalFlow),
    Kind("fill", transfer_commands.Fill),
    Kind("copy", transfer_commands.Copy),
    Kind("dispatch_barrier", commands.DispatchBarrier, older=("pipeline_barrier",)),
    Kind("mark_boundary", commands.MarkBoundary, older=("frame_boundary",)),
)

# Kinds of resources by key.
RESOURCES = {kind.key: kind for kind in _RESOURCES}

# Kinds of commands by key, with the older spellings.
COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}


class Entries(NamedTuple):
    """An array's entries: models, kinds as the data spells them, and indices of refused entries.

    A refused entry has the model None and no kind until `diagnosis` reads it.
    """

    models: list[Any]
    keys: list[str]
    refused: list[int]


def read_models(entries: Sequence[Json], kinds: Mapping[str, Kind], *, in_code: bool, may_have_null: bool) -> Entries:
    """Validate an array's entries. ``in_code`` accepts the fields for code; ``may_have_null`` refuses nulls."""
    models: list[Any] = []
    keys: list[str] = []
    refused: list[int] = []
    validators: dict[str, tuple[Callable[[object], object], frozenset[str]]] = {}
    for index, entry in enumerate(entries):
        try:
            ((key, body),) = entry.items()
            known = validators.get(key)
            if known is None:
                model = built(kinds[key].model)
                known = validators[key] = (model.__pydantic_validator__.validate_python, model.code_only)
            validate, code_only = known
            if in_code or type(body.get("src")) is dict:
                body = built(kinds[key].model).completed(body)
            if not in_code and (not code_only.isdisjoint(body) or (may_have_null and has_null(body))):
                raise ValueError
            models.append(validate(body))
            keys.append(key)
        except (ScenarioError, AttributeError, ValueError, KeyError, TypeError):
            models.append(None)
            keys.append("")
            refused.append(index)
    return Entries(models, keys, refused)
