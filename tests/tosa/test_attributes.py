"""Attributes of custom operations: their meaning and their mistakes."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.errors import ScenarioError
from scenario_runner.ml.vgf_model import Sampler
from scenario_runner.tosa.attribute_parsing import examine_attributes, parse_attributes
from scenario_runner.tosa.model import PushConstant
from tests.scenes import error_of
from tests.tables import cases
from tests.tosa.attributes import ATTRIBUTES, SOURCE, examined, messages, resource, text_of

SPIRV = Path(__file__).resolve().parents[1] / "shaders" / "spirv"
SAMPLER = {
    "min_filter": "VK_FILTER_LINEAR",
    "mag_filter": "VK_FILTER_CUBIC_IMG",
    "address_mode_u": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER",
    "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE",
    "border_color": "VK_BORDER_COLOR_INT_OPAQUE_WHITE",
}
DESCRIPTORS = (
    "'VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER', 'VK_DESCRIPTOR_TYPE_STORAGE_BUFFER',"
    " 'VK_DESCRIPTOR_TYPE_STORAGE_IMAGE', 'VK_DESCRIPTOR_TYPE_TENSOR_ARM', 'VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER'"
)
FILTERS = "expected one of 'VK_FILTER_NEAREST', 'VK_FILTER_LINEAR', 'VK_FILTER_CUBIC_IMG', 'VK_FILTER_CUBIC_EXT'"


def parsed(change: dict[str, Any], **counts: int | None) -> Any:
    """The attributes with a change that leaves them right."""
    return parse_attributes(text_of(change), operation="scale", **counts)


def test_all_that_they_say() -> None:
    """Right attributes become a record with numbers of Vulkan's enums, and offsets of push constants."""
    image = resource("input_1", 2, "COMBINED_IMAGE_SAMPLER", "R8G8B8A8_UNORM")
    change = {"input_1_sampler": SAMPLER, "input_1_type": "Image", "input_1_descriptorset": 3, "is_vkshader": True}
    attributes = parsed(image | change, operands=2, results=1)
    assert attributes.operation == "scale"
    assert (attributes.entry_point, attributes.module_entry_point) == ("main", "main")
    assert attributes.workgroup_sizes == (4, 1, 1)
    assert (attributes.language, attributes.code) == ("GLSL", SOURCE)
    assert attributes.push_constants == (PushConstant("scale", 4, 0), PushConstant("bias", 4, 4))
    assert attributes.push_constants_size_bytes == 8
    assert [view.name for view in attributes.views] == ["input_0", "input_1", "output_0"]
    second = attributes.inputs[1]
    assert (second.format.name, second.descriptor_type, second.set, second.binding) == (
        *("VK_FORMAT_R8G8B8A8_UNORM", 1, 3),
        2,
    )
    assert second.sampler == Sampler(1, 1000015000, 3, 4, 5)
    assert (second.kind, second.logical_type) == ("image", "Image")
    assert attributes.warnings == ()


def test_null_is_left_out() -> None:
    """An optional key that is null is one that is not given; without language and code it is a placeholder."""
    attributes = parsed({"shader_language": None, "shader_code": None, "push_constants": None, "input_0_type": None})
    assert (attributes.language, attributes.code, attributes.push_constants) == ("", None, ())


def test_spirv() -> None:
    """SPIR-V is decoded, with line breaks in the base64 text as well."""
    module = sorted(SPIRV.rglob("*.spv"))[0].read_bytes()
    attributes = parsed({"shader_language": "SPIR-V", "shader_code": base64.encodebytes(module).decode()})
    assert attributes.code == module


def test_more_than_ten_inputs() -> None:
    """Indices count as numbers: input_10 follows input_9."""
    change: dict[str, Any] = {}
    for index in range(11):
        change |= resource(f"input_{index}", 10 + index)
    assert [view.binding for view in parsed(change, operands=11).inputs] == list(range(10, 21))


@pytest.mark.parametrize(
    "row",
    [
        *([json.loads(change), *expected] for change, *expected in cases(__file__, "wrong_attributes.txt", "WRONG")),
        (
            {"input_0_vkformat": "VK_FORMAT_R32_FLOAT", "output_0_vkdescriptortype": "STORAGE_BUFFER"},
            "SR-JSON-005 /input_0_vkformat: unknown format 'VK_FORMAT_R32_FLOAT'",
            f"SR-JSON-005 /output_0_vkdescriptortype: expected one of {DESCRIPTORS}, got 'STORAGE_BUFFER'"
            " (did you mean 'VK_DESCRIPTOR_TYPE_STORAGE_BUFFER'?)",
        ),
        (
            {"input_0_sampler": {"min_filter": "VK_FILTER_LINEER", **{key: SAMPLER[key] for key in list(SAMPLER)[2:]}}},
            "SR-JSON-004 /input_0_sampler: the required key 'mag_filter' is missing",
            f"SR-JSON-005 /input_0_sampler/min_filter: {FILTERS}, got 'VK_FILTER_LINEER' (did you mean"
            " 'VK_FILTER_LINEAR'?)",
        ),
        (
            {"input_0_vkdescriptortype": "X", "input_0_sampler": SAMPLER | {"mag_filter": "X"}, "inp_0_vkformat": ""},
            f"SR-JSON-005 /input_0_vkdescriptortype: expected one of {DESCRIPTORS}, got 'X' (did you mean"
            " 'VK_DESCRIPTOR_TYPE_TENSOR_ARM'?)",
            f"SR-JSON-005 /input_0_sampler/mag_filter: {FILTERS}, got 'X'",
            "SR-CUSTOM-007 /inp_0_vkformat: the attribute 'inp_0_vkformat' is not known and has no effect (did you mean"
            " 'input_0_vkformat'?)",
        ),
    ],
)
def test_what_is_wrong(row: Any) -> None:
    """Each wrong value is reported with its key, the value and the expectation, all together."""
    change, *expected = row
    assert messages(examined(change)) == expected


