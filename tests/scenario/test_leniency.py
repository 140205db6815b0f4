"""Keys without effect, where they are not misspellings, and numbers with a clear meaning: warnings with their place."""

import json
from typing import Any

import pytest

from scenario_runner.errors import ScenarioError
from scenario_runner.scenario import load, loads
from scenario_runner.scenario.loader import from_dict
from tests.scenes import error_of

BUFFER = {"uid": "b", "size": 16, "shader_access": "readwrite"}
IMAGE = {"uid": "i", "dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_UNORM", "shader_access": "readonly"}
TENSOR = {"uid": "t", "dims": [4], "format": "VK_FORMAT_R8_SINT", "shader_access": "readonly"}
SHADER = {"uid": "s", "src": "s.comp"}
ACCESS = {"src_access": "memory_write", "dst_access": "memory_read"}
PART = {"base_mip_level": 0, "level_count": 1, "base_array_layer": 0, "layer_count": 1}
BINDING = {"set": 0, "id": 0, "resource_ref": "b"}


def barrier(**part: Any) -> dict[str, Any]:
    body = {"uid": "x", "image_resource": "i", "old_layout": "general", "new_layout": "general", **ACCESS}
    return {"image_barrier": body | {"subresource_range": part}}


def dispatch(**keys: Any) -> dict[str, Any]:
    return {"dispatch_compute": {"shader_ref": "s", "rangeND": [1, 1, 1], "bindings": [BINDING]} | keys}


def scenario(*entries: dict[str, Any], commands: tuple[dict[str, Any], ...] = (), **top: Any) -> dict[str, Any]:
    return {"resources": [*entries], "commands": [*commands], **top}


def buffer(**keys: Any) -> dict[str, Any]:
    return scenario({"buffer": BUFFER | keys})


def ranges(**part: Any) -> dict[str, Any]:
    """A scenario with a barrier over a part of an image."""
    return scenario({"image": IMAGE}, barrier(**part))


def dispatched(**keys: Any) -> dict[str, Any]:
    return scenario({"buffer": BUFFER}, {"shader": SHADER}, commands=(dispatch(**keys),))


RANGE = "/resources/1/image_barrier/subresource_range"
DISPATCH = "/commands/0/dispatch_compute"
IGNORED = [
    (buffer(format="VK_FORMAT_R32_SFLOAT"), "/resources/0/buffer/format", "buffer"),
    (scenario({"tensor": TENSOR | {"data_type": "VK_FORMAT_R8_SINT"}}), "/resources/0/tensor/data_type", "tensor"),
    (scenario({"shader": SHADER | {"_comment": "adds"}}), "/resources/0/shader/_comment", "shader"),
    (ranges(**PART, aspect=1), f"{RANGE}/aspect", "subr"),
    (dispatched(bindings=[BINDING | {"type": "buffer"}]), f"{DISPATCH}/bindings/0/type", "binding"),
    (scenario({"buffer": BUFFER, "origin": {"tool": 1}}), "/resources/0/origin", "resource"),
    (scenario(description="all of it", comment=None), "/description", "scenario"),
]


@pytest.mark.parametrize("tree, pointer, what", IGNORED)
def test_a_key_without_effect_is_a_warning(tree: dict[str, Any], pointer: str, what: str) -> None:
    """The scenario loads as if the key were not there; the warning names the key, its kind and its place."""
    text = json.dumps(tree, indent=1)
    loaded = loads(text)
    warning = loaded.warnings[0]
    key = pointer.rpartition("/")[2]
    assert (warning.code, warning.pointer) == ("SR-JSON-010", pointer)
    assert warning.message.startswith(f"the key {key!r} is ignored: a {what}")
    assert f'"{key}"' in text.splitlines()[(warning.line or 0) - 1]
    from_code = from_dict(tree)
    assert [each.pointer for each in from_code.warnings] == [each.pointer for each in loaded.warnings]
    assert from_code.resources == loaded.resources
    assert from_code.commands == loaded.commands


def test_the_help_names_the_kinds_that_have_the_key() -> None:
    """The help names the kinds of resource that have the key."""
    (warning,) = loads(json.dumps(IGNORED[0][0])).warnings
    assert warning.help == "remove it; it is a key of: image, tensor, graph_constant"


