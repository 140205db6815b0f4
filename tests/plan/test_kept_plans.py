"""Kept plans of graphs, images and draws: the same plan again, and none where a file or shader changed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.input import file_identity
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.ml.vgf_model import Port
from scenario_runner.plan.graph_records import GraphPipelinePlan
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import PlanCache
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.resolve import resolve_to_keep
from scenario_runner.plan.sources import in_memory
from scenario_runner.runner import Runner
from scenario_runner.scenario import load
from tests.gpu.fragment_scenes import WHOLE, draw, fragment, output, target, vertex
from tests.gpu.image_scenes import format_of, per_texel, storage, texels
from tests.gpu.ml_scenes import SPIRV, VGF, bindings, random
from tests.image_files import write_dds
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, assemble, at_level, kernel


def settle(folder: Path) -> None:
    """Wait until the times of the files in a folder tell the next change."""
    for file in folder.iterdir():
        while not getattr(file_identity(str(file)), "settled", True):
            time.sleep(0.005)


def constants(plan: GraphPipelinePlan) -> list[bytes]:
    """The bytes of a pipeline's constants."""
    with in_memory(each.data for each in plan.constants) as views:
        return [bytes(view) for view in views]


def kept(path: Path) -> PlanCache:
    """The cache after one plan was kept, as the next process opens it."""
    compiler = CompilerOptions(cache_dir=str(path.parent / "cache"))
    cache = PlanCache(str(path), compiler=compiler)
    assert cache.load() is None
    settle(path.parent)
    plan, facts = resolve_to_keep(load(path))
    assert facts is not None
    cache.store(plan, facts)
    return PlanCache(str(path), compiler=compiler)


SQUARE = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = a[i] * a[i];
}
"""


def placeholder(scene: Scene) -> Path:
    """Add a model with a substituted shader between two graphs."""
    scene.tensor("x", random((4, 16))).tensor("shaded", dims=[4, 16]).tensor("sum", dims=[4, 16])
    scene.shader("square", SQUARE)
    scene.file("model.vgf", (VGF / "placeholder.vgf").read_bytes())
    scene.resource("graph", uid="g", src="model.vgf")
    places = {port.binding: port.name or "" for port in model_ports(VGF / "placeholder.vgf")}
    substitutions = [{"shader_ref": "square", "target": "graph_partition_1"}]
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(places), shader_substitutions=substitutions)
    return scene.write()


def own_shader(scene: Scene) -> Path:
    """A model with a GLSL shader of its own."""
    for uid in ("x", "y"):
        scene.tensor(uid, random((4, 16)))
    scene.tensor("z", dims=[4, 16]).file("model.vgf", (VGF / "mixed.vgf").read_bytes())
    scene.resource("graph", uid="g", src="model.vgf")
    places = {port.binding: port.name or "" for port in model_ports(VGF / "mixed.vgf")}
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(places))
    return scene.write()


def module(scene: Scene) -> Path:
    """A graph from a SPIR-V module, with a constant from a file."""
    scene.tensor("x", random((1, 8, 8, 4))).tensor("y", dims=[1, 8, 8, 2])
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes())
    weights = scene.npy("w.npy", random((2, 3, 3, 4)))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["x", "y"]), graph_constants=["w"])
    return scene.write()


def model_ports(path: Path) -> list[Port]:
    """The inputs and outputs of a model."""
    vgf = read_vgf(path)
    return [*vgf.input_ports, *vgf.output_ports]


@needs(VGF_LIBRARY, ".vgf", "square.comp")
@pytest.mark.parametrize(
    "make, changed",
    [
        (placeholder, "model.vgf"),
        (placeholder, "square.comp"),
        (own_shader, "model.vgf"),
        (module, "graph.spv"),
        (module, "w.npy"),
    ],
)
def test_all_that_a_graph_is_made_of_is_compared(scene: Scene, make: Callable[[Scene], Path], changed: str) -> None:
    """Models with shaders and SPIR-V graphs with constants are kept as well, until one of their files changes."""
    path = make(scene)
    cache = kept(path)
    again, fresh = cache.load(), Runner().plan(path)
    assert again is not None
    assert (again.frames, again.descriptor_lists) == (fresh.frames, fresh.descriptor_lists)
    assert again.pipelines == fresh.pipelines
    assert [each[:4] for each in again.graph_pipelines] == [each[:4] for each in fresh.graph_pipelines]
    for old, new in zip(fresh.graph_pipelines, again.graph_pipelines, strict=True):
        assert constants(new) == constants(old)
        assert new.content == old.content, "so that the pipeline of one is the pipeline of the other"
    file = path.parent / changed
    if file.suffix == ".comp":
        file.write_text(SQUARE.replace("a[i] * a[i]", "a[i] + a[i]"))
    else:
        os.utime(file, ns=(1, 1))
    assert cache.load() is None


NAME = "R32G32B32A32_SFLOAT"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the scenario has the cache."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def path(scene: Scene, tmp_path: Path) -> Path:
    """A scenario with images from .dds and .npy files, samplers, levels, zeros of blocks and a barrier."""
    levels = [texels(NAME, 8 >> number, 8 >> number).tobytes() for number in range(2)]
    write_dds(tmp_path / "x.dds", format_of(NAME), 8, 8, levels)
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, NAME, "dst")
    scene.shader("copy", per_texel("imageStore(dst, p, texelFetch(src, p, 0));", declarations))
    keys = {"border_address_mode": "CLAMP_BORDER", "border_color": "FLOAT_OPAQUE_WHITE", "mag_filter": "LINEAR"}
    scene.image("x", NAME, size=(8, 8), mips=4, src="x.dds", **keys).image("y", NAME, size=(8, 8), dst="y.npy")
    scene.image("z", "R8_UINT", texels("R8_UINT", 5, 3), dst="z.out.npy")
    scene.image("blocks", "BC1_RGBA_UNORM_BLOCK", size=(9, 9))
    scene.barrier("wait", "y")
    scene.dispatch("copy", [at_level("x", 1), "y"], (4, 4))
    scene.command("dispatch_barrier", image_barrier_refs=["wait"])
    return scene.write()


def test_a_kept_plan_is_the_same(path: Path) -> None:
    """A kept plan equals the original plan for every image."""
    with Runner() as runner:
        runner.run_to_files(path)
        first = (path.parent / "y.npy").read_bytes()
        made = runner.plan(path)
        kept = PlanCache(str(path)).load()
        assert kept is not None
        for uid, plan in made.resources.items():
            found = kept.resources[uid]
            assert isinstance(plan, ImagePlan)
            assert isinstance(found, ImagePlan)
            assert found._replace(source=None) == plan._replace(source=None)
            assert type(found.source) is type(plan.source)
        assert kept.frames == made.frames
        assert kept.descriptor_lists == made.descriptor_lists
        (path.parent / "y.npy").unlink()
        runner.run_to_files(path)
    assert (path.parent / "y.npy").read_bytes() == first


def test_new_texels_are_used(path: Path) -> None:
    """A kept plan reads the image files as they are now."""
    with Runner() as runner:
        runner.run_to_files(path)
        changed = texels("R8_UINT", 5, 3, seed=99)
        numpy.save(path.parent / "z.npy", changed[None])
        levels = [texels(NAME, 8 >> number, 8 >> number, seed=99).tobytes() for number in range(2)]
        write_dds(path.parent / "x.dds", format_of(NAME), 8, 8, levels)
        runner.run_to_files(path)
    assert numpy.load(path.parent / "y.npy")[0, :4, :4].tobytes() == levels[1]


def test_another_number_of_levels(path: Path) -> None:
    """A file that now has more levels gives all of them."""
    with Runner() as runner:
        runner.run_to_files(path)
        levels = [texels(NAME, 8 >> number, 8 >> number).tobytes() for number in range(4)]
        write_dds(path.parent / "x.dds", format_of(NAME), 8, 8, levels)
        assert PlanCache(str(path)).load() is None
        runner.run_to_files(path)
    assert numpy.load(path.parent / "y.npy")[0, :4, :4].tobytes() == levels[1]


def test_a_file_that_no_longer_fits(path: Path) -> None:
    """A file that was replaced by one of another size is an error, as without the cache."""
    with Runner() as runner:
        runner.run_to_files(path)
        write_dds(path.parent / "x.dds", format_of(NAME), 4, 4, [texels(NAME, 4, 4).tobytes()])
        with pytest.raises(FileError, match="has 4x4 texels, but the scenario declares 8x8"):
            runner.run_to_files(path)


FIVE = kernel("""
    OpEntryPoint Fragment %main "main" %color
    OpExecutionMode %main OriginUpperLeft
    OpDecorate %color Location 0
    %pointer = OpTypePointer Output %uint
    %color = OpVariable %pointer Output
    %value = OpConstant %uint 5
    main:
    OpStore %color %value
