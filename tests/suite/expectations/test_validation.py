"""Expectations against the outputs of their scenario, without a device."""

import json
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner.compare import metrics
from scenario_runner.files.elements import ELEMENTS, decoded, encoded
from scenario_runner.files.vk_formats import format_named
from scenario_runner.plan.resolve import resolve
from scenario_runner.scenario import load as load_scenario
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.expectations.outputs import outputs_of_plan, outputs_of_scenario
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.outcomes import Item
from scenarios.generate import HERE
from tests.image_files import write_dds
from tests.left_out import TOSA_TOOLS, needs
from tests.scenes import Scene
from tests.tables import cases


@pytest.fixture
def scene(scene: Scene) -> Scene:
    """A scenario with an output of each kind, and a frame that captures two of them."""
    scene.buffer("x", np.zeros(6, "f4"))
    image = {"dims": [1, 12, 11, 1], "shader_access": "readwrite"}
    scene.resource("image", uid="color", format="VK_FORMAT_R8G8B8A8_UNORM", dst="color.png", **image)
    scene.resource("image", uid="levels", format="VK_FORMAT_R8_UNORM", dst="levels.dds", mips=3, **image)
    tensor = {"dims": [2, 3], "shader_access": "readwrite", "dst": "t.npy"}
    scene.resource("tensor", uid="t", format="VK_FORMAT_R16_SFLOAT", **tensor)
    scene.resource("buffer", uid="inner", size=4, shader_access="readwrite")
    return scene.command("mark_boundary", resources=["x", "inner"])


def item(scene: Scene, given: Any) -> Item:
    scene.file("check.json", json.dumps(given))
    path = str(scene.write())
    return Item("i", path, expectations_file(path))


def found(scene: Scene, **outputs: Any) -> list[tuple[str, str]]:
    """Return code and message of each finding, with unnamed outputs unchecked."""
    given = {name: {"unchecked": True} for name in ("x", "color", "levels", "t")} | {
        name.replace("__", "/"): keys for name, keys in outputs.items()
    }
    problems = check(item(scene, {"outputs": given}))
    assert all(each.path and (each.line or not each.pointer) for each in problems)
    return [(each.code, each.message) for each in problems]


@pytest.mark.parametrize("name", ["basics/add", "dialects/newest", "frames/boundaries", "images/mip_levels"])
def test_outputs_are_known_without_a_run(shader_cache: Path, name: str) -> None:
    """The outputs of the parsed scenario equal the outputs of the plan."""
    scenario = load_scenario(HERE / name / "scenario.json")
    plan = resolve(scenario)
    for repeat in (1, 2):
        planned, parsed = outputs_of_plan(plan, repeat), outputs_of_scenario(scenario, repeat)
        assert planned.keys() == parsed.keys()
        for name, output in parsed.items():
            of_plan = planned[name]
            assert (output.name, output.file_name, output.size_bytes) == (name, of_plan.file_name, of_plan.size_bytes)
            assert output.resource is not None
            assert of_plan.resource is not None
            assert (output.resource.kind, output.resource.format) == (of_plan.resource.kind, of_plan.resource.format)


def test_frames_of_repeated_runs(scene: Scene) -> None:
    """Expected frames are named like the folders of captures, also for repeated ids."""
    scene.command("mark_boundary", resources=["x"], frame_id=0)
    names = list(outputs_of_scenario(load_scenario(scene.write()), 2))
    assert names[4:] == [
        f"iteration_{n}/{frame}" for n in (0, 1) for frame in ("frame_0/x", "frame_0/inner", "frame_0_2/x")
    ]


def test_captures_of_very_many_iterations(scene: Scene) -> None:
    """Expectations of outputs alone need no captures, and too many captures are refused before the run."""
    many = {"repeat": 2**31 - 1}
    outputs = {name: {"unchecked": True} for name in ("x", "color", "levels", "t")}
    assert check(item(scene, {"outputs": outputs, **many})) == []
    frames = {f"iteration_{number}/frame_0/x": {"unchecked": True} for number in range(3)}
    scene.npy("expected/iteration_7/frame_0/x.npy", np.zeros(6, "f4"))
    (problem,) = check(item(scene, {"outputs": outputs | frames, **many}))
    assert (problem.code, problem.pointer, problem.line) == ("SR-EXPECT-004", "/repeat", 1)
    assert problem.message == "the iterations capture 4,294,967,294 resources, expected at most 100,000"


