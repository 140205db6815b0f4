"""Scenarios built in code, and lookups in a scenario."""

import dataclasses

import pytest

from scenario_runner import scenario as s
from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import error
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
    assert (
        str(scenario.placed(error("SR-BIND-003", "/resources/0/buffer", "bad")))
        == "x.json:2:13: /resources/0/buffer: bad"
    )
    absent = scenario.placed(error("SR-BIND-003", "/resources/0/buffer/memory_group/offset", "bad"))
    assert (absent.line, absent.column, absent.pointer) == (2, 13, "/resources/0/buffer/memory_group/offset")
    assert (
        str(s.Scenario(resources=[BUFFER]).placed(error("SR-BIND-003", "/resources/0/buffer", "bad")))
        == "/resources/0/buffer: bad"
    )


def test_unknown_uid():
    """Asking for a resource that is not there raises an error with a close match."""
    scenario = s.Scenario(resources=[s.Buffer(uid="inBuffer", size=4, shader_access="readonly")])
    error = error_of(ScenarioError, scenario.resource, "inBufer")
    assert str(error) == "no resource has the uid 'inBufer' (did you mean 'inBuffer'?)"
