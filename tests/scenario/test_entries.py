"""Each kind of entry in entries.txt: the smallest entry, its changes, and each way to write it wrong."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import vulkan

from scenario_runner.errors import ScenarioError
from scenario_runner.files import vk_formats
from scenario_runner.scenario import Model, Scenario, loads
from scenario_runner.scenario.kinds import RESOURCES as KINDS_OF_RESOURCES
from tests.scenes import error_of

Body = dict[str, Any]

ACCESS = {"src_access": "memory_write", "dst_access": "memory_read"}
RESOURCES: dict[str, Body] = {
    "a": {"buffer": {"uid": "a", "size": 64, "shader_access": "readonly"}},
    "b": {"buffer": {"uid": "b", "size": 64, "shader_access": "writeonly"}},
    "picture": {
        "image": {
            "uid": "picture",
            "dims": [1, 8, 8, 1],
            "format": "VK_FORMAT_R8_UNORM",
            "shader_access": "readonly",
            "mips": 3,
        }
    },
    "weights": {
        "tensor": {"uid": "weights", "dims": [2, 3], "format": "VK_FORMAT_R8_SINT", "shader_access": "readonly"}
    },
    "numbers": {"raw_data": {"uid": "numbers", "src": "numbers.npy"}},
    "shader": {"shader": {"uid": "shader", "src": "a.comp", "type": "GLSL", "push_constants_size": 8}},
    "plain": {"shader": {"uid": "plain", "src": "a.comp", "type": "GLSL"}},
    "module": {"shader": {"uid": "module", "src": "a.spv", "type": "SPIR-V"}},
    "vertex": {"shader": {"uid": "vertex", "src": "a.vert", "type": "GLSL", "stage": "vertex"}},
    "fragment": {"shader": {"uid": "fragment", "src": "a.frag", "type": "GLSL", "stage": "fragment"}},
    "network": {"graph": {"uid": "network", "src": "network.vgf"}},
    "constant": {"graph_constant": {"uid": "constant", "dims": [2], "format": "VK_FORMAT_R8_SINT", "src": "c.npy"}},
    "all": {"memory_barrier": {"uid": "all", **ACCESS}},
    "of_a": {"buffer_barrier": {"uid": "of_a", "buffer_resource": "a", "size": 64, **ACCESS}},
    "of_picture": {
        "image_barrier": {
            "uid": "of_picture",
            "image_resource": "picture",
            "old_layout": "general",
            "new_layout": "general",
            **ACCESS,
        }
    },
    "of_weights": {"tensor_barrier": {"uid": "of_weights", "tensor_resource": "weights", **ACCESS}},
}


def _changed(body: Body, change: Body) -> Body:
    """The body with other values; None leaves a key out."""
    return {key: value for key, value in {**body, **change}.items() if value is not None}


def read_table() -> tuple[dict[str, Body], dict[str, list[tuple[Body, str]]]]:
    """Read the smallest entry of each kind, and its changes with their results."""
    smallest: dict[str, Body] = {}
    changes: dict[str, list[tuple[Body, str]]] = {}
    for line in Path(__file__).with_name("entries.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            name, _, body = line[2:].partition(" ")
            changes[name] = []
            if body:
                smallest[name] = json.loads(body)
        elif line.startswith("+ "):
            changes[name] += changes[line[2:]]
        elif line.startswith("{"):
            change, end = json.JSONDecoder().raw_decode(line)
            changes[name].append((change, line[end + 1 :]))
    return smallest, changes


SMALLEST, CHANGES = read_table()


def load(kind: str, change: Body, body: Body | None = None) -> tuple[Model, Scenario]:
    """The model of a smallest entry with changes, beside the resources that it may refer to, and the scenario."""
    entry = {kind: _changed(SMALLEST[kind] if body is None else body, change)}
    resources, commands = [*RESOURCES.values()], []
    (resources if kind in KINDS_OF_RESOURCES else commands).insert(0, entry)
    scenario = loads(json.dumps({"resources": resources, "commands": commands}))
    return (scenario.resources if kind in KINDS_OF_RESOURCES else scenario.commands)[0], scenario


def changes(what: str) -> list[Any]:
    """Parameters: kinds and their changes that "load" or are "wrong"."""
    return [
        pytest.param(kind, change, text, id=f"{kind}-{number}")
        for kind in SMALLEST
        for number, (change, text) in enumerate(CHANGES[kind])
        if text.startswith("{") == (what == "load")
    ]


def assert_holds(found: Any, expected: Any) -> None:
    """Check values and types, of objects only the named ones."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_holds(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_holds(one, other)
    else:
        assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("kind, change, expected", changes("load"))
