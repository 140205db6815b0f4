"""Messages printed by shaders: command, shader and invocation, in order, and a warning for lost messages."""

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError, UsageError
from scenario_runner.vulkan.printf import Printed, Printer
from scenario_runner.vulkan.vulkan_api import new
from tests.program import Program
from tests.scenes import Scene, glsl

PRINTS = "#extension GL_EXT_debug_printf : enable\nlayout(set = 0, binding = 0) buffer B { uint b[]; };\n"
BODY = 'uint i = gl_GlobalInvocationID.x; b[i] = i * i; debugPrintfEXT("%u squared is %u", i, b[i]);'
INFO, WARNING, ERROR = 0x10, 0x100, 0x1000


@pytest.fixture(autouse=True)
def layer(validation: bool) -> None:
    assert validation, "these tests need the package vulkan-validationlayers"


@pytest.fixture
def squares(scene: Scene) -> Path:
    """Two dispatches of 4 x 2 and 4 x 1 invocations of a shader that prints its index and the square of it."""
    scene.shader("square", glsl(BODY, PRINTS, local_size=4)).buffer("b", size=4 * 8)
    return scene.dispatch("square", ["b"], [2]).dispatch("square", ["b"], [1]).write()


def own_process() -> ProcessPoolExecutor:
    """A process where no Runner of another test has loaded the layer, which keeps the first one's settings."""
    return ProcessPoolExecutor(1, get_context("spawn"))


@pytest.fixture(scope="module")
def in_printing_process() -> Iterator[Callable[..., Any]]:
    """Call a function in a process of the tests that print with default settings."""
    with own_process() as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()


def printed_by(path: Path) -> tuple[Printed, ...]:
    with Runner(printf=True) as runner:
        return runner.run(path, write_files=False).printed


def test_messages_have_their_places(squares: Path, in_printing_process: Callable[..., Any]) -> None:
    """Each message has the command, the shader, the stage and the invocation. Results equal a run without printing, and
    the next run has its own messages."""
    in_printing_process(check_places, squares)


def check_places(squares: Path) -> None:
    expected = [(command, i, f"{i} squared is {i * i}") for command, count in ((0, 8), (1, 4)) for i in range(count)]
    with Runner(printf=True) as runner:
        for _ in range(2):
            result = runner.run(squares, write_files=False)
            rows = [(each.command, int(each.invocation[0]), each.text) for each in result.printed]
            assert sorted(rows) == expected
            assert [row[0] for row in rows] == [row[0] for row in expected]
            assert {(each.shader, each.stage, each.invocation[1:]) for each in result.printed} == {
                ("square", "compute", (0, 0))
            }
            assert result["b"].view(np.uint32).tolist() == [i * i for i in range(8)]
            assert "12 printed messages" in repr(result)
        assert runner.validation_messages == []
        repeated = runner.run(squares, write_files=False, repeat=2).printed
        assert [each.iteration for each in repeated] == [0] * 12 + [1] * 12


def test_command_line_shows_messages(squares: Path, program: Program) -> None:
    """--printf shows each message on standard error and lets the run succeed; without it nothing is shown."""
    done = program("--printf", squares.name, "--log-level", "error", exit_code=0)
    assert sorted(done.err.splitlines())[1] == "printf: /commands/0: square (1, 0, 0): 1 squared is 1"
    assert done.err.count("printf: ") == 12
    assert done.out.startswith("scenario.json: ok: 2 dispatches, 1 output")
    program.succeed(squares.name)


def test_text_is_kept_as_printed(scene: Scene, in_printing_process: Callable[..., Any]) -> None:
    """Text with the separators of the layer, lines and spaces stays whole; of two shaders with the same content each
    has its own uid; a shader in HLSL prints by printf."""
    body = 'debugPrintfEXT(" a | b\\nStage = Compute.  c "); b[0] = 1u;'
    scene.shader("one", glsl(body, PRINTS)).shader("two", glsl(body, PRINTS)).buffer("b", size=4)
    source = (
        'RWStructuredBuffer<uint> b : register(u0);\n[numthreads(1, 1, 1)] void main() { b[0] = 2; printf("%d", -7); }'
    )
    scene.file("three.hlsl", source)
    scene.resource("shader", uid="three", src="three.hlsl", type="HLSL")
    for shader in ("one", "two", "three"):
        scene.dispatch(shader, ["b"])
    printed = in_printing_process(printed_by, scene.write())
    text = " a | b\nStage = Compute.  c "
    assert [(each.shader, each.text) for each in printed] == [("one", text), ("two", text), ("three", "-7")]
    assert str(printed[2]) == "/commands/2: three (0, 0, 0): -7"


