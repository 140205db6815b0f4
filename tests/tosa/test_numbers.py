"""Converted models run on a device and give the numbers of NumPy, from the model to the results."""

import json
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from scenario_runner import Runner, convert
from scenario_runner.ml.vgf_file import parse_vgf, read_vgf
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.tosa.models import BUFFER, GRID, TENSOR, add, attributes, constant, custom, function, linear, reshape, shader

pytestmark = needs(VGF_LIBRARY)

Array = Any
RAMP = numpy.arange(64, dtype="f4").reshape(4, 16)


class Case(NamedTuple):
    """The operations of a model, its returned values, and its outputs as a function of its inputs."""

    body: list[str]
    returned: list[str]
    outputs: Callable[..., tuple[Array, ...]]

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return list(signature(self.outputs).parameters)

    @property
    def text(self) -> bytes:
        """The model."""
        return function(self.inputs, self.body, self.returned).encode()


CASES = {
    "a shader between graphs": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0"], [2, 1]), add("%2", "%1", "%y")],
        ["%2"],
        lambda x, y: (2 * (x + y) + 1 + y,),
    ),
    "tensors": Case(
        [
            add("%0", "%x", "%y"),
            shader("%1", ["%0", "%x"], [3, 2, 1], inputs=TENSOR, outputs=TENSOR),
            add("%2", "%1", "%y"),
        ],
        ["%2"],
        lambda x, y: (3 * (x + y) + 2 * x + 1 + y,),
    ),
    "operands of the only shader in another order": Case(
        [shader("%0", ["%y", "%x"], [1, 10, 0])], ["%0"], lambda x, y: (y + 10 * x,)
    ),
    "operands from everywhere in another order": Case(
        [
            add("%0", "%x", "%y"),
            shader("%1", ["%y", "%0", "%x"], [1, 10, 100, 0], inputs=TENSOR, outputs=TENSOR),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x, y: (y + 10 * (x + y) + 100 * x + x,),
    ),
    "a repeated operand": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0", "%x", "%0"], [1, 10, 100, 0])],
        ["%1"],
        lambda x, y: (101 * (x + y) + 10 * x,),
    ),
    "operands behind a repeated one": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0", "%0", "%y", "%x"], [1, 10, 100, 1000, 0], inputs=TENSOR)],
        ["%1"],
        lambda x, y: (11 * (x + y) + 100 * y + 1000 * x,),
    ),
    "one shader that is left when the model is simplified": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%y", "%x", "%y"], [1, 10, 100, 0])],
        ["%1"],
        lambda x, y: (101 * y + 10 * x,),
    ),
    "a repeated argument of the only shader": Case(
        [shader("%1", ["%y", "%y", "%x"], [1, 10, 100, 0])], ["%1"], lambda x, y: (11 * y + 100 * x,)
    ),
    "operands that become equal when the model is simplified": Case(
        [
            *reshape("%0", "%x"),
            shader("%1", ["%x", "%0", "%x"], [1, 10, 100, 0], inputs=[TENSOR, BUFFER, TENSOR]),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x: (112 * x,),
    ),
    "unused arguments": Case(
        [add("%0", "%y", "%y"), shader("%1", ["%0"], [1, 1])], ["%1"], lambda x, y, z: (2 * y + 1,)
    ),
    "two shaders in a row": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%y", "%0"], [1, 10, 0], inputs=TENSOR)],
        ["%1"],
        lambda x, y: (y + 10 * (2 * x + 1),),
    ),
    "a constant and a shader": Case(
        [constant("%k", RAMP), shader("%0", ["%k", "%x"], [10, 1, 0])],
        ["%0"],
        lambda x: (10 * RAMP + x,),
    ),
    "a constant of few elements and a shader": Case(
        [
            '%k = "tosa.const"() {values = dense<[[3.0], [5.0], [7.0], [9.0]]> : tensor<4x1xf32>} '
            ": () -> tensor<4x1xf32>",
            f"%0 = tosa.add %x, %k : ({GRID}, tensor<4x1xf32>) -> {GRID}",
            constant("%one", numpy.full((4, 16), 0.5, "f4")),
            shader("%1", ["%one", "%0"], [10, 1, 0]),
        ],
        ["%1"],
        lambda x: (5 + x + numpy.float32([[3], [5], [7], [9]]),),
    ),
    "several results": Case(
        [shader("%0:2", ["%x", "%y"], [1, 0, 1], [0, 1, 2]), add("%1", "%0#0", "%0#1")],
        ["%1", "%0#0", "%0#1"],
        lambda x, y: (x + y + 3, x + 1, y + 2),
    ),
    "several results in another order": Case(
        [shader("%0:2", ["%x", "%y"], [1, 0, 1], [0, 1, 2]), shader("%1", ["%0#1", "%0"], [10, 1, 0])],
        ["%1", "%0#1", "%0#0"],
        lambda x, y: (10 * (y + 2) + x + 1, y + 2, x + 1),
    ),
    "several results in another order, and a graph": Case(
        [
            add("%z", "%x", "%y"),
            shader("%0:2", ["%x", "%z"], [1, 0, 1], [0, 1, 2], outputs=[BUFFER, TENSOR]),
            add("%1", "%0#1", "%0#1"),
            shader("%2:3", ["%0#1", "%1"], [0, 1, 0], [1, 0, 0], [5, 5, 0]),
            add("%3", "%2#2", "%2#0"),
        ],
        ["%3", "%0#0"],
        lambda x, y: (17 * (x + y + 2), x + 1),
    ),
    "results that nobody reads": Case(
        [
            shader("%0:3", ["%x"], [1, 1], [2, 2], [3, 3], outputs=[BUFFER, TENSOR, BUFFER]),
            shader("%dead", ["%x"], [9, 9]),
            add("%1", "%0#1", "%x"),
        ],
        ["%1"],
        lambda x: (3 * x + 2,),
    ),
    "a diamond": Case(
        [
            add("%0", "%x", "%x"),
            shader("%1", ["%0"], [1, 1]),
            shader("%2", ["%0"], [10, 0], inputs=TENSOR, outputs=TENSOR),
            add("%3", "%1", "%2"),
            shader("%4", ["%3", "%1"], [1, 100, 0]),
        ],
        ["%4", "%2"],
        lambda x: ((22 * x + 1) + 100 * (2 * x + 1), 20 * x),
    ),
    "a value as tensor and as buffer in one shader": Case(
        [
            add("%0", "%x", "%x"),
            shader("%1", ["%0", "%0"], [1, 10, 0], inputs=[TENSOR, BUFFER], outputs=TENSOR),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x: (23 * x,),
    ),
    "an input as tensor of a graph and as buffer of a shader": Case(
        [add("%0", "%x", "%x"), shader("%1", ["%x", "%0"], [1, 10, 0]), add("%2", "%1", "%x")],
        ["%2", "%1"],
        lambda x: (22 * x, 21 * x),
    ),
    "an input as buffer of a shader and as tensor of another": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%x", "%0"], [1, 1, 0], inputs=TENSOR)],
        ["%1"],
        lambda x: (3 * x + 1,),
    ),
    "an output as tensor that a shader wrote as buffer": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%0"], [3, 0], inputs=TENSOR)],
        ["%0", "%1"],
        lambda x: (2 * x + 1, 6 * x + 3),
    ),
    "an output that is an input, and one that is there twice": Case(
        [shader("%0", ["%x"], [2, 1], inputs=TENSOR), add("%1", "%0", "%x")],
        ["%1", "%1", "%x"],
        lambda x: (3 * x + 1, 3 * x + 1, x),
    ),
    "operations that no shader needs, behind one": Case(
        [shader("%0", ["%x"], [2, 1]), add("%1", "%y", "%y"), shader("%2", ["%1"], [1, 5]), add("%3", "%y", "%x")],
        ["%2", "%3", "%0"],
        lambda x, y: (2 * y + 5, x + y, 2 * x + 1),
    ),
    "a shader without operands": Case([shader("%0", [], [7]), add("%1", "%0", "%x")], ["%1"], lambda x: (x + 7,)),
}


