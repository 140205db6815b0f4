"""Inputs and outputs of a shader stage by location.

Source: Vulkan specification, "Shader Interfaces", sections "Shader Input and Output Interfaces", "Location Assignment",
"Component Assignment" and "Fragment Output Interface".
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.declarations import Declarations
from scenario_runner.shaders.spirv.index import enumerant_name
from scenario_runner.shaders.spirv.types import Array, Matrix, Scalar, Struct, Type, Vector

INPUT: Final = 1
OUTPUT: Final = 3
"""Storage classes of inputs and outputs."""

MAX_LOCATIONS: Final = 4096
"""Largest location: a hundred times the limit of any device."""

_INTERPOLATION: Final = {spv.NO_PERSPECTIVE: "noperspective", spv.CENTROID: "centroid", spv.SAMPLE: "sample"}


class StageVariable(NamedTuple):
    """One input or output with a location; or a member with a location, of a block or structure.

    ``locations`` counts the locations from ``location`` on; ``component`` is the first 32-bit word in each. ``index``
    is for dual-source blending, otherwise 0. A member has the ``name`` "block.member". ``interpolation`` has the
    decorations besides ``flat``: "noperspective", "centroid", "sample"; ``per_vertex`` is for barycentrics in fragment
    shaders. ``scalar`` is the type of the components.
    """

    name: str
    location: int
    locations: int
    component: int
    index: int  # type: ignore[assignment]  # tuple.index gives way to the word of SPIR-V
    type: Type
    scalar: Scalar
    flat: bool
    interpolation: tuple[str, ...]
    per_vertex: bool

    def words(self) -> Iterator[tuple[int, int]]:
        """Iterate over the (location, component) of every 32-bit word."""
        return _words(self.type, self.location, self.component)


class StageInterface(NamedTuple):
    """An entry point's inputs and outputs, sorted by location and component.

    ``inputs_built_in`` and ``outputs_built_in`` name the listed built-in variables and members, such as "Position".
    ``problems`` are sentences about declarations that the specification forbids.
    """

    inputs: tuple[StageVariable, ...]
    outputs: tuple[StageVariable, ...]
    inputs_built_in: tuple[str, ...]
    outputs_built_in: tuple[str, ...]
    problems: tuple[str, ...]


def read_stage_interface(declarations: Declarations, listed: tuple[int, ...]) -> StageInterface:
    """Read the inputs and outputs among an entry point's interface variables.

    Raises `SpirvError` if a variable's type cannot be read.
    """
    index = declarations.index
    readers = {INPUT: _StageReader(declarations, "input"), OUTPUT: _StageReader(declarations, "output")}
    inputs, outputs = readers.values()
    for id in dict.fromkeys(listed):
        at = index.definitions.get(id)
        if at is not None and index.opcode(at) == op.VARIABLE and index.words[at + 3] in readers:
            readers[index.words[at + 3]].add(id, at)
    for reader in (inputs, outputs):
        reader.variables.sort(key=lambda variable: (variable.location, variable.component, variable.index))
        reader.check_overlaps()
    return StageInterface(
        inputs=tuple(inputs.variables),
        outputs=tuple(outputs.variables),
        inputs_built_in=tuple(dict.fromkeys(inputs.built_in)),
        outputs_built_in=tuple(dict.fromkeys(outputs.built_in)),
        problems=(*inputs.problems, *outputs.problems),
    )


class _StageReader:
    """Collects the variables and members with a location. ``way`` is "input" or "output"."""

    def __init__(self, declarations: Declarations, way: str) -> None:
        self._declarations = declarations
        self._index = declarations.index
        self._way = way
        self._taken: dict[int, int] = {}
        self.variables: list[StageVariable] = []
        self.built_in: list[str] = []
        self.problems: list[str] = []

    def add(self, id: int, at: int) -> None:
        """Add the variable that is declared at an offset."""
        index = self._index
        type = self._declarations.variable_type(id, at)
        decorations = index.decorations_of(id)
        element = type
        while isinstance(element, Array):
            element = element.element
        members = self._members(element) if isinstance(element, Struct) else []
        # gl_PerVertex is a structure with built-in members.
        built_in = [described[spv.BUILT_IN] for described in (decorations, *members) if spv.BUILT_IN in described]
        self.built_in += [enumerant_name(spv.BUILT_INS, number, "BuiltIn") for number in built_in]
        if built_in:
            return
        name = index.name_of(id) or (type.name if isinstance(type, Struct) else "") or f"the id {id}"
        if isinstance(type, Struct):
            self._add_members(type, name, decorations, decorations.get(spv.LOCATION))
        elif spv.LOCATION not in decorations:
            self.problems.append(f"{self._way} {name!r} has no Location decoration")
        else:
            # In arrays of blocks, members are flat instead.
            flat = {spv.FLAT: 1} if members and all(spv.FLAT in member for member in members) else {}
            self._add(name, type, decorations[spv.LOCATION], decorations | flat)

    def _members(self, struct: Struct) -> list[dict[int, int]]:
        """Return the decorations of a structure's members."""
        return [self._index.member_decorations_of(struct.id, number) for number in range(len(struct.members))]

    def _add_members(self, struct: Struct, name: str, outer: dict[int, int], following: int | None) -> int | None:
        """Add members at the locations from ``following`` on, or at their own. Return the location after the last."""
        for number, (member, own) in enumerate(zip(struct.members, self._members(struct), strict=True)):
            label = f"{name}.{member.name or number}"
            location = own.get(spv.LOCATION) if following is None else following
            if location is None:
                self.problems.append(f"{self._way} {label!r} has no Location decoration, and its block has none")
                continue
            decorations = {**outer, **own}
            if isinstance(member.type, Struct):
                decorations.pop(spv.COMPONENT, None)
                behind = self._add_members(member.type, label, decorations, location)
            else:
                behind = location + _locations(member.type, self._taken)
                self._add(label, member.type, location, decorations)
            if following is not None:
                following = behind
        return following

    def _add(self, name: str, type: Type, location: int, decorations: dict[int, int]) -> None:
        scalar, locations = _scalar(type), _locations(type, self._taken)
        last = location + locations - 1
        if scalar is None or not locations:
            self.problems.append(f"{self._way} {name!r} has the type {type}, which stages cannot pass on")
        elif last >= MAX_LOCATIONS:
            taken = f"takes the locations {location} to {last}; no device has that many"
            self.problems.append(f"{self._way} {name!r} {taken}")
        else:
            self.variables.append(
                StageVariable(
                    name=name,
                    location=location,
                    locations=locations,
                    component=decorations.get(spv.COMPONENT, 0),
                    index=decorations.get(spv.INDEX, 0),
                    type=type,
                    scalar=scalar,
                    flat=spv.FLAT in decorations,
                    interpolation=tuple(word for key, word in _INTERPOLATION.items() if key in decorations),
                    per_vertex=spv.PER_VERTEX in decorations,
                )
            )

    def check_overlaps(self) -> None:
        """Report variables with the same component of a location (and the same index)."""
        taken: dict[tuple[int, int, int], StageVariable] = {}
        for variable in self.variables:
            for location, component in variable.words():
                other = taken.setdefault((location, component, variable.index), variable)
                if other is not variable:
                    self.problems.append(
                        f"{self._way}s {other.name!r} and {variable.name!r} both take component {component} of"
                        f" location {location}"
                    )
                    break  # a single overlap is enough, and limits the time


