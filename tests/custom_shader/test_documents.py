"""Files with the attributes of one or more operations."""

from __future__ import annotations

import json
from typing import Any

from scenario_runner.custom_shader.attributes import DOMAIN
from scenario_runner.custom_shader.parsing import Examined, examine_document
from tests.custom_shader.attributes import ATTRIBUTES, text_of


def examined(*entries: Any) -> list[Examined]:
    """What is found in a list of these."""
    return examine_document(json.dumps(entries, indent=1), "some/scales.json")


def test_one_object() -> None:
    """A file with attributes is one operation, called like the file."""
    (found,) = examine_document(text_of({}), "some/scale.json")
    assert (found.operation, found.findings) == ("scale", [])
    assert found.attributes is not None
    assert found.attributes.origin.path == "some/scale.json"


def test_a_list() -> None:
    """A list holds attributes and whole operations, whose places are those in the file."""
    operation = {
        "domain_name": DOMAIN,
        "operator_name": "Blur",
        "implementation_attrs": ATTRIBUTES | {"entry_point": 3},
    }
    plain, named, as_text = examined(
        ATTRIBUTES, operation, {"implementation_attrs": text_of({"push_constants": "x"}), "operator_name": "Text"}
    )
    assert (plain.operation, plain.findings) == ("scales[0]", [])
    assert (named.operation, named.attributes) == ("Blur", None)
    assert [str(each) for each in named.findings] == [
        "some/scales.json:25:19: /1/implementation_attrs/entry_point: expected a string, got 3"
    ]
    assert [str(each) for each in as_text.findings] == [
        "some/scales.json: <attributes of 'Text'>:10:21: /push_constants: expected 'name: size', got 'x'"
    ]


def test_another_domain() -> None:
    """An operation of another domain is said not to be a shader, and its attributes are not looked at."""
    (found,) = examined({"domain_name": "mine", "operator_name": "Sort", "implementation_attrs": 3})
    assert (found.operation, found.attributes, found.is_shader) == ("Sort", None, False)
    assert [(each.code, each.severity, each.pointer) for each in found.findings] == [
        ("SR-CUSTOM-035", "warning", "/0/domain_name")
    ]


def test_what_is_wrong() -> None:
    """An empty list, a name that is no string and text that is not JSON are errors with their places."""
    (empty,) = examined()
    assert [str(each) for each in empty.findings] == [
        "some/scales.json:1:1: the list is empty, expected the attributes of at least one operation"
    ]
    (unnamed,) = examined({"operator_name": 3, "implementation_attrs": ATTRIBUTES})
    assert unnamed.attributes is None
    assert [each.pointer for each in unnamed.findings] == ["/0/operator_name"]
    (broken,) = examine_document("{", "a.json")
    assert [each.code for each in broken.findings] == ["SR-JSON-001"]
    (number,) = examined(7)
    assert [str(each) for each in number.findings] == [
        "some/scales.json:2:2: /0: expected an object with the attributes, got 7"
    ]
