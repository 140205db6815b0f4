"""Missing barriers: a finding for each, and none where the order is certain."""

from pathlib import Path
from typing import Any

import pytest

from scenario_runner import Runner
from scenario_runner.checks.hazards import Barriers, Covered, Step, Use, Work, find_hazards
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
    assert codes(work(0, **first), work(1, barrier=True), work(2, **second)) == []


@pytest.mark.parametrize(
    "barrier, lacking",
    [
        (("all", "all", "memory_write", "memory_read"), ""),
        (("compute", "compute", "compute_shader_write", "compute_shader_read"), ""),
        (("compute", "compute", "memory_write", "compute_shader_read", "a", 0, 64), ""),
        (("compute", "compute", "memory_write", "memory_read", "b", 0, 64), "it covers other memory"),
        (
            ("graph", "compute", "memory_write", "memory_read"),
            "its src_stage leaves out the compute stage of the first",
        ),
        (
            ("compute", "graph", "memory_write", "memory_read"),
            "its dst_stage leaves out the compute stage of the second",
        ),
        (
            ("compute", "compute", "graph_write", "memory_read"),
            "its src_access does not cover the write of the first command",
        ),
        (
            ("compute", "compute", "memory_write", "graph_read"),
            "its dst_access does not cover the read of the second command",
        ),
    ],
)
def test_barriers_between_write_and_read(barrier: Any, lacking: str) -> None:
    """A barrier settles a read after a write when stages, accesses and range cover both; otherwise the message names
    it, and which of them leaves the dependency out."""
    steps = [work(0, writes="a"), covered(*barrier), work(2, reads="a")]
    assert codes(*steps) == (["SR-HAZARD-004"] if lacking else [])
    if lacking:
        assert reason(*steps) == f"the barrier /commands/1 between the two does not cover it: {lacking}"


def test_barriers_chain() -> None:
    """A barrier hands on the writes that an earlier barrier made available to the graph stage."""
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


def reason(*steps: Step) -> str:
    """Return the last part of the only finding, after the two commands."""
    (found,) = find_hazards(steps)
    return found.message.split("; ")[1]


def part(first: int, end: int) -> Covered:
    return Covered(("compute",), ("compute",), "compute_shader_write", "compute_shader_read", "a", first, end)


def test_a_barrier_over_a_part_covers_that_part() -> None:
    """A barrier over a part of a buffer settles this part alone; several barriers may cover the whole together."""
    write, half = work(0, writes="a"), Barriers("/commands/1", (part(0, 32),))
    assert codes(write, half, work(2, reads="a")) == ["SR-HAZARD-005"]
    assert (
        reason(write, half, work(2, reads="a")) == "the barrier /commands/1 between the two leaves out bytes 32 to 63"
    )
    assert codes(write, half, work(2, reads="a", end=32)) == []
    assert codes(write, half, work(2, reads="a", first=32)) == ["SR-HAZARD-004"]
    assert reason(write, half, work(2, reads="a", first=32)).endswith("does not cover it: it covers other memory")
    assert codes(write, Barriers("/commands/1", (part(0, 32), part(32, 64))), work(2, reads="a")) == []
    assert codes(write, half, Barriers("/commands/2", (part(16, 90),)), work(3, reads="a")) == []
    assert codes(write, half, Barriers("/commands/2", (part(48, 64),)), work(3, reads="a")) == ["SR-HAZARD-005"]
    assert reason(write, half, Barriers("/commands/2", (part(40, 64),)), work(3, reads="a")).endswith("bytes 32 to 39")


def test_many_partial_barriers_stay_bounded() -> None:
    """Thousands of parts neither take long nor give a warning where they cover everything."""
    steps: list[Step] = [work(0, writes="a", end=10_000)]
    steps += [Barriers("/commands/1", (part(byte, byte + 1),)) for byte in range(10_000)]
    assert codes(*steps, work(2, reads="a", end=10_000)) == []


