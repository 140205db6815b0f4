"""Bad input from the command line: each error has a code, a place and a help, and no file is written."""

import os
import re
import struct
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError
from scenario_runner.validation import Options, validate_file
from tests.program import Program
from tests.scenes import ADD, Scene, error_of, findings_of, glsl


def refused(program: Program, scene: Scene, code: int, message: str, *files: str) -> None:
    """The run ends with this exit code and this message (a pattern), on one line, and without any output."""
    before = sorted(path.name for path in scene.folder.iterdir())
    ended = program.fail(code, *(files or ("scenario.json",)))
    code_and_line = r" \[SR-[A-Z]+-\d+\]\n( +\d+ \| [^\n]+\n +\| +\^\n)?"
    assert re.fullmatch(f"error: {message}{code_and_line}(  help: [^\n]+\n)?", ended.err), ended.err
    assert sorted(path.name for path in scene.folder.iterdir()) == before


def test_json(program: Program, scene: Scene) -> None:
    """Bytes that are not a scenario end with exit code 3 and the place of the first thing wrong."""
    scene.file("scenario.json", b'{"resources": [],\n "commands": [,]}')
    refused(program, scene, 3, re.escape("scenario.json:2:15: /commands: expected a value, got ','"))


MODULE = struct.pack("<5I", 0x07230203, 1 << 16, 0, 1, 0)
HLSL = """RWStructuredBuffer<float> data : register(u0);
[numthreads(4, 1, 1)] void first(uint3 id : SV_DispatchThreadID) { data[id.x] *= 2.0; }
[numthreads(4, 1, 1)]
void second(uint3 id : SV_DispatchThreadID) { data[id.x] *= 3.0; }
"""


@pytest.mark.parametrize(
    "name, content, kind, help",
    [
        ("s.comp", ADD, "a GLSL shader", "scenario-runner init s.comp writes a scenario for it"),
        ("s.comp", f"// doubles\n{ADD}", "a GLSL shader", "scenario-runner init s.comp writes a scenario for it"),
        ("s.hlsl", HLSL, "an HLSL shader", "scenario-runner init s.hlsl writes a scenario for it"),
        ("s.spv", MODULE, "a SPIR-V module", "scenario-runner init s.spv writes a scenario for it"),
        ("in.npy", b"\x93NUMPY\x01\x00", "a NumPy file", "scenario-runner view in.npy shows it"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "a PNG file", "scenario-runner view a.png shows it"),
        ("a.dds", b"DDS \x7c\0\0\0", "a DDS file", "scenario-runner view a.dds shows it"),
        ("m.json", b"VGF1" + bytes(124), "a VGF model", "scenario-runner vgf scenario m.json writes a scenario for it"),
    ],
)
def test_file_of_another_kind(
    program: Program, scene: Scene, name: str, content: str | bytes, kind: str, help: str
) -> None:
    """The message about a shader, an image or a model names the kind and the command for this kind."""
    scene.file(name, content)
    for command in ("run", "validate"):
        ended = program.fail(3, command, name)
        message = f"error: {name}: the file is {kind}, expected a scenario [SR-JSON-007]"
        assert ended.err == f"{message}\n  help: {help}\n"


def test_expectations_instead_of_a_scenario(program: Program, scene: Scene) -> None:
    """A check file gets one error, which names the scenario."""
    (scene.folder / "suite").mkdir()
    scene.file("suite/x.check.json", '{"outputs": {}}')
    message = "suite/x.check.json: the file has the expectations of x.json, expected a scenario"
    help = "scenario-runner test suite compares with expectations"
    assert program.fail(3, "suite/x.check.json").err == f"error: {message} [SR-JSON-007]\n  help: {help}\n"


