"""Inputs and outputs of a shader stage by location.

Source: Vulkan specification, "Shader Interfaces", sections "Shader Input and Output Interfaces", "Location Assignment",
"Component Assignment" and "Fragment Output Interface".
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv._generated.enumerants import (
    BUILT_IN,
    BUILT_INS,
    CENTROID,
    COMPONENT,
    FLAT,
    INDEX,
    LOCATION,
    NO_PERSPECTIVE,
    PER_VERTEX,
    SAMPLE,
)
from scenario_runner.spirv.declarations import Declarations
from scenario_runner.spirv.index import enumerant_name
from scenario_runner.spirv.types import Array, Matrix, Scalar, Struct, Type, Vector

INPUT: Final = 1
OUTPUT: Final = 3
"""Storage classes of inputs and outputs."""

MAX_LOCATIONS: Final = 4096
"""Locations beyond this one are a problem whatever the device: a hundred times what any has."""

_INTERPOLATION: Final = {NO_PERSPECTIVE: "noperspective", CENTROID: "centroid", SAMPLE: "sample"}


class StageVariable(NamedTuple):
    """One input or output, or one member of a block or structure of them, that has a location of its own.

    ``locations`` counts those that it takes from ``location`` on; ``component`` is the first 32-bit word in each.
    ``index`` is that of dual-source blending, 0 without. ``name`` is "block.member" for a member. ``interpolation``
    has the decorations beside ``flat``: "noperspective", "centroid", "sample"; ``per_vertex`` is that of fragment
    shader barycentrics. ``scalar`` is what the type is made of.
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
        """(location, component) of every 32-bit word that it takes."""
        return _words(self.type, self.location, self.component)


class StageInterface(NamedTuple):
    """The inputs and outputs of one entry point, sorted by location and component.

    ``inputs_built_in`` and ``outputs_built_in`` name the built-in variables and members listed, such as "Position".
    ``problems`` are sentences about declarations that the specification does not allow.
    """

    inputs: tuple[StageVariable, ...]
    outputs: tuple[StageVariable, ...]
    inputs_built_in: tuple[str, ...]
    outputs_built_in: tuple[str, ...]
    problems: tuple[str, ...]


def read_stage_interface(declarations: Declarations, listed: tuple[int, ...]) -> StageInterface:
    """Read the inputs and outputs among the interface variables that an entry point lists.

    Raises `SpirvError` where a variable's type cannot be read.
    """
    reader, index = _StageReader(declarations), declarations.index
    words = index.words
    for id in dict.fromkeys(listed):
        at = index.definitions.get(id)
        if at is not None and index.opcode(at) == op.VARIABLE and words[at + 3] in (INPUT, OUTPUT):
            reader.add(id, at, words[at + 3])

    for storage_class in (INPUT, OUTPUT):
        reader.check_overlaps(storage_class)

    def in_order(storage_class: int) -> tuple[StageVariable, ...]:
        return tuple(sorted(reader.found[storage_class], key=lambda each: (each.location, each.component, each.index)))

    return StageInterface(
        inputs=in_order(INPUT),
        outputs=in_order(OUTPUT),
        inputs_built_in=tuple(dict.fromkeys(reader.built_in[INPUT])),
        outputs_built_in=tuple(dict.fromkeys(reader.built_in[OUTPUT])),
        problems=tuple(reader.problems),
    )