def test_right_expectations(scene: Scene) -> None:
    """Each kind of output with each kind of source."""
    scene.npy("expected/x.npy", np.zeros(6, "f4"))
    scene.npy("expected/t.npy", np.zeros((1, 2, 3), "f2"))
    scene.npy("expected/color.npy", np.zeros((1, 11, 12, 4), "u1"))
    scene.file("expected/README.md", "where they are from")
    assert found(scene, x={"atol": 1}, t={}, color={"metrics": {"ssim": {"min": 0.9}}}) == []
    shutil.rmtree(scene.folder / "expected")
    assert found(scene, x={"values": [1, 2, 3, "nan", "0x80000000", 0.5], "dtype": "float32"}) == []
    assert (
        found(scene, t={"values": [[1, 2, 3], [4, 5, 6]]}, color={"values": 255}, levels={"sha256": ["0" * 64]}) == []
    )
    assert found(scene, frame_0__x={"file": "x.npy"}, frame_0__inner={"values": 0, "dtype": "int32"}) == []


def test_names_of_no_output(scene: Scene) -> None:
    """A misspelling, a resource without a dst, a frame that does not exist, and a file that nothing names."""
    scene.npy("expected/clor.npy", np.zeros(6, "f4"))
    problems = found(scene, y={}, inner={}, frame_1__x={})
    assert [code for code, _ in problems] == ["SR-EXPECT-004"] * 4
    assert [text for _, text in problems] == [
        "belongs to 'clor', which is not an output of the scenario (did you mean 'color'?)",
        "'y' is not an output of the scenario",
        "'inner' is not an output of the scenario",
        "'frame_1/x' is not an output of the scenario (did you mean 'frame_0/x'?)",
    ]


def test_outputs_of_which_nothing_is_said(scene: Scene) -> None:
    """All outputs need an expectation where one has one; frames only where a frame has one."""
    problems = check(item(scene, {"outputs": {"x": {"unchecked": True}}}))
    assert [each.message for each in problems] == [
        f"the output {name!r} has no expectation" for name in ("color", "levels", "t")
    ]
    assert "expected/color.npy" in str(problems[0].help)
    assert found(scene, frame_0__x={"unchecked": True}) == [
        ("SR-EXPECT-005", "the output 'frame_0/inner' has no expectation")
    ]
    assert check(item(scene, {"repeat": 3})) == []
    assert found(scene, x={"atol": 1}) == [
        ("SR-EXPECT-005", "has neither 'file', 'values' nor 'sha256', nor a file in 'expected'")
    ]


def test_names_of_resources_that_look_like_frames(scene: Scene) -> None:
    """A uid may have a slash, and is no captured frame for that."""
    scene.resource("buffer", uid="a/b", size=4, shader_access="readwrite", dst="a_b.npy")
    assert found(scene) == [("SR-EXPECT-005", "the output 'a/b' has no expectation")]
    assert found(scene, a__b={"unchecked": True}) == []


@needs(TOSA_TOOLS, '"tosa"')
@pytest.mark.parametrize("name, keys, code, message", cases(__file__, "wrong.txt", "MISFITS"))
def test_content_that_does_not_fit(scene: Scene, name: str, keys: str, code: str, message: str) -> None:
    """Each misfit has its code, and says both sides."""
    scene.npy("small.npy", np.zeros(2, "f4"))
    scene.npy("precise.npy", np.zeros((2, 3, 2)))
    scene.npy("t.npy", np.zeros((2, 3)))
    scene.npy("complex.npy", np.zeros(3, "c8"))
    scene.npy("level.npy", np.zeros((1, 11, 12, 1), "u1"))
    scene.npy("bytes.npy", np.zeros(24, "i1"))
    scene.file("broken.npy", b"nothing")
    scene.buffer("inner4", size=4)
    others = {} if name == "inner4" else {"inner4": {"unchecked": True}}
    problems = found(scene, **{name: json.loads(keys)}, **others)
    assert len(problems) == 1
    assert problems[0][0] == code
    assert message in problems[0][1]