""")


@pytest.fixture
def drawings(scene: Scene) -> Path:
    """Two drawings with fragment shaders in GLSL and SPIR-V, and push constants."""
    vertex(scene)
    pushed = "layout(push_constant) uniform P { uint n; };\n"
    fragment(scene, "color = n;", pushed + output("uint"), push_constants_size=4)
    scene.module("five", assemble(FIVE), stage="fragment")
    scene.raw_data("d", numpy.array([3], "u4"))
    target(scene, "x", size=(4, 4), dst="x.out.npy")
    target(scene, "y", size=(4, 4), dst="y.out.npy")
    draw(scene, ["x"], push_data_ref="d")
    draw(scene, ["y"], fragment_shader_ref="five")
    return scene.write()


def outcome(path: Path) -> list[int]:
    """Run for files, and return the one value of each image."""
    with Runner() as runner:
        runner.run_to_files(path)
    arrays = [numpy.load(path.parent / f"{uid}.out.npy") for uid in ("x", "y")]
    assert all((array == array.flat[0]).all() for array in arrays)
    return [int(array.flat[0]) for array in arrays]


def test_changed_shaders_and_push_constants(drawings: Path) -> None:
    """A draw with a kept plan reads sources, modules and raw_data again."""
    assert outcome(drawings) == [3, 5]
    kept = PlanCache(str(drawings)).load()
    assert kept is not None
    with Runner() as runner:
        assert kept == runner.prepare(drawings).plan
    assert outcome(drawings) == [3, 5]
    numpy.save(drawings.parent / "d.npy", numpy.array([4], "u4"))
    assert outcome(drawings) == [4, 5]
    (drawings.parent / "five.spv").write_bytes(assemble(FIVE.replace("%uint 5", "%uint 6")))
    assert outcome(drawings) == [4, 6]
    text = (drawings.parent / "v.comp").read_text()
    assert WHOLE in text
    (drawings.parent / "v.comp").write_text(text.replace(WHOLE, "gl_Position = vec4(2, 2, 0, 1);"))  # draws nothing
    assert outcome(drawings) == [0, 0]
