"""Commands that touch the same memory with no barrier between them that orders the two.

Source: Vulkan specification, "Synchronization and Cache Control", section "Execution and Memory Dependencies".

The scenario's commands are followed once. Of every access since the last full barrier it is kept which stages wait for
it (execution dependency) and to which accesses of which stages its writes are visible (memory dependency). Barriers
chain: what one makes available, the next may make visible. A barrier over a part of what two commands share counts
as one over all of it, since nobody knows which bytes a shader touches.
"""

# No `from __future__ import annotations` here: NamedTuple would compile every annotation again, 30 µs each.

from collections.abc import Iterable
from typing import Final, NamedTuple

from scenario_runner.checks.finding import Finding, warning

STAGES: Final = {
    "graph": frozenset({"graph"}),
    "compute": frozenset({"compute"}),
    "graphics": frozenset({"fragment", "attachment"}),
    "all": frozenset({"graph", "compute", "vertex", "fragment", "attachment"}),
}
"""The stages of a barrier in a scenario → the stages of a `Use`."""
MOST_FINDINGS: Final = 100

_ACCESS_STAGES: Final = {
    "memory": STAGES["all"],
    "compute_shader": frozenset({"compute", "vertex", "fragment"}),
    "graph": STAGES["graph"],
}
_CODES: Final = {"reads-writes": "SR-HAZARD-001", "writes-reads": "SR-HAZARD-002", "writes-writes": "SR-HAZARD-003"}


class Use(NamedTuple):
    """What one command does with the part from ``first`` to before ``end`` of the memory object ``memory``.

    ``resource`` is the uid that it goes through, ``what`` its kind; ``stage`` one of "compute", "vertex", "fragment",
    "attachment" and "graph"; ``atomic`` tells that all of it are atomic operations.
    """

    resource: str
    what: str
    memory: str
    first: int
    end: int
    stage: str
    reads: bool
    writes: bool
    atomic: bool = False


class Work(NamedTuple):
    """A command that uses memory; with ``barrier_after`` all later commands wait for it and see what it wrote."""

    pointer: str
    name: str
    uses: tuple[Use, ...]
    barrier_after: bool


class Covered(NamedTuple):
    """One barrier of a barrier command, in the scenario's words; ``memory`` is None for all memory."""

    src_stages: tuple[str, ...]
    dst_stages: tuple[str, ...]
    src_access: str
    dst_access: str
    memory: str | None = None
    first: int = 0
    end: int = 0


class Barriers(NamedTuple):
    """A barrier command."""

    pointer: str
    barriers: tuple[Covered, ...]


class Boundary(NamedTuple):
    """The end of a frame: everything before it is finished."""


Step = Work | Barriers | Boundary


class _Access:
    """A read or a write that later commands may have to wait for."""

    __slots__ = ("available", "barrier", "ordered", "use", "visible", "work", "write")

    def __init__(self, work: Work, use: Use, write: bool) -> None:
        self.work = work
        self.use = use
        self.write = write
        self.ordered: frozenset[str] = frozenset()
        self.available = False
        self.visible: set[tuple[str, str]] = set()
        self.barrier: str | None = None

    def apply(self, step: Barriers) -> None:
        """Take in a barrier command that comes behind this access."""
        self.barrier = step.pointer
        ordered = self.ordered  # the barriers of one command do not chain with each other
        for barrier in step.barriers:
            source = _stages(barrier.src_stages)
            if self.use.stage in source or ordered & source:
                self._add(barrier)

    def _add(self, barrier: Covered) -> None:
        target = _stages(barrier.dst_stages)
        self.ordered |= target
        if not self.write:
            return
        if barrier.memory is not None and not (
            barrier.memory == self.use.memory and barrier.first < self.use.end and self.use.first < barrier.end
        ):
            return
        self.available |= _is_access(barrier.src_access, self.use.stage, write=True)
        if self.available:
            self.visible |= {(stage, barrier.dst_access) for stage in target}

    def settles(self, use: Use, write: bool) -> bool:
        """Whether a later read or write is ordered behind this access."""
        if not self.write:
            return use.stage in self.ordered
        if write:
            return self.available and use.stage in self.ordered
        return any(stage == use.stage and _is_access(access, use.stage, write=False) for stage, access in self.visible)


