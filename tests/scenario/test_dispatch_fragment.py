"""The dispatch_fragment command."""

import pytest

from tests.scenario.wrong_bindings import WRONG_BINDINGS

SMALLEST = {
    "vertex_shader_ref": "vertex",
    "fragment_shader_ref": "fragment",
    "bindings": [],
    "color_attachment_refs": ["picture"],
}


def test_smallest(command):
    """The smallest dispatch_fragment loads, and all else has the documented default."""
    loaded = command("dispatch_fragment", SMALLEST)
    assert [(attachment.resource_ref, attachment.lod) for attachment in loaded.color_attachment_refs] == [
        ("picture", 0)
    ]
    assert (loaded.render_extent, loaded.debug_name, loaded.push_data_ref, loaded.implicit_barrier) == (
        None,
        None,
        None,
        True,
    )


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
        ({"vertex_shader_ref": None}, ": the required key 'vertex_shader_ref' is missing"),
        ({"fragment_shader_ref": None}, ": the required key 'fragment_shader_ref' is missing"),
        (
            {"vertex_shader_ref": "fragment"},
            "/vertex_shader_ref: expected a shader of the stage 'vertex', got 'fragment' of the stage 'fragment'",
        ),
        (
            {"fragment_shader_ref": "shader"},
            "/fragment_shader_ref: expected a shader of the stage 'fragment', got 'shader' of the stage 'compute'",
        ),
        ({"color_attachment_refs": None}, ": needs color_attachment_refs or a render_extent"),
        ({"color_attachment_refs": []}, ": needs color_attachment_refs or a render_extent"),
        (
            {"color_attachment_refs": ["pictur"]},
            "/color_attachment_refs/0: no resource has the uid 'pictur' (did you mean 'picture'?)",
        ),
        (
            {"color_attachment_refs": ["a"]},
            "/color_attachment_refs/0: expected the uid of an image, got 'a', which is a buffer",
        ),
        ({"color_attachment_refs": [3]}, "/color_attachment_refs/0: expected a uid or an object, got 3"),
        (
            {"color_attachment_refs": [{"resource_ref": "picture", "lod": 3}]},
            "/color_attachment_refs/0/lod: the last mip level of 'picture' is 2, got 3",
        ),
        (
            {"color_attachment_refs": [{"lod": 0}]},
            "/color_attachment_refs/0: the required key 'resource_ref' is missing",
        ),
        ({"render_extent": [4]}, "/render_extent: expected at least 2 entries, got 1"),
        ({"render_extent": [4, 4, 4]}, "/render_extent: expected at most 2 entries, got 3"),
        ({"render_extent": [4, 0]}, "/render_extent/1: expected an integer of at least 1, got 0"),
        ({"debug_name": 3}, "/debug_name: expected a string, got 3"),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_fragment wrong has one message that says what and where."""
    assert command_problems("dispatch_fragment", SMALLEST, change) == [message]


def test_extent_without_attachments(command):
    """A render extent stands in for attachments, and an attachment may be a mip level."""
    assert command("dispatch_fragment", SMALLEST, color_attachment_refs=None, render_extent=[4, 2]).render_extent == (
        4,
        2,
    )
    (attachment,) = command(
        "dispatch_fragment", SMALLEST, color_attachment_refs=[{"resource_ref": "picture", "lod": 2}]
    ).color_attachment_refs
    assert (attachment.resource_ref, attachment.lod) == ("picture", 2)
