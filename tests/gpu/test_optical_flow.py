"""Optical flows (dispatch_optical_flow) on a device: the motion of pictures with known vectors. A device without
support is refused with the place of the missing part, with exit code 6."""

from typing import Any

import numpy
import pytest

from scenario_runner import Result, Runner, load
from scenario_runner.errors import UnsupportedError
from scenario_runner.plan.resolve import resolve
from scenario_runner.vulkan.optical_flow import flow_support, problems_of
from tests.gpu.flow_scenes import (
    CONNECTIONS,
    COSTS,
    HEIGHT,
    VECTORS,
    WIDTH,
    add_pictures,
    flow,
    grid_extent,
    inside,
    moved,
    two_pictures,
)
from tests.program import Program
from tests.scenes import Scene, error_of, glsl

MOTION = (3, -2)


def run(runner: Runner, scene: Scene, *uids: str, **options: Any) -> Result:
    return runner.run(scene.write(), outputs=uids or ("vectors",), **options)


def error(vectors: Any, motion: tuple[float, float] = MOTION, grid: int = 1) -> float:
    """The largest error of a vector away from the edges, in texels."""
    return float(numpy.abs(inside(vectors, grid) - numpy.array(motion, "f4")).max())


PLACES = {
    "search_image": {"set": 1, "id": 7, "descriptor_type": "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER"},
    "template_image": {"set": 2**32 - 1, "id": 2**32 - 1, "descriptor_type": "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE"},
    "output_image": {"set": 1, "id": 0, "descriptor_type": "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE"},
}


@pytest.mark.parametrize(
    "pictures, keys, most",
    [
        # each texel of the output has the motion of its square of texels; larger squares are less exact
        *(({"grid": grid}, {"grid": grid}, most) for grid, most in ((1, 0.25), (2, 0.25), (4, 1.0), (8, 2.0))),
        ({}, {"performance_level": "unknown"}, 0.5),
        ({}, {"performance_level": "slow"}, 0.25),
        ({}, {"performance_level": "medium"}, 0.25),
        ({}, {"performance_level": "fast"}, 0.5),
        ({"format": "VK_FORMAT_R8G8B8A8_UNORM"}, {}, 0.25),
        ({"format": "VK_FORMAT_B8G8R8A8_UNORM"}, {}, 0.25),
        ({"format": "VK_FORMAT_R8_UNORM"}, {}, 0.25),
        ({}, {"mean_flow_l1_norm_hint": 5}, 0.25),
        # sets and ids may be any numbers; the types of descriptors may be given
        ({}, {"bound": PLACES}, 0.25),
    ],
)
def test_the_motion_is_found(
    ml: Runner, scene: Scene, pictures: dict[str, Any], keys: dict[str, Any], most: float
) -> None:
    """With every grid, performance level, format of the pictures, hint of the length, and at any binding."""
    items = 4 if "8G8" in pictures.get("format", "") else 1
    flow(add_pictures(scene, *moved(MOTION, items=items), **pictures), **keys)
    vectors = run(ml, scene).level("vectors")
    grid = keys.get("grid", 1)
    assert vectors.shape == (*grid_extent(grid)[::-1], 2)
    assert error(vectors, grid=grid) <= most


def test_costs_tell_how_well_pictures_match(ml: Runner, scene: Scene) -> None:
    """A moved picture costs less than one that has nothing to do with the first."""
    first, second = moved(MOTION)
    add_pictures(scene, first, second)
    scene.image("other", "VK_FORMAT_R8_UNORM", numpy.random.default_rng(1).integers(0, 256, first.shape, "u1"))
    for uid in ("costs", "other_costs"):
        scene.image(uid, COSTS, dims=[1, WIDTH, HEIGHT, 1])
    flow(scene, "output_cost")
    flow(scene, "output_cost", bound={"template_image": "other", "output_cost": "other_costs"})
    result = run(ml, scene, "costs", "other_costs")
    assert numpy.median(result.level("other_costs")) > 5 * numpy.median(result.level("costs"))


