"""The dispatch_compute command."""

import pytest

from tests.scenario.wrong_bindings import WRONG_BINDINGS

SMALLEST = {"shader_ref": "plain", "bindings": [{"set": 0, "id": 0, "resource_ref": "a"}], "rangeND": [4]}


def test_smallest(command):
    """The smallest dispatch_compute loads, and all else has the documented default."""
    loaded = command("dispatch_compute", SMALLEST)
    assert (loaded.shader_ref, loaded.rangeND, loaded.push_data_ref, loaded.implicit_barrier) == (
        "plain",
        (4,),
        None,
        True,
    )
    assert [(binding.set, binding.id, binding.resource_ref) for binding in loaded.bindings] == [(0, 0, "a")]
    assert (loaded.bindings[0].lod, loaded.bindings[0].descriptor_type) == (None, "VK_DESCRIPTOR_TYPE_AUTO")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bindings": None}, ": the required key 'bindings' is missing"),
        *WRONG_BINDINGS,
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "picture", "lod": 3}]},
            "/bindings/0/lod: the last mip level of 'picture' is 2, got 3",
        ),
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "picture", "lod": -1}]},
            "/bindings/0/lod: expected an integer of at least 0, got -1",
        ),
        ({"push_data_ref": "number"}, "/push_data_ref: no resource has the uid 'number' (did you mean 'numbers'?)"),
        ({"push_data_ref": "a"}, "/push_data_ref: expected the uid of a raw_data, got 'a', which is a buffer"),
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "numbers"}]},
            "/bindings/0/resource_ref: expected the uid of a buffer or an image or a tensor, got 'numbers', "
            "which is a raw_data",
        ),
        ({"shader_ref": None}, ": the required key 'shader_ref' is missing"),
        ({"shader_ref": "shadr"}, "/shader_ref: no resource has the uid 'shadr' (did you mean 'shader'?)"),
        ({"shader_ref": "network"}, "/shader_ref: expected the uid of a shader, got 'network', which is a graph"),
        (
            {"shader_ref": "fragment"},
            "/shader_ref: expected a shader of the stage 'compute', got 'fragment' of the stage 'fragment'",
        ),
        ({"rangeND": None}, ": the required key 'rangeND' is missing"),
        ({"rangeND": []}, "/rangeND: expected at least 1 entry, got 0"),
        ({"rangeND": [1, 1, 1, 2]}, "/rangeND: expected at most 3 entries, got 4"),
        ({"rangeND": [-1]}, "/rangeND/0: expected an integer of at least 0, got -1"),
        ({"rangeND": [1, 2.5]}, "/rangeND/1: expected an integer, got 2.5"),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_compute wrong has one message that says what and where."""
    assert command_problems("dispatch_compute", SMALLEST, change) == [message]


@pytest.mark.parametrize("counts", [[0], [1, 2], [1, 2, 3], [0, 0, 2**32 - 1]])
def test_ranges(command, counts):
    """A range has one to three counts, and a count may be zero."""
    assert command("dispatch_compute", SMALLEST, rangeND=counts).rangeND == tuple(counts)


def test_push_data(command):
    """Push constants come from raw data, and an empty reference means none."""
    assert (
        command("dispatch_compute", SMALLEST, shader_ref="shader", push_data_ref="numbers").push_data_ref == "numbers"
    )
    assert command("dispatch_compute", SMALLEST, push_data_ref="").push_data_ref is None


def test_lod_of_a_buffer(command):
    """A mip level of zero is not a matter for a buffer."""
    bindings = [{"set": 0, "id": 0, "resource_ref": "a", "lod": 0}]
    assert command("dispatch_compute", SMALLEST, bindings=bindings).bindings[0].lod == 0


def test_useless_lod(scenario_of):
    """Another mip level of a buffer is pointed out."""
    loaded = scenario_of(
        [
            {"shader": {"uid": "s", "src": "s.spv"}},
            {"buffer": {"uid": "a", "size": 4, "shader_access": "readonly"}},
        ],
        [
            {
                "dispatch_compute": {
                    "shader_ref": "s",
                    "rangeND": [1],
                    "bindings": [{**SMALLEST["bindings"][0], "lod": 1}],
                }
            }
        ],
    )
    (warning,) = loaded.warnings
    assert (warning.pointer, warning.message) == (
        "/commands/0/dispatch_compute/bindings/0/lod",
        "has no effect on the buffer 'a'",
    )