def test_shader_of_another_type(program: Program, scene: Scene) -> None:
    """A module or a source with the type of another language gets the type that fits."""
    scene.file("s.comp", ADD)
    scene.file("s.spv", MODULE)
    for file, type, kind, fitting in (
        ("s.comp", "SPIR-V", "a GLSL shader", "GLSL"),
        ("s.spv", "GLSL", "a SPIR-V module", "SPIR-V"),
        ("s.comp", "HLSL", "a GLSL shader", "GLSL"),
    ):
        scene.resource("shader", uid="s", src=file, type=type).buffer("x", size=16).dispatch("s", ["x"], [4]).write()
        error = program.fail(5, "scenario.json").err
        assert re.search(
            rf'is {kind}, but "type" is "{type}" \[SR-SHADER-01[02]\]\n(  in scenario[^\n]+\n)?'
            rf'  help: write "type": "{fitting}"\n$',
            error,
        ), error
        scene = Scene(scene.folder)


@pytest.mark.parametrize(
    "kind, keys, message",
    [
        ("buffer", {"src": "s.comp"}, "s.comp: is a GLSL shader, expected a .npy file [SR-FILE-007]"),
        ("buffer", {"src": "a.png"}, "a.png: is a PNG file, expected a .npy file [SR-FILE-007]"),
        (
            "shader",
            {"src": "in.npy"},
            "in.npy: shader 'x': the file is a NumPy file, expected a shader [SR-SHADER-010]",
        ),
        (
            "buffer",
            {"src": [1, 2]},
            """/resources/0/buffer/src: expected a string, got an array [SR-JSON-005]
  help: for numbers, write { "values": [1, 2] }""",
        ),
        (
            "buffer",
            {"src": {"values": [1], "dtype": "float"}},
            "'float8_e4m3', 'float8_e5m2', got 'float' (did you mean 'float32'?) [SR-JSON-005]",
        ),
        (
            "buffer",
            {"size": None},
            """/resources/0/buffer: the required key 'size' is missing [SR-JSON-004]
  help: write the number of bytes, or give numbers in "src": { "values": [1, 2] }""",
        ),
    ],
)
def test_source_of_another_kind(
    program: Program, scene: Scene, kind: str, keys: dict[str, object], message: str
) -> None:
    """The message about a wrong source names what the file is, or the spelling of numbers."""
    scene.file("s.comp", ADD)
    scene.file("a.png", b"\x89PNG\r\n\x1a\n" + bytes(40))
    scene.file("in.npy", b"\x93NUMPY\x01\x00" + bytes(120))
    body = {"uid": "x", **({"size": 16, "shader_access": "readwrite"} if kind == "buffer" else {}), **keys}
    scene.resource(kind, **{key: value for key, value in body.items() if value is not None})
    command = {"shader_ref": "x", "rangeND": [1], "bindings": []}
    (scene.command("dispatch_compute", **command) if kind == "shader" else scene).write()
    shown = re.sub(r"\n +\d* \|.*", "", program("validate", "scenario.json").err)
    assert message in shown


def test_numbers_instead_of_an_expectation(program: Program, scene: Scene) -> None:
    """An array of numbers for an output gets the spelling of values. The item names the command for the code."""
    scene.shader("add", ADD).buffer("x", size=16, dst="x.npy").dispatch("add", ["x"], [4]).write()
    scene.file("check.json", '{"outputs": {"x": [1, 2]}}')
    ended = program("test", "scenario.json")
    shown = ended.err
    assert "\n  code: scenario-runner explain SR-EXPECT-003\n    help: for numbers, write" in ended.out
    assert (
        "/outputs/x/0: expected an object, got 1 [SR-EXPECT-003]\n"
        '  help: for numbers, write { "values": [1, 2] }\n' in shown
    )


def test_entry_point_that_is_missing(program: Program, scene: Scene) -> None:
    """An HLSL shader without ``main`` gets a list of the entry points, and a GLSL shader the name ``main``."""
    scene.file("s.hlsl", HLSL)
    scene.resource("shader", uid="s", src="s.hlsl").buffer("x", size=16).dispatch("s", ["x"], [1]).write()
    error = program.fail(5, "scenario.json").err
    assert "there is no 'main'; the entry points are: first, second [SR-SHADER-010]\n" in error
    assert error.startswith("error: s.hlsl: shader 's': ")
    assert "\n  in scenario.json:4:14: /resources/0/shader\n" in error
    assert error.endswith('  help: write "entry": "first"\n')
    scene = Scene(scene.folder).shader("s", ADD, entry="add").buffer("x", size=16).dispatch("s", ["x"], [4])
    scene.write()
    error = program.fail(5, "scenario.json").err
    assert "shader 's' has no entry point 'add' for the compute stage; the entry points are: 'main'" in error
    assert error.endswith('  help: write "entry": "main"\n')


