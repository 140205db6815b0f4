"""What can be wrong with the bindings and the barrier flag of any dispatch, and the message that says so."""

from __future__ import annotations

from typing import Any

# (keys to change in a command that is right, pointer into the command and message)
WRONG_BINDINGS: list[tuple[dict[str, Any], str]] = [
    ({"bindings": {}}, "/bindings: expected an array, got an object"),
    ({"bindings": ["a"]}, "/bindings/0: expected an object, got 'a'"),
    ({"bindings": [{"id": 0, "resource_ref": "a"}]}, "/bindings/0: the required key 'set' is missing"),
    ({"bindings": [{"set": 0, "resource_ref": "a"}]}, "/bindings/0: the required key 'id' is missing"),
    ({"bindings": [{"set": 0, "id": 0}]}, "/bindings/0: the required key 'resource_ref' is missing"),
    (
        {"bindings": [{"set": -1, "id": 0, "resource_ref": "a"}]},
        "/bindings/0/set: expected an integer of at least 0, got -1",
    ),
    (
        {"bindings": [{"set": 0, "id": 4294967296, "resource_ref": "a"}]},
        "/bindings/0/id: expected an integer of at most 4294967295, got 4294967296",
    ),
    ({"bindings": [{"set": 0, "id": 0.5, "resource_ref": "a"}]}, "/bindings/0/id: expected an integer, got 0.5"),
    (
        {"bindings": [{"set": 0, "id": 0, "resource_ref": "a", "lodd": 0}]},
        "/bindings/0/lodd: unknown key 'lodd' (did you mean 'lod'?)",
    ),
    (
        {"bindings": [{"set": 0, "id": 0, "resource_ref": "a", "descriptor_type": "VK_DESCRIPTOR_TYPE_STORAGE_IMGE"}]},
        "/bindings/0/descriptor_type: expected one of 'VK_DESCRIPTOR_TYPE_AUTO', "
        "'VK_DESCRIPTOR_TYPE_STORAGE_IMAGE', 'VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE', "
        "'VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER', 'VK_DESCRIPTOR_TYPE_STORAGE_BUFFER', "
        "'VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER', 'VK_DESCRIPTOR_TYPE_TENSOR_ARM', got "
        "'VK_DESCRIPTOR_TYPE_STORAGE_IMGE' (did you mean 'VK_DESCRIPTOR_TYPE_STORAGE_IMAGE'?)",
    ),
    (
        {"bindings": [{"set": 0, "id": 0, "resource_ref": ""}]},
        "/bindings/0/resource_ref: expected a string that is not empty, got ''",
    ),
    (
        {"bindings": [{"set": 0, "id": 0, "resource_ref": "pictur"}]},
        "/bindings/0/resource_ref: no resource has the uid 'pictur' (did you mean 'picture'?)",
    ),
    (
        {
            "bindings": [
                {"set": 1, "id": 2, "resource_ref": "weights"},
                {"set": 0, "id": 2, "resource_ref": "weights"},
                {"set": 1, "id": 2, "resource_ref": "weights"},
            ]
        },
        "/bindings/2: set 1, id 2 is already bound by entry 0",
    ),
    ({"implicit_barrier": 0}, "/implicit_barrier: expected true or false, got 0"),
    (
        {"implict_barrier": False},
        "/implict_barrier: unknown key 'implict_barrier' (did you mean 'implicit_barrier'?)",
    ),
]
