"""Attributes made from a shader's interface, files with attributes of operations, and their JSON Schema."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors import ScenarioRunnerError, ShaderError, UsageError
from scenario_runner.tosa.attribute_models import json_schema
from scenario_runner.tosa.attribute_parsing import Examined, examine_document, parse_attributes
from scenario_runner.tosa.attribute_skeleton import attributes_of_shader
from scenario_runner.tosa.model import DOMAIN
from scenario_runner.tosa.shader_agreement import check_shaders
from tests.tosa.attributes import ATTRIBUTES, SOURCE, text_of

pytestmark = pytest.mark.usefixtures("shader_cache")

EVERY_KIND = """#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 3, rgba16f) writeonly uniform image2D large;
layout(set = 1, binding = 0) uniform Sizes { int sizes[4]; };
struct Record { float a; uint b; };
layout(set = 1, binding = 2) buffer Records { Record records[]; };
void main() {
    vec4 texel = texture(picture, vec2(0.5)) * sizes[0];
    records[gl_LocalInvocationIndex].a = texel.x;
    imageStore(large, ivec2(gl_GlobalInvocationID.xy), texel);
}
"""


def written(path: Path, source: str, **options: Any) -> dict[str, Any]:
    """Write attributes for a source in the file ``path``; they pass every check except workgroup_sizes."""
    path.write_text(source)
    attributes = attributes_of_shader(str(path), **options)
    (checked,) = check_shaders([parse_attributes(json.dumps(attributes), operation="x")])
    assert {each.code for each in checked.findings} <= {"SR-CUSTOM-014"}
    return attributes


def test_buffers(tmp_path: Path) -> None:
    """Inputs, outputs and push constants come from the shader."""
    assert written(tmp_path / "scale.comp", SOURCE) == ATTRIBUTES


def test_every_kind(tmp_path: Path) -> None:
    """Descriptor types and formats follow from the declarations, and written resources are outputs."""
    attributes = written(tmp_path / "all.comp", EVERY_KIND, workgroups=(1, 2, 3))
    assert attributes["workgroup_sizes"] == [1, 2, 3]
    short = {
        key: value.removeprefix("VK_DESCRIPTOR_TYPE_").removeprefix("VK_FORMAT_")
        for key, value in attributes.items()
        if key.endswith(("vkformat", "vkdescriptortype"))
    }
    assert short == {
        "input_0_vkformat": "R32G32B32A32_SFLOAT",
        "input_0_vkdescriptortype": "COMBINED_IMAGE_SAMPLER",
        "input_1_vkformat": "R32_SINT",
        "input_1_vkdescriptortype": "UNIFORM_BUFFER",
        "output_0_vkformat": "R16G16B16A16_SFLOAT",
        "output_0_vkdescriptortype": "STORAGE_IMAGE",
        "output_1_vkformat": "R32_UINT",
        "output_1_vkdescriptortype": "STORAGE_BUFFER",
    }
    assert (attributes["output_1_descriptorset"], attributes["output_1_binding"]) == (1, 2)
    assert "input_0_sampler" in attributes


def test_modules(tmp_path: Path) -> None:
    """A source embedded as a module gives the same as a file of the module. Another entry point than the module's is
    an error that names the module's."""
    module = written(tmp_path / "scale.comp", SOURCE, spirv=True)
    assert module["shader_language"] == "SPIR-V"
    code = base64.b64decode(module["shader_code"])
    (tmp_path / "scale.spv").write_bytes(code)
    assert attributes_of_shader(str(tmp_path / "scale.spv")) == module
    with pytest.raises(ShaderError, match=r"no entry point 'scale' .* are: 'main' \(GLCompute\)"):
        attributes_of_shader(str(tmp_path / "scale.spv"), entry_point="scale")


def test_includes(tmp_path: Path) -> None:
    """A source with includes can be embedded as a module only."""
    (tmp_path / "common.glsl").write_text("#define SCALE 2\n")
    source = SOURCE.replace("#version 450\n", '#version 450\n#include "common.glsl"\n')
    with pytest.raises(UsageError, match="includes other files") as caught:
        written(tmp_path / "scale.comp", source)
    assert caught.value.problems[0].help == "embed the compiled module: --spirv"
    assert written(tmp_path / "scale.comp", source, spirv=True)["shader_language"] == "SPIR-V"


def test_what_no_descriptor_type_can_show(tmp_path: Path) -> None:
    """A shader with a resource that attributes cannot describe is refused with the place in its interface."""
    source = SOURCE.replace("buffer In { float x[]; };", "buffer In { float x[]; } all[2];").replace(
        "* x[", "* all[0].x["
    )
    with pytest.raises(ScenarioRunnerError, match="an array of descriptors"):
        written(tmp_path / "scale.comp", source)


def examined(*entries: Any) -> list[Examined]:
    """Return the findings of a list of attributes."""
    return examine_document(json.dumps(entries, indent=1), "some/scales.json")


def test_one_object() -> None:
    """A file with attributes is one operation, called like the file."""
    (found,) = examine_document(text_of({}), "some/scale.json")
    assert (found.operation, found.findings) == ("scale", [])
    assert found.attributes is not None
    assert found.attributes.origin.path == "some/scale.json"


def test_a_list() -> None:
    """A list holds attributes and whole operations, with places in the file."""
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
