"""Scenarios built in code, lookups in a scenario, and contradictions between entries."""

import dataclasses
import json

import numpy
import pytest

from scenario_runner import scenario as s
from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import error
from scenario_runner.plan.resolve import resolve
from tests.scenes import error_of

BUFFER = s.Buffer(uid="a", size=4, shader_access="readwrite")
SHADER = s.Shader(uid="s", source="void main() {}")


def dispatch(**change):
    """A dispatch of the shader over the buffer."""
    values = {"shader_ref": "s", "rangeND": (1,), "bindings": (s.Binding(set=0, id=0, resource_ref="a"),)}
    return s.DispatchCompute(**{**values, **change})


def test_frozen():
    """Scenarios and models are immutable."""
    scenario = s.Scenario(resources=[BUFFER])
    with pytest.raises(dataclasses.FrozenInstanceError):
        scenario.path = "x"
    with pytest.raises(Exception, match="frozen"):
        BUFFER.size = 8


BOOLEAN = {"set": True, "id": 0, "resource_ref": "a"}


def buffer(**keys):
    return s.Buffer(uid="a", shader_access="readonly", **keys)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: buffer(size=-4), "Buffer.size: expected an integer of at least 1, got -4"),
        (buffer, "Buffer: one of 'size' and 'data' is required"),
        (lambda: buffer(data=[1, 2]), "Buffer.data: expected a NumPy array or bytes, got list"),
        (lambda: buffer(data=b"", size=0), "Buffer.size: expected an integer of at least 1, got 0"),
        (lambda: dispatch(bindings=(BOOLEAN,)), "DispatchCompute.bindings[0].set: expected an integer, got true"),
        (lambda: s.Shader(uid="s"), "Shader: one of 'src' and 'source' is required"),
        (
            lambda: s.Buffer(uid="a", size=4, shader_acess="readonly"),
            "Buffer: the required key 'shader_access' is missing\n"
            "Buffer.shader_acess: unknown key 'shader_acess' (did you mean 'shader_access'?)",
        ),
        (
            lambda: s.Scenario(resources=[BUFFER], commands=[dispatch()]),
            "/commands/0/dispatch_compute/shader_ref: no resource has the uid 's'",
        ),
        (
            lambda: s.Scenario(resources=[dispatch()]),
            "Scenario.resources[0]: expected a resource model, got DispatchCompute",
        ),
        (lambda: s.Scenario(commands=["x"]), "Scenario.commands[0]: expected a command model, got str"),
    ],
)
def test_wrong_in_code(build, message):
    """A wrong value in code raises an error of this program with the field's name."""
    assert str(error_of(ScenarioError, build)) == message


def test_pointers():
    """Pointers spell the kind of an entry as the file does."""
    scenario = s.loads(
        '{"resources": [{"buffer": {"uid": "a", "size": 4, "shader_access": "readonly"}}],'
        ' "commands": [{"pipeline_barrier": {}}, {"mark_boundary": {"resources": ["a"]}}]}'
    )
    assert scenario.resource_pointer("a") == scenario.resource_pointer(0) == "/resources/0/buffer"
    assert scenario.command_pointer(0) == "/commands/0/pipeline_barrier"
    assert scenario.command_pointer(1) == "/commands/1/mark_boundary"
    assert s.Scenario(commands=[s.DispatchBarrier()]).command_pointer(0) == "/commands/0/dispatch_barrier"


def test_problem():
    """A problem of a later stage gets the place in the file that its pointer leads to."""
    scenario = s.loads(
        '{"commands": [], "resources": [\n {"buffer": {"uid": "a",\n "size": 4, "shader_access": "readonly"}}]}',
        "x.json",
    )
    problem = scenario.placed(error("SR-BIND-003", "/resources/0/buffer/size", "too small", "make it larger"))
    assert (str(problem), problem.help) == ("x.json:3:10: /resources/0/buffer/size: too small", "make it larger")
    of_buffer = error("SR-BIND-003", "/resources/0/buffer", "bad")
    assert str(scenario.placed(of_buffer)) == "x.json:2:13: /resources/0/buffer: bad"
    absent = scenario.placed(error("SR-BIND-003", "/resources/0/buffer/memory_group/offset", "bad"))
    assert (absent.line, absent.column, absent.pointer) == (2, 13, "/resources/0/buffer/memory_group/offset")
    assert str(s.Scenario(resources=[BUFFER]).placed(of_buffer)) == "/resources/0/buffer: bad"


