"""Missing barriers: what is told, and that nothing is told where the order is certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenario_runner.checks.hazards import Barriers, Boundary, Covered, Step, Use, Work, find_hazards
from scenario_runner.validation import Options, validate_file
from tests.scenes import Scene, glsl

WRITE = "layout(set = 0, binding = 0) buffer A { uint a[]; };"
COPY = (
    "layout(set = 0, binding = 0) readonly buffer A { uint a[]; }; layout(set = 0, binding = 1) buffer B { uint b[]; };"
)


def work(command: int, *, reads: str = "", writes: str = "", barrier: bool = False, **more: Any) -> Work:
    """A command on memory objects named by one letter each."""
    names = dict.fromkeys(reads + writes)
    where = {"first": 0, "end": 64, "stage": "compute", "atomic": False, **more}
    uses = tuple(
        Use(name, "buffer", name, where["first"], where["end"], where["stage"], name in reads, name in writes,
            where["atomic"])
        for name in names
    )  # fmt: skip
    return Work(f"/commands/{command}", f"shader {command}", uses, barrier)


def covered(src: str, dst: str, src_access: str, dst_access: str, *memory: Any) -> Barriers:
    return Barriers("/commands/1", (Covered((src,), (dst,), src_access, dst_access, *memory),))


def codes(*steps: Step) -> list[str]:
    return [finding.code for finding in find_hazards(steps)]


@pytest.mark.parametrize(
    "first, second, code",
    [
        ({"writes": "a"}, {"reads": "a"}, "SR-HAZARD-001"),
        ({"reads": "a"}, {"writes": "a"}, "SR-HAZARD-002"),
        ({"writes": "a"}, {"writes": "a"}, "SR-HAZARD-003"),
        ({"reads": "a"}, {"reads": "a"}, None),
        ({"writes": "a"}, {"reads": "b"}, None),
        ({"writes": "a", "end": 32}, {"reads": "a", "first": 32}, None),
        ({"writes": "a", "end": 33}, {"reads": "a", "first": 32}, "SR-HAZARD-001"),
        ({"reads": "a", "writes": "a", "atomic": True}, {"reads": "a", "writes": "a", "atomic": True}, None),
        ({"reads": "a", "writes": "a", "atomic": True}, {"reads": "a"}, "SR-HAZARD-001"),
    ],
)
def test_what_conflicts(first: dict[str, Any], second: dict[str, Any], code: str | None) -> None:
    """A write and another access to the same bytes conflict, unless both are atomic; an implicit barrier settles it."""
    expected = [] if code is None else [code]
    assert codes(work(0, **first), work(2, **second)) == expected
    assert codes(work(0, **first, barrier=True), work(2, **second)) == []
    assert codes(work(0, **first), Boundary(), work(2, **second)) == []


@pytest.mark.parametrize(
    "barrier, settles",
    [
        (("all", "all", "memory_write", "memory_read"), True),
        (("compute", "compute", "compute_shader_write", "compute_shader_read"), True),
        (("compute", "all", "memory_write", "memory_read"), True),
        (("compute", "compute", "memory_write", "compute_shader_read", "a", 0, 64), True),
        (("compute", "compute", "memory_write", "memory_read", "b", 0, 64), False),
        (("compute", "compute", "memory_write", "memory_read", "a", 64, 128), False),
        (("graph", "compute", "memory_write", "memory_read"), False),
        (("compute", "graph", "memory_write", "memory_read"), False),
        (("compute", "compute", "graph_write", "memory_read"), False),
        (("compute", "compute", "memory_read", "memory_read"), False),
        (("compute", "compute", "memory_write", "memory_write"), False),
        (("compute", "compute", "memory_write", "graph_read"), False),
    ],
)
def test_barriers_between_write_and_read(barrier: Any, settles: bool) -> None:
    """A barrier settles a read after a write when stages, accesses and range cover both; otherwise it is named."""
    steps = [work(0, writes="a"), covered(*barrier), work(2, reads="a")]
    found = find_hazards(steps)
    assert [finding.code for finding in found] == ([] if settles else ["SR-HAZARD-004"])
    assert settles or "the barrier /commands/1 between the two does not cover it" in found[0].message


def test_a_write_after_a_read_needs_the_order_only() -> None:
    """An execution dependency is enough for a write after a read, whatever accesses it names."""
    order = covered("compute", "compute", "memory_read", "memory_read")
    assert codes(work(0, reads="a"), order, work(2, writes="a")) == []


def test_barriers_chain() -> None:
    """What one barrier makes available to the graph stage, the next one hands on from there."""
    first = covered("compute", "graph", "compute_shader_write", "graph_read")
    second = covered("graph", "compute", "graph_write", "compute_shader_read")
    assert codes(work(0, writes="a"), first, second, work(2, reads="a")) == []
    assert codes(work(0, writes="a"), second, first, work(2, reads="a")) == ["SR-HAZARD-004"]


def test_the_barriers_of_one_command_do_not_chain() -> None:
    """Barriers that one command lists act at the same time."""
    both = Barriers(
        "/commands/1",
        (
            Covered(("compute",), ("graph",), "memory_write", "memory_read"),
            Covered(("graph",), ("compute",), "memory_write", "memory_read"),
        ),
    )
    assert codes(work(0, writes="a"), both, work(2, reads="a")) == ["SR-HAZARD-004"]


def test_alike_hazards_are_told_once() -> None:
    """A loop of the same two commands gives one finding, with how often it occurs."""
    steps = [each for _ in range(5) for each in (work(0, writes="a"), work(1, reads="a"))]
    found = [finding for finding in find_hazards(steps) if finding.code == "SR-HAZARD-001"]
    assert len(found) == 1


def scenario_findings(scene: Scene, **options: Any) -> list[tuple[str | None, str | None, str]]:
    found = validate_file(scene.write(), Options(**options)).findings
    return [(each.problem.code, each.problem.pointer, each.problem.message) for each in found]


def test_a_scenario_without_a_barrier(scene: Scene, shader_cache: Path) -> None:
    """The finding names both commands and the resource; without --hazards nothing is looked for."""
    scene.shader("fill", glsl("a[0] = 1;", WRITE)).shader("copy", glsl("b[0] = a[0];", COPY))
    scene.buffer("x", size=64).buffer("y", size=64)
    scene.dispatch("fill", ["x"], implicit_barrier=False).dispatch("copy", ["x", "y"])
    assert scenario_findings(scene) == []
    assert scenario_findings(scene, hazards=True) == [
        (
            "SR-HAZARD-001",
            "/commands/1/dispatch_compute",
            "shader 'copy' reads buffer 'x', which /commands/0/dispatch_compute (shader 'fill') writes;"
            " no barrier between the two",
        )
    ]


def test_aliases_conflict_where_they_overlap(scene: Scene, shader_cache: Path) -> None:
    """Two buffers of a memory group are one memory, as far as their offsets make them overlap."""
    scene.shader("fill", glsl("a[0] = 1;", WRITE)).shader("copy", glsl("b[0] = a[0];", COPY))
    scene.buffer("whole", size=512, memory_group={"id": "g"})
    scene.buffer("half", size=256, memory_group={"id": "g", "offset": 256}).buffer("y", size=64)
    scene.buffer("behind", size=256, memory_group={"id": "g", "offset": 512})
    scene.dispatch("fill", ["whole"], implicit_barrier=False).dispatch("copy", ["behind", "y"], implicit_barrier=False)
    scene.dispatch("copy", ["half", "y"])
    found = [each for each in scenario_findings(scene, hazards=True) if each[0] == "SR-HAZARD-001"]
    assert found == [
        (
            "SR-HAZARD-001",
            "/commands/2/dispatch_compute",
            "shader 'copy' reads buffer 'half', which /commands/0/dispatch_compute (shader 'fill') writes through"
            " buffer 'whole', which shares its memory; no barrier between the two",
        )
    ]