def check_numbers(runner: Runner, path: Path, case: Case) -> None:
    """Run a converted model and compare its outputs."""
    generator = numpy.random.default_rng(3)
    given = {each: generator.integers(-9, 9, (4, 16)).astype("f4") for each in case.inputs}
    result = runner.run(path, dict(given), write_files=False)
    expected = case.outputs(*given.values())
    ports = {f"out{number}": each for number, each in enumerate(expected)}
    for name, array in ports.items():
        # a value that is returned twice has its first name, an argument its own
        others = [each for each in result if name not in result]
        assert any(numpy.array_equal(result[each].view("f4").reshape(4, 16), array) for each in others or [name]), name


@pytest.mark.parametrize("name", CASES)
def test_numbers(runner: Runner, shader_cache: Path, tmp_path: Path, name: str) -> None:
    """Every output equals NumPy's result for the inputs."""
    convert(CASES[name].text, tmp_path / "model.vgf", strict=True)
    check_numbers(runner, tmp_path / "model.vgf", CASES[name])


def test_a_value_of_rank_0(runner: Runner, shader_cache: Path, tmp_path: Path) -> None:
    """A buffer of a value without dimensions has one element."""
    code = "#version 450\nlayout(binding = 0) buffer A { float a; };\nlayout(binding = 1) buffer B { float b; };\n"
    given = attributes([BUFFER], [BUFFER], code + "void main() { b = 2.0 * a + 1.0; }")
    body = [custom("%0", ["%x"], given), custom("%1", ["%0"], given)]
    convert(function(["x"], body, ["%1"]).replace(GRID, "tensor<f32>").encode(), tmp_path / "model.vgf", strict=True)
    result = runner.run(tmp_path / "model.vgf", {"x": numpy.float32([5])}, write_files=False)
    assert result["out0"].view("f4").tolist() == [23]