def test_unknown_uid():
    """Asking for a resource that is not there raises an error with a close match."""
    scenario = s.Scenario(resources=[s.Buffer(uid="inBuffer", size=4, shader_access="readonly")])
    error = error_of(ScenarioError, scenario.resource, "inBufer")
    assert str(error) == "no resource has the uid 'inBufer' (did you mean 'inBuffer'?)"


def entry(uid, **more):
    """A buffer of 64 bytes in the data of a scenario."""
    return {"buffer": {"uid": uid, "size": 64, "shader_access": "readonly", **more}}


def problems_of(*resources):
    """The problems of resources, each as pointer and message."""
    error = error_of(ScenarioError, s.loads, json.dumps({"resources": resources, "commands": []}))
    return [(problem.pointer, problem.message) for problem in error.problems]


def test_duplicate_uids():
    """A uid that is used twice, also by another kind, is reported with both places."""
    resources = [entry("x"), {"raw_data": {"uid": "x", "src": "x.npy"}}, entry("x")]
    assert problems_of(*resources) == [
        ("/resources/1/raw_data/uid", "/resources/0/buffer already has the uid 'x'"),
        ("/resources/2/buffer/uid", "/resources/0/buffer already has the uid 'x'"),
    ]


def test_duplicate_uid_of_a_broken_resource():
    """A duplicate uid in a wrong resource is reported beside the resource's own problem."""
    assert problems_of(entry("x"), entry("x", size=0)) == [
        ("/resources/1/buffer/uid", "/resources/0/buffer already has the uid 'x'"),
        ("/resources/1/buffer/size", "expected an integer of at least 1, got 0"),
    ]


def test_hint_prefers_the_kind():
    """The close match is of the kind that is needed, where there is one."""
    barrier = {"buffer_barrier": {"uid": "b", "buffer_resource": "datum", "size": 4}}
    barrier["buffer_barrier"] |= {"src_access": "memory_read", "dst_access": "memory_read"}
    resources = [{"raw_data": {"uid": "date", "src": "x.npy"}}, entry("data0"), barrier]
    ((_, message),) = problems_of(*resources)
    assert message == "no resource has the uid 'datum' (did you mean 'data0'?)"


def group(uid, offset=0, **more):
    """A buffer of 64 bytes in the memory group g."""
    return entry(uid, memory_group={"id": "g", "offset": offset}, **more)


def overlaps(folder, resources):
    """Return the pointers and messages about overlapping contents. The files have 64 bytes, or the size of their
    buffer."""
    for resource in resources:
        body = resource["buffer"]
        if "src" in body:
            numpy.save(folder / body["src"], numpy.zeros(body["size"], "u1"))
    scenario = s.from_dict({"resources": resources, "commands": []}, base_dir=str(folder))
    try:
        resolve(scenario)
    except ScenarioError as error:
        return [(problem.pointer, problem.message) for problem in error.problems]
    return []


def test_two_contents_for_one_memory(tmp_path):
    """Two members of a memory group must not bring initial content for the same bytes."""
    resources = [group("x", 0, src="x.npy"), group("y", 32), group("z", 60, src="z.npy")]
    assert overlaps(tmp_path, resources) == [
        ("/resources/2/buffer/memory_group", "the initial contents of 'z' and 'x' overlap in memory group 'g'")
    ]


def test_nested_contents(tmp_path):
    """A member inside a longer one is found even when another lies between them."""
    resources = [group("x", 0, size=1024, src="x.npy"), group("y", 128), group("z", 512, src="z.npy")]
    ((pointer, _),) = overlaps(tmp_path, resources)
    assert pointer == "/resources/2/buffer/memory_group"


@pytest.mark.parametrize(
    "resources",
    [
        [group("x", 0, src="x.npy"), group("y", 64, src="y.npy")],
        [group("x", 0, src="x.npy"), group("y", 0)],
        [group("x", 0, src="x.npy"), group("y", 0, src="x.npy")],
        [group("x", 0, src="x.npy"), entry("y", src="y.npy", memory_group={"id": "h"})],
    ],
)
def test_contents_that_agree(tmp_path, resources):
    """Contents side by side, one content, the same file twice, and other groups are fine."""
    assert overlaps(tmp_path, resources) == []
