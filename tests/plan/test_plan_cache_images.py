"""Kept plans of scenarios with images and drawings: the same plan again, and none where a file or shader changed."""

from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan_cache import PlanCache
from tests.gpu.fragment_scenes import WHOLE, draw, fragment, output, target, vertex
from tests.gpu.image_scenes import format_of, per_texel, storage, texels
from tests.image_files import write_dds
from tests.scenes import Scene, assemble, at_level, kernel

NAME = "R32G32B32A32_SFLOAT"


@pytest.fixture
def path(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario with images from .dds and .npy files, samplers, levels, zeros of blocks and a barrier."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
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
def drawings(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two drawings with fragment shaders in GLSL and SPIR-V, and push constants."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
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