def test_a_write_after_a_read_needs_no_range() -> None:
    """The execution dependency of a barrier is about stages; its range and accesses are about writes."""
    elsewhere = covered("compute", "compute", "memory_read", "memory_read", "b", 0, 8)
    assert codes(work(0, reads="a"), elsewhere, work(2, writes="a")) == []
    assert codes(work(0, writes="a"), elsewhere, work(2, writes="a")) == ["SR-HAZARD-004"]


def test_a_chain_hands_on_what_was_made_available() -> None:
    """A second barrier hands on available writes, and cannot make writes of another stage available."""
    order = covered("compute", "graph", "memory_read", "memory_read")
    hand_on = covered("graph", "compute", "memory_write", "memory_read")
    available = covered("compute", "graph", "memory_write", "graph_read")
    assert codes(work(0, writes="a"), order, hand_on, work(2, reads="a")) == ["SR-HAZARD-004"]
    assert codes(work(0, writes="a"), available, hand_on, work(2, reads="a")) == []
    visible_only = covered("graph", "compute", "memory_read", "memory_read")
    assert codes(work(0, writes="a"), available, visible_only, work(2, reads="a")) == []


@pytest.mark.parametrize(
    "barrier, settles",
    [
        (("graphics", "compute", "memory_write", "memory_read"), True),
        (("all", "all", "memory_write", "compute_shader_read"), True),
        (("compute", "compute", "memory_write", "memory_read"), False),
        (("graphics", "compute", "compute_shader_write", "memory_read"), False),
    ],
)
def test_attachments_are_written_by_the_graphics_stages(barrier: Any, settles: bool) -> None:
    """A draw writes its attachments in the stage graphics with the access memory_write."""
    steps = [work(0, writes="a", stage="attachment"), covered(*barrier), work(2, reads="a")]
    assert codes(*steps) == ([] if settles else ["SR-HAZARD-004"])


def test_graphics_leaves_vertex_shaders_out() -> None:
    """The stage graphics stands for fragment shaders and attachments. Vertex shaders need the stage all."""
    for stage, settles in (("fragment", True), ("vertex", False)):
        steps = [work(0, writes="a"), covered("compute", "graphics", "memory_write", "memory_read")]
        expected = [] if settles else ["SR-HAZARD-004"]
        assert codes(*steps, work(2, reads="a", stage=stage)) == expected


def transition(src: str, dst: str, src_access: str, dst_access: str, first: int = 0, end: int = 64) -> Barriers:
    use = Use("a", "image", "a", first, end, "transition", False, True)
    return Barriers("/commands/1", (Covered((src,), (dst,), src_access, dst_access, "a", first, end, "b", (use,)),))


@pytest.mark.parametrize(
    "barrier, before, after, expected",
    [
        (("compute", "compute", "memory_write", "memory_read"), "writes", "reads", []),
        (("compute", "compute", "memory_write", "memory_read"), "reads", "writes", []),
        (("all", "all", "memory_write", "memory_read"), "writes", "writes", []),
        # only its content is dropped or moved: who reads before needs no access, who writes before does
        (("compute", "compute", "memory_read", "memory_read"), "reads", "reads", []),
        (("compute", "compute", "memory_read", "memory_read"), "writes", "", ["SR-HAZARD-006"]),
        (("graph", "compute", "memory_write", "memory_read"), "reads", "", ["SR-HAZARD-006"]),
        (("compute", "graph", "memory_write", "memory_read"), "", "reads", ["SR-HAZARD-006"]),
        (("compute", "compute", "memory_write", "graph_read"), "", "reads", ["SR-HAZARD-006"]),
        (("compute", "graph", "memory_write", "memory_read"), "", "writes", ["SR-HAZARD-006"]),
        (("compute", "compute", "memory_write", "memory_read", 32, 64), "", "reads", []),
    ],
)
def test_layout_transitions_are_writes(barrier: Any, before: str, after: str, expected: list[str]) -> None:
    """A layout transition runs after the source scope and before the destination scope of its barrier."""
    steps: list[Step] = [work(0, **{before: "a"})] if before else []
    steps.append(transition(*barrier))
    steps += [work(2, **{after: "a"})] if after else []
    assert codes(*steps) == expected