@pytest.mark.parametrize("grid", [1, 4])
def test_hints(ml: Runner, scene: Scene, grid: int) -> None:
    """With the right vectors as hints the vectors are at least as exact as without, and in the cost nothing is left."""
    add_pictures(scene, *moved(MOTION), grid=grid)
    width, height = grid_extent(grid)
    scene.image("hints", VECTORS, numpy.broadcast_to(numpy.array(MOTION, "f2"), (height, width, 2)).copy())
    scene.image("hinted", VECTORS, dims=[1, width, height, 1]).image("costs", COSTS, dims=[1, width, height, 1])
    flow(scene, grid=grid)
    flow(scene, "hint_motion_vectors", "output_cost", grid=grid, bound={"output_image": "hinted"})
    result = run(ml, scene, "vectors", "hinted", "costs")
    assert error(result.level("hinted"), grid=grid) <= error(result.level("vectors"), grid=grid)
    assert error(result.level("hinted"), grid=grid) <= 0.25 * grid
    if grid == 1:
        assert not inside(result.level("costs")).any()


def test_every_binding_takes_a_mip_level(ml: Runner, scene: Scene) -> None:
    """With lod, all five images are levels of larger ones: the second level has the texels of the pictures."""
    for uid, picture in zip(("search", "template"), moved(MOTION, items=4), strict=True):
        doubled = picture.repeat(2, 0).repeat(2, 1)  # the average of four equal texels is each of them
        scene.image(uid, "VK_FORMAT_R8G8B8A8_UNORM", doubled, mips=2)
    hints = numpy.broadcast_to(numpy.array(MOTION, "f2"), (2 * HEIGHT, 2 * WIDTH, 2)).copy()
    scene.image("hints", VECTORS, hints, mips=2).image("vectors", VECTORS, dims=[1, 4 * WIDTH, 4 * HEIGHT, 1], mips=3)
    scene.image("costs", COSTS, dims=[1, 2 * WIDTH, 2 * HEIGHT, 1], mips=2)
    bound: dict[str, Any] = {name: {"lod": 1} for name in CONNECTIONS} | {"output_image": {"lod": 2}}
    flow(scene, "hint_motion_vectors", "output_cost", bound=bound)
    result = run(ml, scene, "vectors", "costs")
    assert error(result.level("vectors", 2)) <= 0.25
    assert not inside(result.level("costs", 1)).any()
    assert not result.level("vectors", 0).any()
    # Mesa 25 and 26 read such levels from copies (`Image.copy_for_flow`); the plan names them on every driver.
    (bound_list,) = resolve(load(scene.write())).descriptor_lists
    assert [each.uid for each in bound_list.descriptors if each.flow_input] == ["search", "template"]


def test_dispatches_share_a_session(ml: Runner, scene: Scene) -> None:
    """The flags about the previous dispatch mean the dispatch before in the scenario, also with other images."""
    first, second, third = moved(MOTION, (-4, 1))
    add_pictures(scene, first, second)
    scene.image("third", "VK_FORMAT_R8_UNORM", third)
    for uid in ("again", "onwards", "back"):
        scene.image(uid, VECTORS, dims=[1, WIDTH, HEIGHT, 1])
    flow(scene)
    unchanged = ["input_unchanged", "reference_unchanged", "disable_temporal_hints"]
    flow(scene, bound={"output_image": "again"}, execution_flags=unchanged)
    onwards = {"search_image": "template", "template_image": "third", "output_image": "onwards"}
    flow(scene, bound=onwards, execution_flags=["input_is_previous_reference"])
    back = {"search_image": "third", "template_image": "template", "output_image": "back"}
    flow(scene, bound=back, execution_flags=["input_is_previous_reference", "reference_is_previous_input"])
    result = run(ml, scene, "vectors", "again", "onwards", "back")
    assert (result.level("vectors") == result.level("again")).all()
    assert error(result.level("onwards"), (-4, 1)) <= 0.25
    assert error(result.level("back"), (4, -1)) <= 0.25
    assert not result.warnings