def _scalar(type: Type) -> Scalar | None:
    """Return the scalar of a number, vector, matrix or array; of a structure, the first member's scalar."""
    while not isinstance(type, Scalar):
        if isinstance(type, Array):
            type = type.element
        elif isinstance(type, Matrix):
            type = type.column
        elif isinstance(type, Vector):
            type = type.component
        elif isinstance(type, Struct) and type.members:
            type = type.members[0].type
        else:
            return None
    return None if type.is_bool or type.width_bits < 16 else type


def _locations(type: Type, taken: dict[int, int]) -> int:
    """Count the locations of a type; 0 for a type that contains an empty structure, or a vector with 1 or more than 4
    components.

    ``taken`` caches the locations of structures.
    """
    if isinstance(type, Array):
        return type.length * _locations(type.element, taken)
    if isinstance(type, Matrix):
        return type.columns * _locations(type.column, taken)
    if isinstance(type, Vector):
        if not 2 <= type.components <= 4:
            return 0
        return 2 if type.component.width_bits == 64 and type.components > 2 else 1
    if isinstance(type, Struct):
        if type.id not in taken:
            members = [_locations(member.type, taken) for member in type.members]
            taken[type.id] = sum(members) if all(members) else 0
        return taken[type.id]
    return 1


def _words(type: Type, location: int, component: int) -> Iterator[tuple[int, int]]:
    """Yield (location, component) of each 32-bit word in a variable. Call it for types with few locations."""
    if isinstance(type, Scalar | Vector):
        scalar, count = (type.component, type.components) if isinstance(type, Vector) else (type, 1)
        for word in range(component, component + count * (2 if scalar.width_bits == 64 else 1)):
            yield location + word // 4, word % 4
        return
    taken: dict[int, int] = {}
    if isinstance(type, Array | Matrix):
        element, count = (type.element, type.length) if isinstance(type, Array) else (type.column, type.columns)
        step = _locations(element, taken)
        for number in range(count):
            yield from _words(element, location + number * step, component)
    elif isinstance(type, Struct):
        for member in type.members:
            yield from _words(member.type, location, 0)
            location += _locations(member.type, taken)
