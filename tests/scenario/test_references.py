"""Uids that are unique, and parts that contradict one another over several entries."""

import numpy
import pytest

from scenario_runner.errors import ScenarioError
from scenario_runner.plan.resolve import resolve
from scenario_runner.scenario import from_dict
from tests.scenes import error_of


def buffer(uid, **more):
    """A buffer of 64 bytes."""
    return {"buffer": {"uid": uid, "size": 64, "shader_access": "readonly", **more}}


def problems_of(scenario_of, resources, commands=()):
    """The problems of a scenario, each as pointer and message."""
    error = error_of(ScenarioError, scenario_of, resources, list(commands))
    return [(problem.pointer, problem.message) for problem in error.problems]


def test_duplicate_uids(scenario_of):
    """A uid that is used twice, also by another kind, is reported with both places."""
    resources = [buffer("x"), {"raw_data": {"uid": "x", "src": "x.npy"}}, buffer("x")]
    assert problems_of(scenario_of, resources) == [
        ("/resources/1/raw_data/uid", "/resources/0/buffer already has the uid 'x'"),
        ("/resources/2/buffer/uid", "/resources/0/buffer already has the uid 'x'"),
    ]


def test_duplicate_uid_of_a_broken_resource(scenario_of):
    """A duplicate uid in a wrong resource is reported beside the resource's own problem."""
    assert problems_of(scenario_of, [buffer("x"), buffer("x", size=0)]) == [
        ("/resources/1/buffer/uid", "/resources/0/buffer already has the uid 'x'"),
        ("/resources/1/buffer/size", "expected an integer of at least 1, got 0"),
    ]


def test_hint_prefers_the_kind(scenario_of):
    """The close match is of the kind that is needed, where there is one."""
    barrier = {"buffer_barrier": {"uid": "b", "buffer_resource": "datum", "size": 4}}
    barrier["buffer_barrier"] |= {"src_access": "memory_read", "dst_access": "memory_read"}
    resources = [{"raw_data": {"uid": "date", "src": "x.npy"}}, buffer("data0"), barrier]
    ((_, message),) = problems_of(scenario_of, resources)
    assert message == "no resource has the uid 'datum' (did you mean 'data0'?)"


def group(uid, offset=0, **more):
    """A buffer of 64 bytes in the memory group g."""
    return buffer(uid, memory_group={"id": "g", "offset": offset}, **more)


def overlaps(folder, resources):
    """Return the pointers and messages about overlapping contents. The files have 64 bytes, or the size of their
    buffer."""
    for resource in resources:
        body = resource["buffer"]
        if "src" in body:
            numpy.save(folder / body["src"], numpy.zeros(body["size"], "u1"))
    scenario = from_dict({"resources": resources, "commands": []}, base_dir=str(folder))
    try:
        resolve(scenario)
    except ScenarioError as error:
        return [(problem.pointer, problem.message) for problem in error.problems]
    return []


def test_two_contents_for_one_memory(tmp_path):
    """Two members of a memory group must not bring initial content for the same bytes."""
    resources = [group("x", 0, src="x.npy"), group("y", 32), group("z", 60, src="z.npy")]
    assert overlaps(tmp_path, resources) == [
        ("/resources/2/buffer/memory_group", "the initial content of 'z' overlaps that of 'x' in memory group 'g'")
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
        [group("x", 0, src="x.npy"), buffer("y", src="y.npy", memory_group={"id": "h"})],
    ],
)
def test_contents_that_agree(tmp_path, resources):
    """Contents side by side, one content, the same file twice, and other groups are fine."""
    assert overlaps(tmp_path, resources) == []