def test_the_first_dispatch_has_none_before_it(ml: Runner, scene: Scene) -> None:
    """A flag about the previous dispatch is ignored with a warning where there is none: the session has no images."""
    flow(add_pictures(scene, *moved(MOTION)), execution_flags=["input_unchanged", "reference_is_previous_input"])
    result = run(ml, scene)
    assert error(result.level("vectors")) <= 0.25
    assert [warning.code for warning in result.warnings] == ["SR-FLOW-006", "SR-FLOW-006"]
    assert result.warnings[1].pointer == "/commands/0/dispatch_optical_flow/execution_flags/1"


def test_runs_do_not_see_earlier_ones(ml: Runner, scene: Scene) -> None:
    """A session begins anew with each run, so that every run of a scenario gives the same bytes."""
    first, _, third = moved(MOTION, (6, 5))
    other = flow(add_pictures(Scene(scene.folder / "other"), third, first)).write()
    prepared = ml.prepare(two_pictures(scene), outputs=["vectors"])
    expected = prepared.run().level("vectors")
    ml.run(other)
    assert (prepared.run().level("vectors") == expected).all()
    for keep_state in (False, True):
        assert (prepared.run(repeat=2, keep_state=keep_state).level("vectors") == expected).all()
    assert error(expected) <= 0.25


TWICE = glsl(
    "ivec2 p = ivec2(gl_WorkGroupID.xy); imageStore(to, p, imageLoad(from, p) * 2.0);",
    "layout(set = 0, binding = 0, rg16f) uniform readonly image2D from;\n"
    "layout(set = 0, binding = 1, rg16f) uniform writeonly image2D to;\n",
)
COPY = glsl(
    "ivec2 p = ivec2(gl_WorkGroupID.xy); imageStore(to, p, imageLoad(from, p));",
    "layout(set = 0, binding = 0, r8) uniform readonly image2D from;\n"
    "layout(set = 0, binding = 1, r8) uniform writeonly image2D to;\n",
)


@pytest.mark.parametrize("implicit", [True, False])
def test_between_shaders(ml: Runner, scene: Scene, implicit: bool) -> None:
    """A shader makes a picture, an optical flow looks at it, and a shader reads the vectors: with implicit barriers or
    with barriers of the scenario; a frame captures the vectors."""
    first, second = moved(MOTION)
    add_pictures(scene, first, numpy.zeros_like(second))
    scene.image("second", "VK_FORMAT_R8_UNORM", second).image("doubled", VECTORS, dims=[1, WIDTH, HEIGHT, 1])
    scene.shader("copy", COPY).shader("twice", TWICE)
    to_graph, to_shader = ("compute_shader_write", "graph_read"), ("graph_write", "compute_shader_read")
    scene.barrier("drawn", "template", access=to_graph, src_stage=["compute"], dst_stage=["graph"])
    scene.barrier("seen", access=to_shader, src_stage=["graph"], dst_stage=["compute"])
    scene.dispatch("copy", ["second", "template"], (WIDTH, HEIGHT, 1), implicit_barrier=implicit)
    if not implicit:
        scene.command("dispatch_barrier", image_barrier_refs=["drawn"])
    flow(scene, implicit_barrier=implicit)
    if not implicit:
        scene.command("dispatch_barrier", memory_barrier_refs=["seen"])
    scene.dispatch("twice", ["vectors", "doubled"], (WIDTH, HEIGHT, 1))
    scene.command("mark_boundary", frame_id=4, resources=["vectors"])
    result = run(ml, scene, "vectors", "doubled")
    assert error(result.level("vectors")) <= 0.25
    assert (result.level("doubled") == 2 * result.level("vectors")).all()
    assert (result.frames[0].level("vectors") == result.level("vectors")).all()


COMMAND = "/commands/0/dispatch_optical_flow"


def refused(runner: Runner, scene: Scene) -> list[tuple[str, str, str]]:
    """Return code, pointer and message of each problem of a failed run. Each problem has a line and a column."""
    error = error_of(UnsupportedError, runner.run, scene.write())
    assert all(each.line and each.column for each in error.problems)
    device = runner.physical_device.name
    return [(each.code, each.pointer or "", each.message.replace(repr(device), "it")) for each in error.problems]


