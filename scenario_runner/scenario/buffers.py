"""The buffer resource."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from scenario_runner.byte_data import array_of
from scenario_runner.errors import ScenarioError
from scenario_runner.scenario.entry import Resource
from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import OptionalPath, ShaderAccess, Uid


class Buffer(Resource):
    """A storage or uniform buffer; the shader decides what its bytes mean."""

    kind: ClassVar[str] = "buffer"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"size"})

    uid: Uid
    size: Annotated[int, Field(ge=1, le=2**63 - 1)] = Field(
        default=None, validate_default=True, description="Size in bytes."
    )
    shader_access: ShaderAccess
    src: OptionalPath = Field(
        default=None,
        description=(
            "NumPy file (.npy) with the initial content: exactly `size` bytes of any type and shape. Without it "
            "the buffer starts as zeros."
        ),
    )
    dst: OptionalPath = Field(
        default=None,
        description="NumPy file (.npy) that the content is written to after the last command, as 1-D int8.",
    )
    memory_group: OptionalMemoryGroup = Field(
        default=None, description="Memory group, for resources that share memory."
    )
    data: Any = Field(default=None, description="Initial content, in place of src; gives the size where there is none.")

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        data = values.get("data")
        if "size" in values or data is None:
            return values
        data = array_of(data, str(values.get("uid")))
        size = getattr(data, "nbytes", None)  # also of arrays with types that have no buffer, such as bfloat16
        if not isinstance(size, int):
            try:
                size = memoryview(data).nbytes
            except TypeError:
                message = f"Buffer.data: expected a NumPy array or bytes, got {type(data).__name__}"
                raise ScenarioError(message, code="SR-JSON-005") from None
        return {**values, "size": size}
