"""The tensor resource."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import I64, Model, OptionalPath, ShaderAccess, Tiling, Uid


class Tensor(Model):
    """A tensor (VK_ARM_tensors)."""

    kind: ClassVar[str] = "tensor"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    dims: Annotated[tuple[I64, ...], Field(strict=False)] = Field(
        description="Shape; [] is a scalar. A dimension of 0 or less is taken from the graph that writes the tensor."
    )
    format: str = Field(
        min_length=1, description="Name of a VkFormat with one component, for instance VK_FORMAT_R8_SINT."
    )
    shader_access: ShaderAccess = Field(description="How shaders and graphs use the tensor.")
    src: OptionalPath = Field(default=None, description="NumPy file with the initial content.")
    dst: OptionalPath = Field(default=None, description="NumPy file that receives the content after the last command.")
    memory_group: OptionalMemoryGroup = Field(default=None, description="Memory shared with other resources.")
    tiling: Tiling | None = Field(default=None, description="Arrangement of the elements; LINEAR by default.")
    data: Any = Field(default=None, description="Initial content, in place of src.")
