"""Models whose tables and modules disagree: refused with one sentence, and never given to the layers.

One field of a model's tables, or one Binding or DescriptorSet of its modules, is changed, and the scenario is made for
the changed model, so that nothing but the disagreement is wrong.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors import FileError
from scenario_runner.formats import find_format
from scenario_runner.graphs import parse_vgf
from scenario_runner.graphs.model import STORAGE_BUFFER, UNIFORM_BUFFER, Slot, Vgf
from scenario_runner.graphs.scenario_template import scenario_for
from scenario_runner.validation import validate_file
from tests.gpu.ml_scenes import CHECKOUT, MODELS, VGF
from tests.graphs.changed_tables import changes, encoded
from tests.program import Program

LAST_CODE = 11  # of errors.py; 1 would be a defect of ours, and a signal is negative
NAMES = ("classifier", "classifier_int8", "mixed", "upscaler_fp16")
PATHS = [*(MODELS / name / "model.vgf" for name in NAMES), VGF / "ends.vgf", VGF / "dynamic.vgf"]
OTHERS = [VGF / "image.vgf", CHECKOUT / "tests" / "graphs" / "fixtures" / "any_parts.vgf"]


def scenario_of(vgf: Vgf, folder: Path) -> Path | None:
    """A scenario that runs the model with zeros and keeps nothing; None where its file cannot be read."""
    content = encoded(vgf)
    try:
        document = scenario_for(parse_vgf(content), "model.vgf")
    except FileError:
        return None
    (folder / "model.vgf").write_bytes(content)
    for resource in document["resources"]:
        for kind, body in resource.items():
            if kind != "graph":
                body.pop("src", None)
                body.pop("dst", None)
            if "dims" in body:
                body["dims"] = [2 if size < 0 else size for size in body["dims"]] or [1]
    path = folder / "scenario.json"
    path.write_text(json.dumps(document))
    return path


def findings(vgf: Vgf, folder: Path) -> list[tuple[str | None, str]]:
    """Code and message of every error that validation finds."""
    path = scenario_of(vgf, folder)
    assert path is not None
    return [(each.code, each.message) for each in validate_file(path).findings if each.severity == "error"]


def with_row(vgf: Vgf, index: int, **fields: object) -> Vgf:
    rows = list(vgf.resources)
    rows[index] = replace(rows[index], **fields)  # type: ignore[arg-type]
    return replace(vgf, resources=tuple(rows))


def row_of(vgf: Vgf, category: str) -> int:
    return next(index for index, row in enumerate(vgf.resources) if row.category == category)


@pytest.mark.parametrize("name", NAMES)
def test_the_encoder_loses_nothing(name: str, tmp_path: Path) -> None:
    """A model that is only written again is valid, so that what is found is the change."""
    assert findings(parse_vgf((MODELS / name / "model.vgf").read_bytes()), tmp_path) == []


@pytest.mark.parametrize("format", ["R8_UNORM", "R8_SNORM", "R8_BOOL_ARM", "R8G8_SINT", "R16_SINT", "R32_SFLOAT"])
def test_a_constant_of_another_format(format: str, tmp_path: Path) -> None:
    """Formats whose size fits and whose kind does not, as well as those of another size."""
    found = find_format(f"VK_FORMAT_{format}")
    assert found is not None
    vgf = parse_vgf((MODELS / "classifier_int8" / "model.vgf").read_bytes())
    constants = [index for index, row in enumerate(vgf.resources) if row.category == "constant" and row.format == 14]
    path = scenario_of(with_row(vgf, constants[0], format=found.value), tmp_path)
    if found.block_size_bytes != 1:
        assert path is None  # the data has another size
        return
    (code, message), *more = findings(with_row(vgf, constants[0], format=found.value), tmp_path)
    assert code == "SR-GRAPH-006"
    assert "the graph constant " in message
    assert message.endswith(f"what is given for it has the format VK_FORMAT_{format}")
    assert more == []


@pytest.mark.parametrize("category", ["input", "output"])
@pytest.mark.parametrize("format", ["R32_UINT", "R32_SINT", "R32G32_SFLOAT"])
def test_an_end_of_another_format(category: str, format: str, tmp_path: Path) -> None:
    """The scenario has the format that the table says, and the module says another."""
    found = find_format(f"VK_FORMAT_{format}")
    assert found is not None
    vgf = parse_vgf((VGF / "ends.vgf").read_bytes())
    codes = {code for code, _ in findings(with_row(vgf, row_of(vgf, category), format=found.value), tmp_path)}
    # a format that no tensor has is said of the scenario's tensor
    assert codes == ({"SR-GRAPH-006"} if found.components == 1 else {"SR-TENSOR-004"})


def test_a_slot_where_the_graph_has_nothing(tmp_path: Path) -> None:
    """One more slot than the module has variables."""
    vgf = parse_vgf((VGF / "ends.vgf").read_bytes())
    segment = vgf.segments[0]
    slots = (*segment.descriptor_sets[0].slots, Slot(78, segment.descriptor_sets[0].slots[0].resource_index))
    sets = (replace(segment.descriptor_sets[0], slots=slots), *segment.descriptor_sets[1:])
    changed = replace(vgf, segments=(replace(segment, descriptor_sets=sets), *vgf.segments[1:]))
    ((code, message),) = findings(changed, tmp_path)
    assert code == "SR-GRAPH-006"
    assert "its tables have a resource at set 0, binding 78, where the graph" in message
    assert message.endswith(
        "those of the graph are at: set 0, binding 0, set 0, binding 1, set 0, binding 2, set 0, binding 3"
    )


def test_a_descriptor_type_that_the_shader_does_not_have(tmp_path: Path) -> None:
    """A storage buffer of a shader that the tables call a uniform buffer is a storage buffer, with a warning."""
    vgf = parse_vgf((MODELS / "mixed" / "model.vgf").read_bytes())
    rows = [index for index, row in enumerate(vgf.resources) if row.descriptor_type == STORAGE_BUFFER]
    assert rows
    for row in rows:
        path = scenario_of(with_row(vgf, row, descriptor_type=UNIFORM_BUFFER), tmp_path)
        assert path is not None
        found = validate_file(path).findings
        assert {(each.code, each.severity) for each in found} >= {("SR-GRAPH-015", "warning")}
        assert not [each for each in found if each.severity == "error"]
        message = next(each.message for each in found if each.code == "SR-GRAPH-015")
        assert "descriptor type 'VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER' does not match storage buffer" in message


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_binding_that_fits_no_slot(path: Path, tmp_path: Path) -> None:
    """Whichever Binding or DescriptorSet of a graph module is changed: an error, with the code of such models."""
    seen = 0
    vgf = parse_vgf(path.read_bytes())
    for what, changed in changes(vgf):
        if not what.startswith("module ") or "entry point" in what:
            continue
        if vgf.modules[int(what.split()[1].rstrip(":"))].type == "graph":
            seen += 1
            assert {code for code, _ in findings(changed, tmp_path)} == {"SR-GRAPH-006"}, what
    assert seen


def every(path: Path) -> Any:
    return pytest.param(path, None, marks=pytest.mark.heavy, id=f"all of {path.parent.name} {path.stem}")


@pytest.mark.parametrize(
    "path, count",
    [
        *(pytest.param(VGF / f"{name}.vgf", 1, id=f"one of {name}") for name in ("ends", "conv", "mixed", "image")),
        *(every(path) for path in [*PATHS, *OTHERS]),
    ],
)
def test_accepted_changes_run(program: Program, tmp_path: Path, path: Path, count: int | None) -> None:
    """Changed models that validation accepts end with a result or an error of ours, in an order that is always the
    same."""
    changed_models = list(changes(parse_vgf(path.read_bytes())))
    random.Random(19).shuffle(changed_models)
    scenarios = ((what, scenario_of(changed, tmp_path)) for what, changed in changed_models)
    accepted = ((what, path) for what, path in scenarios if path is not None and not validate_file(path).exit_code)
    codes = {what: program(scenario).code for what, scenario in islice(accepted, count)}
    assert codes
    assert {what: code for what, code in codes.items() if code != 0 and not 2 <= code <= LAST_CODE} == {}