@pytest.mark.parametrize(
    "tree, message",
    [
        (buffer(siz=4), "unknown key 'siz' (did you mean 'size'?)"),
        (scenario({"tensor": TENSOR | {"alias_target": {}}}), "'alias_target' is no longer supported"),
        (buffer(data=[1]), "unknown key 'data'"),
        (buffer(memory_group={"label": "g", "uid": 3}), "expected a string, got 3"),
        (
            scenario({"buffer": BUFFER, "dst": "b.npy"}),
            "expected one key, the kind of the resource, got 2: 'buffer', 'dst'",
        ),
        (scenario({"buffer": BUFFER, "dispatch_barrier": {}}), "expected one key, the kind of the resource, got 2"),
    ],
)
def test_a_misspelling_is_an_error(tree: dict[str, Any], message: str) -> None:
    """A key that is like one of its object, or that only code may give, is never passed over."""
    (problem,) = error_of(ScenarioError, loads, json.dumps(tree)).problems
    assert problem.message.startswith(message)


def test_a_key_may_be_the_missing_one() -> None:
    """A key of another kind that resembles the missing key is reported for both."""
    tensor = {key: value for key, value in TENSOR.items() if key != "format"}
    tree = scenario({"tensor": tensor | {"data_type": "VK_FORMAT_R8_SINT"}})
    assert [problem.message for problem in error_of(ScenarioError, loads, json.dumps(tree)).problems] == [
        "unknown key 'data_type' (did you mean 'format'?)",
    ]


def test_other_errors_are_reported_alone() -> None:
    """Ignored keys are not among the errors of a scenario that has some."""
    tree = scenario({"buffer": BUFFER | {"format": "x"}}, {"buffer": BUFFER | {"uid": "c", "size": 0}})
    (problem,) = error_of(ScenarioError, loads, json.dumps(tree)).problems
    assert problem.pointer == "/resources/1/buffer/size"


def test_the_given_tree_is_not_changed(tmp_path: Any) -> None:
    """Data given in code stays as it was, and a file says the same twice."""
    tree = dispatched(bindings=[BINDING | {"type": "buffer"}]) | {"version": 2}
    before = json.dumps(tree)
    from_dict(tree)
    assert json.dumps(tree) == before
    path = tmp_path / "x.json"
    path.write_text(before)
    assert load(path).warnings == load(path).warnings


NUMBERS = [
    (buffer(size=16.0), "/resources/0/buffer/size", "16.0 is taken as the integer 16"),
    (scenario({"image": IMAGE | {"mips": 2.0}}), "/resources/0/image/mips", "2.0 is taken as the integer 2"),
    (
        dispatched(rangeND=[4, 2, 1, 1, 1.0]),
        f"{DISPATCH}/rangeND",
        "a range has 3 dimensions, got 5: the last ones have no effect",
    ),
]


@pytest.mark.parametrize("tree, pointer, message", NUMBERS)
def test_a_number_with_a_clear_meaning_is_a_warning(tree: dict[str, Any], pointer: str, message: str) -> None:
    """A number such as 2.0 loads as the integer, and extra dimensions are dropped, with a warning."""
    loaded = loads(json.dumps(tree))
    assert [(each.code, each.pointer, each.message) for each in loaded.warnings] == [("SR-JSON-008", pointer, message)]
    if loaded.commands:
        usual = dispatch(rangeND=[4, 2, 1]) if "rangeND" in pointer else dispatch()
        assert loaded.commands == loads(json.dumps(tree | {"commands": [usual]})).commands
    assert from_dict(tree).resources == loaded.resources


def test_odd_numbers_inside_each_other() -> None:
    """A range that is too long and has fractions, beside a key without effect, gives a warning for each."""
    tree = dispatched(rangeND=[4.0, 2, 1, 1], debug_name="x")
    loaded = loads(json.dumps(tree))
    assert sorted(str(each.pointer).rpartition("/")[2] for each in loaded.warnings) == ["0", "debug_name", "rangeND"]
    assert loaded.commands == loads(json.dumps(tree | {"commands": [dispatch(rangeND=[4, 2, 1])]})).commands


@pytest.mark.parametrize(
    "size, message",
    [
        (16.5, "expected an integer, got 16.5"),
        (1e30, "expected an integer, got 1e+30"),
        (-4.0, "expected an integer of at least 1, got -4"),
        (True, "expected an integer, got true"),
    ],
)
def test_other_numbers_are_errors(size: float, message: str) -> None:
    """Numbers that lose something as integers are refused."""
    (problem,) = error_of(ScenarioError, loads, json.dumps(buffer(size=size))).problems
    assert problem.message == message
