"""The context of the resolvers of one plan, and their base classes: the registry of kinds names subclasses.

Resources are planned first, then shaders are loaded, then commands are resolved in their order: each step is given the
finished results of the one before, and `Tables`, which commands add to.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.checks.bindings import check_data, check_size, padded
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.plan import FramePlan, Operation, ResourcePlan
from scenario_runner.plan.records import ImageLayout, NeededFeature, Source
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.plan.sources import content_of
from scenario_runner.plan.special_records import TexelAccess
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.scenario import Problems
from scenario_runner.spirv import Module

if TYPE_CHECKING:
    from scenario_runner.plan.layouts import LayoutTracker


class Entries(list[Any]):
    """Entries of one table of a plan; those of equal content share an index, which never changes."""

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Hashable, int] = {}

    def add(self, entry: Any, content: Hashable) -> int:
        """Add an entry unless there is one of this content; returns its index."""
        index = self._indices.setdefault(content, len(self))
        if index == len(self):
            self.append(entry)
        return index


class Tables:
    """``resources`` by uid, pipelines of all kinds, descriptor lists, and frames.

    ``operations`` are those of the frame that has not ended yet.
    ``made`` are the uids of resources that are not the scenario's, but lie inside graphs. ``graph_modules`` are the
    SPIR-V modules of graphs by their labels, with the pointers of what names them, for what they require of a device.
    ``fitted`` are shaders with the formats of the images that are bound, by uid and formats, each with the variables
    whose format is unknown. ``capabilities`` are those that this takes, with the uid of a shader. ``without_format``
    are the images that are read or written without a format. ``names`` and ``declared`` are those of the plan.
    """

    def __init__(self, resources: dict[str, ResourcePlan]) -> None:
        self.resources = resources
        self.made: set[str] = set()
        self.pipelines = Entries()
        self.graph_pipelines = Entries()
        self.graphics_pipelines = Entries()
        self.lists = Entries()
        self.frames: list[FramePlan] = []
        self.operations: list[Operation] = []
        self.graph_modules: dict[str, tuple[Module, str]] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.fitted: dict[tuple[str, tuple[tuple[int, str], ...]], tuple[LoadedShader, frozenset[int]]] = {}
        self.capabilities: dict[str, str] = {}
        self.without_format: dict[str, set[TexelAccess]] = {}
        self.declared: dict[bytes, bytes] = {}

    def end_frame(
        self,
        captures: tuple[str, ...],
        frame_id: int,
        boundary: bool,
        pointer: str,
        layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = (),
    ) -> None:
        """Make a frame of ``operations``; see `FramePlan`."""
        self.frames.append(FramePlan(tuple(self.operations), captures, frame_id, boundary, pointer, layouts))
        self.operations.clear()


def range_size(shaders: Sequence[LoadedShader]) -> int:
    """Bytes of push constants in the pipeline layout of shaders that run together."""
    return max([max(shader.push_constants_size, shader.block_size) for shader in shaders])


class PushConstants:
    """Reads each raw_data once, and only when a command uses it; what is wrong goes into ``problems``.

    ``sources`` are those of all raw_data by uid; ``read`` has the bytes of those that were read.
    """

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self.sources = sources
        self._problems = problems
        self.read: dict[str, bytes] = {}

    def of(self, command: Any, shaders: Sequence[LoadedShader], pointer: str) -> bytes:
        """The push constants of a dispatch_compute or dispatch_fragment; empty where something is wrong with them."""
        size: int = max(map(attrgetter("push_constants_size"), shaders))
        if size:  # those that leave it out have what their blocks need
            size = max([shader.push_constants_size or shader.block_size for shader in shaders])
        good = True
        for shader in shaders:
            good &= self._problems.report(check_size(shader.uid, shader.interface, size, shader.pointer))
        if not good:
            return b""
        uid: str | None = command.push_data_ref
        if uid is None:
            for shader in shaders:
                if shader.block_size:
                    message = f"shader {shader.uid!r} reads push constants, but the command has no push_data_ref"
                    self._problems.warn("SR-PUSH-003", pointer, f"{message}; zeros are used")
            return bytes(range_size(shaders))
        source = self.sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(each.uid) for each in shaders)
        interfaces = [shader.interface for shader in shaders]
        problem = check_data(label, interfaces, size, uid, source.size_bytes, f"{pointer}/push_data_ref")
        return padded(self.data(uid) or b"") if self._problems.report(problem) else b""

    def data(self, uid: str) -> bytes | None:
        """The bytes of a raw_data; None where something is wrong with it, which is reported there."""
        source = self.sources.get(uid)
        if source is None:
            return None
        if uid not in self.read:
            try:
                self.read[uid] = content_of(source)
            except ScenarioRunnerError as error:
                self._problems.add_error(error, f"{self._scenario.resource_pointer(uid)}/src")
                self.read[uid] = bytes(source.size_bytes)
        return self.read[uid]


class ResourceContext(NamedTuple):
    """Input of the planning of resources.

    ``inputs`` goes before the data and the ``src`` of a resource; ``outputs`` are read back besides those that have a
    ``dst``. ``shapes`` are those that graphs give to tensors, and ``deferred`` the
    tensors that lack one which a graph should give.
    """

    scenario: Scenario
    problems: Problems
    inputs: Mapping[str, Any]
    outputs: Collection[str]
    shapes: Mapping[str, tuple[int, ...]]
    deferred: frozenset[str]


class CommandContext(NamedTuple):
    """Input of the resolving of commands.

    ``shaders`` are those that could be loaded, by uid; ``readonly`` the uids of resources that the scenario calls so;
    ``layouts`` is None without images, ``graphs`` (`plan.graph_models.GraphFiles`) without commands that run graphs.
    """

    scenario: Scenario
    problems: Problems
    tables: Tables
    shaders: Mapping[str, LoadedShader]
    push_constants: PushConstants
    readonly: frozenset[str]
    layouts: LayoutTracker | None
    graphs: Any


class ResourceResolver:
    """Plans the resources of one kind; one is made for each plan that has such resources.

    ``resolve(resource, pointer)`` gives the plan of a resource; None where something is wrong, which is noted or
    raised. The static ``replaced(planned, scenario, data)`` gives a planned resource without a memory group, with other
    content; None where that takes a new plan.
    """

    def __init__(self, context: ResourceContext) -> None:
        self.context = context


class CommandResolver:
    """Plans the commands of one kind, or of several; one is made for each plan that has such commands.

    ``resolve(command, index)`` gives the operations of the command number ``index``, in order. Errors and warnings go
    into the problems of the context.
    """

    def __init__(self, context: CommandContext) -> None:
        self.context = context

    def finish(self) -> tuple[NeededFeature, ...]:
        """Called after the last command; returns device features that the commands need beyond those of shaders."""
        return ()
