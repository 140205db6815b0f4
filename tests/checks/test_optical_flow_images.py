"""Optical flows with the wrong images: one sentence each, with its place, before any device is touched."""

from typing import Any

import pytest

from scenario_runner import load
from scenario_runner.plan.plan import PlanCache
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.resolve import resolve, resolve_to_keep
from scenario_runner.validation import validate_file
from tests.gpu.flow_scenes import COSTS, HEIGHT, VECTORS, WIDTH, flow, grid_extent
from tests.scenes import Scene

R8 = "VK_FORMAT_R8_UNORM"


def complete(scene: Scene, grid: int = 1, mips: int = 1, **images: dict[str, Any]) -> Scene:
    """All five images; ``images`` replaces keys of some."""
    vectors = [1, *grid_extent(grid), 1]
    usual: dict[str, dict[str, Any]] = {
        "search": {"format": R8, "dims": [1, WIDTH, HEIGHT, 1]},
        "template": {"format": R8, "dims": [1, WIDTH, HEIGHT, 1]},
        "vectors": {"format": VECTORS, "dims": vectors},
        "hints": {"format": VECTORS, "dims": vectors},
        "costs": {"format": COSTS, "dims": vectors},
    }
    for uid, keys in usual.items():
        scene.image(uid, **{"mips": mips, **keys, **images.get(uid, {})})
    return scene


def found(scene: Scene) -> list[tuple[str, str, str]]:
    """(code, pointer below the first command, message) of each finding; each has a line and a column."""
    problems = [each for each in validate_file(scene.write()).findings if each.severity != "note"]
    assert all(each.line and each.column for each in problems)
    prefix = "/commands/0/dispatch_optical_flow/"
    return [(each.code, (each.pointer or "").removeprefix(prefix), each.message) for each in problems]


def everything(scene: Scene, **keys: Any) -> list[tuple[str, str, str]]:
    """The findings about an optical flow with all five images."""
    return found(flow(scene, "hint_motion_vectors", "output_cost", **keys))


@pytest.mark.parametrize("grid", [1, 2, 4, 8])
def test_the_right_images(scene: Scene, grid: int) -> None:
    """Images of the right sizes and formats have no findings."""
    assert everything(complete(scene, grid), grid=grid) == []


@pytest.mark.parametrize("uid, name", [("search", "search_image"), ("template", "template_image")])
def test_pictures_of_another_size(scene: Scene, uid: str, name: str) -> None:
    """The two pictures have the width and height of the command."""
    small: dict[str, Any] = {uid: {"dims": [1, 64, 80, 1]}}
    message = f"image {uid!r} has 64 x 80 texels; the optical flow has 80 x 64 texels"
    assert everything(complete(scene, **small)) == [("SR-FLOW-001", f"bindings/{name}/resource_ref", message)]


@pytest.mark.parametrize(
    "uid, name", [("vectors", "output_image"), ("hints", "hint_motion_vectors"), ("costs", "output_cost")]
)
def test_vectors_of_another_grid(scene: Scene, uid: str, name: str) -> None:
    """Vectors, hints and costs have one texel for each square of the grid, also where the last one is cut off."""
    size = {"search": {"dims": [1, 81, 64, 1]}, "template": {"dims": [1, 81, 64, 1]}}
    vectors: dict[str, dict[str, Any]] = {each: {"dims": [1, 21, 16, 1]} for each in ("vectors", "hints", "costs")}
    vectors[uid] = {"dims": [1, 20, 16, 1]}
    message = (
        f"image {uid!r} has 20 x 16 texels; an optical flow of 81 x 64 texels with the grid size 4x4 has 21 x 16"
        " vectors"
    )
    problems = everything(complete(scene, **size, **vectors), grid=4, width=81)
    assert problems == [("SR-FLOW-002", f"bindings/{name}/resource_ref", message)]


def test_levels_are_compared(scene: Scene) -> None:
    """With lod, the size of the mip level counts."""
    message = "image 'template', mip level 1, has 40 x 32 texels; the optical flow has 80 x 64 texels"
    problems = everything(complete(scene, mips=2), bound={"template_image": {"lod": 1}})
    assert problems == [("SR-FLOW-001", "bindings/template_image/resource_ref", message)]


def test_no_such_level(scene: Scene) -> None:
    """A lod beyond the mip levels is an error of the binding."""
    problems = everything(complete(scene, mips=2), bound={"output_cost": {"lod": 2}})
    assert [(code, place) for code, place, _ in problems] == [("SR-CONFLICT-007", "bindings/output_cost/lod")]


@pytest.mark.parametrize(
    "uid, name, other", [("template", "template_image", "search"), ("hints", "hint_motion_vectors", "vectors")]
)
def test_images_of_two_formats(scene: Scene, uid: str, name: str, other: str) -> None:
    """Both pictures have one format, and hints have the format of the vectors."""
    message = f"image {uid!r} is VK_FORMAT_R32G32_SFLOAT, and image {other!r} is {R8 if uid == 'template' else VECTORS}"
    images: dict[str, Any] = {uid: {"format": "VK_FORMAT_R32G32_SFLOAT"}}
    assert everything(complete(scene, **images)) == [("SR-FLOW-003", f"bindings/{name}/resource_ref", message)]


