"""The buffer and raw_data resources."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator


from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import Model, OptionalPath, RequiredPath, ShaderAccess, Uid, require_source


class Buffer(Model):
    """A storage or uniform buffer; the shader decides what its bytes mean."""

    kind: ClassVar[str] = "buffer"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    size: Annotated[int, Field(ge=1, le=2**63 - 1)] = Field(description="Size in bytes.")
    shader_access: ShaderAccess = Field(description="How shaders use the buffer.")
    src: OptionalPath = Field(default=None, description="NumPy file with the initial content, exactly `size` bytes.")
    dst: OptionalPath = Field(default=None, description="NumPy file that receives the content after the last command.")
    memory_group: OptionalMemoryGroup = Field(default=None, description="Memory shared with other resources.")
    data: Any = Field(default=None, description="Initial content, in place of src.")


class RawData(Model):
    """Host data for push constants."""

    kind: ClassVar[str] = "raw_data"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    src: RequiredPath | None = Field(default=None, description="NumPy file with the data.")
    data: Any = Field(default=None, description="The data, in place of src.")

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        return require_source(self, self.src, "data", self.data)