def test_array_of_double_precision(program: Program, scene: Scene) -> None:
    """A buffer with half the size of a float64 file gets advice to save float32."""
    scene.shader("add", ADD).buffer("x", numpy.zeros(4), size=16).dispatch("add", ["x"], [4]).write()
    error = program.fail(4, "scenario.json").err
    assert "buffer 'x' has 16 bytes, but 'x.npy' holds 32 (4 float64) [SR-FILE-002]\n" in error
    assert error.endswith('  help: save with .astype("float32"); only if the shader reads double, set "size": 32\n')


def test_double_precision_for_a_shader_of_floats(program: Program, scene: Scene) -> None:
    """Only a shader that reads nothing but float32 gets a warning about a float64 file."""
    floats = glsl("data[0] += 1;", "layout(binding = 0) buffer B { float data[]; };")
    scene.shader("floats", floats).buffer("x", numpy.zeros(4)).dispatch("floats", ["x"], [1]).write()
    ended = program("scenario.json")
    error = ended.err
    assert (ended.code, "buffer 'x' holds float64 numbers of" in error) == (0, True)
    assert "but storage buffer 'B' at set 0, binding 0 in shader 'floats' has float32 numbers" in error
    (finding,) = findings_of(scene.folder / "scenario.json")
    assert (finding.code, finding.severity) == ("SR-BIND-014", "warning")
    scene.shader("words", floats.replace("float data", "uint data")).buffer("y", numpy.zeros(4))
    scene.commands.clear()
    scene.dispatch("words", ["y"], [1]).write()
    program.succeed("scenario.json")


LITTLE_MEMORY = ("prlimit", f"--as={6_000_000 << 10}")


def test_huge_json(program: Program, scene: Scene) -> None:
    """A scenario file of gigabytes is refused without reading all of it: there is no room for it."""
    os.truncate(scene.file("scenario.json", ""), 8 << 30)
    ended = program.fail(3, "scenario.json", launcher=LITTLE_MEMORY)
    assert re.match(
        r"error: scenario\.json: a scenario of more than \d+ MiB is not read \[SR-JSON-007\]\n  help: ", ended.err
    )


def test_scenario_file(program: Program, scene: Scene) -> None:
    """A scenario that cannot be read ends with exit code 4."""
    refused(program, scene, 4, r"\.: is a folder, expected a scenario", ".")


