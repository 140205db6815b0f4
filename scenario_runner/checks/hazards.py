"""Hazards: commands that use the same memory without a barrier that orders them.

Source: Vulkan specification, "Synchronization and Cache Control", section "Execution and Memory Dependencies".

The rule follows the scenario's commands once. It keeps every access since the last full barrier. Each access knows
the stages that wait for it (execution dependency). A write also knows, for each part of its memory, the stages and
accesses that see it (memory dependency). Barriers chain: one barrier makes a write available, and a later barrier makes
the write visible. A barrier that changes an image's layout is itself a write to that part of the image.
Transitions happen in command order, so an access before a transition is also before all later accesses.

A scenario's barrier names a single access. A command that works in place reads and writes, and the barrier cannot name
both. So the second of two writes needs an execution dependency and an available first write, but no barrier to a write.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic, warning

STAGES: Final = {
    "graph": frozenset({"graph"}),
    "compute": frozenset({"compute"}),
    "graphics": frozenset({"vertex_input", "fragment", "attachment"}),
    "all": frozenset(
        {"graph", "compute", "vertex_input", "vertex", "fragment", "attachment", "transfer", "transition"}
    ),
}
"""The stages of a barrier in a scenario → the stages of a `Use`."""
MOST_FINDINGS: Final = 100
MOST_PARTS: Final = 64
"""Most parts of one access. After that, a barrier over some of its memory counts for all of it."""

_ACCESS_STAGES: Final = {
    "memory": STAGES["all"],
    "compute_shader": frozenset({"compute", "vertex", "fragment"}),
    "graph": STAGES["graph"],
}
_CODES: Final = {"reads-writes": "SR-HAZARD-001", "writes-reads": "SR-HAZARD-002", "writes-writes": "SR-HAZARD-003"}


class Use(NamedTuple):
    """A command's use of the memory object ``memory``, from ``first`` to before ``end``.

    ``resource`` and ``what`` are the bound resource's uid and kind. ``stage`` is "compute", "vertex_input", "vertex",
    "fragment", "attachment", "transfer", "graph" or "transition". ``atomic`` means atomic operations only. ``first``
    and ``end`` count units of ``unit``, "byte" or "mip level". The resource begins at the unit ``base``.
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
    unit: str = "byte"
    base: int = 0


class Work(NamedTuple):
    """A command that uses memory. With ``barrier_after``, all later commands wait for it and see its writes."""

    pointer: str
    name: str
    uses: tuple[Use, ...]
    barrier_after: bool


class Covered(NamedTuple):
    """A barrier of a barrier command, with the scenario's stages and accesses. ``memory`` is None for all memory.

    The barrier changes the layout of parts of an image: ``transitions`` are these writes, of the stage "transition".
    """

    src_stages: tuple[str, ...]
    dst_stages: tuple[str, ...]
    src_access: str
    dst_access: str
    memory: str | None = None
    first: int = 0
    end: int = 0
    name: str = ""
    transitions: tuple[Use, ...] = ()


class Barriers(NamedTuple):
    """A barrier command."""

    pointer: str
    barriers: tuple[Covered, ...]


Step = Work | Barriers


@dataclass(slots=True)
class _Part:
    """A part of an access's memory. ``reached`` means that a barrier covered the part.

    ``available`` are the stages that wait until the write is available. ``visible`` are pairs of a stage and an access
    that see the write.
    """

    first: int
    end: int
    reached: bool = False
    available: frozenset[str] = frozenset()
    visible: frozenset[tuple[str, str]] = frozenset()

    def cut(self, at: int) -> "_Part":
        """End this part before ``at``, and return the rest as a new part."""
        rest = replace(self, first=at)
        self.end = at
        return rest


