"""Models whose tables and modules disagree: refused with one sentence, and never given to the layers.

One field of a model's tables, or one Binding or DescriptorSet of its modules, is changed, and the scenario is made for
the changed model, so that nothing but the disagreement is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scenario_runner.errors import FileError
from scenario_runner.formats import find_format
from scenario_runner.graphs import parse_vgf
from scenario_runner.graphs.model import STORAGE_BUFFER, UNIFORM_BUFFER, Slot, Vgf
from scenario_runner.graphs.scenario_template import scenario_for
from scenario_runner.validation import validate_file
from tests.gpu.ml_scenes import MODELS, VGF
from tests.graphs.graph_words import DECORATE, Graph
from tests.graphs.vgf_samples import encoded

BINDING, DESCRIPTOR_SET = 33, 34  # decorations
NAMES = ("classifier", "classifier_int8", "mixed", "upscaler_fp16")
PATHS = [*(MODELS / name / "model.vgf" for name in NAMES), VGF / "ends.vgf", VGF / "dynamic.vgf"]


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


def modules_with_another_place(code: bytes) -> Iterator[tuple[str, bytes]]:
    """The module with another Binding or DescriptorSet for one of its variables, and what was changed."""
    module = Graph(code)
    for decoration in module.of(DECORATE):
        if decoration[2] in (BINDING, DESCRIPTOR_SET):
            right = decoration[3]
            for number in {0, 1, 2, right + 1, 78} - {right}:
                decoration[3] = number
                yield f"{decoration[1:]}", module.bytes()
            decoration[3] = right


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_binding_that_fits_no_slot(path: Path, tmp_path: Path) -> None:
    """Whichever Binding or DescriptorSet of a graph module is changed: an error, with the code of such models."""
    vgf = parse_vgf(path.read_bytes())
    seen = 0
    for number, module in enumerate(vgf.modules):
        if module.type != "graph" or not isinstance(module.code, bytes):
            continue
        for change, code in modules_with_another_place(module.code):
            seen += 1
            modules = (*vgf.modules[:number], replace(module, code=code), *vgf.modules[number + 1 :])
            assert {code for code, _ in findings(replace(vgf, modules=modules), tmp_path)} == {"SR-GRAPH-006"}, change
    assert seen