class _StageReader:
    """Collects variables and members that have a location."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self._index = declarations.index
        self._taken: dict[int, int] = {}
        self.found: dict[int, list[StageVariable]] = {INPUT: [], OUTPUT: []}
        self.built_in: dict[int, list[str]] = {INPUT: [], OUTPUT: []}
        self.problems: list[str] = []

    def add(self, id: int, at: int, storage_class: int) -> None:
        """Add a variable."""
        index = self._index
        type = self._declarations.variable_type(id, at)
        decorations = index.decorations_of(id)
        name = index.name_of(id) or (type.name if isinstance(type, Struct) else "") or f"the id {id}"
        if BUILT_IN in decorations:
            self.built_in[storage_class].append(enumerant_name(BUILT_INS, decorations[BUILT_IN], "BuiltIn"))
            return
        element = type
        while isinstance(element, Array):
            element = element.element
        if isinstance(element, Struct) and self._has_built_in(element, storage_class):
            return
        if isinstance(type, Struct):
            self._add_members(type, name, decorations, decorations.get(LOCATION), storage_class)
        elif LOCATION not in decorations:
            self.problems.append(f"{_way(storage_class)} {name!r} has no Location decoration")
        else:
            if isinstance(element, Struct) and self._all_flat(element):
                decorations = {**decorations, FLAT: 1}
            self._add(name, type, decorations[LOCATION], decorations, storage_class)

    def _has_built_in(self, struct: Struct, storage_class: int) -> bool:
        """Tell whether members are built-in, as those of gl_PerVertex, and note them."""
        members = [self._index.member_decorations_of(struct.id, number) for number in range(len(struct.members))]
        built_in = [member[BUILT_IN] for member in members if BUILT_IN in member]
        self.built_in[storage_class] += [enumerant_name(BUILT_INS, number, "BuiltIn") for number in built_in]
        return bool(built_in)

    def _all_flat(self, struct: Struct) -> bool:
        """Tell whether every member has the Flat decoration, as those of arrays of blocks do."""
        members = range(len(struct.members))
        return bool(members) and all(FLAT in self._index.member_decorations_of(struct.id, member) for member in members)

    def _add_members(
        self, struct: Struct, name: str, outer: dict[int, int], following: int | None, storage_class: int
    ) -> int | None:
        """Add members at the locations from ``following`` on, or at their own; return the location after the last."""
        for number, member in enumerate(struct.members):
            own = self._index.member_decorations_of(struct.id, number)
            label = f"{name}.{member.name or number}"
            location = own.get(LOCATION) if following is None else following
            if location is None:
                self.problems.append(f"{_way(storage_class)} {label!r} has no Location decoration, nor has its block")
                continue
            decorations = {**outer, **own}
            if isinstance(member.type, Struct):
                decorations.pop(COMPONENT, None)
                behind = self._add_members(member.type, label, decorations, location, storage_class)
            else:
                behind = location + _locations(member.type, self._taken)
                self._add(label, member.type, location, decorations, storage_class)
            if following is not None:
                following = behind
        return following

    def _add(self, name: str, type: Type, location: int, decorations: dict[int, int], storage_class: int) -> None:
        way = _way(storage_class)
        scalar, locations = _scalar(type), _locations(type, self._taken)
        if scalar is None or not locations:
            self.problems.append(f"{way} {name!r} has the type {type}, which stages cannot hand on")
            return
        if location + locations > MAX_LOCATIONS:
            last = location + locations - 1
            self.problems.append(f"{way} {name!r} takes the locations {location} to {last}; no device has that many")
            return
        self.found[storage_class].append(
            StageVariable(
                name=name,
                location=location,
                locations=locations,
                component=decorations.get(COMPONENT, 0),
                index=decorations.get(INDEX, 0),
                type=type,
                scalar=scalar,
                flat=FLAT in decorations,
                interpolation=tuple(word for key, word in _INTERPOLATION.items() if key in decorations),
                per_vertex=PER_VERTEX in decorations,
            )
        )

    def check_overlaps(self, storage_class: int) -> None:
        """Report inputs or outputs that take the same component of a location (with the same index)."""
        taken: dict[tuple[int, int, int], StageVariable] = {}
        for variable in self.found[storage_class]:
            for location, component in variable.words():
                other = taken.setdefault((location, component, variable.index), variable)
                if other is not variable:
                    self.problems.append(
                        f"{_way(storage_class)}s {other.name!r} and {variable.name!r} both take component {component}"
                        f" of location {location}"
                    )
                    break  # one is enough, and keeps the time with the words that there are


def _way(storage_class: int) -> str:
    return "input" if storage_class == INPUT else "output"


def _scalar(type: Type) -> Scalar | None:
    """Return the scalar of a number, vector, matrix or array; of structures, that of the first member."""
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
    return None if type.kind == "bool" or type.width_bits < 16 else type


def _locations(type: Type, taken: dict[int, int]) -> int:
    """Count the locations of a type: 0 with an empty structure or a vector of 1 or more than 4 anywhere within.

    ``taken`` keeps those of structures.
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
    """Iterate over the words of a type whose locations are known to be few."""
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