X = numpy.arange(64, dtype="f4").reshape(4, 16)
CODE = linear([BUFFER], [BUFFER], [3, 2])
PUSHED = CODE.replace(
    "void main", "layout(push_constant) uniform P { float scale; float bias; } p;\nvoid main"
).replace("v[0] * 3.0 + 2.0", "v[0] * p.scale + p.bias")


def placeholders() -> str:
    """A model with two placeholders of one name, and one of another."""
    given = attributes([BUFFER], [BUFFER], None, workgroup_sizes=[8, 1, 1])
    body = [
        custom("%0", ["%x"], given, name="Swish"),
        add("%1", "%0", "%x"),
        custom("%2", ["%1"], given, name="Swish"),
        custom("%3", ["%2"], given, name="Scale"),
    ]
    return function(["x"], body, ["%3"])


def run_scenario(program: Program, folder: Path, scenario: dict[str, Any]) -> Any:
    """Run a scenario of ``model.vgf`` on X and give its output."""
    numpy.save(folder / "x.npy", X)
    (folder / "scenario.json").write_text(json.dumps(scenario))
    program("scenario.json", exit_code=0)
    return numpy.load(folder / "out0.npy").view("f4").reshape(4, 16)


def test_placeholders(program: Program, tmp_path: Path) -> None:
    """convert, vgf show, vgf scenario, run: substitutions name operations, all of one name at once, or modules."""
    (tmp_path / "model.mlir").write_text(placeholders())
    ended = program("convert", "model.mlir", "-o", "model.vgf")
    assert (ended.code, ended.out, ended.err) == (0, "wrote model.vgf\n", "")
    shown = program("vgf", "show", "model.vgf").out
    assert shown.count("placeholder") == 3
    assert "  0  Swish            compute  graph_partition_0  0      1       8x1x1" in shown
    scenario = json.loads(program("vgf", "scenario", "model.vgf").out)
    command = scenario["commands"][0]["dispatch_graph"]
    assert [each["target"] for each in command["shader_substitutions"]] == [
        "graph_partition_0",
        "graph_partition_2",
        "graph_partition_3",
    ]
    for entry in scenario["resources"]:
        if "shader" in entry:
            (tmp_path / entry["shader"]["src"]).write_text(CODE)
    expected = 3 * (3 * (3 * X + 2 + X) + 2) + 2
    assert numpy.array_equal(run_scenario(program, tmp_path, scenario), expected)
    first = command["shader_substitutions"][0]["shader_ref"]
    command["shader_substitutions"] = [
        {"shader_ref": first, "target": "Swish"},
        {"shader_ref": first, "target": "graph_partition_3"},
    ]
    assert numpy.array_equal(run_scenario(program, tmp_path, scenario), expected)
    command["shader_substitutions"] = [{"shader_ref": first, "target": "Swosh"}]
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    message = program("scenario.json").err
    assert (
        "the graph 'graph' has no shader 'Swosh'; its shaders are: 'Swish', 'Scale', 'graph_partition_0',"
        " 'graph_partition_2', 'graph_partition_3'" in message
    )


def test_push_constants(program: Program, tmp_path: Path) -> None:
    """The range is written, so that a scenario needs no size, and the operation's name is a target."""
    given = attributes([BUFFER], [BUFFER], PUSHED, workgroup_sizes=[8, 1, 1], push_constants="scale: 4, bias: 4")
    text = function(["x"], [add("%0", "%x", "%x"), custom("%1", ["%0"], given, name="Scale")], ["%1"])
    convert(text.encode(), tmp_path / "model.vgf", strict=True)
    (segment,) = (each for each in read_vgf(tmp_path / "model.vgf").segments if each.type == "compute")
    assert [(each.stage_flags, each.offset_bytes, each.size_bytes) for each in segment.push_constant_ranges] == [
        (0x20, 0, 8)
    ]
    scenario = json.loads(program("vgf", "scenario", "model.vgf").out)
    command = scenario["commands"][0]["dispatch_graph"]
    assert command["push_constants"][0]["shader_target"] == "graph_partition_1"
    numpy.save(tmp_path / "graph_partition_1_push_constants.npy", numpy.float32([5, 7]))
    for target in ("graph_partition_1", "Scale"):
        command["push_constants"][0]["shader_target"] = target
        assert numpy.array_equal(run_scenario(program, tmp_path, scenario), 5 * (2 * X) + 7)


