"""Specialization constants: what a pipeline may set in a module, and the bytes it sets them with."""

from typing import NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.spirv.constants import Constants
from scenario_runner.spirv.decorations import SPEC_ID
from scenario_runner.spirv.index import Index
from scenario_runner.spirv.literals import Literal, encode
from scenario_runner.spirv.types import Scalar


class SpecConstant(NamedTuple):
    """One specialization constant (OpSpecConstant, OpSpecConstantTrue or OpSpecConstantFalse with a SpecId).

    ``id`` is the SpecId. ``type`` is "bool", "int32", "uint64", "float16", "bfloat16", ... ``size_bytes`` is what
    VkSpecializationMapEntry needs, 4 for a Boolean (a VkBool32). ``name`` is empty where the module has none.
    """

    id: int
    name: str
    scalar: Scalar
    default: Literal

    @property
    def type(self) -> str:
        """The constant's type as text."""
        return str(self.scalar)

    @property
    def size_bytes(self) -> int:
        """Bytes of the value in VkSpecializationInfo."""
        return self.scalar.size_bytes

    def encode(self, value: Literal) -> bytes:
        """The value's bytes in the byte order of this machine, `size_bytes` of them.

        3.0 will do for an integer and 3 for a float, true is 1, and 0 and 1 will do for a Boolean. A float is rounded
        to the nearest value of its type. Raises `SpirvError` for a value that does not fit.
        """
        try:
            return encode(self.scalar, value)
        except ValueError as error:
            name = f" {self.name!r}" if self.name else ""
            message = f"specialization constant {self.id}{name}: {value!r} does not fit {self.type}: {error}"
            raise SpirvError(message) from None


def read_spec_constants(index: Index, constants: Constants) -> tuple[SpecConstant, ...]:
    """The module's specialization constants by rising SpecId.

    A SpecId that several constants share (a GLSL workgroup size that is also a constant of its own) is listed once,
    with the first one that has a name. Constants without a SpecId cannot be set and are left out.
    """
    found: dict[int, SpecConstant] = {}
    for id in index.spec_constants:
        spec_id = index.decorations_of(id).get(SPEC_ID)
        if spec_id is None:
            continue
        scalar, default = constants.scalar(id)
        if spec_id not in found or not found[spec_id].name:
            found[spec_id] = SpecConstant(spec_id, index.name_of(id), scalar, default)
    return tuple(found[spec_id] for spec_id in sorted(found))
