"""Frequent mistakes: one finding with the mistake and a help."""

from pathlib import Path

import numpy
import pytest

from scenario_runner.cli import main
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.plan.resolve import resolve
from scenario_runner.scenario import load
from scenario_runner.validation import validate_file
from tests.gpu.ml_scenes import bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, error_of, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
MORE = "layout(set = 0, binding = 1) buffer More { uint more[]; };"
PUSH = DATA + "\nlayout(push_constant) uniform P { uint a; uint b; } p;"
IMAGE = "layout(set = 0, binding = 0, r32ui) uniform uimage2D i;"
MODELS = Path(__file__).resolve().parents[1] / "ml" / "fixtures"


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


def found(scene: Scene) -> list[Diagnostic]:
    """Return the findings of validate with their codes."""
    return list(validate_file(scene.write()).findings)


def single(scene: Scene) -> Diagnostic:
    """The only finding."""
    (problem,) = found(scene)
    return problem


@pytest.mark.parametrize("binding", [0, 2])
def test_binding_with_the_next_number(scene: Scene, binding: int) -> None:
    """A binding that is missing and one that is unused, with numbers side by side, are one finding."""
    scene.shader("s", glsl("more[0] = 1;", MORE)).buffer("x", size=16).dispatch("s", {(0, binding): "x"})
    problem = single(scene)
    assert (problem.code, problem.pointer) == ("SR-BIND-001", "/commands/0/dispatch_compute/bindings/0/id")
    assert f"resource 'x' is bound to set 0, binding {binding}, which shader 's' does not use" in problem.message
    assert "nothing is bound to storage buffer 'More' at set 0, binding 1" in problem.message
    assert problem.help == f"if 'x' is meant for it, write 1 instead of {binding}"


def test_binding_in_another_set(scene: Scene) -> None:
    """The same binding number in two sets is one finding."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", {(1, 0): "x"})
    problem = single(scene)
    assert problem.pointer == "/commands/0/dispatch_compute/bindings/0/set"
    assert problem.help == "if 'x' is meant for it, write 0 instead of 1"


@pytest.mark.parametrize("binding, kind", [(5, "buffer"), (1, "image")])
def test_bindings_that_have_nothing_to_do_with_each_other(scene: Scene, binding: int, kind: str) -> None:
    """Numbers that are far apart, and resources of another kind, are two findings as before."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).dispatch("s", {(0, binding): "x"})
    if kind == "image":
        scene.image("x", "R32_UINT", size=(4, 4))
    else:
        scene.buffer("x", size=16)
    assert sorted(str(problem.code) for problem in found(scene)) == ["SR-BIND-001", "SR-BIND-002"]


def test_push_constants_without_their_size(scene: Scene) -> None:
    """A shader that declares push constants needs no push_constants_size; data that are too long name theirs."""
    scene.shader("s", glsl("data[0] = p.b;", PUSH)).buffer("x", size=16)
    scene.raw_data("p", numpy.zeros(3, "u4")).dispatch("s", ["x"], push_data_ref="p")
    problem = single(scene)
    assert (problem.code, problem.pointer) == ("SR-PUSH-002", "/commands/0/dispatch_compute/push_data_ref")
    assert problem.message == "raw_data 'p' holds 12 bytes, but the push constants of shader 's' have 8"
    assert problem.help == 'give at most 8 bytes, or write "push_constants_size": 12 in the shader'


def test_push_constants_for_a_shader_without_any(scene: Scene) -> None:
    """Data for a shader that declares no push constants have no effect, which is an error."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16)
    scene.raw_data("p", numpy.zeros(2, "u4")).dispatch("s", ["x"], push_data_ref="p")
    problem = single(scene)
    assert problem.code == "SR-PUSH-005"
    assert problem.message == "no push constants are declared by shader 's', but the command has raw_data 'p' for them"
    assert problem.help == "remove push_data_ref"


@pytest.mark.parametrize("groups", [[0], [4, 0], [1, 1, 0]])
def test_dispatch_of_no_workgroups(scene: Scene, groups: list[int]) -> None:
    """A dispatch that runs nothing is a warning, and the scenario stays valid."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", ["x"], groups)
    problem = single(scene)
    assert (problem.code, problem.pointer) == ("SR-DISPATCH-001", "/commands/0/dispatch_compute/rangeND")
    assert validate_file(scene.write()).exit_code == 0


@pytest.mark.parametrize("groups, warns", [([100], False), ([100, 100], True)])
def test_far_more_workgroups_than_texels(scene: Scene, groups: list[int], warns: bool) -> None:
    """Workgroups far beyond the texels of the image are a warning that names both numbers."""
    scene.shader("s", glsl("imageStore(i, ivec2(gl_GlobalInvocationID.xy), uvec4(1));", IMAGE, local_size=8))
    scene.image("picture", "R32_UINT", size=(8, 4)).dispatch("s", ["picture"], groups)
    problems = found(scene)
    assert [problem.code for problem in problems] == ["SR-DISPATCH-002"] * warns
    if warns:
        count = numpy.prod(groups)
        expected = f"{count} workgroups of shader 's' run for image 'picture', which has 32 texels"
        assert problems[0].message == expected