def test_an_image_that_is_written_and_read(scene: Scene) -> None:
    """A written image is bound once: hints cannot be updated in place."""
    message = "image 'vectors' is bound as hint_motion_vectors, and the optical flow also writes it as output_image"
    problems = everything(complete(scene), bound={"hint_motion_vectors": "vectors"})
    assert problems == [("SR-FLOW-004", "bindings/output_image/resource_ref", message)]


def test_one_picture_may_be_both(scene: Scene) -> None:
    """A picture that is compared with itself does not move."""
    assert everything(complete(scene), bound={"template_image": "search"}) == []


@pytest.mark.parametrize(
    "name, kind, help",
    [
        ("output_image", "SAMPLED_IMAGE", "leave it out, or use VK_DESCRIPTOR_TYPE_STORAGE_IMAGE"),
        ("search_image", "STORAGE_BUFFER", "leave it out, or use the descriptor type of an image"),
    ],
)
def test_descriptor_types(scene: Scene, name: str, kind: str, help: str) -> None:
    """Written images are storage images; read images may be of any kind."""
    bound = {name: {"descriptor_type": f"VK_DESCRIPTOR_TYPE_{kind}"}}
    path = flow(complete(scene), bound=bound).write()
    (problem,) = (each for each in validate_file(path).findings if each.code == "SR-FLOW-005")
    assert problem.message == f"{name} of an optical flow cannot be bound as VK_DESCRIPTOR_TYPE_{kind}"
    assert (problem.help, problem.severity) == (help, "error")


def test_other_resources(scene: Scene) -> None:
    """An optical flow takes nothing but images."""
    scene.buffer("bytes", size=WIDTH * HEIGHT)
    message = "expected the uid of an image, got 'bytes', which is a buffer"
    problems = everything(complete(scene), bound={"search_image": "bytes"})
    assert problems == [("SR-REF-002", "bindings/search_image/resource_ref", message)]


def test_access(scene: Scene) -> None:
    """Images that the scenario calls readonly and writeonly are used so."""
    problems = everything(complete(scene, vectors={"shader_access": "readonly"}, search={"shader_access": "writeonly"}))
    assert [(code, place) for code, place, _ in problems] == [
        ("SR-ACCESS-002", "bindings/search_image/resource_ref"),
        ("SR-ACCESS-001", "bindings/output_image/resource_ref"),
    ]


def test_flags_of_a_first_dispatch(scene: Scene) -> None:
    """Flags about a previous dispatch are warned of in the first of a session, and not in the next."""
    flow(complete(scene), execution_flags=["reference_unchanged"])
    problems = found(flow(scene, execution_flags=["reference_unchanged", "disable_temporal_hints"]))
    assert [(code, place) for code, place, _ in problems] == [("SR-FLOW-006", "execution_flags/0")]


def test_a_layout_that_is_not_general(scene: Scene) -> None:
    """An image that a barrier moved elsewhere is an error, at the name of its binding."""
    scene.barrier("away", "search", layouts=("general", "tensor_aliasing"))
    scene.command("dispatch_barrier", image_barrier_refs=["away"])
    path = flow(complete(scene)).write()
    problems = [(each.code, each.pointer) for each in validate_file(path).findings]
    assert ("SR-IMAGE-011", "/commands/1/dispatch_optical_flow/bindings/search_image") in problems


def test_what_a_plan_has(scene: Scene) -> None:
    """Optical flows of equal content are one pipeline; another performance level is another one."""
    for level in ("slow", "slow", "fast"):
        flow(scene if scene.resources else complete(scene), performance_level=level)
    plan = resolve(load(scene.write()))
    assert [each.pipeline for each in plan.frames[0].operations if each.kind != "barrier"] == [0, 0, 1]
    assert [pipeline.kind for pipeline in plan.graph_pipelines] == ["optical_flow", "optical_flow"]
    features = {feature.member: feature.pointer for feature in plan.requirements.features}
    assert features["dataGraphOpticalFlow"] == "/commands/0/dispatch_optical_flow"


def test_a_kept_plan(scene: Scene) -> None:
    """The plan of an optical flow is kept for the next run, and is the same when it is found again."""
    path = flow(complete(scene), "hint_motion_vectors", "output_cost", execution_flags=["disable_temporal_hints"])
    written, compiler = str(path.write()), CompilerOptions(cache_dir=str(scene.folder / "cache"))
    cache = PlanCache(written, compiler=compiler)
    assert cache.load() is None
    plan, facts = resolve_to_keep(load(written))
    assert facts is not None
    cache.store(plan, facts)
    assert PlanCache(written, compiler=compiler).load() == plan