SAMPLED = """#version 460
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 2) uniform sampler2D source;
layout(set = 1, binding = 3, rgba32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, texture(source, (vec2(at) + vec2(0.5 - 8.0, 0.5)) / vec2(8, 4)));
}
"""


def test_images_and_samplers(shader_cache: Path, tmp_path: Path) -> None:
    """Descriptor sets, bindings and samplers come from the attributes, and shaders see tensors as images."""
    pixels = "tensor<4x8x4xf32>"
    given = attributes(["COMBINED_IMAGE_SAMPLER"], ["STORAGE_IMAGE"], SAMPLED)
    given |= {"input_0_vkformat": "VK_FORMAT_R32G32B32A32_SFLOAT", "output_0_vkformat": "VK_FORMAT_R32G32B32A32_SFLOAT"}
    given |= {"input_0_binding": 2, "output_0_binding": 3, "output_0_descriptorset": 1}
    given["input_0_sampler"] = {
        "min_filter": "VK_FILTER_NEAREST",
        "mag_filter": "VK_FILTER_NEAREST",
        "address_mode_u": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
        "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
        "border_color": "VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE",
    }
    body = [add("%0", "%x", "%x"), custom("%1", ["%0"], given), add("%2", "%1", "%0")]
    text = function(["x"], body, ["%2"]).replace(GRID, pixels)
    convert(text.encode(), tmp_path / "model.vgf", dispatch="cover-output", strict=True)
    model = read_vgf(tmp_path / "model.vgf")
    assert [[each.index, each.slots[0].binding] for each in model.segments[1].descriptor_sets] == [[0, 2], [1, 3]]
    assert model.segments[1].dispatch_shape == (1, 1, 1)
    x = numpy.random.default_rng(5).integers(-9, 9, (4, 8, 4)).astype("f4")
    with Runner() as runner:
        prepared = runner.prepare(tmp_path / "model.vgf", {"x": x})
        result = prepared.run(write_files=False)
    images = [plan for plan in prepared.plan.resources.values() if plan.kind == "image"]
    assert [plan.usage for plan in images] == [{"sampled"}, {"storage"}]  # drivers rely on it
    # 8 texels further left is the first column, at the clamped edge
    assert numpy.array_equal(result["out0"], 2 * x[:, :1] + 2 * x)


def test_cover_output(shader_cache: Path, tmp_path: Path) -> None:
    """The local size comes from the code, or from the attributes without the check."""
    given = attributes([TENSOR], [TENSOR], linear([TENSOR], [TENSOR], [3, 2]), workgroup_sizes=[16, 1, 1])
    text = function(["x"], [custom("%0", ["%x"], given)], ["%0"]).encode()
    assert parse_vgf(convert(text).content).segments[0].dispatch_shape == (16, 1, 1)
    assert parse_vgf(convert(text, dispatch="cover-output").content).segments[0].dispatch_shape == (2, 4, 1)
    unchecked = convert(text, dispatch="cover-output", check=False).content
    assert parse_vgf(unchecked).segments[0].dispatch_shape == (1, 4, 1)
    given = attributes([BUFFER], [BUFFER], linear([BUFFER], [BUFFER], [3, 2]), workgroup_sizes=[16, 1, 1])
    text = function(["x"], [custom("%0", ["%x"], given)], ["%0"]).encode()
    assert parse_vgf(convert(text, dispatch="cover-output").content).segments[0].dispatch_shape == (8, 1, 1)


def test_command_line(program: Program, tmp_path: Path) -> None:
    """Standard input and output, warnings, --strict, and a mistyped option."""
    text = function(["x"], [add("%0", "%x", "%x"), shader("%1", ["%0"], [1, 0], typo_bindin=1)], ["%1"])
    (tmp_path / "model.mlir").write_text(text)
    program.succeed("convert", "model.mlir", "--output", "model.vgf")
    content = (tmp_path / "model.vgf").read_bytes()
    (tmp_path / "model.mlir").write_text(text.replace("typo_bindin", "push_constant"))
    ended = program("convert", "model.mlir", "-o", "model.vgf", exit_code=0)
    assert ended.err.startswith("warning: model.mlir: <attributes of 'shader'>:1:")
    assert (tmp_path / "model.vgf").read_bytes() == content
    (tmp_path / "model.vgf").unlink()
    ended = program("convert", "model.mlir", "-o", "model.vgf", "--strict", exit_code=3)
    assert ended.err.startswith("error: model.mlir: <attributes of 'shader'>:1:")
    assert not (tmp_path / "model.vgf").exists()
    program("convert", "model.mlir", "-o", "x.vgf", "--dispatch=all", exit_code=2)