def _stages(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(STAGES[word] for word in words))


def _is_access(word: str, stage: str, *, write: bool) -> bool:
    """Whether an access of a scenario ("compute_shader_write") includes what a stage does to resources."""
    family, _, kind = word.rpartition("_")
    return kind == ("write" if write else "read") and stage in _ACCESS_STAGES[family]


def find_hazards(steps: Iterable[Step]) -> list[Finding]:
    """The hazards between the commands of a scenario, at most `MOST_FINDINGS`; alike ones are told once."""
    pending: dict[str, dict[tuple[object, ...], _Access]] = {}
    found: dict[tuple[str, ...], tuple[Finding, int]] = {}
    for step in steps:
        if isinstance(step, Boundary):
            pending.clear()
        elif isinstance(step, Barriers):
            if any(_is_full(barrier) for barrier in step.barriers):
                pending.clear()
                continue
            for accesses in pending.values():
                for access in accesses.values():
                    access.apply(step)
        else:
            for use in step.uses:
                accesses = pending.get(use.memory, {})
                for write in (True, False):  # of a command that did both, what it wrote matters more
                    for access in accesses.values():
                        if access.write == write:
                            _compare(access, step, use, found)
            if step.barrier_after:
                pending.clear()
                continue
            for use in step.uses:
                accesses = pending.setdefault(use.memory, {})
                for write, does in ((False, use.reads), (True, use.writes)):
                    if does:
                        # Whatever settles the later one of two like accesses settles the earlier one as well.
                        key = (use.first, use.end, use.stage, write, use.atomic)
                        accesses[key] = _Access(step, use, write)
    return [
        finding._replace(message=f"{finding.message} (and {more} more like this)") if more else finding
        for finding, more in found.values()
    ]


def _is_full(barrier: Covered) -> bool:
    return (
        barrier.memory is None
        and "all" in barrier.src_stages
        and "all" in barrier.dst_stages
        and (barrier.src_access, barrier.dst_access) == ("memory_write", "memory_read")
    )


def _compare(access: _Access, step: Work, use: Use, found: dict[tuple[str, ...], tuple[Finding, int]]) -> None:
    before = access.use
    if before.end <= use.first or use.end <= before.first or (before.atomic and use.atomic):
        return
    for write, does in ((False, use.reads), (True, use.writes)):
        if not does or not (access.write or write) or access.settles(use, write):
            continue
        later, earlier = ("writes" if write else "reads"), ("writes" if access.write else "reads")
        # In-place work is told once: what it reads too early, it also writes too early.
        key = (step.name, use.resource, access.work.name, before.resource)
        if key in found:
            finding, more = found[key]
            if finding.pointer != step.pointer:
                found[key] = (finding, more + 1)
            return
        if len(found) >= MOST_FINDINGS:
            return
        alias = ""
        if before.resource != use.resource:
            alias = f" through {before.what} {before.resource!r}, which shares its memory"
        barrier = "no barrier between the two"
        code = _CODES[f"{later}-{earlier}"]
        if access.barrier is not None:
            code = "SR-HAZARD-004"
            barrier = f"the barrier {access.barrier} between the two does not cover it"
        message = (
            f"{step.name} {later} {use.what} {use.resource!r}, which {access.work.pointer} ({access.work.name})"
            f" {earlier}{alias}; {barrier}"
        )
        help = f"leave implicit_barrier of {access.work.pointer} on, or put a dispatch_barrier that covers both between"
        found[key] = (warning(code, step.pointer, message, help), 0)
        return