def test_a_transition_reaches_its_levels_only() -> None:
    """Other parts of the image need no order with it."""
    change = transition("graph", "graph", "memory_write", "memory_read", 32, 64)
    assert codes(work(0, writes="a", end=32), change) == []
    assert codes(change, work(2, reads="a", end=32)) == []
    assert codes(change, work(2, reads="a", end=33)) == ["SR-HAZARD-006"]


def test_what_is_before_a_transition_is_before_all_behind_it() -> None:
    """A read that a first transition waits for is ordered with the second one, whatever the second one names."""
    first = transition("compute", "graph", "memory_write", "memory_read")
    second = transition("graph", "compute", "memory_write", "memory_read")
    nothing = Barriers("/commands/1", (second.barriers[0]._replace(src_stages=()),))
    for before in ("reads", "writes"):
        assert codes(work(0, **{before: "a"}), first, nothing, work(3, reads="a")) == []
        assert codes(work(0, **{before: "a"}), nothing, work(3, reads="a")) == ["SR-HAZARD-006"]


def test_transitions_chain() -> None:
    """Transitions follow each other by themselves, and barriers behind a transition hand it on."""
    first = transition("compute", "graph", "memory_write", "memory_read")
    assert codes(first, transition("compute", "compute", "memory_write", "memory_read")) == []
    assert codes(first, transition("graph", "compute", "memory_write", "memory_read"), work(2, reads="a")) == []
    hand_on = covered("graph", "compute", "memory_read", "memory_read")
    assert codes(first, hand_on, work(2, reads="a")) == []
    assert codes(first, covered("all", "all", "memory_write", "memory_read"), work(2, reads="a")) == []
    assert codes(first, work(1, barrier=True), work(2, reads="a")) == []


def scenario_findings(scene: Scene, **options: Any) -> list[str]:
    found = validate_file(scene.write(), Options(**options)).findings
    return [f"{each.code} {each.pointer}: {each.message}" for each in found]


def test_a_scenario_without_a_barrier(scene: Scene, shader_cache: Path) -> None:
    """The finding names both commands and the resource, once, with --hazards and without; --strict makes it an error.
    A run warns as well, also with the kept plan."""
    scene.shader("fill", glsl("a[0] = 1;", WRITE)).shader("copy", glsl("b[0] = a[0];", COPY))
    scene.buffer("x", size=64).buffer("y", size=64)
    scene.dispatch("fill", ["x"], implicit_barrier=False).dispatch("copy", ["x", "y"])
    message = (
        "shader 'copy' reads buffer 'x', which /commands/0/dispatch_compute (shader 'fill') writes; no barrier between"
        " the two"
    )
    expected = [f"SR-HAZARD-001 /commands/1/dispatch_compute: {message}"]
    assert scenario_findings(scene) == scenario_findings(scene, hazards=True) == expected
    with Runner() as runner:
        for _ in range(2):
            assert [each.message for each in runner.run_to_files(scene.write()).warnings] == [message]
    assert validate_file(scene.write(), Options(strict=True)).exit_code == 3