def test_draws_name_vertices_and_fragments(scene: Scene, in_printing_process: Callable[..., Any]) -> None:
    """Vertex shaders name the vertex, fragment shaders the texel: of a triangle over all of 2 x 2 texels."""
    extension = "#version 450\n#extension GL_EXT_debug_printf : enable\n"
    corners = "vec2 p = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 4.0 - 1.0; gl_Position = vec4(p, 0, 1);"
    scene.file("v.vert", extension + f'void main() {{ {corners} debugPrintfEXT("corner"); }}')
    color = "layout(location = 0) out vec4 color;\n"
    scene.file("f.frag", extension + color + 'void main() { color = vec4(1); debugPrintfEXT("texel"); }')
    scene.resource("shader", uid="v", src="v.vert", type="GLSL", stage="vertex")
    scene.resource("shader", uid="f", src="f.frag", type="GLSL", stage="fragment")
    scene.image("target", "R8G8B8A8_UNORM", size=(2, 2), color_attachment=True, dst="out.png")
    references = {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "color_attachment_refs": ["target"]}
    scene.command("dispatch_fragment", bindings=[], **references)
    printed = in_printing_process(printed_by, scene.write())
    corners_seen = {(each.shader, each.stage, each.invocation) for each in printed if each.text == "corner"}
    assert corners_seen == {("v", "vertex", (index, 0)) for index in range(3)}
    texels = sorted((each.shader, each.stage, each.invocation) for each in printed if each.text == "texel")
    assert texels == sorted(("f", "fragment", (x + 0.5, y + 0.5)) for x in range(2) for y in range(2))


def test_tensors_print_through_the_emulation_layers(scene: Scene, in_printing_process: Callable[..., Any]) -> None:
    """A shader that reads a tensor prints, where its command comes after another one."""
    declared = "#extension GL_ARM_tensors : require\n#extension GL_EXT_debug_printf : enable\n"
    declared += "layout(set = 0, binding = 0) uniform tensorARM<float, 1> t;\n"
    body = 'float x; tensorReadARM(t, uint[](1u), x); debugPrintfEXT("%f", x); tensorWriteARM(t, uint[](0u), x);'
    scene.shader("read", glsl(body, declared).replace("450", "460")).tensor("t", np.array([1, 2.5], np.float32))
    scene.dispatch("read", ["t"]).dispatch("read", ["t"])
    printed = in_printing_process(printed_by, scene.write())
    assert [(each.command, each.shader, each.text) for each in printed] == [(n, "read", "2.500000") for n in range(2)]


def test_lost_messages_are_counted_in_bytes(scene: Scene, program: Program) -> None:
    """The warning about lost messages has a size in bytes that is enough for all messages."""
    scene.shader("square", glsl(BODY, PRINTS, local_size=4)).buffer("b", size=4 * 400)
    scene.dispatch("square", ["b"], [100]).write()
    done = program("--printf-size", "512", "scenario.json")
    warning = r"warning: /commands/0: the shaders print more than 512 bytes, .*; use --printf-size (\d+) \(printf="
    match = re.search(warning, done.err)
    assert done.code == 0
    assert match is not None
    assert 0 < done.err.count("printf: ") < 400
    done = program("--printf-size", match[1], "scenario.json")
    assert (done.code, done.err.count("\n"), "warning" in done.err) == (0, 400, False)


def test_shaders_with_all_descriptor_sets_print_nothing(scene: Scene, program: Program) -> None:
    """A warning names the shader, which runs without printing."""
    with Runner() as runner:
        sets: int = runner.physical_device.limits.maxBoundDescriptorSets
    scene.shader("full", glsl(BODY, PRINTS.replace("set = 0", f"set = {sets - 1}"))).buffer("b", size=16)
    scene.dispatch("full", {(sets - 1, 0): "b"}, [4]).write()
    done = program("--printf", "scenario.json", exit_code=0)
    place = "warning: /resources/0/shader: messages of the shader are not shown: its pipelines use the last descriptor"
    assert done.err.startswith(place)
    assert np.load(scene.folder / "b.out.npy").view(np.uint32).tolist() == [0, 1, 4, 9]


