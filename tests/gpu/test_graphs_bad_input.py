"""Models that a scenario uses wrongly, or whose tables and modules disagree: one sentence each, without a device."""

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import CompileError, FileError, ScenarioError, UnsupportedError, error_class
from scenario_runner.files.vk_formats import find_format
from scenario_runner.ml.model_scenario import scenario_for
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.ml.vgf_model import STORAGE_BUFFER, UNIFORM_BUFFER, Slot, Vgf
from scenario_runner.validation import validate_file
from tests.gpu.ml_scenes import MODELS, VGF, bindings, random
from tests.ml.vgf_samples import encoded, one_segment, row
from tests.scenes import Scene
from tests.tables import cases


def problem(scene: Scene, kind: type[Exception] = ScenarioError) -> str:
    """The message of the error that planning the scenario ends with, without the folder."""
    return str(scene.refusal(Runner().plan, kind)).replace(f"{scene.folder}/", "").replace(f"{VGF}/", "")


def ends(scene: Scene, places: dict[str, str | None] | None = None, **sizes: Any) -> Scene:
    """The model with the inputs left and right (0, 1) and the outputs sum and difference (2, 3)."""
    for uid in ("left", "right", "sum", "difference"):
        scene.tensor(uid, **{"dims": [4, 16], "dst": None, **sizes.get(uid, {})})
    scene.resource("graph", uid="graph", src=str(VGF / "ends.vgf"))
    bound = {"0": "left", "1": "right", "2": "sum", "3": "difference"} | (places or {})
    uids = {int(number): uid for number, uid in bound.items() if uid is not None}
    return scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(uids))


@pytest.mark.parametrize("keys, code, message", cases(__file__, "graphs.txt", "BINDINGS"))
def test_a_binding_that_does_not_fit(scene: Scene, keys: str, code: str, message: str) -> None:
    """Shape, format, a missing and an unknown binding, another kind; the message has the model's name of the slot."""
    scene.buffer("other", size=256)
    finding = ends(scene, **json.loads(keys)).refusal(Runner().plan)
    assert finding.code == code
    assert str(finding).endswith(f"/commands/0/dispatch_graph/{message}")


COPY = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { y[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x]; }
"""
TARGET = "graph_partition_1"
PUSHED = [{"push_data_ref": "data", "shader_target": TARGET}]


def substituted(shader: str, target: str = TARGET) -> list[dict[str, str]]:
    return [{"shader_ref": shader, "target": target}]


def placeholder(scene: Scene, *, size: int = 256, **command: Any) -> Scene:
    """Add a model with a placeholder, the shader graph_partition_1, and shaders that could replace it."""
    scene.tensor("x", random((4, 16))).buffer("shaded", size=size).raw_data("data", numpy.zeros(1, "f4"))
    scene.tensor("sum", dims=[4, 16]).resource("graph", uid="graph", src=str(VGF / "placeholder.vgf"))
    scene.shader("copy", COPY).shader("broken", COPY.replace("float a[]", "flat a[]"))
    third = "layout(set = 0, binding = 2) buffer C { float c[]; };\nvoid main() { c[0] = 1.0;"
    scene.shader("greedy", COPY.replace("void main() {", third))
    pushed = "layout(push_constant) uniform P { float f[2]; } p;\nvoid main"
    scaled = COPY.replace("void main", pushed).replace("= a[gl", "= p.f[1] * a[gl")
    scene.shader("scaled", scaled, push_constants_size=8)
    uniform = "layout(binding = 0) uniform U { float u; };\nvoid main() { y[0] = u;"
    scene.shader("twofold", COPY.replace("void main() {", uniform))
    scene.shader("zeros", "#version 450\nlayout(binding = 1) buffer Y { float y[]; };\nvoid main() { y[0] = 0.0; }\n")
    places = bindings({0: "x", 2: "shaded", 3: "sum"})
    return scene.command("dispatch_graph", graph_ref="graph", bindings=places, **command)


@pytest.mark.parametrize("keys, code, message", cases(__file__, "graphs.txt", "SHADERS"))
def test_a_shader_of_a_model(scene: Scene, shader_cache: object, keys: str, code: str, message: str) -> None:
    """No substitute, a buffer of another size, targets that do not exist, a binding that the segment does not have
    (an unwritten descriptor would give garbage), push constants of another size than the shader declares."""
    finding = placeholder(scene, **json.loads(keys)).refusal(Runner().plan)
    assert finding.code == code
    assert str(finding).endswith(message)


def test_a_substitute_that_does_not_compile(scene: Scene, shader_cache: object) -> None:
    """The compiler's own message comes through."""
    assert "broken.comp:3" in problem(placeholder(scene, shader_substitutions=substituted("broken")), CompileError)


def test_warnings_about_shaders_inside_a_model_are_shown(scene: Scene, shader_cache: object) -> None:
    """A substitute that leaves out a binding of its segment is warned about, with the segment's name."""
    (warning,) = Runner().plan(placeholder(scene, shader_substitutions=substituted("zeros")).write()).warnings
    assert (warning.code, warning.pointer) == ("SR-BIND-002", "/commands/0/dispatch_graph")
    assert warning.message.startswith("segment 'compute_segment_0' of graph 'graph': resource ")
    assert warning.message.endswith("is bound to set 0, binding 0, which shader 'zeros' does not use")
    assert warning.help == "no result of the command can depend on it"


@pytest.mark.parametrize("size", [0, 100, 400, 700])
def test_a_damaged_file(scene: Scene, size: int) -> None:
    """A file that was cut short is refused with its name."""
    scene.file("cut.vgf", (VGF / "ends.vgf").read_bytes()[:size])
    ends(scene)
    scene.resources[-1]["graph"]["src"] = "cut.vgf"
    assert "cut.vgf" in problem(scene, FileError)