def test_aliases_conflict_where_they_overlap(scene: Scene, shader_cache: Path) -> None:
    """Two buffers of a memory group are one memory, as far as their offsets make them overlap."""
    scene.shader("fill", glsl("a[0] = 1;", WRITE)).shader("copy", glsl("b[0] = a[0];", COPY))
    scene.buffer("whole", size=512, memory_group={"id": "g"})
    scene.buffer("half", size=256, memory_group={"id": "g", "offset": 256}).buffer("y", size=64)
    scene.buffer("behind", size=256, memory_group={"id": "g", "offset": 512})
    scene.dispatch("fill", ["whole"], implicit_barrier=False).dispatch("copy", ["behind", "y"], implicit_barrier=False)
    scene.dispatch("copy", ["half", "y"])
    found = [each for each in scenario_findings(scene, hazards=True) if each.startswith("SR-HAZARD-001")]
    assert found == [
        "SR-HAZARD-001 /commands/2/dispatch_compute: shader 'copy' reads buffer 'half', which"
        " /commands/0/dispatch_compute (shader 'fill') writes through buffer 'whole', which shares its memory; no"
        " barrier between the two"
    ]


FIXED = "layout(set = 0, binding = 0) buffer A { uint a[8]; };"


@pytest.mark.parametrize("size, expected", [(32, []), (16, ["SR-HAZARD-005"])])
def test_a_block_of_fixed_size_is_all_that_is_touched(
    scene: Scene, shader_cache: Path, size: int, expected: list[str]
) -> None:
    """A barrier over the bytes of the shaders' blocks is enough, however large the buffer."""
    scene.shader("fill", glsl("a[0] = 1;", FIXED)).buffer("x", size=256)
    words = {"src_access": "memory_write", "dst_access": "memory_read"}
    scene.resource("buffer_barrier", uid="b", buffer_resource="x", offset=0, size=size, **words)
    scene.dispatch("fill", ["x"], implicit_barrier=False)
    scene.command("dispatch_barrier", buffer_barrier_refs=["b"])
    scene.dispatch("fill", ["x"])
    assert [each.split()[0] for each in scenario_findings(scene, hazards=True)] == expected


STORE = "layout(set = 0, binding = 0, rgba8) uniform writeonly image2D p;"
SAMPLE = "layout(set = 0, binding = 0) uniform sampler2D s; layout(set = 0, binding = 1) buffer B { vec4 b[]; };"


def image_scene(scene: Scene, part: dict[str, Any] | None, level: int | None, **barrier: Any) -> Scene:
    """Level ``level`` of an image is stored into, a barrier over ``part`` follows, and all levels are sampled."""
    scene.shader("store", glsl("imageStore(p, ivec2(0), vec4(1));", STORE))
    scene.shader("sample", glsl("b[0] = textureLod(s, vec2(0), 1);", SAMPLE))
    scene.resource(
        "image", uid="i", dims=[1, 8, 8, 1], format="VK_FORMAT_R8G8B8A8_UNORM", shader_access="readwrite", mips=3
    )
    scene.buffer("out", size=64)
    given = {
        "old_layout": "general", "new_layout": "general", "src_stage": ["compute"], "dst_stage": ["compute"],
        "src_access": "compute_shader_write", "dst_access": "compute_shader_read",
    }  # fmt: skip
    if part is not None:
        full = {"base_mip_level": 0, "level_count": 1, "base_array_layer": 0, "layer_count": 1, **part}
        given["subresource_range"] = full  # type: ignore[assignment]
    scene.resource("image_barrier", uid="b", image_resource="i", **{**given, **barrier})
    bound = [{"set": 0, "id": 0, "resource_ref": "i"} | ({} if level is None else {"lod": level})]
    scene.command("dispatch_compute", shader_ref="store", rangeND=[1], bindings=bound, implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["b"])
    return scene.dispatch("sample", ["i", "out"])


@pytest.mark.parametrize(
    "part, level, code",
    [
        (None, None, None),
        (None, 1, "SR-HAZARD-004"),
        ({"base_mip_level": 1}, 1, None),
        ({"level_count": 2**32 - 1}, 2, None),
        ({"base_mip_level": 1, "level_count": 2}, 0, "SR-HAZARD-004"),
    ],
)
def test_image_barriers_cover_their_levels(
    scene: Scene, shader_cache: Path, part: Any, level: int | None, code: str | None
) -> None:
    """A barrier over mip levels settles those; a storage image bound without a level is its first one."""
    found = scenario_findings(image_scene(scene, part, level), hazards=True)
    assert [each.split()[0] for each in found] == ([] if code is None else [code])