def test_right(kind: str, change: Body, expected: str) -> None:
    """The smallest entry loads with the documented defaults, and each change has its documented effect."""
    loaded, scenario = load(kind, change)
    assert scenario.warnings == ()
    dumped = loaded.model_dump(mode="json", by_alias=True)
    assert_holds(dumped, ({} if change else SMALLEST[kind]) | json.loads(expected))


@pytest.mark.parametrize("kind, change, message", changes("wrong"))
def test_wrong(kind: str, change: Body, message: str) -> None:
    """Each wrong entry has one message with its place."""
    array = "resources" if kind in KINDS_OF_RESOURCES else "commands"
    said = [f"{problem.pointer}: {problem.message}" for problem in error_of(ScenarioError, load, kind, change).problems]
    assert said == [f"/{array}/0/{kind}{message}"]


@pytest.mark.parametrize(
    "other, kind",
    [
        ("dispatch_vgf", "dispatch_graph"),
        ("dispatch_data_graph", "dispatch_spirv_graph"),
        ("pipeline_barrier", "dispatch_barrier"),
        ("frame_boundary", "mark_boundary"),
    ],
)
def test_other_name(other: str, kind: str) -> None:
    """A command may have the name that it has in older files."""
    assert load(other, {}, SMALLEST[kind])[0].kind == kind


def test_messages_use_the_name_of_the_file() -> None:
    """A message uses the command name of the file."""
    error = error_of(ScenarioError, load, "dispatch_vgf", {"graph_ref": "a"}, SMALLEST["dispatch_graph"])
    assert error.problems[0].pointer == "/commands/0/dispatch_vgf/graph_ref"
    assert error.problems[0].message == "expected the uid of a graph, got 'a', which is a buffer"


@pytest.mark.parametrize(
    "kind, change, pointer, message",
    [
        ("image", {"mips": True}, "mips", "a boolean number of mip levels is deprecated and means 1"),
        (
            "image",
            {"border_color": "INT_OPAQUE_BLACK", "custom_border_color": [1, 2, 3, 4]},
            "custom_border_color",
            "has no effect with the border_color 'INT_OPAQUE_BLACK'",
        ),
        (
            "dispatch_compute",
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "a", "lod": 1}]},
            "bindings/0/lod",
            "has no effect on the buffer 'a'",
        ),
    ],
)
def test_odd(kind: str, change: Body, pointer: str, message: str) -> None:
    """A key without effect, or a deprecated one, is a warning with its place."""
    loaded, scenario = load(kind, change)
    (warning,) = scenario.warnings
    array = "resources" if kind in KINDS_OF_RESOURCES else "commands"
    assert (warning.pointer, warning.message) == (f"/{array}/0/{kind}/{pointer}", message)
    assert getattr(loaded, "mips", 1) == 1


@pytest.mark.parametrize(
    "names, numbers, prefixes",
    [
        (vk_formats.Filter, vk_formats.FILTERS, ("VK_FILTER_", "VK_SAMPLER_MIPMAP_MODE_")),
        (vk_formats.AddressMode, vk_formats.ADDRESS_MODES, ("VK_SAMPLER_ADDRESS_MODE_",)),
        (vk_formats.BorderColor, vk_formats.BORDER_COLORS, ("VK_BORDER_COLOR_",)),
    ],
    ids=["filters", "address modes", "border colors"],
)
def test_numbers_are_those_of_vulkan(names: object, numbers: dict[str, int], prefixes: tuple[str, ...]) -> None:
    """Each name that a scenario may use has the number of Vulkan's enumeration value."""
    assert set(get_args(names)) == set(numbers)
    for prefix in prefixes:
        # a scenario says CLAMP_EDGE and CLAMP_BORDER
        expected = {name: getattr(vulkan, f"{prefix}{name.replace('CLAMP_', 'CLAMP_TO_')}") for name in numbers}
        assert numbers == expected


def test_numbers_of_files_have_names() -> None:
    """A number of a VGF file has the name that has this number; custom colors stand in no file."""
    assert vk_formats.FILTER_NAMES == {0: "NEAREST", 1: "LINEAR"}
    assert vk_formats.ADDRESS_MODE_NAMES[2] == "CLAMP_EDGE"
    assert sorted(vk_formats.STANDARD_COLOR_NAMES) == list(range(6))