class _Access:
    """A read or a write that later commands may have to wait for."""

    def __init__(self, work: Work, use: Use, write: bool) -> None:
        self.work = work
        self.use = use
        self.write = write
        self.ordered: frozenset[str] = frozenset()
        self.parts = [_Part(use.first, use.end)]
        self.barrier: str | None = None
        self.reported = False

    def apply(self, step: Barriers) -> None:
        """Note a barrier command that follows this access."""
        self.barrier = step.pointer
        ordered = self.ordered
        earlier = [(part.first, part.end, part.available) for part in self.parts]
        # A command's barriers act at the same time: none builds on another's effect.
        for barrier in step.barriers:
            source = _stages(barrier.src_stages)
            if self.use.stage in source or ordered & source:
                self._add(barrier, source, earlier)

    def _add(self, barrier: Covered, source: frozenset[str], earlier: list[tuple[int, int, frozenset[str]]]) -> None:
        target = _stages(barrier.dst_stages)
        self.ordered |= target
        if not self.write or (barrier.memory is not None and barrier.memory != self.use.memory):
            return
        is_available = self.use.stage in source and _is_access(barrier.src_access, self.use.stage, write=True)
        seen = frozenset({(stage, barrier.dst_access) for stage in target})
        for part in self._split(barrier):
            part.reached = True
            # The barrier makes the write available itself, or an earlier barrier command did.
            was = any(
                available & source and first <= part.first and part.end <= end for first, end, available in earlier
            )
            if is_available or was:
                part.available |= target
                part.visible |= seen

    def _split(self, barrier: Covered) -> list[_Part]:
        """Return the parts that a barrier covers, after cutting parts at the barrier's ends."""
        if barrier.memory is None:
            return self.parts
        first, end = max(barrier.first, self.use.first), min(barrier.end, self.use.end)
        if first >= end:
            return []
        for cut in (first, end):
            for position, part in enumerate(self.parts):
                if part.first < cut < part.end:
                    if len(self.parts) >= MOST_PARTS:
                        return self.parts
                    self.parts.insert(position + 1, part.cut(cut))
                    break
        return [part for part in self.parts if first <= part.first and part.end <= end]

    def missing_order(self, use: Use, write: bool) -> tuple[str, str] | None:
        """Return a code (or "") and the reason why a later read or write is not ordered behind this access.

        None means that a barrier orders the two.
        """
        if use.stage not in self.ordered:
            if self.barrier is None:
                return "", "no barrier between the two"
            if not self.ordered:
                return self._because(f"its src_stage leaves out the {_word(self.use.stage)} stage of the first")
            return self._because(f"its dst_stage leaves out the {_word(use.stage)} stage of the second")
        if not self.write:
            return None
        shared = [part for part in self.parts if part.first < use.end and use.first < part.end]
        open_parts = [part for part in shared if not _is_safe(part, use, write)]
        if not open_parts:
            return None
        if all(part.reached for part in open_parts):
            if not all(part.available for part in open_parts):
                return self._because("its src_access does not cover the write of the first command")
            if write:
                return self._because(f"its dst_stage leaves out the {_word(use.stage)} stage of the second")
            return self._because("its dst_access does not cover the read of the second command")
        if not any(part.reached for part in shared):
            return self._because("it covers other memory")
        unit, base = self.use.unit, self.use.base
        # the message joins adjacent parts to one gap
        first = next(part for part in open_parts if not part.reached)
        last = first.end
        for part in open_parts:
            if not part.reached and part.first == last:
                last = part.end
        low, high = max(first.first, use.first) - base, min(last, use.end) - 1 - base
        gap = f"{unit} {low}" if low == high else f"{unit}s {low} to {high}"
        return "SR-HAZARD-005", f"the barrier {self.barrier} between the two leaves out {gap}"

    def _because(self, reason: str) -> tuple[str, str]:
        return "SR-HAZARD-004", f"the barrier {self.barrier} between the two does not cover it: {reason}"

    def precedes(self, barrier: Covered, transition: Use) -> str | None:
        """Return the reason why a transition of ``barrier`` is not ordered behind this access, or None."""
        source = _stages(barrier.src_stages)
        if not (self.use.stage in source or self.ordered & source):
            return f"its src_stage leaves out the {_word(self.use.stage)} stage"
        if self.write:
            is_available = self.use.stage in source and _is_access(barrier.src_access, self.use.stage, write=True)
            for part in self.parts:
                if (
                    part.first < transition.end
                    and transition.first < part.end
                    and not (is_available or part.available & source)
                ):
                    return "its src_access does not cover that write"
        return None


def _is_safe(part: _Part, use: Use, write: bool) -> bool:
    if write:
        return use.stage in part.available
    return any(stage == use.stage and _is_access(access, use.stage, write=False) for stage, access in part.visible)


def _stages(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(STAGES[word] for word in words))


def _word(stage: str) -> str:
    """Return the word that scenarios use for a stage."""
    return "graphics" if stage in STAGES["graphics"] else stage


def _is_access(word: str, stage: str, *, write: bool) -> bool:
    """Return whether an access word of scenarios ("compute_shader_write") covers a stage's reads or writes."""
    family, _, kind = word.rpartition("_")
    return kind == ("write" if write else "read") and stage in _ACCESS_STAGES[family]


def find_hazards(steps: Iterable[Step]) -> list[Diagnostic]:
    """Find hazards between commands, at most `MOST_FINDINGS`. Similar hazards become one finding with a count."""
    follower = _Follower()
    for step in steps:
        if isinstance(step, Barriers):
            follower.apply_barriers(step)
        else:
            follower.check_work(step)
    return [
        finding._replace(message=f"{finding.message} (and {more} more like this)") if more else finding
        for finding, more in follower.findings.values()
    ]