def test_settings_of_the_user_are_respected(squares: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that VK_LAYER_SETTINGS_PATH names stays in force, but for an explicit size; the variable is restored."""
    file = squares.with_name("vk_layer_settings.txt")
    file.write_text("khronos_validation.printf_verbose = false\nkhronos_validation.printf_buffer_size = 128\n")
    monkeypatch.setenv("VK_LAYER_SETTINGS_PATH", str(file.parent))
    with own_process() as pool:
        pool.submit(check_settings, squares).result()


def check_settings(squares: Path) -> None:
    with Runner(printf=True) as runner:
        printed = runner.run(squares, write_files=False).printed
        assert 0 < len(printed) < 12
        assert {(each.shader, each.invocation) for each in printed} == {("square", ())}
    with Runner(printf=4096) as runner:
        assert len(runner.run(squares, write_files=False).printed) == 12
    assert os.environ["VK_LAYER_SETTINGS_PATH"] == str(squares.parent)


def test_printing_beside_validation(scene: Scene, program: Program) -> None:
    """With --validation-sync both kinds of messages come, and printed ones are no errors."""
    scene.shader("square", glsl(BODY, PRINTS)).buffer("b", size=16).dispatch("square", ["b"], [4]).write()
    done = program("--printf", "--validation-sync", "scenario.json")
    assert (done.code, done.err.count("printf: "), done.err.count("\n")) == (0, 4, 4)


def test_without_the_layer(squares: Path, program: Program) -> None:
    """One error names the layer and its package, with the exit code of --validation."""
    env = {"VK_LAYER_PATH": str(squares.parent)}
    done = program("--printf", squares.name, env=env)
    assert done.code == program("--validation", squares.name, env=env).code == UnsupportedError.exit_code
    assert re.match(
        r"error: .*the validation layer VK_LAYER_KHRONOS_validation is not installed \[SR-FEATURE-002\]\n  help: ",
        done.err,
    )
    assert not squares.with_name("b.out.npy").exists()


def test_bad_options(squares: Path, program: Program) -> None:
    """Sizes out of range, and tools that need whole frames, are refused."""
    done = program("--printf-size", "12", squares.name)
    assert (done.code, done.err.splitlines()[0]) == (
        UsageError.exit_code,
        "error: argument --printf-size: '12': expected a whole number from 64 to 1073741824",
    )
    done = program("--printf", "--gfxr", "x.gfxr", squares.name, exit_code=UsageError.exit_code)
    assert done.err.startswith("error: --gfxr and --printf contradict each other\n  help: --printf splits frames")
    for size, shown in ((12, "12"), ("512", "'512'")):
        message = f"printf is {shown}, expected True or a number of bytes from 64 to 1073741824"
        with pytest.raises(UsageError, match=message):
            Runner(printf=size)  # type: ignore[arg-type]
    assert "unrecognized arguments: --printf" in program("bench", "--printf", squares.name).err


def test_failing_items_show_what_was_printed(scene: Scene, program: Program) -> None:
    """test --printf: an item that fails has the messages in its text, and in the journal; others do not."""
    scene.shader("square", glsl(BODY, PRINTS)).buffer("b", size=8).dispatch("square", ["b"], [2])
    for name, values in (("good", [0, 1]), ("bad", [0, 2])):
        scene.write(f"{name}.json")
        scene.file(f"{name}.check.json", f'{{"outputs": {{"b": {{"values": {values}, "dtype": "uint32"}}}}}}')
    done = program("test", "--printf", ".", "--results", "results", "--verbose")
    message = "/commands/0: square (1, 0, 0): 1 squared is 1"
    assert done.code == 1
    assert (done.out + done.err).count(message) == 1
    assert "  printed by shaders:\n    /commands/0: square (" in done.out
    journal = [json.loads(line) for line in (scene.folder / "results" / "journal.jsonl").read_text().splitlines()]
    printed = {entry["item"]["id"]: entry["attempts"][0].get("printed") for entry in journal if "item" in entry}
    assert printed["good.json"] is None
    assert sorted(printed["bad.json"]) == ["/commands/0: square (0, 0, 0): 0 squared is 0", message]


# Of version 1.4.309 (Debian 13) with printf_verbose and without, on the same driver.
NEWER = """vkQueueSubmit(): pSubmits[0] DebugPrintf:
a
b
Stage = {stage}
Command buffer (command 0)(0x193f30b0)
\tCompute Dispatch Index 0
Pipeline (p)(e000000000e)
Shader Module (c000000000c) (internal ID 1)
SPIR-V Instruction Index = 61
{source}
"""
NO_SOURCE = "Unable to source. Build shader with debug info to get source information."
SOURCE = 'Debug shader printf message generated at p.comp:8\n\n8:   debugPrintfEXT("i = %u", i);'


@pytest.mark.parametrize(
    "message, expected",
    [
        (
            NEWER.format(stage="Compute.  Global invocation ID (x, y, z) = (3, 0, 0)", source=NO_SOURCE),
            ("a\nb", "compute", (3, 0, 0), ""),
        ),
        (
            NEWER.format(stage="Vertex. Vertex Index = 2 Instance Index = 0. ", source=SOURCE),
            ("a\nb", "vertex", (2, 0), "p.comp:8"),
        ),
        (
            NEWER.format(stage="Fragment.  Fragment coord (x,y) = (16.5, 21.5). ", source=NO_SOURCE),
            ("a\nb", "fragment", (16.5, 21.5), ""),
        ),
        ("vkQueueSubmit(): pSubmits[0] DebugPrintf:\nx | y", ("x | y", "", (), "")),
    ],
)
def test_messages_of_newer_layers(message: str, expected: tuple[object, ...]) -> None:
    printer = Printer()
    data = new("VkDebugUtilsMessengerCallbackDataEXT", pMessageIdName="VVL-DEBUG-PRINTF", pMessage=message)
    assert printer.receive(INFO, data, None)
    (printed,) = printer.messages
    assert (printed.text, printed.stage, printed.invocation, printed.source) == expected


def test_warnings_of_newer_layers(caplog: pytest.LogCaptureFixture) -> None:
    """Lost messages are reported, features that the layer turns on for itself are not; other messages are not taken."""
    printer = Printer()
    lost = "Debug Printf message was truncated due to the buffer size (256) being too small"
    sets = (
        "vkCreatePipelineLayout(): Internal Warning: setLayoutCount (8) will conflicts with validation's descriptor set"
    )
    for name, severity, text, is_taken in (
        ("WARNING-DEBUG-PRINTF", WARNING, "vkCreateDevice(): Internal Warning: Forcing shaderInt64 to VK_TRUE", True),
        ("VALIDATION-SETTINGS", WARNING, "vkCreateInstance(): DebugPrintf logs to the Information severity", True),
        ("WARNING-CreateInstance-status-message", INFO, "Khronos Validation Layer Active", True),
        ("VUID-vkCmdDispatch-None-08114", ERROR, "the descriptor is invalid", False),
        ("WARNING-DEBUG-PRINTF", WARNING, f"vkQueueSubmit(): pSubmits[0] Internal Warning: {lost}", True),
        ("VVL-DEBUG-PRINTF", INFO, f"vkQueueSubmit(): pSubmits[0] [WARNING] {lost}", True),
        ("VVL-DEBUG-PRINTF", INFO, f"vkQueueSubmit(): pSubmits[0] DebugPrintf:\n{lost}", True),
        ("WARNING-Setting-Limit-Adjusted", WARNING, "vkCreateDevice(): validation is adjusting settings:\n", True),
        ("WARNING-DEBUG-PRINTF", WARNING, f"{sets} at slot 7.", True),
        ("UNASSIGNED-DEBUG-PRINTF", ERROR, "Setup Error. Detail: (no vertexPipelineStoresAndAtomics)", True),
    ):
        data = new("VkDebugUtilsMessengerCallbackDataEXT", pMessageIdName=name, pMessage=text)
        assert printer.receive(severity, data, "/resources/0/shader") == is_taken
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(";")[0].partition(": its")[0] for text in said] == [
        *2 * ("the shaders print more than 65536 bytes, and the rest is lost",),
        f"/commands/-1: : {lost}",
        "/resources/0/shader: messages of the shader are not shown",
        "messages of shaders are not shown",
    ]
    assert said[4].endswith("Setup Error. Detail: (no vertexPipelineStoresAndAtomics)")