def test_workgroups_for_a_buffer_beside_an_image(scene: Scene) -> None:
    """A small image beside a large buffer says nothing about the number of workgroups."""
    scene.shader("s", glsl("more[gl_WorkGroupID.x] = imageLoad(i, ivec2(0)).x;", f"{IMAGE}\n{MORE}"))
    scene.image("table", "R32_UINT", size=(2, 2)).buffer("x", size=4000).dispatch("s", ["table", "x"], [1000])
    assert found(scene) == []


@needs(VGF_LIBRARY)
def test_graph_that_reads_a_writeonly_tensor(scene: Scene) -> None:
    """The scenario says that the tensor is only written, and the graph reads it: a warning."""
    scene.tensor("x", random((1, 8, 6, 4)), shader_access="writeonly").tensor("y", dims=[-1, -1, -1, -1])
    scene.resource("graph", uid="any", src=str(MODELS / "any_size.vgf"))
    scene.command("dispatch_graph", graph_ref="any", bindings=bindings(["x", "y"]))
    problem = single(scene)
    assert (problem.code, problem.pointer) == ("SR-ACCESS-002", "/commands/0/dispatch_graph/bindings/0/resource_ref")
    assert problem.message == "graph 'any' reads tensor 'x', but its shader_access is 'writeonly'"


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("dims", [[-1, -1, -1, -1], [0], [1, 8, 3, 4]])
@pytest.mark.parametrize("shape, cause", [((8, 6, 4), "tensor 'x' has [8, 6, 4]"), ((1, 8, 6, 5), "[1, 8, 6, 5]")])
def test_wrong_input_of_a_model_of_open_sizes(
    scene: Scene, shape: tuple[int, ...], cause: str, dims: list[int]
) -> None:
    """run and validate name only the wrong input, and no output whose shape depends on it."""
    scene.tensor("x", random(shape)).tensor("y", dims=dims).tensor("z", dims=[-1, -1, -1, -1])
    scene.resource("graph", uid="any", src=str(MODELS / "any_size.vgf"))
    for pair in (["x", "y"], ["y", "z"]):
        scene.command("dispatch_graph", graph_ref="any", bindings=bindings(pair))
    problem = single(scene)
    assert problem.pointer == "/commands/0/dispatch_graph/bindings/0/resource_ref"
    assert cause in problem.message
    error = error_of(ScenarioRunnerError, resolve, load(scene.write()))
    assert [each.message for each in error.problems] == [problem.message]


def test_missing_file_of_a_resource(scene: Scene) -> None:
    """A file with a name like the missing one is named, of data and of shaders."""
    scene.shader("double", glsl("data[0] = 1;", DATA)).buffer("x", numpy.zeros(4, "u4")).dispatch("double", ["x"])
    scene.resources[0]["shader"]["src"] = "dobule.comp"
    (scene.folder / "x.npy").rename(scene.folder / "inputs.npy")
    scene.resources[1]["buffer"]["src"] = "input.npy"
    helps = [problem.help for problem in found(scene)]
    assert helps == [f"did you mean '{scene.folder / name}'?" for name in ("double.comp", "inputs.npy")]


@pytest.mark.parametrize("kind", ["tensor", "image"])
def test_format_of_another_program(scene: Scene, kind: str) -> None:
    """A format's name from NumPy is answered with Vulkan's."""
    dims = [4] if kind == "tensor" else [1, 4, 4, 1]
    scene.resource(kind, uid="t", dims=dims, format="float32", shader_access="readwrite")
    problem = single(scene)
    assert problem.message == "unknown format 'float32'"
    assert problem.help == "did you mean 'VK_FORMAT_R32_SFLOAT'? Formats have the names that Vulkan gives them"


@pytest.mark.parametrize("text", ["// note\n{}", '{"resources": [], // none\n"commands": []}', "{} # end", "/* */ {}"])
def test_comments(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment anywhere is an error that names it, with a help."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    assert main(["validate", str(path)]) == 3
    err = capsys.readouterr().err
    assert "got a comment (" in err
    assert "help: JSON has no comments; remove it" in err


def test_every_error_of_a_shader_with_its_line(scene: Scene) -> None:
    """All errors that the compiler finds are shown, each with its source line and a mark below the word."""
    body = "data[0] = wrong;\n    data[1] = missing(3);\n    uint same = same2 + same2;"
    scene.shader("s", glsl(body, DATA)).buffer("x", size=16).dispatch("s", ["x"])
    problem = single(scene)
    assert problem.code == "SR-SHADER-010"
    lines = problem.message.splitlines()
    shown = {line.partition("|")[2] for line in lines}
    source = (scene.folder / "s.comp").read_text(encoding="utf-8").splitlines()
    for word in ("wrong", "missing"):
        (line,) = [line for line in source if word in line]
        at = lines.index(next(each for each in lines if each.partition("| ")[2] == line))
        mark = lines[at + 1].partition("| ")[2]
        assert (mark.index("^"), mark.strip()) == (line.index(word), "^" + "~" * (len(word) - 1))
    assert any("same2" in line for line in shown)
    assert {"'wrong'", "'missing'", "'same2'"} <= {word for line in lines for word in line.split()}
