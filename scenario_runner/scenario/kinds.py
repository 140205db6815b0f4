"""The registry of kinds: the model for each key of a resource or command.

`read_models` reads entries that follow the format exactly, by the model of their kind. It diagnoses nothing.

Other packages have tables by kind: `plan.resolve` the resolvers, `vulkan.execute` the creators and
`vulkan.frame_recording` the recorders.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.text import Json
from scenario_runner.files.json_text import has_null
from scenario_runner.scenario import commands, drawing, resources, shaders
from scenario_runner.scenario.entries import Model, built

# Models of resources by key.
RESOURCES: Mapping[str, type[Model]] = {
    "image": resources.Image,
    "tensor": resources.Tensor,
    "buffer": resources.Buffer,
    "raw_data": resources.RawData,
    "shader": shaders.Shader,
    "graph": shaders.Graph,
    "graph_constant": shaders.GraphConstant,
    "memory_barrier": resources.MemoryBarrier,
    "buffer_barrier": resources.BufferBarrier,
    "image_barrier": resources.ImageBarrier,
    "tensor_barrier": resources.TensorBarrier,
}

# Models of commands by key. An older spelling follows the key.
COMMANDS: Mapping[str, type[Model]] = {
    "dispatch_compute": commands.DispatchCompute,
    "dispatch_graph": commands.DispatchGraph,
    "dispatch_vgf": commands.DispatchGraph,
    "dispatch_spirv_graph": commands.DispatchSpirvGraph,
    "dispatch_data_graph": commands.DispatchSpirvGraph,
    "dispatch_fragment": drawing.DispatchFragment,
    "dispatch_optical_flow": commands.DispatchOpticalFlow,
    "fill": commands.Fill,
    "copy": commands.Copy,
    "dispatch_barrier": commands.DispatchBarrier,
    "pipeline_barrier": commands.DispatchBarrier,
    "mark_boundary": commands.MarkBoundary,
    "frame_boundary": commands.MarkBoundary,
}


class Entries(NamedTuple):
    """An array's entries: models, kinds as the data spells them, and indices of refused entries.

    A refused entry has the model None and no kind until `diagnosis` reads it.
    """

    models: list[Any]
    keys: list[str]
    refused: list[int]


def read_models(
    entries: Sequence[Json], kinds: Mapping[str, type[Model]], *, in_code: bool, may_have_null: bool
) -> Entries:
    """Validate an array's entries. ``in_code`` accepts the fields for code; ``may_have_null`` refuses nulls."""
    models: list[Any] = []
    keys: list[str] = []
    refused: list[int] = []
    for index, entry in enumerate(entries):
        try:
            ((key, body),) = entry.items()
            model = built(kinds[key])
            if in_code or type(body.get("src")) is dict:
                body = model.completed(body)
            if not in_code and (not model.code_only.isdisjoint(body) or (may_have_null and has_null(body))):
                raise ValueError
            models.append(model.__pydantic_validator__.validate_python(body))
            keys.append(key)
        except (ScenarioError, AttributeError, ValueError, KeyError, TypeError):
            models.append(None)
            keys.append("")
            refused.append(index)
    return Entries(models, keys, refused)