def test_without_the_extension(program: Program, scene: Scene) -> None:
    """A device without the extension is refused with the place and the missing features, and exit code 6."""
    two_pictures(scene)
    ended = program("--ml-emulation", "off", "scenario.json", exit_code=6)
    for structure, member in (("DataGraph", "dataGraph"), ("DataGraphOpticalFlow", "dataGraphOpticalFlow")):
        missing = f"{COMMAND}: the optical flow needs {member} (VkPhysicalDevice{structure}FeaturesARM), which "
        (line,) = (line for line in ended.err.splitlines() if missing in line)
        assert line.startswith("error: scenario.json:")


def test_too_small(ml: Runner, scene: Scene) -> None:
    """A size that the device does not take is refused with the sizes that it takes."""
    first, second = (picture[:32, :48] for picture in moved((1, 0)))
    for uid, format, content in (("search", "R8_UNORM", first), ("template", "R8_UNORM", second)):
        scene.image(uid, f"VK_FORMAT_{format}", content)
    scene.image("vectors", VECTORS, dims=[1, 48, 32, 1])
    message = "the optical flow has 48 x 32 texels; it takes 64 x 64 to 8192 x 8192"
    assert refused(ml, flow(scene, width=48, height=32)) == [("SR-FLOW-007", f"{COMMAND}/width", message)]


def test_formats(ml: Runner, scene: Scene) -> None:
    """An image with a format that the device cannot take is refused with the possible formats."""
    extent = [1, WIDTH, HEIGHT, 1]
    for uid in ("search", "template"):
        scene.image(uid, "VK_FORMAT_R16_UNORM", dims=extent)
    for uid in ("vectors", "hints"):
        scene.image(uid, "VK_FORMAT_R32G32_SFLOAT", dims=extent)
    scene.image("costs", "VK_FORMAT_R8_UINT", dims=extent)
    found = refused(ml, flow(scene, "hint_motion_vectors", "output_cost"))
    assert [(code, pointer.removeprefix(f"{COMMAND}/bindings/")) for code, pointer, _ in found] == [
        ("SR-FEATURE-003", f"{name}/resource_ref")
        for name in ("search_image", "template_image", "hint_motion_vectors", "output_image", "output_cost")
    ]
    assert found[-1][2] == "the optical flow: image 'costs' of VK_FORMAT_R8_UINT cannot be its cost on it"


def test_what_another_device_may_lack(ml: Runner, scene: Scene) -> None:
    """Grid sizes, hints, costs and sizes beyond a report are refused. The report is this device's with one change."""
    add_pictures(scene, *moved((1, 0)), grid=4)
    for uid, format in (("hints", VECTORS), ("costs", COSTS)):
        scene.image(uid, format, dims=[1, WIDTH // 4, HEIGHT // 4, 1])
    path = flow(scene, "hint_motion_vectors", "output_cost", grid=4).write()
    ml.run(path)  # from then on the device is seen through the layers, where it needs them
    family = ml.physical_device.queue_family()
    assert family is not None
    (wanted,) = resolve(load(path)).graph_pipelines
    assert wanted.kind == "optical_flow"
    for change, places in (
        ({}, []),
        ({"supportedOutputGridSizes": 1}, ["grid_size"]),
        ({"hintSupported": 0}, ["bindings/hint_motion_vectors/resource_ref"]),
        ({"supportedHintGridSizes": 1}, ["bindings/hint_motion_vectors/resource_ref"]),
        ({"costSupported": 0}, ["bindings/output_cost/resource_ref"]),
        ({"maxHeight": HEIGHT - 1}, ["width"]),
    ):
        support = flow_support(ml.physical_device, family)
        assert support is not None
        for member, value in change.items():
            setattr(support.properties, member, value)
        found = list(problems_of(wanted, support, "it"))
        assert [(each.pointer or "").removeprefix(f"{COMMAND}/") for each in found] == places, change