class _Follower:
    """Follows the commands. ``pending`` has the accesses without a full barrier behind them, by memory object."""

    def __init__(self) -> None:
        self.pending: dict[str, dict[tuple[object, ...], _Access]] = {}
        self.findings: dict[tuple[str, ...], tuple[Diagnostic, int]] = {}

    def check_work(self, step: Work) -> None:
        # Work in place that reads too early also writes too early, so each command reports a pair once.
        pairs: set[tuple[str, ...]] = set()
        for use in step.uses:
            self._compare_all(step, use, pairs)
        if step.barrier_after:
            self.pending.clear()
            return
        for use in step.uses:
            for write, does in ((False, use.reads), (True, use.writes)):
                if does:
                    self._note(_Access(step, use, write))

    def apply_barriers(self, step: Barriers) -> None:
        changes = [(barrier, use) for barrier in step.barriers for use in barrier.transitions]
        for barrier, use in changes:
            accesses = self.pending.get(use.memory, {})
            for key, access in list(accesses.items()):
                if access.use.end <= use.first or use.end <= access.use.first or access.reported:
                    continue
                reason = None if access.use.stage == "transition" else access.precedes(barrier, use)
                if reason is not None:
                    access.reported = True
                    self._report_transition(access, step, barrier, use, reason)
                elif use.first <= access.use.first and access.use.end <= use.end:
                    del accesses[key]  # commands behind the transition are also behind this access
        if any(_is_full(barrier) for barrier in step.barriers):
            self.pending.clear()
        else:
            for accesses in self.pending.values():
                for access in accesses.values():
                    access.apply(step)
        for barrier, use in changes:
            access = _Access(Work(step.pointer, barrier.name, (use,), False), use, True)
            access.barrier = step.pointer
            access.ordered = _stages(barrier.dst_stages)
            visible = frozenset({(stage, barrier.dst_access) for stage in access.ordered})
            access.parts = [_Part(use.first, use.end, True, access.ordered, visible)]
            self._note(access)

    def _note(self, access: _Access) -> None:
        use = access.use
        # A barrier that orders the later of two equal accesses also orders the earlier access.
        key = (use.first, use.end, use.stage, access.write, use.atomic)
        self.pending.setdefault(use.memory, {})[key] = access

    def _compare_all(self, step: Work, use: Use, pairs: set[tuple[str, ...]]) -> None:
        reported = False
        # Writes come first, because they matter more than reads of the same command. Transitions come last, because the
        # accesses before them usually lack an order as well.
        for write, transition in ((True, False), (False, False), (True, True)):
            for access in self.pending.get(use.memory, {}).values():
                if access.write == write and (access.use.stage == "transition") == transition and not access.reported:
                    reported |= not (reported and transition) and self._compare(access, step, use, pairs)

    def _compare(self, access: _Access, step: Work, use: Use, pairs: set[tuple[str, ...]]) -> bool:
        """Report a hazard between an earlier access and a later use. Return whether there is a hazard."""
        before, first = access.use, access.work
        if before.end <= use.first or use.end <= before.first or (before.atomic and use.atomic):
            return False
        for write, does in ((False, use.reads), (True, use.writes)):
            missing = access.missing_order(use, write) if does and (access.write or write) else None
            if missing is None:
                continue
            code, reason = missing
            later, earlier = ("writes" if write else "reads"), ("writes" if access.write else "reads")
            help = f"leave implicit_barrier of {first.pointer} on, or put a dispatch_barrier that covers both between"
            if before.stage == "transition":
                code, earlier = "SR-HAZARD-006", "moves to another layout"
                help = f"let dst_stage and dst_access of {first.name} cover this command"
            pair = (use.resource, first.pointer, before.resource)
            if pair not in pairs:
                pairs.add(pair)
                what = f"{step.name} {later} {use.what} {use.resource!r}"
                message = f"{what}, {_as_before(access, earlier, use)}; {reason}"
                finding = warning(code or _CODES[f"{later}-{earlier}"], step.pointer, message, help)
                self._report((step.name, later, use.resource, first.name, earlier, before.resource), finding)
            return True
        return False

    def _report_transition(self, access: _Access, step: Barriers, barrier: Covered, use: Use, reason: str) -> None:
        earlier = _as_before(access, "writes" if access.write else "reads", use)
        message = f"{barrier.name} moves {use.what} {use.resource!r} to another layout, {earlier}; {reason}"
        help = "let src_stage and src_access of the barrier cover that command: a change of layout is a write"
        key = (barrier.name, use.resource, access.work.name, access.use.resource)
        self._report(key, warning("SR-HAZARD-006", step.pointer, message, help))

    def _report(self, key: tuple[str, ...], finding: Diagnostic) -> None:
        """Add a finding, or count it if a similar finding exists."""
        if key in self.findings:
            known, more = self.findings[key]
            self.findings[key] = (known, more + (known.pointer != finding.pointer))
        elif len(self.findings) < MOST_FINDINGS:
            self.findings[key] = (finding, 0)


def _as_before(access: _Access, does: str, use: Use) -> str:
    """Describe an earlier access to memory that is used later."""
    alias = ""
    if access.use.resource != use.resource:
        alias = f" through {access.use.what} {access.use.resource!r}, which shares its memory"
    return f"which {access.work.pointer} ({access.work.name}) {does}{alias}"


def _is_full(barrier: Covered) -> bool:
    return (
        barrier.memory is None
        and "all" in barrier.src_stages
        and "all" in barrier.dst_stages
        and (barrier.src_access, barrier.dst_access) == ("memory_write", "memory_read")
    )
