"""Rules for a part of an output, several rules for an output, and outputs that must be equal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner.errors import ExpectationError
from scenario_runner.scenario import Image, Scenario
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.expectations.outputs import outputs_of_scenario
from scenario_runner.suite.expectations.reading import of_text
from scenario_runner.suite.expectations.rules import check_rules
from scenario_runner.suite.expectations.validation import bind
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.update import update
from scenario_runner.suite.worker_task import Runners
from tests.program import Program
from tests.scenes import Scene, error_of, glsl

Run = Callable[..., Outcome]
RANDOM = np.random.default_rng(7)
TABLE = np.arange(8, dtype="<u4")
TABLE[4:].view("<f4")[:] = [0.5, 2.5, -1, 8]
PICTURE = RANDOM.integers(0, 256, (6, 9, 4), "u1")


def verdicts(run: Run, scene: Scene, uid: str, content: Any, rules: Any, places: Any) -> list[str]:
    """Change each of the places of the content in turn. Return the status of each run."""
    found = []
    for place in places:
        changed = content.copy()
        changed[place] ^= changed.dtype.type(1 << 8 * changed.itemsize - 2)
        np.save(scene.folder / f"{uid}.npy", changed if content.ndim == 1 else changed[np.newaxis])
        outcome = run(outputs={uid: rules})
        found.append(outcome.status)
        assert outcome.status == "Pass" or outcome.reason.startswith(f"{uid}: ")
    return found


def test_ranges_of_a_buffer(scene: Scene, run: Run) -> None:
    """Each rule has a type, a place and a tolerance. Bytes that no rule covers are unchecked."""
    scene.buffer("table", TABLE)
    rules = [
        {"at": 4, "values": [1, 2], "dtype": "uint32"},
        {"at": 20, "values": 2.51, "dtype": "float32", "rtol": 0.01},
    ]
    assert verdicts(run, scene, "table", TABLE, rules, range(8)) == [
        "Fail" if at in (1, 2, 5) else "Pass" for at in range(8)
    ]
    scene.buffer("table", TABLE)
    scene.resources.pop(0)
    outcome = run(outputs={"table": [rules[1], {**rules[0], "values": [1, 3]}]})
    assert outcome.reason == (
        "table: rule 2 of 2: 1 of 2 elements (50 %) is wrong at [2]: 2 (0x00000002), expected 3 (0x00000003)"
    )
    assert np.load(scene.folder / "results" / outcome.outputs[0].files["actual"]).tolist() == [1, 2]
    wrong = run(outputs={"table": [{**rules[1], "values": 3}, {**rules[0], "values": [1, 3]}]})
    assert wrong.reason.startswith(
        "table: rule 1 of 2: 1 of 1 element (100 %) is wrong, the greatest error is 0.5 at [5]"
    )
    assert wrong.reason.endswith(" (and 1 more rule)")


def test_the_rest_of_a_file(scene: Scene, run: Run) -> None:
    """Without values, ``at`` is the first byte to compare."""
    scene.buffer("table", TABLE).npy("good.npy", TABLE)
    rule = {"at": 16, "file": "good.npy"}
    assert verdicts(run, scene, "table", TABLE, rule, range(8)) == ["Pass"] * 4 + ["Fail"] * 4


@pytest.mark.parametrize("lines", ["R8G8B8A8_UNORM RGBA", "B8G8R8A8_UNORM BGRA", "R8G8B8A8_SNORM RGBA"])
def test_rectangles(scene: Scene, run: Run, lines: str) -> None:
    """Only texels and channels in the rectangle count."""
    format, order = lines.split()
    scene.image("p", format, PICTURE.astype("u1").view("i1" if "SNORM" in format else "u1"), dst="p.out.npy")
    content = PICTURE.view("i1" if "SNORM" in format else "u1")
    x, y, width, height = 2, 1, 5, 3
    letters = "GR"
    part = content[y : y + height, x : x + width][..., [order.index(letter) for letter in letters]]
    rule = {"rect": [x, y, width, height], "channels": letters, "values": part.tolist()}
    places = [(row, column, channel) for row in range(6) for column in (1, 2, 6, 7) for channel in range(4)]
    inside = [1 <= row < 4 and 2 <= column < 7 and order[channel] in letters for row, column, channel in places]
    assert verdicts(run, scene, "p", content, rule, places[::3]) == [
        "Fail" if is_inside else "Pass" for is_inside in inside[::3]
    ]


def test_the_place_of_a_wrong_texel(scene: Scene, run: Run) -> None:
    """It is the row, the column and the channel of the whole image. Files show the rectangle."""
    flat = np.full((6, 9, 4), 40, "u1")
    flat[3, 5, 1] = 41
    scene.image("p", "R8G8B8A8_UNORM", flat, dst="p.out.npy")
    outcome = run(outputs={"p": {"rect": [2, 1, 5, 3], "values": 40}})
    assert outcome.reason == "p: 1 of 60 elements (1.67 %) is wrong at [3, 5] G: 41 (0x29), expected 40 (0x28)"
    files = outcome.outputs[0].files
    assert set(files) == {"expected", "actual", "error", "expected_array", "actual_array"}
    actual = np.load(scene.folder / "results" / files["actual_array"])
    assert (actual == flat[1:4, 2:7]).all()
    whole = run(outputs={"p": {"channels": "BA", "values": [40, 41]}})
    assert whole.reason.startswith("p: 54 of 108 elements (50 %) are wrong at [0, 0] A: 40 (0x28)")


def linear(values: Any) -> Any:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


FORMATS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "R8G8B8A8_UNORM": ("RGBA", lambda raw: raw / 255),
    "B8G8R8A8_UNORM": ("RGBA", lambda raw: raw[..., [2, 1, 0, 3]] / 255),
    "R8G8B8A8_SRGB": ("RGBA", lambda raw: np.dstack([linear(raw[..., :3] / 255), raw[..., 3] / 255])),
    "R8G8B8A8_SNORM": ("RGBA", lambda raw: np.maximum(raw.view("i1") / 127, -1)),
    "A2B10G10R10_UNORM_PACK32": (
        "RGBA",
        lambda raw: (
            np.dstack([raw.view("<u4") >> shift & 1023 for shift in (0, 10, 20)] + [raw.view("<u4") >> 30])
            / np.array([1023, 1023, 1023, 3])
        ),
    ),
    "R16G16_UNORM": ("RG", lambda raw: raw.view("<u2") / 65535),
}


@pytest.mark.parametrize("format", FORMATS)
def test_normalized_values(scene: Scene, run: Run, format: str) -> None:
    """Values from 0 to 1, as the format defines them, for each channel of a rectangle."""
    letters, decode = FORMATS[format]
    types = {"A2B10G10R10_UNORM_PACK32": "<u4", "R16G16_UNORM": "<u2", "R8G8B8A8_SNORM": "i1"}
    scene.image("p", format, PICTURE.view(types.get(format, "u1")), dst="p.out.dds")
    part = decode(PICTURE)[1:4, 2:7]
    rule = {"rect": [2, 1, 5, 3], "normalized": True, "channels": letters, "atol": 1e-6}
    assert run(outputs={"p": {**rule, "values": part.tolist()}}).status == "Pass"
    moved = part.copy()
    moved[2, 4, 1] += 3e-3
    outcome = run(outputs={"p": {**rule, "values": moved.tolist()}})
    assert outcome.status == "Fail"
    assert f"the greatest error is 0.003 at [3, 6] {letters[1]}: " in outcome.reason
    assert run(outputs={"p": {**rule, "values": moved.tolist(), "atol": 4e-3}}).status == "Pass"
    error = np.sqrt(9e-6 / part.size)
    bounds = {"metrics": {"rmse": {"max": error * 1.01}}}
    assert run(outputs={"p": {**rule, "values": moved.tolist(), "atol": 1, **bounds}}).status == "Pass"
    bounds = {"metrics": {"rmse": {"max": error * 0.99}}}
    assert run(outputs={"p": {**rule, "values": moved.tolist(), "atol": 1, **bounds}}).status == "Fail"


def test_packed_texels_without_normalization(scene: Scene, run: Run) -> None:
    """Channels of several widths are compared one after the other."""
    packed = RANDOM.integers(0, 1 << 16, (4, 4), "<u2")
    scene.image("p", "R5G6B5_UNORM_PACK16", packed, dst="p.out.dds")
    channels = np.dstack([packed >> 11, packed >> 5 & 63, packed & 31]).astype(int)
    assert run(outputs={"p": {"rect": [0, 0, 4, 4], "values": channels.tolist()}}).status == "Pass"
    channels[3, 0, 2] ^= 1
    outcome = run(outputs={"p": {"rect": [0, 0, 4, 4], "values": channels.tolist()}})
    assert f"is wrong at [3, 0] B: {channels[3, 0, 2] ^ 1} (0x" in outcome.reason
    assert outcome.outputs[0].files


def test_mip_levels(scene: Scene, run: Run) -> None:
    """A rule is about one level: level 0 for a rectangle alone."""
    scene.image("p", "R8_UNORM", np.full((4, 4), 9, "u1"), dst="p.out.dds", mips=3)
    rules = [{"rect": [0, 0, 4, 4], "values": 9}, {"lod": 2, "channels": "R", "values": 0}]
    outcome = run(outputs={"p": rules})
    assert outcome.status in ("Pass", "Fail")
    assert run(outputs={"p": {**rules[0], "values": 8}}).reason.startswith(
        "p: 16 of 16 elements (100 %) are wrong at ["
    )
    assert "is wrong at level 2 [0, 0] R: " in run(outputs={"p": {**rules[1], "values": 77}}).reason


def test_metrics_of_a_rectangle(scene: Scene, run: Run) -> None:
    """Metrics of pictures see the rectangle alone."""
    picture = RANDOM.integers(0, 256, (20, 24, 4), "u1")
    scene.image("p", "R8G8B8A8_UNORM", picture, dst="p.out.npy").npy("good.npy", picture[np.newaxis])
    damaged = picture.copy()
    damaged[:4] = 0
    np.save(scene.folder / "p.npy", damaged[np.newaxis])
    rule = {"file": "good.npy", "metrics": {"ssim": {"min": 0.999}}}
    assert run(outputs={"p": rule}).status == "Fail"
    assert run(outputs={"p": {**rule, "rect": [0, 4, 24, 16]}}).status == "Pass"
    assert run(outputs={"p": {**rule, "rect": [0, 1, 24, 19]}}).status == "Fail"
    small = run(outputs={"p": {**rule, "rect": [0, 4, 10, 16]}})
    assert (small.status, small.diagnostics[0]["code"]) == ("Missing", "SR-EXPECT-009")
    covered = np.zeros((16, 24), bool)
    covered[2, 3] = True
    scene.npy("mask.npy", covered)
    damaged[6, 3] = 0
    np.save(scene.folder / "p.npy", damaged[np.newaxis])
    rule = {"file": "good.npy", "rect": [0, 4, 24, 16]}
    assert run(outputs={"p": rule}).status == "Fail"
    assert run(outputs={"p": {**rule, "mask": "mask.npy"}}).status == "Pass"


def test_equal_outputs(scene: Scene, run: Run) -> None:
    """The other output may come first or later; tolerances, metrics and regions count."""
    near = TABLE.copy()
    near.view("<f4")[7] += 1e-3
    for first, second in (("a", "b"), ("b", "a")):
        scene.resources.clear()
        scene.buffer(first, TABLE if first == "a" else near).buffer(second, near if second == "b" else TABLE)
        others = {"b": {"unchecked": True}}
        outcome = run(outputs={"a": {"equals": "b"}, **others})
        assert outcome.reason.startswith("a: 2 of 32 elements (6.25 %) are wrong at [2")
        floats = {"equals": "b", "dtype": "float32", "atol": 0.01}
        assert run(outputs={"a": floats, **others}).status == "Pass"
        assert run(outputs={"a": {**floats, "atol": 1e-4}, **others}).status == "Fail"
        rmse = {**floats, "metrics": {"rmse": {"max": 1e-4}}}
        assert run(outputs={"a": rmse, **others}).status == "Fail"
        assert run(outputs={"a": [{"equals": "b", "at": 0}, floats], **others}).status == "Fail"
        assert run(outputs={"a": {"equals": "b"}, "b": {"equals": "a"}}).reason.endswith("(and 1 more output)")
    no_type = run(outputs={"a": {"equals": "b", "atol": 1}, "b": {"unchecked": True}})
    assert (no_type.status, no_type.diagnostics[0]["code"]) == ("Missing", "SR-EXPECT-003")


def test_equal_images_and_frames(scene: Scene, run: Run) -> None:
    """A rectangle of another image, and a frame that a later command changes."""
    other = PICTURE.copy()
    other[5, 8] ^= 255
    scene.image("p", "R8G8B8A8_UNORM", PICTURE, dst="p.out.npy").image("q", "R8G8B8A8_UNORM", other, dst="q.out.npy")
    q = {"q": {"unchecked": True}}
    assert run(outputs={"p": {"equals": "q"}, **q}).status == "Fail"
    assert run(outputs={"p": {"equals": "q", "rect": [0, 0, 9, 5]}, **q}).status == "Pass"
    assert run(outputs={"p": {"equals": "q", "rect": [8, 5, 1, 1], "channels": "A"}, **q}).status == "Fail"
    scene.resources.clear()
    scene.shader("double", glsl("x[0] *= 2.0;", "layout(set=0,binding=0) buffer X { float x[]; };"))
    scene.buffer("x", np.float32([1, 2])).command("mark_boundary", resources=["x"]).dispatch("double", ["x"])
    frame = {"frame_0/x": {"unchecked": True}}
    outcome = run(outputs={"x": {"equals": "frame_0/x", "atol": 0}, **frame})
    assert outcome.reason.startswith("x: 1 of 2 elements (50 %) is wrong, the greatest error is 1 at [0]: 2.0 (0x")
    assert run(outputs={"x": {"equals": "frame_0/x", "at": 4}, **frame}).status == "Pass"
    missing = run(outputs={"x": {"equals": "frame_0/x"}})
    assert (missing.status, missing.diagnostics[0]["code"]) == ("Missing", "SR-EXPECT-005")


def test_types_that_shaders_declare(scene: Scene, run: Run) -> None:
    """Values take the type of the buffer in all shaders. Shaders that disagree leave it open."""
    scene.shader("half", glsl("x[gl_WorkGroupID.x] *= 0.5;", "layout(set=0,binding=0) buffer X { float x[]; };"))
    scene.buffer("x", np.float32([1, 2])).dispatch("half", ["x"], [2])
    assert run(outputs={"x": {"values": [0.5, 1]}}).status == "Pass"
    assert run(outputs={"x": {"values": [0.5, 2]}}).reason.startswith(
        "x: 1 of 2 elements (50 %) is wrong at [1]: 1.0 ("
    )
    assert run(outputs={"x": {"at": 4, "values": [1]}}).status == "Pass"
    scene.shader("bits", glsl("x[0] += 1;", "layout(set=0,binding=0) buffer X { uint x[]; };")).dispatch("bits", ["x"])
    outcome = run(outputs={"x": {"values": [0.5, 1]}})
    assert (outcome.status, outcome.diagnostics[0]["code"]) == ("Missing", "SR-EXPECT-003")
    assert outcome.diagnostics[0]["message"] == '"values" of buffer \'x\' need "dtype"'


def test_rules_of_other_devices(scene: Scene, run: Run, runners: Runners) -> None:
    """An object in ``when`` changes keys of all rules, an array replaces the rules."""
    scene.buffer("x", np.float32([1, 2, 3]))
    here = {"type": runners.runner().physical_device.type}
    rules = [
        {"at": 0, "values": [1.5], "dtype": "float32"},
        {"at": 8, "values": [3.5], "dtype": "float32", "atol": 0.1},
    ]
    assert run(outputs={"x": rules}).reason.endswith(" (and 1 more rule)")
    assert run(outputs={"x": rules}, when=[{**here, "outputs": {"x": {"atol": 1}}}]).status == "Pass"
    outcome = run(outputs={"x": rules}, when=[{**here, "outputs": {"x": {"atol": 0.2}}}])
    assert "; allowed: atol 0.2 (when[0])" in outcome.reason
    other = [{"at": 4, "values": [2], "dtype": "float32"}]
    assert run(outputs={"x": rules}, when=[{**here, "outputs": {"x": other}}]).status == "Pass"
    other[0]["values"] = [3]
    outcome = run(outputs={"x": rules}, when=[{**here, "outputs": {"x": other}}])
    assert outcome.reason.startswith("x: rule 1 of 1: 1 of 1 element (100 %) is wrong at [1]: 2.0")


@pytest.mark.parametrize(
    "rule",
    [{"at": 0, "values": [5], "dtype": "float32"}, {"equals": "y"}, [{"at": 4, "values": [5], "dtype": "int32"}]],
)
def test_updates_of_regions(scene: Scene, runners: Runners, rule: Any) -> None:
    """An update writes no rule about a part or about another output, and says so; other rules change in place."""
    scene.buffer("x", np.float32([1, 2])).buffer("y", np.float32([3, 4]))
    scene.file("check.json", json.dumps({"outputs": {"x": rule, "y": {"unchecked": True}}}))
    path = str(scene.write())
    item = Item("i", path, expectations_file(path))
    (problem,) = error_of(ExpectationError, update, item, runners).problems
    assert (problem.code, problem.line) == ("SR-EXPECT-012", 1)
    assert problem.message.startswith("an update writes no rule with 'equals', 'at', 'rect' or other regions: ")
    rules = [{"values": [1, 2], "dtype": "float32"}, {"values": [9, 9], "dtype": "float32"}]
    scene.file("check.json", json.dumps({"outputs": {"x": rules, "y": {"unchecked": True}}}))
    update(item, runners)
    rules[1]["values"] = [1.0, 2.0]
    assert json.loads((scene.folder / "check.json").read_text())["outputs"]["x"] == rules


def test_rules_through_the_program(tmp_path: Path, program: Program) -> None:
    """Rules inside of a scenario, in a packed scenario, and in a resumed suite whose rules change."""
    scene = Scene(tmp_path / "suite").buffer("x", TABLE)
    scene.npy("good.npy", TABLE)
    rules = [{"at": 0, "file": "good.npy"}, {"at": 4, "values": [1], "dtype": "uint32"}]
    path = scene.write("a.json")
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, "expect": {"outputs": {"x": rules}}}))
    assert program("test", "suite", "--results", "r").code == 0
    assert "1 result kept" in program("test", "suite", "--results", "r", "--resume").out
    scene.npy("good.npy", TABLE[::-1].copy())
    changed = program("test", "suite", "--results", "r", "--resume", exit_code=1)
    assert "kept" not in changed.out
    assert "Fail suite/a.json: x: rule 1 of 2: 8 of 8 elements" in changed.out
    scene.npy("good.npy", TABLE)
    program("pack", "suite/a.json", "--output", "packed", exit_code=0)
    program("test", "packed", exit_code=0)
    np.save(next((tmp_path / "packed").rglob("x.npy")), TABLE[::-1])
    program("test", "packed", exit_code=1)


@pytest.mark.parametrize("format", ["D16_UNORM", "D32_SFLOAT", "D32_SFLOAT_S8_UINT"])
def test_depth_and_stencil(format: str) -> None:
    """Depth is the channel D and stencil the channel S, each with its own type."""
    resource = Image(uid="d", format=f"VK_FORMAT_{format}", dims=[1, 3, 2, 1], shader_access="readwrite", dst="d.dds")
    outputs = outputs_of_scenario(Scenario(resources=[resource], commands=[]), 1)
    depth = np.arange(6) * (9000 if "UNORM" in format else 0.125)
    content = depth.astype("<u2" if "UNORM" in format else "<f4").tobytes() + bytes(range(6)) * ("S8" in format)
    values = [[[float(depth[3 * y + x]) / (65535 if "UNORM" in format else 1)] for x in (1, 2)] for y in (0, 1)]
    rules: list[Any] = [
        {"rect": [1, 0, 2, 2], "channels": "D", "values": values, "normalized": "UNORM" in format, "atol": 1e-9},
        {"rect": [1, 0, 2, 2], "channels": "S", "values": [[[1], [2]], [[4], [5]]]},
    ][: 1 + ("S8" in format)]
    expectations = of_text(json.dumps({"outputs": {"d": rules}}), "check.json", ".", "expected")
    (bounds,) = bind(expectations, outputs).values()
    check, _ = check_rules(bounds, memoryview(content))
    assert (check.status, check.message) == ("Pass", "")
    broken = bytearray(content)
    broken[-1] ^= 64
    check, _ = check_rules(bounds, memoryview(broken))
    assert check.status == "Fail"
    assert f"is wrong{'' if 'S8' in format else ', the greatest error is '}" in check.message
    assert f"at [1, 2] {'S' if 'S8' in format else 'D'}: " in check.message
