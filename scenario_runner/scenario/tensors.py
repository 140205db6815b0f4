"""The tensor resource."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from scenario_runner.scenario.entry import Resource
from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import I64, OptionalPath, ShaderAccess, Tiling, Uid


class Tensor(Resource):
    """A tensor (VK_ARM_tensors)."""

    kind: ClassVar[str] = "tensor"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    retired: ClassVar[Mapping[str, str]] = {"alias_target": "give the tensor and the image the same memory_group"}

    uid: Uid
    dims: Annotated[tuple[I64, ...], Field(strict=False)] = Field(
        description=(
            "Shape, outermost dimension first; [] is a scalar. A dimension of 0 or less is taken from the "
            "graph that the tensor is bound to, or from the content of the tensor."
        )
    )
    format: str = Field(
        min_length=1, description="Name of a VkFormat with one component, for instance VK_FORMAT_R8_SINT."
    )
    shader_access: ShaderAccess
    src: OptionalPath = Field(
        default=None,
        description=(
            "NumPy file (.npy) with the initial content, of the type and shape of the tensor. Without it the "
            "tensor starts as zeros."
        ),
    )
    dst: OptionalPath = Field(
        default=None, description="NumPy file (.npy) that the content is written to after the last command."
    )
    memory_group: OptionalMemoryGroup = Field(
        default=None, description="Memory group, for resources that share memory."
    )
    tiling: Tiling | None = Field(default=None, description="Arrangement of the elements in memory; LINEAR by default.")
    data: Any = Field(default=None, description="Initial content, in place of src.")