def test_npy(program: Program, scene: Scene) -> None:
    """A .npy file that is damaged ends with exit code 4 and its path; no code in it runs."""
    scene.shader("add", ADD).buffer("x", size=16, src="x.npy").dispatch("add", ["x"], [4]).write()
    text = b"__import__('os').system('touch pwned')".ljust(117) + b"\n"
    scene.file("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(16))
    place = r"scenario\.json:\d+:\d+: /resources/1/buffer/src: "
    message = "x.npy: has a .npy header that cannot be read: "
    refused(program, scene, 4, place + re.escape(message) + "[^\n]*")


def test_npy_of_another_size(program: Program, scene: Scene) -> None:
    """A .npy file of another size than the buffer ends with exit code 4 and both sizes."""
    scene.shader("add", ADD).buffer("x", numpy.zeros(5, numpy.float32), size=16).dispatch("add", ["x"], [4]).write()
    place = r"scenario\.json:\d+:\d+: /resources/1/buffer/size: "
    refused(program, scene, 4, rf"{place}buffer 'x' has 16 bytes, but 'x\.npy' holds 20")


def test_missing_files_are_reported_together(program: Program, scene: Scene) -> None:
    """Every src that does not exist is reported, by a run before any shader is compiled."""
    scene.shader("bad", "no shader at all").buffer("x", size=16, src="x.npy").buffer("y", size=16, src="y.npy")
    scene.dispatch("bad", ["x"]).write()
    for word in ("run", "validate"):
        ended = program.fail(4, word, "scenario.json")
        lines = [line for line in ended.err.splitlines() if "no such file" in line]
        for line, name in zip(lines, ("x.npy", "y.npy"), strict=True):
            assert f": {name}: cannot be opened: no such file or directory" in line
        assert ("shader 'bad'" in ended.err) == (word == "validate")


def test_spirv(program: Program, scene: Scene) -> None:
    """Bytes that are not a SPIR-V module end with exit code 5 and never reach the driver."""
    scene.module("s", b"\x7fELF" + bytes(1000), entry="start").dispatch("s", []).write()
    message = "a SPIR-V module begins with the word 0x07230203, this one with the bytes 7f 45 4c 46"
    refused(program, scene, 5, rf"scenario\.json:\d+:\d+: /resources/0/shader: s\.spv: {message}")


@pytest.mark.parametrize("size", [3 << 30, 2**62, 2**63 - 1])
def test_allocation_too_large(program: Program, scene: Scene, size: int) -> None:
    """A buffer that the device cannot give ends with exit code 9 and says how much was asked; nothing is written."""
    scene.shader("add", ADD).buffer("x", numpy.arange(4, dtype=numpy.uint32)).buffer("big", size=size)
    scene.dispatch("add", ["x"], [4]).write()
    ended = program.fail(9, "scenario.json")
    assert re.match(r"error: scenario\.json:\d+:\d+: /resources/2/buffer: ", ended.err)
    assert f"({size} bytes)" in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_out_of_memory_in_the_middle(program: Program, scene: Scene) -> None:
    """When the system gives no more memory the exit code is 9, with how much was asked, and nothing is half-written."""
    for number in range(8):
        scene.buffer(f"b{number}", size=1000 << 20)
    scene.buffer("x", size=16).write()
    ended = program.fail(9, "scenario.json", launcher=LITTLE_MEMORY)
    # Drivers notice it when memory is allocated or when it is mapped; Mesa 25 does not notice a failure to map.
    failure = r"vkAllocateMemory failed with VK_ERROR_OUT_OF_|vkMapMemory (failed with|returned VK_SUCCESS and) "
    assert re.match(rf"error: [^\n]+/resources/\d/buffer: ({failure})", ended.err)
    assert "asked for 1000.0 MiB (1048576000 bytes)" in ended.err
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_more_than_the_machine_has(program: Program, scene: Scene) -> None:
    """Buffers that each fit and that together this machine cannot hold are refused before any of them is used."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = 1900 << 20
    for number in range(memory_bytes // size + 1):
        scene.buffer(f"b{number}", size=size, dst=None)
    scene.buffer("x", size=16).write()
    ended = program.fail(9, "scenario.json")
    assert re.fullmatch(
        r"error: scenario\.json:\d+:\d+: /resources/\d+/buffer: 'b\d+' asks for 1\.9 GiB \(1992294400 bytes\),"
        r" which makes [\d.]+ GiB \(\d+ bytes\) in all; this machine has [\d.]+ GiB \(\d+ bytes\) of memory left"
        r" \[SR-DEVICE-003\]\n",
        ended.err,
    )
    assert not list(scene.folder.glob("*.out.npy"))


WRITES = glsl("x[0] = 1u;", "layout(set = 0, binding = 0) buffer X { uint x[]; };")


def with_options(scene: Scene) -> Scene:
    return scene.shader("s", WRITES, build_options="-what").buffer("x", size=4).dispatch("s", ["x"])


def no_model(scene: Scene) -> Scene:
    scene.file("model.vgf", b"nothing of the kind")
    scene.resource("graph", uid="g", src="model.vgf")
    return scene.command("dispatch_graph", graph_ref="g", bindings=[])


def too_large(scene: Scene) -> Scene:
    return scene.shader("s", WRITES).buffer("x", size=2**50, dst=None).dispatch("s", ["x"])


@pytest.mark.parametrize(
    "make, pointer, code, what",
    [
        (with_options, "/resources/0/shader", 3, "shader 's': build_options: unknown option '-what'"),
        (no_model, "/resources/0/graph/src", 4, r"\S*model\.vgf: "),
        (too_large, "/resources/1/buffer", 9, "vkCreateBuffer failed "),
    ],
)
def test_the_place(program: Program, scene: Scene, make: object, pointer: str, code: int, what: str) -> None:
    """File, line, column and JSON pointer come first."""
    assert callable(make)
    make(scene).write()
    ended = program("scenario.json", exit_code=code)
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert errors
    for error in errors:
        assert re.match(rf"error: scenario\.json:\d+:\d+: {pointer}: {what}", error)


def test_warnings_of_a_device(program: Program, scene: Scene) -> None:
    """A warning about an unenforced device limit has the scenario and the place."""
    too_large(scene).write()
    warnings = [line for line in program("scenario.json").err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: scenario.json: /resources/1/buffer/size: buffer 'x' of ")


DATA = "layout(set = 0, binding = 0) buffer Data { uint data[4]; };"


STORE = glsl("data[0] = 1;", DATA)


def storing(scene: Scene, buffer: dict[str, Any] = {}, shader: dict[str, Any] = {}) -> Scene:  # noqa: B006
    """A shader that stores a number in a buffer, with other keys of either."""
    keys = {"size": 16, "dst": "x.npy", **buffer}
    return scene.shader("s", STORE, **shader).buffer("x", **keys).dispatch("s", ["x"])


@pytest.mark.parametrize(
    "buffer, shader, code, kind",
    [
        ({"size": 8}, {}, "SR-BIND-005", ScenarioError),
        ({}, {"specialization_constants": [{"id": 3, "value": 1}]}, "SR-SPEC-001", ShaderError),
        ({"shader_access": "readonly"}, {}, "SR-ACCESS-001", ScenarioError),
        ({"format": "VK_FORMAT_R8_UINT"}, {}, "SR-JSON-010", ScenarioError),
    ],
)
def test_a_warning_ends_the_run(
    scene: Scene,
    program: Program,
    buffer: dict[str, Any],
    shader: dict[str, Any],
    code: str,
    kind: type[ScenarioRunnerError],
) -> None:
    """Without --strict the scenario runs; with it validate, run and Runner give the same error and write nothing."""
    path = storing(scene, buffer, shader).write()
    assert program("scenario.json").code == 0
    output = scene.folder / "x.npy"
    assert output.exists()
    output.unlink()
    for words in (["validate", "--strict"], ["run", "--strict"], ["--strict"]):
        ended = program(*words, "scenario.json", exit_code=kind.exit_code)
        assert ended.err.startswith("error: ")
        assert "warning" not in ended.err
    validation = validate_file(path, Options(strict=True))
    assert [(each.code, each.severity) for each in validation.findings] == [(code, "error")]
    with Runner(strict=True) as runner:
        for run in (runner.run, runner.run_to_files):
            (problem,) = error_of(kind, run, path).problems
            assert (problem.code, problem.severity, problem.path) == (code, "error", str(path))
            assert problem.line
    assert not output.exists()


def test_missing_barriers_count(scene: Scene, program: Program) -> None:
    """With --hazards a missing barrier is an error as well."""
    scene.shader("s", glsl("data[0] += 1;", DATA)).buffer("x", size=16)
    scene.dispatch("s", ["x"], implicit_barrier=False).dispatch("s", ["x"])
    scene.write()
    assert program("validate", "--hazards", "scenario.json").code == 0
    ended = program("validate", "--hazards", "--strict", "scenario.json", exit_code=ScenarioError.exit_code)
    assert "[SR-HAZARD-001]" in ended.err
