"""A scenario around one entry, and what the loader says about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scenario_runner.errors import ScenarioError
from scenario_runner.scenario import Model, Scenario, loads

Body = dict[str, Any]

ACCESS = {"src_access": "memory_write", "dst_access": "memory_read"}
RESOURCES: dict[str, Body] = {
    "a": {"buffer": {"uid": "a", "size": 64, "shader_access": "readonly"}},
    "b": {"buffer": {"uid": "b", "size": 64, "shader_access": "writeonly"}},
    "picture": {
        "image": {
            "uid": "picture",
            "dims": [1, 8, 8, 1],
            "format": "VK_FORMAT_R8_UNORM",
            "shader_access": "readonly",
            "mips": 3,
        }
    },
    "weights": {
        "tensor": {"uid": "weights", "dims": [2, 3], "format": "VK_FORMAT_R8_SINT", "shader_access": "readonly"}
    },
    "numbers": {"raw_data": {"uid": "numbers", "src": "numbers.npy"}},
    "shader": {"shader": {"uid": "shader", "src": "a.comp", "type": "GLSL", "push_constants_size": 8}},
    "plain": {"shader": {"uid": "plain", "src": "a.comp", "type": "GLSL"}},
    "module": {"shader": {"uid": "module", "src": "a.spv", "type": "SPIR-V"}},
    "vertex": {"shader": {"uid": "vertex", "src": "a.vert", "type": "GLSL", "stage": "vertex"}},
    "fragment": {"shader": {"uid": "fragment", "src": "a.frag", "type": "GLSL", "stage": "fragment"}},
    "network": {"graph": {"uid": "network", "src": "network.vgf"}},
    "constant": {"graph_constant": {"uid": "constant", "dims": [2], "format": "VK_FORMAT_R8_SINT", "src": "c.npy"}},
    "all": {"memory_barrier": {"uid": "all", **ACCESS}},
    "of_a": {"buffer_barrier": {"uid": "of_a", "buffer_resource": "a", "size": 64, **ACCESS}},
    "of_picture": {
        "image_barrier": {
            "uid": "of_picture",
            "image_resource": "picture",
            "old_layout": "general",
            "new_layout": "general",
            **ACCESS,
        }
    },
    "of_weights": {"tensor_barrier": {"uid": "of_weights", "tensor_resource": "weights", **ACCESS}},
}


def _changed(body: Body, change: Body) -> Body:
    """The body with other values; None leaves a key out."""
    return {key: value for key, value in {**body, **change}.items() if value is not None}


def _said(scenario: Any) -> list[str]:
    """The problems of a scenario, each as its pointer and its message."""
    with pytest.raises(ScenarioError) as caught:
        loads(json.dumps(scenario))
    return [f"{problem.pointer}: {problem.message}" for problem in caught.value.problems]


@pytest.fixture
def resource() -> Callable[..., Model]:
    """Loads one resource, beside those it may refer to, and gives its model."""

    def load(kind: str, body: Body, **change: Any) -> Model:
        loaded = loads(json.dumps({"resources": [{kind: _changed(body, change)}, *RESOURCES.values()], "commands": []}))
        assert loaded.warnings == ()
        return loaded.resources[0]

    return load


@pytest.fixture
def resource_problems() -> Callable[..., list[str]]:
    """What is wrong with one resource, its pointers relative to it."""

    def problems(kind: str, body: Body, change: Body) -> list[str]:
        scenario = {"resources": [{kind: _changed(body, change)}, *RESOURCES.values()], "commands": []}
        return [text.removeprefix(f"/resources/0/{kind}") for text in _said(scenario)]

    return problems


@pytest.fixture
def command() -> Callable[..., Model]:
    """Loads one command, beside the resources it may refer to, and gives its model."""

    def load(kind: str, body: Body, **change: Any) -> Model:
        loaded = loads(json.dumps({"resources": [*RESOURCES.values()], "commands": [{kind: _changed(body, change)}]}))
        assert loaded.warnings == ()
        return loaded.commands[0]

    return load


@pytest.fixture
def command_problems() -> Callable[..., list[str]]:
    """What is wrong with one command, its pointers relative to it."""

    def problems(kind: str, body: Body, change: Body) -> list[str]:
        scenario = {"resources": [*RESOURCES.values()], "commands": [{kind: _changed(body, change)}]}
        return [text.removeprefix(f"/commands/0/{kind}") for text in _said(scenario)]

    return problems


@pytest.fixture
def scenario_of() -> Callable[..., Scenario]:
    """Loads entries given as JSON data."""

    def load(resources: list[Body], commands: list[Body]) -> Scenario:
        return loads(json.dumps({"resources": resources, "commands": commands}))

    return load