def test_content_of_another_shape_than_a_tensor_says_in_part(scene: Scene) -> None:
    """The error names the file, and not the output with a shape that follows from it."""
    scene.tensor("x", random((16, 3)), dims=[-1, 16]).tensor("y", dims=[-1, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "dynamic.vgf"))
    scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(["x", "y"]))
    text = problem(scene, FileError)
    assert text.endswith("/src: tensor 'x' has the shape [-1, 16], but 'x.npy' has the shape [16, 3]")


def test_a_result_that_no_output_depends_on_is_refused(ml: Runner, scene: Scene) -> None:
    """The emulation layers would end the process over an FFT with one unused part."""
    scene.tensor("x", random((1, 4, 8))).tensor("real", dims=[1, 4, 5])
    scene.resource("graph", uid="graph", src=str(VGF / "half.vgf"))
    scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(["x", "real"]))
    with pytest.raises(
        UnsupportedError,
        match=r"no output depends on result 1 of the operator RFFT2D with the id \d+; the ML emulation layers, .*"
        " end the process over such a result",
    ):
        ml.run(scene.write())
    assert not (scene.folder / "real.out.npy").exists()


def test_what_is_wrong_inside_of_a_model_is_said_at_its_graph(scene: Scene) -> None:
    """The error has the file's name, the place in the model, and line and column of the scenario's src."""
    (scene.folder / "model.vgf").write_bytes(b"no model" * 20)
    scene.resource("graph", uid="graph", src="model.vgf")
    scene.command("dispatch_graph", graph_ref="graph", bindings=[])
    assert re.fullmatch(
        r"scenario\.json:\d+:\d+: /resources/0/graph/src: model\.vgf: /header: this is not a VGF file: .*",
        problem(scene, FileError),
    )


X = row("input", 4, 16, group=0)


@pytest.mark.parametrize(
    "model, places, code, message",
    [
        (
            one_segment([X, X._replace(descriptor_type=1000460008)], [1], {0: 1}, ends=({0: 0}, {})),
            {0: "x"},
            "SR-RUN-003",
            "graph 'graph' has a value that is seen as VkDescriptorType(1000460008), which this program does not know",
        ),
        (
            one_segment([X, row("intermediate", -1, 16)], [0, 1], {0: 0}),
            {0: "x"},
            "SR-GRAPH-007",
            "graph 'graph' has a value of the shape [-1, 16] between its segments, and its dynamic dimensions"
            " are unknown",
        ),
        (
            one_segment([X, row("output", 4, 16, group=0)], [0], {0: 0}, {1: 1}),
            {0: "x", 1: "y"},
            "SR-GRAPH-010",
            "(binding 1) of graph 'graph' is the value that 'x' is bound to; bind 'x' here as well",
        ),
    ],
    ids=["unknown kind", "open shape between segments", "two tensors for one value"],
)
def test_values_that_cannot_be_placed(
    scene: Scene, model: bytes, places: dict[int, str], code: str, message: str
) -> None:
    """Views of a kind that this program does not know, shapes that nothing says, and one value in two tensors."""
    scene.file("model.vgf", model)
    scene.tensor("x", dims=[4, 16]).tensor("y", dims=[4, 16]).resource("graph", uid="graph", src="model.vgf")
    scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(places))
    finding = scene.refusal(Runner().plan, error_class(code))
    assert finding.code == code
    assert finding.message.endswith(message)


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
    rows[index] = rows[index]._replace(**fields)  # type: ignore[arg-type]
    return vgf._replace(resources=tuple(rows))


def row_of(vgf: Vgf, category: str) -> int:
    return next(index for index, row in enumerate(vgf.resources) if row.category == category)


@pytest.mark.parametrize("format", ["R8_UNORM", "R8_SNORM", "R8_BOOL_ARM", "R8G8_SINT", "R16_SINT", "R32_SFLOAT"])
def test_a_constant_of_another_format(format: str, tmp_path: Path) -> None:
    """Constants of a format with the same size, or with another size, are refused."""
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
    assert message.endswith(f"its graph_constant has the format VK_FORMAT_{format}")
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
    sets = (segment.descriptor_sets[0]._replace(slots=slots), *segment.descriptor_sets[1:])
    changed = vgf._replace(segments=(segment._replace(descriptor_sets=sets), *vgf.segments[1:]))
    ((code, message),) = findings(changed, tmp_path)
    assert code == "SR-GRAPH-006"
    assert "its tables have a resource at set 0, binding 78, where the graph" in message
    assert message.endswith("it has: set 0, binding 0, set 0, binding 1, set 0, binding 2, set 0, binding 3")


def test_a_descriptor_type_that_the_shader_does_not_have(tmp_path: Path) -> None:
    """A storage buffer of a shader that the tables call a uniform buffer is a storage buffer, with a warning."""
    vgf = parse_vgf((MODELS / "mixed" / "model.vgf").read_bytes())
    rows = [index for index, row in enumerate(vgf.resources) if row.descriptor_type == STORAGE_BUFFER]
    assert rows
    for index in rows:
        path = scenario_of(with_row(vgf, index, descriptor_type=UNIFORM_BUFFER), tmp_path)
        assert path is not None
        found = validate_file(path).findings
        assert {(each.code, each.severity) for each in found} >= {("SR-GRAPH-015", "warning")}
        assert not [each for each in found if each.severity == "error"]
        message = next(each.message for each in found if each.code == "SR-GRAPH-015")
        assert "descriptor type 'VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER' does not match storage buffer" in message
