"""The plan: the work in each frame as frozen data, with every size known and without Vulkan objects.

Life cycle: `resolve.resolve` makes a `Plan` from a scenario. A device executes the plan any number of times, and nobody
changes it.

The plan cache keeps plans of earlier runs. Unchanged scenarios skip parsing, checks and planning. A plan follows from
the scenario's text, which is the cache key, and from facts about files: .npy headers, the bytes in raw_data, and each
shader's SPIR-V. The shader cache compares sources, includes and compilers. The plan cache reads the facts again, and
drops the plan if a fact differs. A small run saves more than half the time, above all by not importing pydantic.
"""

from __future__ import annotations

import os
import sys
from _pickle import dumps, loads  # pickle itself would import re: 5 ms
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import program_version
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.files.input import Identity, ParameterizedFile, SourceFile, file_identity
from scenario_runner.plan.records import (
    BufferBarrier,
    BufferPlan,
    CompilerOptions,
    DescriptorList,
    Dispatch,
    ImageBarrier,
    ImageLayout,
    MemoryBarrier,
    PipelinePlan,
    Requirements,
    Span,
    TensorBarrier,
)
from scenario_runner.plan.sources import NpySource, content_of
from scenario_runner.processes import progress
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.compilers.search import find_validator
from scenario_runner.shaders.source import CompileRequest

if TYPE_CHECKING:
    from scenario_runner.plan.graph_records import (
        GraphDispatch,
        GraphPipelinePlan,
        OpticalFlowDispatch,
        OpticalFlowPlan,
        TensorPlan,
    )
    from scenario_runner.plan.image_records import (
        Draw,
        GraphicsPipelinePlan,
        ImagePlan,
        Transfer,
    )

ResourcePlan: TypeAlias = "BufferPlan | ImagePlan | TensorPlan"
AnyBarrier: TypeAlias = "MemoryBarrier | BufferBarrier | ImageBarrier | TensorBarrier"


class Barrier(NamedTuple):
    """One pipeline barrier command with all barriers in it."""

    barriers: tuple[AnyBarrier, ...]
    command: int
    kind: Literal["barrier"] = "barrier"


Work: TypeAlias = "Dispatch | GraphDispatch | OpticalFlowDispatch | Draw"
"""An operation with a pipeline and descriptors."""
Operation: TypeAlias = "Work | Transfer | Barrier"


class FramePlan(NamedTuple):
    """Operations submitted together. They finish before the next frame, and ``captures`` are read back.

    The commands after the last boundary form a frame with ``boundary=False`` and without captures. Dumps are frames
    with captures and without a boundary (`plan.accesses`). ``layouts`` has the images in another layout than "general"
    at the end, with a layout for each level.
    """

    operations: tuple[Operation, ...]
    captures: tuple[str, ...]
    frame_id: int
    boundary: bool
    pointer: str
    layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = ()

    @property
    def title(self) -> str:
        """The name in messages and tools: the frame's id, or the commands of a frame without a boundary."""
        if self.boundary or not self.operations:
            return f"frame {self.frame_id}"
        first, last = self.operations[0].command, self.operations[-1].command
        return f"command {first}" if first == last else f"commands {first} to {last}"


def frame_folder(frame_id: int, count: int) -> str:
    """Name the folder for captures from the ``count``-th frame with this id."""
    return f"frame_{frame_id}" + (f"_{count}" if count > 1 else "")


class Output(NamedTuple):
    """A resource to read back at the end, and the scenario's ``dst`` file, if any."""

    uid: str
    destination: str | None


class Plan(NamedTuple):
    """Everything a run does. ``name`` is the scenario's path or a label, for messages and logs.

    ``reads`` are all files read by planning or a run, with the scenario's own file. ``names`` tells how
    measurements call a command's operations, where names differ from pipeline labels. ``declared`` maps shader code
    without storage image formats to the code as the shader declares them.
    """

    name: str
    resources: Mapping[str, ResourcePlan]
    pipelines: tuple[PipelinePlan, ...]
    descriptor_lists: tuple[DescriptorList, ...]
    frames: tuple[FramePlan, ...]
    outputs: tuple[Output, ...]
    requirements: Requirements
    warnings: tuple[Diagnostic, ...] = ()
    graph_pipelines: tuple[GraphPipelinePlan | OpticalFlowPlan, ...] = ()
    reads: tuple[str, ...] = ()
    names: Mapping[int, tuple[str, ...]] = {}
    graphics_pipelines: tuple[GraphicsPipelinePlan, ...] = ()
    declared: Mapping[bytes, bytes] = {}

    @property
    def shader_codes(self) -> list[bytes]:
        """The SPIR-V code for all shaders in pipelines, in the plan's order."""
        drawn = [stage.code for pipeline in self.graphics_pipelines for stage in pipeline[:2]]
        return [*(pipeline.code for pipeline in self.pipelines), *drawn]

    def as_declared(self) -> Plan:
        """Return the plan with the declared shader code, for a device requiring storage image formats."""

        def declared(plan: Any) -> Any:
            return plan._replace(code=self.declared.get(plan.code, plan.code))

        graphics = [
            pipeline._replace(vertex=declared(pipeline.vertex), fragment=declared(pipeline.fragment))
            for pipeline in self.graphics_pipelines
        ]
        return self._replace(pipelines=tuple(map(declared, self.pipelines)), graphics_pipelines=tuple(graphics))

    @property
    def dispatch_count(self) -> int:
        return sum(operation.kind != "barrier" for frame in self.frames for operation in frame.operations)