def test_everything_is_said_at_once(scene: Scene) -> None:
    """Problems of all outputs and of all entries of `when` are reported together."""
    given = {
        "outputs": {name: {"unchecked": True} for name in ("x", "color", "levels", "t")} | {"x": {"file": "no.npy"}},
        "when": [{"type": "cpu", "outputs": {"y": {"atol": 1}}}, {"type": "other", "outputs": {"t": {"values": [1]}}}],
    }
    problems = check(item(scene, given))
    assert [each.code for each in problems] == ["SR-EXPECT-007", "SR-EXPECT-004", "SR-EXPECT-008"]


def test_a_metric_whose_package_is_missing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is named before anything runs."""
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    problems = found(scene, color={"values": 0, "metrics": {"flip": {"max": 0.1}}})
    assert problems[-1] == ("SR-EXPECT-010", "needs the package 'flip-evaluator', which is not installed")


def test_two_files_of_one_output(scene: Scene) -> None:
    """Two files for one output are a problem."""
    scene.npy("expected/color.npy", np.zeros((11, 12, 4), "u1"))
    scene.file("expected/color.png", b"")
    problems = check(item(scene, {"outputs": {name: {"unchecked": True} for name in ("x", "levels", "t")}}))
    assert [each.message for each in problems if each.code == "SR-EXPECT-006"] == [
        f"and {name!r} are both expectations of 'color'"
        for name in ("color.png", "color.npy")
        if name != Path(str(problems[0].path)).name
    ]


@pytest.mark.parametrize("key", [{"values": 1, "dtype": "float32"}, {"sha256": "0" * 64}, {"file": "other.npy"}])
def test_a_file_and_a_key_for_one_output(scene: Scene, key: dict[str, Any]) -> None:
    """A file in the folder that would have no effect is said; one that an entry of `when` replaces is right."""
    for name in ("expected/x.npy", "other.npy"):
        scene.npy(name, np.zeros(6, "f4"))
    (source, *_) = key
    assert found(scene, x=key) == [("SR-EXPECT-006", f"and the key {source!r} are both expectations of 'x'")]
    others = {name: {"unchecked": True} for name in ("color", "levels", "t")}
    assert check(item(scene, {"outputs": others, "when": [{"type": "cpu", "outputs": {"x": key}}]})) == []


@pytest.mark.parametrize("names", ["abc", "cba"])
def test_files_of_no_output_have_one_order(scene: Scene, names: str) -> None:
    """Whichever was made first: the first problem is the reason that a suite shows."""
    for name in names:
        scene.file(f"expected/{name}.npy", b"")
    found = [Path(str(each.path)).name for each in check(item(scene, {})) if "not an output" in each.message]
    assert found == ["a.npy", "b.npy", "c.npy"]


def test_a_file_that_cannot_be_compared(scene: Scene) -> None:
    """A picture of another kind beside the others is not passed over, as if nothing were expected."""
    scene.file("expected/color.jpg", b"")
    problems = check(item(scene, {}))
    assert [(each.code, Path(str(each.path)).name) for each in problems if "named like" in each.message] == [
        ("SR-EXPECT-008", "color.jpg")
    ]


def test_no_element_counts(scene: Scene) -> None:
    """A mask or a border that leaves nothing to compare is a mistake: the check could never fail."""
    scene.npy("expected/color.npy", np.zeros((1, 11, 12, 4), "u1"))
    scene.npy("all.npy", np.ones((11, 12), bool))
    for keys in ({"border": 6}, {"mask": "all.npy"}):
        assert found(scene, color=keys) == [("SR-EXPECT-008", "every element of the output is ignored")]
    assert found(scene, color={"border": 5}) == []


@pytest.mark.parametrize("name", ["BC4_SNORM", "BC5_SNORM", "BC6H_UFLOAT", "BC6H_SFLOAT"])
def test_blocks_that_are_not_decoded_to_numbers(scene: Scene, name: str) -> None:
    """Blocks without a decoder are compared byte by byte only."""
    image = {"format": f"VK_FORMAT_{name}_BLOCK", "dims": [1, 4, 4, 1], "shader_access": "readonly", "dst": "b.dds"}
    scene.resource("image", uid="b", **image)
    write_dds(scene.folder / "b.dds", format_named(f"VK_FORMAT_{name}_BLOCK"), 4, 4, [bytes(8 if "4" in name else 16)])
    for keys in ({"atol": 1}, {"allowed_count": 1}, {"metrics": {"psnr": {"min": 30}}}):
        (problem,) = found(scene, b={"file": "b.dds", **keys})
        assert problem[0] == "SR-EXPECT-009"
        assert f"blocks of VK_FORMAT_{name}_BLOCK cannot be decoded to numbers" in problem[1]
    assert found(scene, b={"file": "b.dds"}) == []


def test_a_wrong_scenario_is_said_by_its_run(scene: Scene) -> None:
    """Expectations of a wrong scenario have no finding of their own, since its outputs are unknown."""
    path = scene.file("scenario.json", '{ "resources": 3 }')
    scene.file("check.json", '{ "outputs": { "x": {} } }')
    assert check(Item("i", str(path), expectations_file(str(path)))) == []


@pytest.mark.parametrize("name", [name for name in ELEMENTS if name != "bool"])
def test_values_and_bytes(name: str) -> None:
    """Numbers come back from bytes as they went into them, in arrays of the same shape."""
    element = ELEMENTS[name]
    values = [[1, 2, 3], [4, 5, 6]]
    data = encoded([*chain(*values)], element, 6)
    assert len(data) == 6 * element.size_bytes
    assert decoded(memoryview(data), element, values) == values
    assert encoded(7, element, 2) == encoded([7, 7], element, 2)
    if element.is_float:
        special = decoded(memoryview(encoded(["nan", -0.0], element, 2)), element, [0, 0])
        assert special == ["nan", 0]


@pytest.mark.parametrize(
    "name, value", [("int32", 1e999), ("float32", 10**400), ("float32", 1e39), ("float8_e4m3", 1000)]
)
def test_values_beyond_a_type(name: str, value: float) -> None:
    """Values beyond a type are refused, and none becomes infinity, NaN or a Python error."""
    with pytest.raises(ValueError, match=r"out of the range|is not in the range of int32|is not an integer"):
        encoded([value], ELEMENTS[name], 1)


def test_every_nan_is_written_with_its_bits() -> None:
    """--update writes every NaN with the bits of the run."""
    data = np.array([0x7FC00000, 0xFFC00001], "<u4").tobytes()
    values = decoded(memoryview(data), ELEMENTS["float32"], [0, 0])
    assert values == ["nan", "0xffc00001"]
    assert encoded(values, ELEMENTS["float32"], 2) == data


def test_entries_of_when(scene: Scene) -> None:
    """Problems of `when` have places there, files of entries are not stray, and a digest takes no tolerance."""
    unchecked = {name: {"unchecked": True} for name in ("color", "levels", "t")}
    scene.npy("expected/other.npy", np.zeros(6, "f4"))
    given = {
        "outputs": {"x": {"sha256": "0" * 64}, **unchecked},
        "when": [
            {"type": "cpu", "outputs": {"x": {"file": "expected/other.npy"}}},
            {"type": "other", "outputs": {"y": {}}},
            {"type": "discrete", "outputs": {"x": {"atol": 1}}},
        ],
    }
    problems = check(item(scene, given))
    assert [(each.code, each.pointer) for each in problems] == [
        ("SR-EXPECT-004", "/when/1/outputs/y"),
        ("SR-EXPECT-006", "/outputs/x/sha256"),
    ]


def test_a_folder_that_cannot_be_searched(scene: Scene) -> None:
    """A file in its place is an error, not a lack of expectations."""
    scene.file("expected", "")
    assert [each.code for each in check(item(scene, {}))] == ["SR-EXPECT-007"]


@pytest.mark.parametrize("keys", [{}, {"rect": [0, 0, 1 << 31, 1 << 31]}])
def test_values_for_an_output_larger_than_any_memory(scene: Scene, keys: dict[str, Any]) -> None:
    """A value for all texels of a huge image is an error of that item."""
    huge = {"dims": [1, 1 << 31, 1 << 31, 1], "format": "VK_FORMAT_R32G32B32A32_SFLOAT", "shader_access": "readonly"}
    scene.resource("image", uid="huge", dst="huge.npy", **huge)
    count = 1 << (62 if keys else 64)
    message = f"{count} elements of float32 are more than fit into any memory"
    assert found(scene, huge={"values": 1, **keys}) == [("SR-EXPECT-008", message)]
