"""--sandbox: whatever a scenario names, by whatever way, nothing outside of its folder is read or written."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import SandboxError, ScenarioRunnerError
from scenario_runner.files.input import SourceFile
from scenario_runner.files.output import marker_path
from scenario_runner.files.sandbox import CODE, confined
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.validation import Options, validate_file
from tests.gpu.ml_scenes import SPIRV, VGF, bindings
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene, glsl

STORE = glsl("c[0] = 7;", "layout(set = 0, binding = 0) buffer C { int c[]; };")
SAFE = Options(CompilerOptions(), sandbox=True)


@pytest.fixture(scope="module")
def safe() -> Iterator[Runner]:
    with Runner(sandbox=True) as runner:
        yield runner


@pytest.fixture(scope="module")
def trusting() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


@pytest.fixture
def case(tmp_path: Path) -> Scene:
    """A scenario in a folder of its own, beside the folder ``outside``."""
    (tmp_path / "case").mkdir()
    (tmp_path / "outside").mkdir()
    return Scene(tmp_path / "case")


def parent(scene: Scene, file: Path) -> str:
    return os.path.relpath(file, scene.folder)


def absolute(scene: Scene, file: Path) -> str:
    return str(file)


def link(scene: Scene, file: Path) -> str:
    (scene.folder / f"link{file.suffix}").symlink_to(file)
    return f"link{file.suffix}"


def folder_link(scene: Scene, file: Path) -> str:
    (scene.folder / "linked").symlink_to(file.parent)
    return f"linked/{file.name}"


def there_and_back(scene: Scene, file: Path) -> str:
    (scene.folder / "sub").mkdir()
    (scene.folder / "sub" / "up").symlink_to("../..")
    return f"sub/up/{file.parent.name}/{file.name}"


WAYS = [parent, absolute, link, folder_link, there_and_back]
Way = Callable[[Scene, Path], str]


def outside(scene: Scene, name: str, content: str | Any = None) -> Path:
    """A file in the folder outside, with a text or an array."""
    path = scene.folder.parent / "outside" / name
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        numpy.save(path, content)
    return path


def define_value(scene: Scene, way: Way) -> str:
    """The folder of a.glsl, which is outside."""
    file = outside(scene, "a.glsl", "#define VALUE 7\n")
    folder = os.path.dirname(way(scene, file))
    if not folder:
        (scene.folder / "a.glsl").symlink_to(file)
    return folder or "."


def stored(scene: Scene, text: str = STORE, **keys: Any) -> Path:
    """Write a scenario with a shader that stores a number in the buffer c."""
    scene.shader("s", text, **keys).buffer("c", size=4, dst="c.npy").dispatch("s", ["c"])
    return scene.write()


def captured(scene: Scene) -> Path:
    """Write a scenario that also captures the buffer c."""
    stored(scene)
    return scene.command("mark_boundary", resources=["c"]).write()


def from_file(scene: Scene, language: str, text: str) -> Path:
    """Write a scenario with a shader of this text, in a file whose name tells no language."""
    scene.resources.clear()
    scene.commands.clear()
    scene.file("s.txt", text)
    scene.resource("shader", uid="s", type=language, src="s.txt").buffer("c", size=4).dispatch("s", ["c"])
    return scene.write()


def outcome(runner: Runner, path: Path) -> str:
    """Run a scenario. Return the error as text, or "runs"."""
    try:
        runner.run_to_files(path)
    except ScenarioRunnerError as error:
        return f"{error.exit_code} {error}"
    return "runs"


def buffer(scene: Scene, way: Way) -> None:
    file = outside(scene, "a.npy", numpy.zeros(1, "i4"))
    scene.shader("s", STORE).resource("buffer", uid="c", size=4, shader_access="readwrite", src=way(scene, file))
    scene.dispatch("s", ["c"])


def raw_data(scene: Scene, way: Way) -> None:
    file = outside(scene, "a.npy", numpy.zeros(1, "i4"))
    push = "layout(push_constant) uniform P { int p; };"
    scene.shader("s", STORE.replace("void", f"{push}\nvoid").replace("7", "p"), push_constants_size=4)
    scene.resource("raw_data", uid="p", src=way(scene, file)).buffer("c", size=4)
    scene.dispatch("s", ["c"], push_data_ref="p")


def image(scene: Scene, way: Way) -> None:
    file = outside(scene, "a.npy", numpy.zeros((2, 2, 1), "u1"))
    keys = {"dims": [1, 2, 2, 1], "format": "VK_FORMAT_R8_UNORM", "shader_access": "readonly"}
    scene.resource("image", uid="i", src=way(scene, file), **keys)
    text = "layout(set = 0, binding = 0) buffer C { int c[]; };\nlayout(binding = 1) uniform sampler2D t;"
    scene.shader("s", glsl("c[0] = int(texture(t, vec2(0)).x);", text)).buffer("c", size=4)
    scene.dispatch("s", ["c", "i"])


def source(scene: Scene, way: Way) -> None:
    scene.resource("shader", uid="s", type="GLSL", src=way(scene, outside(scene, "a.comp", STORE)))
    scene.buffer("c", size=4).dispatch("s", ["c"])


def included(scene: Scene, way: Way) -> None:
    path = way(scene, outside(scene, "a.glsl", "#define VALUE 7\n"))
    stored(scene, STORE.replace("\n", f'\n#include "{path}"\n', 1))


def include_folder(scene: Scene, way: Way) -> None:
    stored(scene, STORE.replace("\n", "\n#include <a.glsl>\n", 1), include_dirs=[define_value(scene, way)])


def option_folder(scene: Scene, way: Way) -> None:
    options = f"-I {define_value(scene, way)}"
    stored(scene, STORE.replace("\n", '\n#include "a.glsl"\n', 1), build_options=options)


def model(scene: Scene, way: Way) -> None:
    shutil.copy(VGF / "conv.vgf", outside(scene, "a.vgf"))
    scene.tensor("x", numpy.ones((1, 8, 8, 2), "f4"))
    scene.tensor("c", dims=[1, 8, 8, 4])
    scene.resource("graph", uid="g", src=way(scene, outside(scene, "a.vgf")))
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(["x", "c"]))


def _graph(scene: Scene, module: str, weights: str) -> None:
    scene.tensor("x", numpy.ones((1, 8, 8, 4), "f4"))
    scene.tensor("c", dims=[1, 8, 8, 2])
    scene.resource("shader", uid="g", type="SPIR-V", src=module)
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    scene.command("dispatch_spirv_graph", graph_ref="g", bindings=bindings(["x", "c"]), graph_constants=["w"])


def module(scene: Scene, way: Way) -> None:
    shutil.copy(SPIRV / "graph_constant.spv", outside(scene, "a.spv"))
    _graph(scene, way(scene, outside(scene, "a.spv")), scene.npy("w.npy", numpy.ones((2, 3, 3, 4), "f4")))


def constant(scene: Scene, way: Way) -> None:
    shutil.copy(SPIRV / "graph_constant.spv", scene.folder / "g.spv")
    _graph(scene, "g.spv", way(scene, outside(scene, "a.npy", numpy.ones((2, 3, 3, 4), "f4"))))


def result(scene: Scene, way: Way) -> None:
    path = way(scene, outside(scene, "a.npy", numpy.zeros(4, "i1")))
    scene.shader("s", STORE).buffer("c", size=4, dst=path).dispatch("s", ["c"])


REFERENCES = [
    buffer, raw_data, image, source, included, include_folder, option_folder, model, module, constant, result
]  # fmt: skip


# Each way for files and for includes, two of them for the others.
CASES = [(make, way) for make in REFERENCES for way in WAYS if way in WAYS[1:3] or make in (buffer, include_folder)]


@needs(VGF_LIBRARY, "model")
@pytest.mark.parametrize("make, way", CASES)
def test_no_way_leads_out(
    case: Scene, safe: Runner, trusting: Runner, make: Callable[[Scene, Way], None], way: Way
) -> None:
    """A file outside is refused by name, by a run as by validate, also where a plan is kept that uses it."""
    make(case, way)
    path = case.write()
    validation = validate_file(path)
    assert validation.exit_code == 0, validation.findings
    before = {file: file.read_bytes() for file in (case.folder.parent / "outside").iterdir()}
    for _ in range(2):
        with pytest.raises(SandboxError, match="leads out of the scenario's folder") as caught:
            safe.run_to_files(path)
        assert caught.value.exit_code == 14
        assert {problem.code for problem in caught.value.problems} == {CODE}
        assert {file: file.read_bytes() for file in (case.folder.parent / "outside").iterdir()} == before
        if make is not model:  # the others are quick to run
            trusting.run_to_files(path)
            before = {file: file.read_bytes() for file in (case.folder.parent / "outside").iterdir()}
    validation = validate_file(path, SAFE)
    assert validation.exit_code == 14
    assert [each.code for each in validation.findings if each.severity == "error"] == [CODE]


@needs(VGF_LIBRARY, "model")
@pytest.mark.parametrize("make", REFERENCES)
def test_what_stays_inside_is_right(case: Scene, safe: Runner, make: Callable[[Scene, Way], None]) -> None:
    """Sub-folders, "..", absolute paths and links that stay in the folder are as good as ever."""

    def inside(scene: Scene, file: Path) -> str:
        moved = scene.folder / "data" / file.name
        moved.parent.mkdir(exist_ok=True)
        shutil.move(file, moved)
        (scene.folder / "other").symlink_to("data")
        return str(scene.folder / "other" / ".." / "data" / file.name)

    make(case, inside)
    path = case.write()
    assert validate_file(path, SAFE).exit_code == 0
    safe.run_to_files(path)


def test_the_folders_for_results_are_allowed(case: Scene, safe: Runner, tmp_path: Path) -> None:
    """Results go where the caller wants them, and not beside that."""
    path = captured(case)
    safe.run_to_files(path, output_dir=tmp_path / "out", capture_dir=tmp_path / "frames")
    assert (tmp_path / "out" / "c.npy").is_file()
    assert list((tmp_path / "frames").rglob("c.npy"))
    case.resources[-1]["buffer"]["dst"] = "../c.npy"
    path = case.write()
    with pytest.raises(SandboxError):
        safe.run_to_files(path, output_dir=tmp_path / "out")
    assert not (tmp_path / "c.npy").exists()


def test_a_scenario_may_be_a_link(case: Scene, safe: Runner, tmp_path: Path) -> None:
    """The caller chooses the scenario, which may be a link. The sandbox is the folder of the given name."""
    shutil.move(stored(case), tmp_path / "real.json")
    (case.folder / "scenario.json").symlink_to(tmp_path / "real.json")
    safe.run_to_files(case.folder / "scenario.json")
    assert (case.folder / "c.npy").is_file()


@pytest.mark.parametrize(
    "line",
    [
        '#define NAME "FILE"\n#include NAME',
        '#/**/include "FILE"',
        '#inc\\\nlude "FILE"',
        '# \\ \ninclude "FILE"',
        '%:include "FILE"',
        "#include<FILE>\\\n",
        '#import "FILE"',
        "'/*'\n#include \"FILE\"\n/* */",
    ],
)
@pytest.mark.parametrize("language", ["GLSL", "HLSL"])
def test_compilers_find_nothing_by_themselves(case: Scene, safe: Runner, line: str, language: str) -> None:
    """However an include is written, no compiler gets to see it: its file cannot change the outcome."""
    outcomes = _outcomes(case, safe, line, language)
    assert outcomes[0] == outcomes[1]
    assert "found it" not in outcomes[0]


@pytest.mark.parametrize("language", ["GLSL", "HLSL"])
def test_compilers_would_look_by_themselves(case: Scene, trusting: Runner, language: str) -> None:
    """Without the sandbox a compiler finds the file, so that the test above means something."""
    outcomes = _outcomes(case, trusting, '#/**/include "FILE"', language)
    assert outcomes[0] == "runs"
    assert "found it" in outcomes[1]


def _outcomes(case: Scene, runner: Runner, line: str, language: str) -> list[str]:
    """Return the results of a run with this shader line, for an empty FILE and for a FILE that does not compile."""
    file = outside(case, "a.glsl")
    line = line.replace("FILE", f"{'../' * 30}{str(file)[1:]}")  # compilers look beside a copy of the source
    text = f"#version 450\n#extension GL_GOOGLE_include_directive : enable\n{line}\n{STORE.split(chr(10), 1)[1]}"
    if language == "HLSL":
        text = f"RWStructuredBuffer<int> c;\n{line}\n[numthreads(1, 1, 1)] void main() {{ c[0] = 7; }}\n"
    path = from_file(case, language, text)
    outcomes = []
    for content in ("", "#error found it\n"):
        file.write_text(content)
        outcomes.append(outcome(runner, path))
    return outcomes


def test_a_link_that_is_exchanged_while_it_is_opened(tmp_path: Path) -> None:
    """A file that was exchanged between the check and the opening is refused."""
    (tmp_path / "case").mkdir()
    inner, secret, name = tmp_path / "case" / "a", tmp_path / "secret", tmp_path / "case" / "link"
    inner.write_text("a")
    secret.write_text("secret")
    real_open = os.open

    def exchanging(path: str, *arguments: int) -> int:
        name.unlink()
        name.symlink_to(secret)
        descriptor = real_open(path, *arguments)
        name.unlink()
        name.symlink_to(inner)
        return descriptor

    for last in (False, True):
        name.unlink(missing_ok=True)
        name.symlink_to(inner)
        with confined([tmp_path / "case"]), pytest.MonkeyPatch.context() as patch:
            assert SourceFile(name).read(9) == b"a"
            patch.setattr(os, "open", exchanging)
            if last:
                patch.setattr(os, "open", lambda *arguments: real_open(secret, os.O_RDONLY))
            with pytest.raises(SandboxError, match="changed while it was opened"):
                SourceFile(name)


def test_the_command_line(case: Scene, program: Program) -> None:
    """run and validate have --sandbox, with an exit code of its own; without it nothing changes."""
    buffer(case, parent)
    path = case.write()
    ended = program(path, "--sandbox", exit_code=14)
    assert ended.err.startswith(f"error: {path}:")
    assert "/resources/1/buffer/src" in ended.err
    assert "which the sandbox forbids" in ended.err
    assert "run without --sandbox if you trust" in ended.err
    ended = program("validate", "--sandbox", path, exit_code=14)
    assert f"[{CODE}]" in ended.err
    assert program(path).code == 0
    assert program("validate", path).code == 0


@pytest.mark.parametrize("sandbox", [False, True])
@pytest.mark.parametrize("language", ["GLSL", "HLSL"])
def test_messages_quote_files_of_the_shader_alone(case: Scene, language: str, sandbox: bool) -> None:
    """A #line directive names a file that is not the shader's: its lines are quoted by no message."""
    secret = outside(case, "secret.txt", "the secret word\n" * 9)
    extension = "#extension GL_GOOGLE_cpp_style_line_directive : enable"
    start = "RWStructuredBuffer<int> c;" if language == "HLSL" else f"#version 450\n{extension}"
    text = f'{start}\n#line 3 "{secret}"\nwrong;\n#line 1 "{case.folder}/own.txt"\nwrong;\n'
    case.file("own.txt", "not included\n")
    with Runner(sandbox=sandbox) as runner:
        said = outcome(runner, from_file(case, language, text))
    assert said.startswith("5 ")
    assert "secret word" not in said
    assert "not included" not in said


