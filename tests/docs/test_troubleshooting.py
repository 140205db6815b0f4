"""docs/troubleshooting.md: the program prints each message of the page, and each failure provoked here is on it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy
import pytest

import scenario_runner
from tests.crash import crash_shader
from tests.docs.test_docs import pattern_of
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Ended, old_glslang, run_program
from tests.scenes import Scene, glsl

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DATA = "layout(binding = 0) buffer Data { float data[]; };"
DOUBLE = glsl("data[gl_GlobalInvocationID.x] *= 2.0;", DATA)
TENSORS = """#version 460
#extension GL_ARM_tensors : require
layout(binding = 0) uniform tensorARM<int, 1> data;
void main() { int x; tensorReadARM(data, uint[](0u), x); tensorWriteARM(data, uint[](0u), x + 1); }
"""
PICTURE = "layout(binding = 0, r32ui) uniform uimage2D data;"
MODEL = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %b = tosa.abs %a : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
"""
# On a machine that has neither compilers nor packages for models, with Arm's package in the folder of this one.
BARE = """import os, sys
sys.path[1:] = [path for path in sys.path[1:] if not os.path.exists(os.path.join(path, "pyproject.toml"))]
sys.prefix = "/nowhere"
sys.modules["vgfpy"] = sys.modules["model_converter"] = None
from scenario_runner.cli import main
main(["validate", "--no-cache", "fine/blur.json", "model.json"])
main(["convert", "model.mlir", "-o", "model.vgf"])
"""


def scene(folder: Path, name: str, *, shader: str = DOUBLE, bound: str = "data") -> Scene:
    """A scenario without its data."""
    (folder / name).mkdir()
    return Scene(folder / name).shader("blur", shader).dispatch("blur", [bound])


def mistakes(folder: Path) -> Iterator[Scene]:
    """Scenarios that `validate` reports."""
    numbers = numpy.arange(4, dtype="f4")
    yield scene(folder, "missing").buffer("data", size=16, src="in.npy")
    yield scene(folder, "size").buffer("data", numbers, size=32)
    yield scene(folder, "key").buffer("data", numbers, shader_acess="readonly")
    yield scene(folder, "other_kind").buffer("data", numbers, format="VK_FORMAT_R32_SFLOAT")
    unbound = scene(folder, "unbound").buffer("data", numbers)
    unbound.commands[0]["dispatch_compute"]["bindings"][0]["set"] = 1
    yield unbound
    unused = scene(folder, "unused").buffer("data", numbers)
    unused.commands[0]["dispatch_compute"]["bindings"] += [{"set": 0, "id": 1, "resource_ref": "data"}]
    yield unused
    pushed = "layout(push_constant) uniform P { float factor; };"
    yield scene(folder, "push", shader=glsl("data[0] *= factor;", DATA + pushed)).buffer("data", numbers)
    yield scene(folder, "overwritten").buffer("data", numbers, dst="data.npy")
    counts = glsl("imageStore(data, ivec2(gl_GlobalInvocationID.xy), uvec4(1));", PICTURE)
    yield scene(folder, "texels", shader=counts).image("data", "R8G8B8A8_UNORM", size=(64, 64))
    many = scene(folder, "groups", shader=counts).image("data", "R32_UINT", size=(64, 64))
    many.commands[0]["dispatch_compute"]["rangeND"] = [64, 512]
    yield many
    yield scene(folder, "dims", shader=counts).image("data", "R32_UINT", dims=[1, 64, 64, 4])
    tensor = scene(folder, "type", shader=TENSORS)
    yield tensor.tensor("data", numbers, format="VK_FORMAT_R32_SINT")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory, shader_cache: Path, device_name: str) -> list[str]:
    """The messages that processes print."""
    folder = tmp_path_factory.mktemp("troubles")
    scene(folder, "fine").buffer("data", numpy.float32(1)).write("blur.json")
    scene(folder, "tensors", shader=TENSORS).tensor("data", numpy.int32([1])).write("blur.json")
    scene(folder, "large").buffer("data", size=1 << 45).write("blur.json")
    crash = Scene(folder / "crash").shader("blur", crash_shader(device_name))
    crash.buffer("a", numpy.ones(4, "u4")).dispatch("blur", ["a"]).write("blur.json")
    names = []
    for mistake in mistakes(folder):
        names.append(str(mistake.write("blur.json").relative_to(folder)))
    names.append("comma/blur.json")
    (folder / "comma").mkdir()
    (folder / "comma/blur.json").write_text('{\n "resources": []\n "commands": []\n}\n', encoding="utf-8")
    model = Scene(folder).resource("graph", uid="model", src=str(CHECKOUT / "scenarios/ml/classifier/model.vgf"))
    model.command("dispatch_graph", graph_ref="model", bindings=[]).write("model.json")
    (folder / "model.mlir").write_text(MODEL, encoding="utf-8")
    (folder / "empty").mkdir()
    package = folder / "scenario_runner"
    (package / "binaries/bin").mkdir(parents=True)
    for part in Path(scenario_runner.__file__).parent.iterdir():
        (package / part.name).symlink_to(part)
    run: Callable[..., Ended] = partial(run_program, folder)
    no_driver = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/usr/local/vulkan/driver.json")
    ended = [
        run("validate", *names),
        run("fine/blur.json"),
        run("fine/blur.json", env=no_driver),
        run("doctor", env=no_driver),
        run("fine/blur.json", env={"SCENARIO_RUNNER_VULKAN_LOADER": "/usr/local/vulkan/libvulkan.so.1"}),
        run("fine/blur.json", "--device", "adreno"),
        run("fine/blur.json", "--validation", env={"VK_LAYER_PATH": str(folder / "empty")}),
        run("tensors/blur.json", "--ml-emulation", "off"),
        run("validate", "tensors/blur.json", "--glslang", old_glslang(folder), "--no-cache"),
        run("large/blur.json"),
        run("crash/blur.json"),
        run(CHECKOUT / "scenarios/suite_demo/timeout.json", "--timeout", "0.2"),
        run("test", "empty"),
        run("test", "fine", "--glslang", "no-such-compiler"),
        run("test", "tensors", "--ml-emulation", "off"),
    ]
    out = ["".join(end[1:]) for end in ended]
    command, environment = [sys.executable, "-c", BARE], {**os.environ, "PATH": "/nowhere", "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    out.append(done.stdout + done.stderr)
    return [re.sub(r"(?<=[ (\n])[a-z_]+/(?=blur\.json)", "", f"\n{text}") for text in out]


@needs(VGF_LIBRARY, "SR-FEATURE-005")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.split("\n")[0][-40:])
def test_a_message_is_printed(message: str, printed: list[str]) -> None:
    """The program prints the message from the start of a line to the end of a line."""
    pattern = re.compile("^" + pattern_of(message.splitlines()).pattern, re.MULTILINE)
    assert any(pattern.search(text) for text in printed), "\n".join(printed)


def test_each_failure_is_on_the_page(printed: list[str]) -> None:
    """No process runs for nothing."""
    patterns = [re.compile("^" + pattern_of(message.splitlines()).pattern, re.MULTILINE) for message in MESSAGES]
    assert [text for text in printed if not any(pattern.search(text) for pattern in patterns)] == []
