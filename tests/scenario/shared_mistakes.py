"""Ways to write a resource wrong that several kinds share: (what is changed of the smallest one, the message)."""

from typing import Any

Mistakes = list[tuple[dict[str, Any], str]]

UID: Mistakes = [
    ({"uid": None}, ": the required key 'uid' is missing"),
    ({"uid": ""}, "/uid: expected a string that is not empty, got ''"),
    ({"uid": 3}, "/uid: expected a string, got 3"),
    ({"uid": "a\x00b"}, "/uid: a NUL character is not allowed here"),
]
# Resources with bytes: buffers, images and tensors.
DATA: Mistakes = [
    *UID,
    ({"shader_access": None}, ": the required key 'shader_access' is missing"),
    (
        {"shader_access": "readwirte"},
        "/shader_access: expected one of 'readonly', 'writeonly', 'readwrite', 'image_read', got "
        "'readwirte' (did you mean 'readwrite'?)",
    ),
    ({"src": 3}, "/src: expected a string, got 3"),
    ({"src": "a\x00"}, "/src: a NUL character is not allowed here"),
    ({"dst": ["x"]}, "/dst: expected a string, got an array"),
    ({"memory_group": "g"}, "/memory_group: expected an object, got 'g'"),
    ({"memory_group": {"id": 3}}, "/memory_group/id: expected a string, got 3"),
    ({"memory_group": {"uid": 3}}, "/memory_group/uid: expected a string, got 3"),
    (
        {"memory_group": {"id": "g", "uid": "h"}},
        "/memory_group: 'id' and 'uid' both name the group, and differ: 'g' and 'h'",
    ),
    (
        {"memory_group": {"id": "g", "offset": -4}},
        "/memory_group/offset: expected an integer of at least 0, got -4",
    ),
    (
        {"memory_group": {"id": "g", "ofset": 4}},
        "/memory_group/ofset: unknown key 'ofset' (did you mean 'offset'?)",
    ),
]
BARRIER: Mistakes = [
    *UID,
    ({"src_access": None}, ": the required key 'src_access' is missing"),
    ({"dst_access": None}, ": the required key 'dst_access' is missing"),
    (
        {"src_access": "NONE"},
        "/src_access: expected one of 'memory_write', 'memory_read', 'graph_write', 'graph_read', "
        "'compute_shader_write', 'compute_shader_read', got 'NONE'",
    ),
    (
        {"dst_access": "ACCESS_MEMORY_REED"},
        "/dst_access: expected one of 'memory_write', 'memory_read', 'graph_write', 'graph_read', "
        "'compute_shader_write', 'compute_shader_read', got 'ACCESS_MEMORY_REED' (did you mean "
        "'ACCESS_MEMORY_READ'?)",
    ),
    ({"src_stage": "all"}, "/src_stage: expected an array, got 'all'"),
    (
        {"dst_stage": ["vertex"]},
        "/dst_stage/0: expected one of 'graph', 'compute', 'graphics', 'all', got 'vertex'",
    ),
    ({"stage": ["all"]}, "/stage: unknown key 'stage' (did you mean 'src_stage'?)"),
]
