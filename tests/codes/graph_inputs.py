"""Inputs for the codes of tensors and graphs, from SPIR-V modules and from VGF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenario_runner.formats import find_format
from scenario_runner.graphs import parse_vgf
from scenario_runner.graphs.model import UNIFORM_BUFFER
from tests.codes.case import Case, Codes, Input
from tests.gpu.ml_scenes import HEAD, SPIRV, VGF, bindings, random
from tests.graphs.graph_words import Graph
from tests.graphs.vgf_samples import encoded, one_segment, row

TOSA = Path(__file__).resolve().parents[1] / "graphs" / "fixtures"
OPEN = [-1, -1, -1, -1]


def convolution(*constants: str, change: dict[str, Any] | None = None, id: int = 1, **keys: Any) -> Input:
    """A convolution whose weights are graph constant 0; the output has the shape [1, 8, 8, 2]."""

    def found(case: Case) -> Codes:
        scene = case.scene
        scene.tensor("x", random((1, 8, 8, 4)))
        scene.tensor("y", **{"dims": [1, 8, 8, 2], **(change or {})})
        scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes(), **keys)
        for uid, shape in (("w", (2, 3, 3, 4)), ("other", (2, 3, 3, 3))):
            source = scene.npy(f"{uid}.npy", random(shape))
            scene.resource("graph_constant", uid=uid, dims=list(shape), format="VK_FORMAT_R32_SFLOAT", src=source)
        bound = bindings({0: "x", id: "y"})
        scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=bound, graph_constants=list(constants))
        return case.validated(placed=True)

    return found


def other_sign(case: Case) -> Codes:
    """Unsigned bytes for a tensor of signed ones."""
    case.scene.tensor("x", random((4,), "u1"), format="VK_FORMAT_R8_SINT")
    return case.validated(placed=True)


def model(file: Path | bytes, places: dict[int, str], **sizes: Any) -> Input:
    """A model and what is bound to it: tensors of [4, 16] floats, if ``sizes`` does not say otherwise."""

    def found(case: Case) -> Codes:
        scene = case.scene
        for uid in dict.fromkeys(places.values()):
            kind, keys = sizes.get(uid, ("tensor", {}))
            if kind == "tensor":
                scene.tensor(uid, **{"dims": [4, 16], "dst": None, **keys})
            else:
                scene.resource(kind, uid=uid, shader_access="readwrite", **keys)
        scene.file("model.vgf", file if isinstance(file, bytes) else file.read_bytes())
        scene.resource("graph", uid="graph", src="model.vgf")
        scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(places))
        return case.validated()

    return found


def other_format() -> bytes:
    """A model whose tables give an input integers; the module has floats."""
    vgf = parse_vgf((VGF / "ends.vgf").read_bytes())
    rows = list(vgf.resources)
    index = next(index for index, row in enumerate(rows) if row.category == "input")
    format = find_format("VK_FORMAT_R32_SINT")
    assert format is not None
    rows[index] = rows[index]._replace(format=format.value)
    return encoded(vgf._replace(resources=tuple(rows)))


COPY = """#version 450
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x]; }"""
X, ALIAS = row("input", 4, 16), row("input", 4, 16, group=0)
# The output is the input, at another binding.
ONE_VALUE_TWICE = one_segment([ALIAS, row("output", 4, 16, group=0)], [0], {0: 0}, {1: 1})
# The shader sees the input as something that this program does not know.
UNKNOWN_KIND = one_segment([ALIAS, ALIAS._replace(descriptor_type=1000460008)], [1], {0: 1}, ends=({0: 0}, {}))
# Nothing says the shape of the value that the shader writes, which is not an output.
OPEN_BETWEEN_SEGMENTS = one_segment([X, row("intermediate", -1, 16)], [0, 1], {0: 0})
# The tables call storage buffers uniform; the one that the shader reads is written by nothing.
TABLES_OF_THEIR_OWN = one_segment(
    [row(category, 64, type=UNIFORM_BUFFER) for category in ("intermediate", "output")],
    [0, 1],
    {0: 0},
    {1: 1},
    ends=({}, {1: 1}),
    code=COPY,
    groups=(64, 1, 1),
)


def one_variable_twice(case: Case) -> Codes:
    """A graph entry point that names one of its variables twice."""
    convolution("w")(case)
    code = Graph((SPIRV / "graph_constant.spv").read_bytes())
    (entry,) = code.of(4182)
    entry[-1] = entry[-2]
    case.scene.file("graph.spv", code.bytes())
    return case.validated()


def tensor_shader(case: Case) -> Codes:
    """A shader that declares a tensor of two dimensions gets one of three."""
    declared = "layout(set = 0, binding = 0) uniform tensorARM<float, 2> t;"
    body = "float v = 1; tensorWriteARM(t, uint[](0, 0), v);"
    case.scene.shader("s", f"{HEAD}layout(local_size_x = 1) in;\n{declared}\nvoid main() {{ {body} }}\n")
    case.scene.tensor("t", dims=[2, 2, 2]).dispatch("s", ["t"])
    return case.validated(placed=True)


PLACEHOLDER = {0: "x", 2: "shaded", 3: "sum"}
SUM = {0: "left", 1: "right", 2: "sum", 3: "difference"}

INPUTS: dict[str, Input] = {
    "SR-TENSOR-001": tensor_shader,
    "SR-TENSOR-002": convolution("w", change={"format": "VK_FORMAT_R16_SFLOAT"}),
    "SR-TENSOR-003": convolution("w", change={"dims": [1, 8, 8, 3]}),
    "SR-TENSOR-007": other_sign,
    "SR-GRAPH-001": convolution("w", entry="main"),
    "SR-GRAPH-002": convolution(),
    "SR-GRAPH-003": convolution("other"),
    "SR-GRAPH-004": convolution("w", "w"),
    "SR-GRAPH-005": convolution("w", id=5),
    "SR-GRAPH-006": model(other_format(), SUM, left=("tensor", {"format": "VK_FORMAT_R32_SINT"})),
    "SR-GRAPH-007": model(OPEN_BETWEEN_SEGMENTS, {0: "x"}),
    "SR-GRAPH-009": model(VGF / "placeholder.vgf", PLACEHOLDER, shaded=("buffer", {"size": 256})),
    "SR-GRAPH-010": model(ONE_VALUE_TWICE, {0: "x", 1: "y"}),
    "SR-GRAPH-012": model(
        TOSA / "any_size.vgf", {0: "x", 1: "y"}, x=("tensor", {"dims": [1, 1, 6, 4]}), y=("tensor", {"dims": OPEN})
    ),
    "SR-GRAPH-013": model(VGF / "placeholder.vgf", PLACEHOLDER, shaded=("buffer", {"size": 128})),
    "SR-GRAPH-014": one_variable_twice,
    "SR-GRAPH-015": model(TABLES_OF_THEIR_OWN, {1: "y"}, y=("buffer", {"size": 256})),
    "SR-GRAPH-016": model(TABLES_OF_THEIR_OWN, {1: "y"}, y=("buffer", {"size": 256})),
    "SR-RUN-003": model(UNKNOWN_KIND, {0: "x"}),
}
