"""The JSON Schema of the attributes. That its file is committed is tested with that of scenarios."""

from __future__ import annotations

import re

from scenario_runner.custom_shader.reading import json_schema
from tests.custom_shader.attributes import ATTRIBUTES


def test_every_key_is_described() -> None:
    """Each key of right attributes has one place in the schema, with a description."""
    schema = json_schema()
    for key in [*ATTRIBUTES, "input_10_sampler", "output_3_type"]:
        found = [part for pattern, part in schema["patternProperties"].items() if re.search(pattern, key)]
        found += [schema["properties"][key]] if key in schema["properties"] else []
        (part,) = found
        assert part["description"], key


def test_leading_zeros() -> None:
    """Indices with leading zeros are refused; other unknown keys are allowed."""
    schema = json_schema()
    refusing = [pattern for pattern, part in schema["patternProperties"].items() if part is False]
    assert [bool(re.search(pattern, key)) for pattern in refusing for key in ("input_01_x", "input_0_x", "a")] == [
        *(True, False),
        False,
    ]
    assert schema["additionalProperties"] is True
    assert all(definition["additionalProperties"] is True for definition in schema["$defs"].values())