def test_messages_quote_included_files(case: Scene, safe: Runner) -> None:
    """The line of an included file that is wrong is shown, as it was when it was compiled."""
    case.file("a.glsl", "int right;\nint wrong = mistaken;\n")
    path = stored(case, STORE.replace("\n", '\n#include "a.glsl"\n', 1))
    assert "2 | int wrong = mistaken;" in outcome(safe, path)


HAS_INCLUDE = [
    '#if __has_include("FILE")',
    '#if __has_\\\ninclude("FILE")',
    '#define ASKS __has_include\n#if ASKS("FILE")',
    '#define PASTE(a, b) a##b\n#if PASTE(__has_, include)("FILE")',
]


@pytest.mark.parametrize("line", HAS_INCLUDE)
def test_shaders_cannot_ask_for_files(case: Scene, safe: Runner, line: str) -> None:
    """__has_include is refused by name, and an operator that is pasted together finds nothing."""
    file = outside(case, "a.h", "")
    text = "\n#error found it\n#endif\nRWStructuredBuffer<int> c;\n[numthreads(1, 1, 1)] void main() { c[0] = 7; }\n"
    outcomes = []
    for name in (file, file.with_name("absent.h")):
        path = from_file(case, "HLSL", line.replace("FILE", str(name)) + text)
        outcomes.append(outcome(safe, path).replace(str(name), "FILE"))
    assert outcomes[0] == outcomes[1]
    assert "found it" not in outcomes[0]
    assert ("which the sandbox forbids" in outcomes[0]) == ("PASTE" not in line)