def test_many_unknown_keys() -> None:
    """The first hundred keys that are like known ones are named."""
    keys = {f"input_{number}_bindin": 0 for number in range(150)}
    assert [finding.code for finding in examined(keys)].count("SR-CUSTOM-007") == 100


@pytest.mark.parametrize(
    "change, operands, results, expected",
    [
        (resource("input_2", 5), None, 1, "SR-CUSTOM-002 /input_2_vkformat: input_2 is described, but input_1 is not"),
        (
            *(resource("input_1", 5), 1, 1),
            "SR-CUSTOM-003 /input_1_vkformat: input_1 is described, but the operation has 1 operand",
        ),
        ({}, 1, 2, "SR-CUSTOM-003 None: the operation has 2 results, but the attributes have no output_1_… keys"),
    ],
)
def test_counts(change: dict[str, Any], operands: int | None, results: int, expected: str) -> None:
    """Inputs are counted from 0 without gaps; they and the outputs are as many as the operation has."""
    assert messages(examined(change, operands=operands, results=results)) == [expected]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "<attributes of 'scale'>: the text is empty, expected a JSON object"),
        ("[1]", "<attributes of 'scale'>:1:1: expected an object with the attributes, got an array"),
        ('{"a": 1,}', "<attributes of 'scale'>:1:8: a ',' before '}' is not allowed"),
        ('{"a": NaN}', "<attributes of 'scale'>:1:7: /a: NaN is not valid JSON"),
        (
            '{"a": null,\n "a": 1}',
            "<attributes of 'scale'>:2:2: /a: the key 'a' appears twice in one object, first on line 1",
        ),
        ("[" * 100_000, "<attributes of 'scale'>:1:65: more than 64 arrays and objects are nested in one another"),
    ],
)
def test_not_json(text: str, expected: str) -> None:
    """Text that is not JSON, or not an object, is one error that names the operation and the place in the text."""
    assert str(error_of(ScenarioError, parse_attributes, text, operation="scale")) == expected


@pytest.mark.parametrize(
    "change, expected",
    [
        *cases(__file__, "wrong_attributes.txt", "WARNINGS"),
        (
            json.dumps({"output_0_sampler": SAMPLER}),
            "SR-CONFLICT-002 /output_0_sampler: output_0 has a sampler, which VK_DESCRIPTOR_TYPE_STORAGE_BUFFER does"
            " not use",
        ),
    ],
)
def test_warnings(change: str, expected: str) -> None:
    """Attributes that were probably meant otherwise give a warning, and can be used."""
    attributes = parsed(json.loads(change))
    assert messages(list(attributes.warnings)) == [expected]
    assert {each.severity for each in attributes.warnings} == {"warning"}
    assert attributes.module_entry_point == "main"


def test_unknown_keys_are_allowed() -> None:
    """Keys that are like no known one are allowed, with any value."""
    change = {"is_vkshader": True, "name": "x", "comment": None, "version": {"sampler": [1]}, "input_0_note": 1}
    assert parsed(change).warnings == ()


def test_a_file() -> None:
    """Messages begin with a given path. Several problems are one error, in the order of the text."""
    text = text_of({"workgroup_sizes": 1, "input_0_binding": "a"})
    assert str(error_of(ScenarioError, parse_attributes, text, operation="scale", path="a.json")) == (
        "a.json:3:22: /workgroup_sizes: expected an array, got 1\n"
        "a.json:9:22: /input_0_binding: expected an integer, got 'a'"
    )


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([*ATTRIBUTES, "input_0_sampler", "input_7_binding", "output_00_type", "x"]), _VALUES)
def test_any_value(key: str, value: Any) -> None:
    """Any value of any key gives attributes or errors of ours."""
    attributes, found = examine_attributes(json.dumps(ATTRIBUTES | {key: value}), "scale", (1, None))
    assert (attributes is None) == any(each.severity == "error" for each in found)


@given(st.data())
def test_any_text(data: st.DataObject) -> None:
    """A text with any character changed gives attributes or errors of ours."""
    text = text_of({"shader_code": "void main() {}"})
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.text(max_size=2)) + text[at + 1 :]
    attributes, found = examine_attributes(changed, "scale")
    assert (attributes is None) == any(each.severity == "error" for each in found)
