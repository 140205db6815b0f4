"""What is bound to the graph of a VGF file against what it declares: each finding has the code of its rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.validation import validate_file
from scenarios.generate import HERE

CASE = HERE / "ml" / "classifier"
BINDINGS = "/commands/0/dispatch_graph/bindings"


def change(where: str, **keys: object) -> Callable[[dict[str, Any]], None]:
    """Sets keys of what the JSON pointer ``where`` points to."""

    def apply(tree: Any) -> None:
        for step in where.split("/")[1:]:
            tree = tree[int(step) if isinstance(tree, list) else step]
        tree.update(keys)

    return apply


def one_more(tree: dict[str, Any]) -> None:
    tree["commands"][0]["dispatch_graph"]["bindings"].append({"set": 0, "id": 77, "resource_ref": "picture"})


def one_less(tree: dict[str, Any]) -> None:
    tree["commands"][0]["dispatch_graph"]["bindings"].pop()


def a_buffer(tree: dict[str, Any]) -> None:
    tree["resources"].append({"buffer": {"uid": "b", "size": 3072, "shader_access": "readonly"}})
    tree["commands"][0]["dispatch_graph"]["bindings"][0]["resource_ref"] = "b"


@pytest.mark.parametrize(
    "break_it, code, pointer",
    [
        (one_less, "SR-BIND-001", BINDINGS),
        (one_more, "SR-GRAPH-005", f"{BINDINGS}/2/id"),
        (a_buffer, "SR-BIND-003", f"{BINDINGS}/0/resource_ref"),
        (change("/resources/2/tensor", dims=[7, 7]), "SR-TENSOR-003", f"{BINDINGS}/1/resource_ref"),
        (
            change("/resources/2/tensor", format="VK_FORMAT_R16_SINT"),
            "SR-TENSOR-002",
            f"{BINDINGS}/1/resource_ref",
        ),
    ],
)
def test_a_graph_that_is_bound_wrongly(
    tmp_path: Path, break_it: Callable[[dict[str, Any]], None], code: str, pointer: str
) -> None:
    """Bindings, kinds, shapes and formats of a model's inputs and outputs have the codes that shaders' have."""
    tree = json.loads((CASE / "scenario.json").read_text())
    for name in ("model.vgf", "picture.npy"):
        (tmp_path / name).write_bytes((CASE / name).read_bytes())
    break_it(tree)
    (tmp_path / "scenario.json").write_text(json.dumps(tree))
    found = [(each.code, each.pointer) for each in validate_file(tmp_path / "scenario.json").findings]
    assert found == [(code, pointer)]