def planted(scene: Scene, name: str) -> Path:
    """A folder outside, to which a link in the scenario's folder leads."""
    target = scene.folder.parent / "outside" / name
    target.mkdir()
    (scene.folder / name).symlink_to(target)
    return target


@pytest.mark.parametrize("option", ["--output", "--capture-dir", "--dump-all"])
@pytest.mark.parametrize("below", ["", "/below"])
def test_planted_links_in_place_of_folders_for_results(case: Scene, program: Program, option: str, below: str) -> None:
    """A link in the scenario's folder does not lead results out of it, though the caller named it."""
    target = planted(case, "results")
    path = captured(case)
    ended = program(path, "--sandbox", option, case.folder / f"results{below}", exit_code=14)
    assert "by the link" in ended.err
    assert not list(target.iterdir())
    link = case.folder.parent / "mine"
    link.symlink_to(target)
    assert program(path, "--sandbox", option, f"{link}{below}").code == 0
    assert list(target.rglob("c.npy"))


def test_a_planted_link_in_place_of_the_marker_of_outputs(case: Scene, safe: Runner) -> None:
    """The file that marks outputs as incomplete replaces a link; it is not written through the link."""
    case.shader("s", STORE).buffer("c", size=4, dst="c.npy").buffer("d", size=4, dst="d.npy").dispatch("s", ["c"])
    marker = marker_path([str(case.folder / name) for name in ("c.npy", "d.npy")])
    assert marker is not None
    secret = outside(case, "secret.txt", "mine")
    os.symlink(secret, marker)
    safe.run_to_files(case.write())
    assert secret.read_text() == "mine"
    assert not os.path.lexists(marker)


def test_the_caller_chooses_any_folder(case: Scene, tmp_path: Path) -> None:
    """The sandbox confines names in files; folders in arguments of `Runner.run` and `Prepared.run` are free."""
    path = captured(case)
    with Runner(sandbox=True) as runner:
        runner.run(path, output_dir=tmp_path / "out", capture_dir=tmp_path / "frames")
        runner.prepare(path).run(capture_dir=tmp_path / "more")
    assert (tmp_path / "out" / "c.npy").is_file()
    for folder in ("frames", "more"):
        assert list((tmp_path / folder).rglob("c.npy"))