def test_a_transition_between_two_dispatches(scene: Scene, shader_cache: Path) -> None:
    """Dropping the content of an image is a change of layout, and wants the first command as its source."""
    assert scenario_findings(image_scene(Scene(scene.folder), None, 0, old_layout="undefined"), hazards=True) == []
    scene = image_scene(scene, None, 0, old_layout="undefined", src_stage=["graph"])
    found = [each for each in scenario_findings(scene, hazards=True) if each.startswith("SR-HAZARD-006")]
    assert found == [
        "SR-HAZARD-006 /commands/1/dispatch_barrier: image barrier 'b' moves image 'i' to another layout, which"
        " /commands/0/dispatch_compute (shader 'store') writes; its src_stage leaves out the compute stage"
    ]


def test_the_same_layout_is_no_transition(scene: Scene, shader_cache: Path) -> None:
    """A barrier that keeps the layout orders nothing with other stages, and disturbs nothing."""
    scene = image_scene(scene, {"base_mip_level": 2}, 0, src_stage=["graph"], dst_stage=["graph"])
    assert [each.split()[0] for each in scenario_findings(scene, hazards=True)] == ["SR-HAZARD-004"]


def test_levels_without_end(scene: Scene, shader_cache: Path) -> None:
    """A number of mip levels that no image has is an error elsewhere, and takes no memory here."""
    scene.resource(
        "image", uid="i", dims=[1, 8, 8, 1], format="VK_FORMAT_R8_UNORM", shader_access="readwrite", mips=2**32 - 1
    )
    scene.barrier("b", "i", layouts=("undefined", "general"))
    scene.command("dispatch_barrier", image_barrier_refs=["b"])
    assert all(not each.startswith("SR-HAZARD-006") for each in scenario_findings(scene, hazards=True))


def test_an_order_and_an_availability_that_do_not_meet() -> None:
    """An order for one stage and availability for another stage do not settle a hazard."""
    order = covered("compute", "compute", "compute_shader_read", "compute_shader_read")
    available = covered("compute", "graph", "compute_shader_write", "graph_read")
    first, again, reader = work(0, writes="a"), work(4, writes="a"), work(4, reads="a")
    assert codes(first, order, available, again) == ["SR-HAZARD-004"]
    assert codes(first, available, order, reader) == ["SR-HAZARD-004"]
    chained = covered("graph", "compute", "graph_read", "compute_shader_read")
    assert codes(first, available, chained, again) == codes(first, available, chained, reader) == []


@pytest.mark.parametrize(
    "tiling, expected",
    [("LINEAR", []), (None, []), ("OPTIMAL", ["SR-HAZARD-006"])],
)
def test_a_layout_that_stays_is_no_transition(
    scene: Scene, shader_cache: Path, tiling: str | None, expected: list[str]
) -> None:
    """A barrier that keeps the layout general of a LINEAR or shared image moves no data."""
    scene.shader("store", glsl("imageStore(p, ivec2(0), vec4(1));", STORE))
    shared: dict[str, Any] = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    shared |= {} if tiling is None else {"tiling": tiling}
    if tiling != "OPTIMAL":
        shared["memory_group"] = {"id": "g"}
        scene.buffer("texels", size=256, memory_group={"id": "g"})
    scene.resource("image", uid="i", dims=[1, 8, 8, 1], **shared)
    words = {"layouts": ("general", "tensor_aliasing"), "access": ("graph_write", "graph_read")}
    scene.barrier("b", "i", src_stage=["graph"], dst_stage=["graph"], **words)
    scene.dispatch("store", ["i"], implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["b"])
    assert [each.split()[0] for each in scenario_findings(scene, hazards=True)] == expected