def memory_groups(plans: Iterable[ResourcePlan]) -> dict[str, list[ResourcePlan]]:
    """Group resources sharing memory, by group name."""
    groups: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        if plan.group is not None:
            groups.setdefault(plan.group, []).append(plan)
    return groups


def span_of(plan: ResourcePlan) -> Span:
    """Return a member's size in the group's memory, before a device pads rows."""
    return plan.offset_bytes, plan.offset_bytes + plan.size_bytes


# A measured operation's ``kind`` → the name in profiles, as in the reference runner.
MEASURED = {
    "dispatch": "ComputeDispatch",
    "draw": "GraphicsDispatch",
    "graph_dispatch": "DataGraphDispatch",
    "optical_flow_dispatch": "DataGraphDispatch",
    "fill": "Fill",
    "copy": "Copy",
}


_LARGEST_TEXT_BYTES = 16 << 20


class Facts(NamedTuple):
    """Facts about a scenario's files, beyond the headers in the plan's own sources.

    ``sources`` pairs compile requests with the compiled modules, and ``binaries`` pairs paths with modules.
    ``contents`` pairs raw_data with their bytes if planning read them. ``models`` pairs paths with file identities.
    """

    sources: tuple[tuple[CompileRequest, bytes], ...]
    binaries: tuple[tuple[str, bytes], ...]
    contents: tuple[tuple[NpySource, bytes | None], ...]
    models: tuple[tuple[str, Identity], ...]


class PlanCache:
    """The stored plan for the scenario file ``path``; the plan depends on the other arguments, too.

    `load` reads ``text``. A plan for `store` must be made from this text, not from a second reading.
    """

    def __init__(
        self,
        path: str | ParameterizedFile,
        output_dir: str | None = None,
        compiler: CompilerOptions = CompilerOptions(),  # noqa: B008 - a tuple
        *,
        sandbox: bool = False,
    ) -> None:
        self._path = path
        self._compiler = compiler
        self._settings = (path, output_dir, *compiler, sandbox)
        self._cache = ContentCache(compiler.cache_dir, "plans")
        self._key: bytes | None = None
        self.text: bytes | None = None

    def load(self) -> Plan | None:
        """Return the stored plan if no file has changed, else None; planning again shows any errors."""
        key = self._made_key()
        kept = None if key is None else self._cache.load(key)
        if kept is None:
            return None
        try:
            plan, facts = loads(kept)  # fails if a source's file has changed
            return plan if _is_current(facts, self._compiler) else None
        except Exception:
            return None  # stale, or written by another program

    def store(self, plan: Plan, facts: Facts) -> None:
        """Store a plan, unless some sources exist only in this process."""
        if self._key is None:
            return  # `load` could not read the text, or the text is too large
        try:
            value = dumps((plan, facts))
        except TypeError:
            return
        self._cache.store(self._key, value)

    def _made_key(self) -> bytes | None:
        try:
            with SourceFile(self._path) as file:
                if file.size_bytes > _LARGEST_TEXT_BYTES:
                    return None
                self.text = file.read(file.size_bytes)
            checked_by = find_validator()
            settings = repr((self._settings, os.getcwd(), sys.version, program_version(), checked_by)).encode()
        except (ScenarioRunnerError, OSError):
            return None  # loading the scenario reports the error
        self._key = settings + b"\0" + self.text
        return self._key


def _is_current(facts: Facts, compiler: CompilerOptions) -> bool:
    """Return whether all files are unchanged since planning."""
    if any(file_identity(path) != identity for path, identity in facts.models):
        return False
    if any(content is not None and content_of(source) != content for source, content in facts.contents):
        return False
    for path, code in facts.binaries:
        with SourceFile(path) as file:
            if file.read(file.size_bytes) != code:
                return False
    if not facts.sources:
        return True
    requests, codes = zip(*facts.sources, strict=True)
    with progress.phase("compile", "shaders"):
        return compile_all(requests, compiler=compiler.compiler, cache_dir=compiler.cache_dir) == list(codes)
