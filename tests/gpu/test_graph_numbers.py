"""Graphs: numbers of ports in VGF files, operands that a graph computes, and the ML emulation layers."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.ml.vgf_model import UNIFORM_BUFFER
from scenario_runner.plan.records import Requirements
from scenario_runner.run.result import Result
from scenario_runner.vulkan.capabilities import enabled_for
from scenario_runner.vulkan.instance import DATA_GRAPH, TENSORS, Instance, needed_layers, open_layered
from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER
from tests.gpu.ml_scenes import VGF, bindings, emulation_layers, random
from tests.left_out import VGF_LIBRARY, needs
from tests.ml.make_fixtures import POOL, Graph, tensor
from tests.ml.vgf_samples import R32_SFLOAT, STORAGE_BUFFER, vgfpy, written
from tests.program import Ended, Program
from tests.scenes import Scene, glsl

COUNT = 64
HEAD = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; """
DOUBLE = HEAD + "y[i] = 2.0 * a[i]; }"
INCREASE = HEAD + "y[i] = a[i] + 1.0; }"
ACCUMULATE = HEAD + "y[i] += a[i]; }"
ENDS = ("Input", "Intermediate", "Output")


class Model:
    """A VGF file with rows of 64 floats and compute segments over two of them."""

    def __init__(self) -> None:
        self.encoder = vgfpy.CreateEncoder(0)
        self.segments = 0

    def row(self, category: str, **keys: Any) -> Any:
        add = getattr(self.encoder, f"Add{category}Resource")
        return add(STORAGE_BUFFER, R32_SFLOAT, [COUNT], [], **keys)

    def segment(
        self, code: str, reads: tuple[int, Any], writes: tuple[int, Any], also: tuple[int, Any] | None = None
    ) -> None:
        """``reads`` and ``writes`` are (number in the segment, row); the shader has them at bindings 0 and 1."""
        e = self.encoder
        name = f"shader_{self.segments}"
        self.segments += 1
        module = e.AddModule(vgfpy.ModuleType.Compute, name, "main", vgfpy.ShaderType.Glsl, code)
        places = e.AddDescriptorSetInfo([e.AddBindingSlot(0, reads[1]), e.AddBindingSlot(1, writes[1])], 0)
        inputs = [e.AddBindingSlot(*each) for each in (reads, also) if each is not None]
        e.AddSegmentInfo(module, name, [places], inputs, [e.AddBindingSlot(*writes)], dispatchShape=[COUNT // 16, 1, 1])

    def file(self, scene: Scene, inputs: dict[int, Any], outputs: dict[int, Any]) -> Scene:
        """Add a graph with this model, and the given numbers for its inputs and outputs."""
        e = self.encoder
        slots = [[e.AddBindingSlot(*each) for each in ends.items()] for ends in (inputs, outputs)]
        e.AddModelSequenceInputsOutputs(slots[0], [""] * len(inputs), slots[1], [""] * len(outputs))
        scene.file("model.vgf", written(e))
        return scene.resource("graph", uid="graph", src="model.vgf")


X = numpy.random.default_rng(5).integers(-100, 100, COUNT).astype("f4")
Y = numpy.random.default_rng(6).integers(-100, 100, COUNT).astype("f4")


def run(runner: Runner, scene: Scene, places: dict[int, str]) -> Result:
    """Run the model over the buffers x, y and z."""
    scene.buffer("x", X, size=X.nbytes).buffer("y", Y, size=Y.nbytes).buffer("z", size=X.nbytes)
    scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(places))
    return runner.run(scene.write())


# Rows by their first letters: x is an input, t an intermediate, y and z are outputs. A segment is its code, and what
# the shader reads and writes: numbers in the segment, and rows. The model's numbers are those that a scenario binds by.
@pytest.mark.parametrize(
    "segments, numbers, expected",
    [
        pytest.param(
            [(DOUBLE, (3, "t"), (5, "y"))], {"x": 3, "y": 5}, {"y": 2 * X},
            id="what no segment writes is what is bound from outside by its number",
        ),
        pytest.param(
            [(DOUBLE, (0, "x"), (1, "t")), (INCREASE, (0, "t"), (1, "y"))], {"x": 0, "y": 1}, {"y": 2 * X + 1},
            id="an intermediate that is written is another value than the model's of its number",
        ),
        pytest.param(
            [(DOUBLE, (0, "x"), (1, "y"))], {"x": 4, "y": 9}, {"y": 2 * X},
            id="an output has another number than in its shader",
        ),
        pytest.param(
            [(ACCUMULATE, (0, "x"), (1, "y"), (1, "y"))], {"x": 0, "y": 1}, {"y": X + Y},
            id="a segment that adds to an output finds the content that the scenario gives it",
        ),
        pytest.param(
            [(DOUBLE, (0, "x"), (1, "y2"))], {"x": 0, "y": 1}, {"y": 2 * X},
            id="a segment's own row for an output is the output of its number",
        ),
        pytest.param(
            [(DOUBLE, (0, "x"), (1, "t")), (INCREASE, (1, "t"), (2, "z"))],
            {"x": 0, "y": 1, "z": 2}, {"y": 2 * X, "z": 2 * X + 1},
            id="an output that no segment writes is the intermediate of its number",
        ),
    ],
)  # fmt: skip
def test_values_are_found(
    runner: Runner, scene: Scene, segments: list[Any], numbers: dict[str, int], expected: dict[str, Any]
) -> None:
    """Values that are bound from outside are found whatever numbers the segments give them."""
    model = Model()
    kinds = {"x": "Input", "t": "Intermediate", "y": "Output", "z": "Output"}
    used = {row for _, *ends in segments for _, row in ends} | numbers.keys()
    rows = {row: model.row(kinds[row[0]]) for row in sorted(used)}
    for code, *ends in segments:
        model.segment(code, *((number, rows[row]) for number, row in ends))
    outputs = {number: rows[row] for row, number in numbers.items() if row != "x"}
    model.file(scene, {numbers["x"]: rows["x"]}, outputs)
    result = run(runner, scene, {number: row for row, number in numbers.items()})
    for uid, values in expected.items():
        assert (result.array(uid, "f4") == values).all()


@pytest.mark.parametrize("number", [7, 0])
def test_what_nothing_writes_and_nothing_binds(runner: Runner, scene: Scene, number: int) -> None:
    """An intermediate that no segment writes is zeros, with a warning, also with the number of an input of another
    size. An input with the number and size of an outside binding reads this binding."""
    model = Model()
    x, y = model.row("Input"), model.row("Output")
    t = model.encoder.AddIntermediateResource(STORAGE_BUFFER, R32_SFLOAT, [COUNT * (2 if number == 0 else 1)], [])
    model.segment(INCREASE, (number, t), (1, y))
    model.file(scene, {0: x}, {1: y})
    result = run(runner, scene, {0: "x", 1: "y"})
    assert (result.array("y", "f4") == 1).all()
    message = (
        f"segment 'shader_0' reads resource 2 (binding {number}), which no segment before it writes; it reads zeros"
    )
    assert [each.code for each in result.warnings if message in each.message] == ["SR-GRAPH-016"]


@pytest.mark.parametrize("kind", [UNIFORM_BUFFER, STORAGE_BUFFER])
def test_descriptor_types_of_the_tables(runner: Runner, scene: Scene, kind: int) -> None:
    """The shader decides about the type of a descriptor, be it a storage or a uniform buffer."""
    model = Model()
    code = INCREASE.replace("readonly buffer A { float a[]; }", f"uniform A {{ vec4 v[{COUNT // 4}]; }}")
    code = code.replace("a[i]", "v[i / 4][i % 4]")
    x, t, y = (getattr(model.encoder, f"Add{each}Resource")(kind, R32_SFLOAT, [COUNT], []) for each in ENDS)
    model.segment(DOUBLE, (0, x), (7, t))
    model.segment(code, (7, t), (9, y))
    model.file(scene, {0: x}, {4: y})
    result = run(runner, scene, {0: "x", 4: "y"})
    assert (result.array("y", "f4") == 2 * X + 1).all()
    seen = [each.message.partition("'VK_DESCRIPTOR_TYPE_")[2] for each in result.warnings]
    expected = {
        UNIFORM_BUFFER: ["storage buffer 'A'", "storage buffer 'Y'", "storage buffer 'Y'"],
        STORAGE_BUFFER: ["uniform buffer 'A'"],
    }
    name = {UNIFORM_BUFFER: "UNIFORM_BUFFER", STORAGE_BUFFER: "STORAGE_BUFFER"}[kind]
    assert [each.split(" at ")[0] for each in seen] == [f"{name}' does not match {each}" for each in expected[kind]]
    assert {each.code for each in result.warnings} == {"SR-GRAPH-015"}


NO_PADDING = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
RESCALE = (
    "scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false"
)
ZERO_POINTS = {"input_zp": ("f32", 0), "weight_zp": ("f32", 0)}

# inputs, operands of one element by name (type, value), result, attributes; PAD's padding is always a constant
OPERATORS = {
    "mul": ([((2, 3), "i32")] * 2, {"shift": ("i8", 0)}, ((2, 3), "i32"), ""),
    "negate": ([((2, 3), "i8")], {"input1_zp": ("i8", 0), "output_zp": ("i8", 0)}, ((2, 3), "i8"), ""),
    "matmul": ([((1, 2, 3), "i8"), ((1, 3, 4), "i8")], {"a_zp": ("i8", 0), "b_zp": ("i8", 0)}, ((1, 2, 4), "i32"), ""),
    "conv2d": (
        [((1, 4, 4, 2), "f32"), ((3, 2, 2, 2), "f32"), ((3,), "f32")],
        ZERO_POINTS,
        ((1, 3, 3, 3), "f32"),
        f"acc_type = f32, {NO_PADDING}",
    ),
    "avg_pool2d": (
        [((1, 4, 4, 2), "f32")],
        {"input_zp": ("f32", 0), "output_zp": ("f32", 0)},
        ((1, 2, 2, 2), "f32"),
        f"acc_type = f32, {POOL}",
    ),
    "pad": ([((2, 3), "f32")], {"padding": ("", 0), "pad_const": ("f32", 0)}, ((3, 5), "f32"), ""),
    "rescale": (
        [((4,), "i8")],
        {"multiplier": ("i32", 1 << 30), "shift": ("i8", 30), "input_zp": ("i8", 0), "output_zp": ("i8", 0)},
        ((4,), "i8"),
        RESCALE,
    ),
}


TYPES = {"f32": "f4", "i8": "i1", "i32": "i4"}


def run_graph(program: Program, folder: Path, name: str, computed: str) -> Ended:
    """Convert a model of one operator with an input as operand, and run it on ones and this operand."""
    inputs, operands, (shape, kind), attributes = OPERATORS[name]
    graph = Graph()
    values = [graph.input(*each) for each in inputs]
    arrays = [numpy.ones(sizes, TYPES[element]) for sizes, element in inputs]
    for operand, (element, value) in operands.items():
        if operand == computed:
            values.append(graph.input((1,), element))
            arrays.append(numpy.full(1, value, TYPES[element]))
        else:
            values.append(graph.const(1, element, value) if element else graph.shape(1, 0, 0, 2))
    graph.add(name, values, tensor(shape, kind), attributes)
    (folder / "model.mlir").write_text(graph.text())
    assert program("convert", "model.mlir", "--output", "model.vgf").code == 0
    given = []
    for number, array in enumerate(arrays):
        numpy.save(folder / f"{number}.npy", array)
        given += ["--input", f"a{number}={number}.npy"]
    return program("run", "model.vgf", *given)


@pytest.mark.parametrize(
    "name, operand",
    [(name, each) for name, row in OPERATORS.items() for each, (element, _) in row[1].items() if element],
)
@needs(VGF_LIBRARY)
def test_an_operand_that_is_an_input(program: Program, tmp_path: Path, name: str, operand: str) -> None:
    """An operand that the layers cannot build is refused in one sentence before the driver aborts; other operands
    run."""
    code, _, err = run_graph(program, tmp_path, name, operand)
    if operand in ("multiplier", "shift") and name == "rescale":
        assert (code, err) == (0, "")
        assert numpy.load(tmp_path / "r0.npy").tolist() == [1, 1, 1, 1]
        return
    assert code == 6
    assert re.match(
        rf"error: model\.vgf: .*: the operator {name.upper()} with the id \d+ takes {operand} from an input, not from a"
        r" constant; the ML emulation layers, .* end the process over such an operand \[SR-FEATURE-002\]\n",
        err,
    )
    assert f"help: make {operand} a constant of the model" in err
    assert not (tmp_path / "r0.npy").exists()


LAYERS = (GRAPH_LAYER, TENSOR_LAYER)


def sums(scene: Scene) -> Path:
    """A scenario with a graph."""
    scene.tensor("left", random((4, 16))).tensor("right", random((4, 16), seed=2))
    scene.tensor("sum", dims=[4, 16]).tensor("difference", dims=[4, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "ends.vgf"))
    places = bindings(["left", "right", "sum", "difference"])
    return scene.command("dispatch_graph", graph_ref="graph", bindings=places).write()


@needs(VGF_LIBRARY)
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs the maps of Linux")
def test_a_scenario_without_tensors_loads_no_layer(scene: Scene, shader_cache: Path) -> None:
    """A process that runs a compute scenario does not map the layers; when it runs a graph it does."""
    scene.shader("set", glsl("a[0] = 1;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("a", size=4)
    scene.dispatch("set", ["a"])
    code = """
import sys
from scenario_runner import Runner
with Runner() as runner:
    for path in sys.argv[1:]:
        runner.run(path)
        maps = open("/proc/self/maps").read()
        print([name for name in ("libVkLayer_Graph.so", "libVkLayer_Tensor.so") if name in maps])
"""
    command = [sys.executable, "-c", code, str(scene.write("plain.json")), str(sums(Scene(scene.folder)))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == ["[]", "['libVkLayer_Graph.so', 'libVkLayer_Tensor.so']"]


@needs(VGF_LIBRARY)
def test_off_says_what_is_missing(scene: Scene, program: Program) -> None:
    """Without the layers, a device without the extensions is refused with a help."""
    ended = program(sums(scene), "--ml-emulation", "off", exit_code=UnsupportedError.exit_code)
    assert "tensor 'left' needs tensors (VkPhysicalDeviceTensorFeaturesARM)" in ended.err
    assert "help: the ML emulation layers bring it to devices with compute shaders: --ml-emulation auto" in ended.err
    assert not list(scene.folder.glob("*.out.npy"))


def enabled_by_environment(scene: Scene) -> dict[str, str]:
    """With the layers in VK_INSTANCE_LAYERS the device looks as if it had the extensions itself."""
    libraries, manifests = emulation_layers(scene)
    return {"VK_INSTANCE_LAYERS": ":".join(LAYERS), "VK_LAYER_PATH": manifests, "LD_LIBRARY_PATH": libraries}


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("mode, environment", [("auto", None), ("on", None), ("auto", enabled_by_environment)])
def test_the_command_line_enables_the_layers(scene: Scene, program: Program, mode: str, environment: Any) -> None:
    """A run from the command line finds and enables the layers by itself, and not twice."""
    program(sums(scene), "--ml-emulation", mode, env=environment(scene) if environment else {}, exit_code=0)
    assert (numpy.load(scene.folder / "sum.out.npy") == random((4, 16)) + random((4, 16), seed=2)).all()


def test_what_graph_modules_declare_is_enabled() -> None:
    """Under the layers, which process graphs themselves, a graph's capabilities are enabled where the device has the
    feature, and none is missed where it has not."""
    graph = {"TensorsARM": "model", "CooperativeMatrixKHR": "model", "NoCapability": "model"}
    plain = Instance()
    try:
        layered = open_layered(needed_layers(plain.physical_devices[0], (TENSORS, DATA_GRAPH), "on"), validation=False)
        try:
            needed = Requirements({}, {}, graph_capabilities=graph)
            enabled = enabled_for(layered.physical_devices[0], needed, emulated=True)
            assert "shaderTensorAccess" in {feature.member for feature in enabled.features}
        finally:
            layered.close()
    finally:
        plain.close()


@needs(VGF_LIBRARY)
def test_one_runner_runs_both_kinds(scene: Scene, shader_cache: Path) -> None:
    """A Runner that was opened without the layers gets them when the first graph comes."""
    plain = Scene(scene.folder)
    plain.shader("set", glsl("a[0] = 7;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("a", size=4)
    path = plain.dispatch("set", ["a"]).write("plain.json")
    with Runner() as runner:
        assert runner.run(path).array("a", "u4")[0] == 7
        uuid = runner.physical_device.uuid
        result = runner.run(sums(scene))
        assert (result["sum"] == random((4, 16)) + random((4, 16), seed=2)).all()
        assert runner.run(path).array("a", "u4")[0] == 7
        assert runner.physical_device.uuid == uuid
    assert not any(runner.live_objects.values())


@needs(VGF_LIBRARY)
def test_formats_of_tensors_under_the_layers(scene: Scene, ml: Runner) -> None:
    """Once the layers are there, images of formats that VK_ARM_tensors brings are refused as before; a validation layer
    that does not know these formats is not listened to about them."""
    ml.run(sums(Scene(scene.folder)))
    image = Scene(scene.folder / "image")
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_BOOL_ARM", "shader_access": "readwrite"}
    image.resource("image", uid="x", **keys)
    with pytest.raises(UnsupportedError, match="VK_FORMAT_R8_BOOL_ARM"):
        ml.run(image.write())
