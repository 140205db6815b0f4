"""Keys beyond the reference runner's format: each new key is marked, and `validate` lists the used ones in a note."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from scenario_runner.scenario.entries import BeyondReference, Entry
from scenario_runner.scenario.json_model import ModelBase
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES
from tests.program import Program
from tests.scenes import Scene, glsl

ROWS = Path(__file__).with_name("reference_keys.txt").read_text(encoding="utf-8").splitlines()[1:]
KNOWN = {row.split()[0]: set(row.split()[1:]) for row in ROWS}
(MARK,) = BeyondReference.__metadata__  # type: ignore[attr-defined]


def unmarked(model: type[ModelBase]) -> Iterator[str]:
    """The keys of a model and the models in it that are neither known nor marked."""
    if issubclass(model, Entry) and model.beyond_reference:
        return
    model.model_rebuild()
    for key, field in model.model_fields.items():
        if key in model.code_only or MARK in field.metadata:
            continue
        if key not in KNOWN.get(model.__name__, ()):
            yield f"{model.__name__}.{key}"
        pending = [field.annotation]
        while pending:
            each = pending.pop()
            if isinstance(each, type) and issubclass(each, ModelBase):
                yield from unmarked(each)
            pending += get_args(each)


@pytest.mark.parametrize("kind", [*RESOURCES, *COMMANDS])
def test_every_new_key_is_marked(kind: str) -> None:
    """A key that is not the reference runner's has the type BeyondReference, or the whole kind says so."""
    assert list(unmarked({**RESOURCES, **COMMANDS}[kind])) == []


def findings(program: Program, scene: Scene) -> list[dict[str, str]]:
    """What validate --strict finds in a scenario that has no error."""
    ended = program.succeed("validate", "--strict", "--format", "json", scene.write())
    return list(json.loads(ended.out)["files"][0]["findings"])


def test_the_note(scene: Scene, program: Program) -> None:
    """validate lists the keys once, at the first of them. --strict leaves it a note."""
    scene.shader("v", "#version 450\nvoid main() { gl_Position = vec4(0); }", stage="vertex")
    scene.shader("f", "#version 450\nvoid main() { }", stage="fragment")
    keys = {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "bindings": [], "render_extent": [4, 4]}
    scene.command("dispatch_fragment", **keys, topology="TRIANGLE_STRIP", vertex_count=4)
    scene.command("dispatch_fragment", **keys, vertex_count=5)
    (note,) = findings(program, scene)
    message = "2 keys beyond the reference runner's format: dispatch_fragment.topology, dispatch_fragment.vertex_count"
    assert (note["code"], note["severity"], note["message"]) == ("SR-JSON-012", "note", message)
    assert note["pointer"] == "/commands/0/dispatch_fragment/topology"


def test_no_note(scene: Scene, program: Program) -> None:
    """A file of the reference runner's format has none."""
    scene.shader("s", glsl("")).dispatch("s", [])
    assert findings(program, scene) == []
