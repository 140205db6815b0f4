"""The shader resource."""

import pytest

from tests.scenario.shared_mistakes import UID

SMALLEST = {"uid": "x", "src": "x.comp", "type": "GLSL"}


def test_smallest(resource):
    """The smallest shader loads, and all else has the documented default."""
    loaded = resource("shader", SMALLEST)
    assert (loaded.src, loaded.type, loaded.stage, loaded.entry) == ("x.comp", "GLSL", "compute", "main")
    assert (loaded.build_options, loaded.include_dirs) == ("", ())
    assert (loaded.push_constants_size, loaded.specialization_constants, loaded.source) == (0, (), None)


@pytest.mark.parametrize(
    "change, message",
    [
        *UID,
        ({"src": None}, ": the required key 'src' is missing"),
        ({"src": ""}, "/src: expected a string that is not empty, got ''"),
        ({"src": {}}, "/src: expected a string, got an object"),
        ({"push_constants_size": 6}, "/push_constants_size: expected a multiple of 4, got 6"),
        ({"push_constants_size": -4}, "/push_constants_size: expected an integer of at least 0, got -4"),
        ({"push_constants_size": 4.5}, "/push_constants_size: expected an integer, got 4.5"),
        (
            {"specialization_constants": [{"id": -1, "value": 2}]},
            "/specialization_constants/0/id: expected an integer of at least 0, got -1",
        ),
        (
            {"specialization_constants": [{"id": 0, "value": "2"}]},
            "/specialization_constants/0/value: expected a number, got '2'",
        ),
        (
            {"specialization_constants": [{"id": 0, "value": 18446744073709551616}]},
            "/specialization_constants/0/value: expected a number that fits 64 bits, got 18446744073709551616",
        ),
        (
            {"specialization_constants": [{"id": 0, "value": 1}, {"id": 1, "value": 1}, {"id": 0, "value": 2}]},
            "/specialization_constants/2/id: the constant 0 already has a value in entry 0",
        ),
        (
            {"specialization_constants": {"id": 0, "value": 1}},
            "/specialization_constants: expected an array, got an object",
        ),
        (
            {"specialization_constants": [{"id": 0, "value": 1, "vale": 4}]},
            "/specialization_constants/0/vale: unknown key 'vale' (did you mean 'value'?)",
        ),
        ({"type": "PASCAL"}, "/type: expected one of 'GLSL', 'SPIR-V', 'HLSL', got 'PASCAL'"),
        ({"type": "SPIRV"}, "/type: expected one of 'GLSL', 'SPIR-V', 'HLSL', got 'SPIRV' (did you mean 'SPIR-V'?)"),
        ({"stage": "geometry"}, "/stage: expected one of 'compute', 'vertex', 'fragment', got 'geometry'"),
        ({"entry": ""}, "/entry: expected a string that is not empty, got ''"),
        ({"build_options": ["-DA"]}, "/build_options: expected a string, got an array"),
        ({"include_dirs": "inc"}, "/include_dirs: expected an array, got 'inc'"),
        ({"include_dirs": [""]}, "/include_dirs/0: expected a string that is not empty, got ''"),
        ({"source": "void main(){}"}, "/source: unknown key 'source' (did you mean 'src'?)"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a shader wrong has one message that says what and where."""
    assert resource_problems("shader", SMALLEST, change) == [message]


@pytest.mark.parametrize(
    "src, type", [("a.spv", "SPIR-V"), ("A.SPV", "SPIR-V"), ("a.hlsl", "HLSL"), ("a.comp", "GLSL")]
)
def test_type_from_extension(resource, src, type):
    """A shader without a type has the one of its file's extension."""
    assert resource("shader", SMALLEST, src=src, type=None).type == type


def test_constants_keep_their_types(resource):
    """Specialization constants stay what the file says: booleans, integers, floats."""
    values = [True, 4, -4, 0.5, 4.0, 2**64 - 1, -(2**63)]
    constants = [{"id": id, "value": value} for id, value in enumerate(values)]
    loaded = resource("shader", SMALLEST, specialization_constants=constants).specialization_constants
    assert [(type(constant.value), constant.value) for constant in loaded] == [(type(value), value) for value in values]
