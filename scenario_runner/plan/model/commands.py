"""Records of a plan that few scenarios need: graphs with their constants, optical flows, and draws."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.source import Identity, SourceFile, file_identity
from scenario_runner.plan.model.records import LayoutBinding, Specialization
from scenario_runner.plan.model.resources import TensorDescription

# Above this much, constants are not copied but mapped where the file cannot change meanwhile.
_LARGE_BYTES = 64 << 20
_COMPARED_BYTES = 1 << 20


class FilePart(NamedTuple):
    """``size_bytes`` from ``start_bytes`` on of the file at ``path``, which had this identity when it was planned."""

    path: str
    identity: Identity
    start_bytes: int
    size_bytes: int


class ConstantData:
    """The bytes of one constant; equal where they are known to be the same bytes, so that pipelines are found again.

    Parts of files compare by the identity of the file, not by its content: that takes too long for large models.
    """

    __slots__ = ("_hash", "_view", "part")

    def __init__(self, data: memoryview | FilePart) -> None:
        self.part = data if isinstance(data, FilePart) else None
        self._view = None
        if isinstance(data, FilePart):
            self._hash = hash((data.identity, data.start_bytes, data.size_bytes))
        else:
            self._view = data if data.readonly else memoryview(bytes(data))  # the caller may change it later
            self._hash = zlib.crc32(self._view)

    @property
    def size_bytes(self) -> int:
        if self.part is not None:
            return self.part.size_bytes
        assert self._view is not None
        return self._view.nbytes

    @property
    def view(self) -> memoryview | None:
        """The bytes, where they are in memory."""
        return self._view

    def __reduce__(self) -> tuple[Any, ...]:
        if self.part is None or not self.part.identity.settled:
            raise TypeError("the bytes only live in this process")
        return _unchanged_constant, (self.part,)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ConstantData) or self._hash != other._hash:
            return False
        if self.part is not None and other.part is not None:
            return self.part.identity.settled and self.part[1:] == other.part[1:]
        if self._view is None or other._view is None or self._view.nbytes != other._view.nbytes:
            return False
        one, two = self._view, other._view
        return all(
            bytes(one[at : at + _COMPARED_BYTES]) == bytes(two[at : at + _COMPARED_BYTES])
            for at in range(0, one.nbytes, _COMPARED_BYTES)
        )


def _unchanged_constant(part: FilePart) -> ConstantData:
    """The constant of a kept plan. Raises FileError where the file is another one now."""
    if file_identity(part.path) != part.identity:
        raise FileError(f"{part.path}: the file changed")
    return ConstantData(part)


@contextmanager
def in_memory(constants: Iterable[ConstantData]) -> Iterator[list[memoryview]]:
    """The bytes of each constant, valid as long as the block runs. Raises FileError, also where a file has changed."""
    constants = list(constants)
    large = sum(each.part.size_bytes for each in constants if each.part is not None) >= _LARGE_BYTES
    with ExitStack() as stack:
        files: dict[str, tuple[SourceFile, memoryview | None]] = {}
        views = []
        for each in constants:
            part = each.part
            if part is None:
                assert each.view is not None
                views.append(each.view)
                continue
            if part.path not in files:
                files[part.path] = _opened(part, stack, large)
            file, mapped = files[part.path]
            if mapped is not None:
                views.append(mapped[part.start_bytes : part.start_bytes + part.size_bytes])
            else:
                data = memoryview(bytearray(part.size_bytes))
                file.read_into(data, part.start_bytes)
                views.append(data)
        yield views


def _opened(part: FilePart, stack: ExitStack, large: bool) -> tuple[SourceFile, memoryview | None]:
    """The file, and its mapping if it is ``large`` and cannot be changed until the stack is closed."""
    file = stack.enter_context(SourceFile(part.path))
    leased = False
    if large:
        from scenario_runner.files.source import lease

        leased = stack.enter_context(lease(file))
    if not file.current_identity().is_same_file(part.identity):
        raise FileError(f"{part.path}: the file changed while the scenario was running")
    if not leased:
        return file, None
    import mmap

    return file, memoryview(mmap.mmap(file.descriptor, 0, access=mmap.ACCESS_READ))


class GraphConstantPlan(NamedTuple):
    """VkDataGraphPipelineConstantARM; ``sparsity_dimension`` is the axis of 2:4 sparsity, None for dense data."""

    id: int
    description: TensorDescription
    data: ConstantData
    sparsity_dimension: int | None = None


class GraphResourcePlan(NamedTuple):
    """VkDataGraphPipelineResourceInfoARM: what the graph finds at a binding, and whether it reads or writes it."""

    set: int
    binding: int
    description: TensorDescription
    reads: bool
    writes: bool


class GraphPipelinePlan(NamedTuple):
    """A data graph pipeline with its session; two plans with equal `content` are one pipeline.

    ``largest`` is what messages call the largest value between its operators, with its shape; ``unbuildable`` is why
    the emulation layers cannot build the graph ({device} stands for the device), and what to do. ``name`` is that of
    the module in its model, or the uid of the SPIR-V shader.
    """

    code: bytes
    entry: str
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    resources: tuple[GraphResourcePlan, ...]
    constants: tuple[GraphConstantPlan, ...]
    label: str
    pointer: str
    largest: tuple[str, tuple[int, ...]] = ("", ())
    unbuildable: tuple[str, str] = ("", "")
    name: str = ""
    kind: Literal["graph"] = "graph"

    @property
    def content(self) -> Hashable:
        """The content that decides which pipeline this is; ``label`` and ``pointer`` are for people only."""
        return self[:5]


class GraphDispatch(NamedTuple):
    """Run a graph; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists."""

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    kind: Literal["graph_dispatch"] = "graph_dispatch"


# VkDataGraphPipelineNodeConnectionTypeARM, without its prefix.
Connection = Literal["input", "reference", "hint", "flow_vector", "cost"]
PerformanceLevel = Literal["unknown", "slow", "medium", "fast"]


class FlowConnection(NamedTuple):
    """VkDataGraphPipelineSingleNodeConnectionARM: what is at a binding, an image of the VkFormat ``format``.

    ``uid`` and ``pointer`` are those of the first command that binds something there, for messages.
    """

    set: int
    binding: int
    connection: Connection
    format: int
    uid: str
    pointer: str

    @property
    def reads(self) -> bool:
        """Return whether the optical flow reads it; otherwise it writes it."""
        return self.connection in ("input", "reference", "hint")

    @property
    def writes(self) -> bool:
        """Return whether the optical flow writes it."""
        return not self.reads


class OpticalFlowPlan(NamedTuple):
    """A data graph pipeline that estimates motion, with its session; two plans with equal `content` are one pipeline.

    ``width`` and ``height`` are texels of the input, ``grid`` the width of the square of texels that one vector is for.
    """

    width: int
    height: int
    grid: int
    performance_level: PerformanceLevel
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    connections: tuple[FlowConnection, ...]
    label: str
    pointer: str
    kind: Literal["optical_flow"] = "optical_flow"

    @property
    def resources(self) -> tuple[FlowConnection, ...]:
        """The resources that it reads and writes."""
        return self.connections

    @property
    def content(self) -> Hashable:
        """The content that decides which pipeline this is; uids, labels and pointers are for people only."""
        return (*self[:5], *(connection[:4] for connection in self.connections))

    def format_of(self, connection: Connection) -> int | None:
        """The VkFormat of what is connected so, None where nothing is."""
        return next((each.format for each in self.connections if each.connection == connection), None)


class OpticalFlowDispatch(NamedTuple):
    """Run an optical flow; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists.

    ``flags`` are VkDataGraphOpticalFlowExecuteFlagBitsARM by the names that scenarios give them.
    """

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    flags: tuple[str, ...] = ()
    mean_flow_l1_norm_hint: int = 0
    kind: Literal["optical_flow_dispatch"] = "optical_flow_dispatch"


class ShaderStagePlan(NamedTuple):
    """One shader of a graphics pipeline; ``label`` is its uid.

    ``inputs`` and ``outputs`` count the locations that its variables take, built-in ones aside.
    """

    code: bytes
    entry: str
    specialization: Specialization
    label: str
    pointer: str
    inputs: int = 0
    outputs: int = 0


class GraphicsPipelinePlan(NamedTuple):
    """A vertex and a fragment shader, and the VkFormat of each color attachment; equal `content` is one pipeline.

    ``push_constants_size`` is seen by both shaders. ``write_masks`` are the components of each attachment that the
    fragment shader gives, VkColorComponentFlags; the others keep their values. ``pointer`` is that of the first command
    that draws with it.
    """

    vertex: ShaderStagePlan
    fragment: ShaderStagePlan
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    push_constants_size: int
    formats: tuple[int, ...]
    write_masks: tuple[int, ...]
    pointer: str

    @property
    def content(self) -> Hashable:
        """The content that decides which pipeline this is."""
        return self.vertex[:3], self.fragment[:3], *self[2:6]


class Target(NamedTuple):
    """A mip level of an image that is drawn into."""

    uid: str
    level: int


class Draw(NamedTuple):
    """Draw three vertices with ``pipeline`` into ``targets``; ``extent`` is the width and height of what is drawn.

    What the triangle does not cover keeps its texels.
    """

    pipeline: int
    descriptors: int
    targets: tuple[Target, ...]
    extent: tuple[int, int]
    push_constants: bytes
    barrier_after: bool
    command: int
    kind: Literal["draw"] = "draw"
