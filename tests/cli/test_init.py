"""``scenario-runner init``: the scenario for a shader runs as written."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from tests.program import Program, files_in
from tests.scenes import glsl

DOUBLE = glsl(
    "data[gl_GlobalInvocationID.x] = data[gl_GlobalInvocationID.x] * factor + float(shift);",
    "layout(constant_id = 3) const float factor = 2.0;\n"
    "layout(push_constant) uniform Push { float unused; uint shift; };\n"
    "layout(binding = 1) buffer Data { float data[]; };",
    local_size=4,
)
BLUR = glsl(
    "imageStore(result, ivec2(gl_GlobalInvocationID.xy), texelFetch(picture, ivec2(0), 0));",
    "layout(binding = 0) uniform sampler2D picture;\n"
    "layout(set = 1, binding = 2, rgba8) uniform writeonly image2D result;",
)
HLSL = """RWStructuredBuffer<uint> data : register(u0);
[numthreads(8, 1, 1)] void second(uint3 id : SV_DispatchThreadID) { data[id.x] += 3; }
"""


def entries(path: Path) -> dict[str, Any]:
    """Return the resources of a scenario by uid, and the command as "command"."""
    tree = json.loads(path.read_text())
    found = {body["uid"]: body for entry in tree["resources"] for body in entry.values()}
    return {**found, "command": tree["commands"][0]["dispatch_compute"]}


def test_buffers_and_constants(program: Program, tmp_path: Path) -> None:
    """Buffers, push constants and specialization constants get contents. The results are computed by hand."""
    (tmp_path / "double.comp").write_text(DOUBLE)
    assert program.succeed("init", "double.comp").out == "wrote double.json: run it with scenario-runner double.json\n"
    found = entries(tmp_path / "double.json")
    assert found["double"] == {
        "uid": "double",
        "src": "double.comp",
        "specialization_constants": [{"id": 3, "value": 2.0}],
    }
    assert found["Data"]["size"] == 64
    assert found["push_constants"]["src"] == {"values": ["0x3f800000", 1], "dtype": "uint32"}
    assert found["command"]["rangeND"] == [4, 1, 1]
    program.succeed("double.json")
    numbers = numpy.load(tmp_path / "out" / "Data.npy").view("float32")
    assert numbers.tolist() == [2 * number + 1 for number in range(16)]


def test_images(program: Program, tmp_path: Path) -> None:
    """A sampled image has contents, a written image a file, both at the declared sets and bindings."""
    (tmp_path / "blur.comp").write_text(BLUR)
    program.succeed("init", "blur.comp", "--workgroups", "8", "4", "1")
    found = entries(tmp_path / "blur.json")
    assert found["result"]["dims"] == [1, 8, 4, 1]
    assert found["result"]["format"] == "VK_FORMAT_R8G8B8A8_UNORM"
    assert "dst" not in found["picture"]
    assert "src" not in found["result"]
    assert [(bound["set"], bound["id"]) for bound in found["command"]["bindings"]] == [(0, 0), (1, 2)]
    program.succeed("validate", "--strict", "blur.json")
    program.succeed("blur.json")
    assert numpy.load(tmp_path / "out" / "result.npy").shape == (1, 4, 8, 4)


def test_arrays_and_texel_buffers(program: Program, tmp_path: Path) -> None:
    """All entries of an array are one resource, and a texel buffer gets a format."""
    declared = "layout(binding = 0) uniform samplerBuffer texels; layout(binding = 1) buffer B { vec4 b; } both[2];"
    (tmp_path / "fetch.comp").write_text(glsl("both[0].b = texelFetch(texels, 3) + both[1].b;", declared))
    program.succeed("init", "fetch.comp")
    bindings = entries(tmp_path / "fetch.json")["command"]["bindings"]
    assert bindings == [
        {"set": 0, "id": 0, "resource_ref": "texels", "format": "VK_FORMAT_R32G32B32A32_SFLOAT"},
        {"set": 0, "id": 1, "resource_refs": ["both", "both"]},
    ]
    program.succeed("fetch.json")


def test_hlsl_and_spirv(program: Program, tmp_path: Path) -> None:
    """HLSL gets the first entry point, and a module the type SPIR-V. Paths start from the scenario's folder."""
    (tmp_path / "add.hlsl").write_text(HLSL)
    (tmp_path / "module.bin").write_bytes(compile_all([CompileRequest(source=DOUBLE)])[0])
    (tmp_path / "made").mkdir()
    program.succeed("init", "add.hlsl", "-o", "made/add.json")
    assert entries(tmp_path / "made" / "add.json")["add"]["entry"] == "second"
    assert entries(tmp_path / "made" / "add.json")["add"]["src"] == "../add.hlsl"
    program.succeed("made/add.json")
    numbers = numpy.load(tmp_path / "made" / "out" / "data.npy").view("uint32")
    assert numbers.tolist() == [number + 3 for number in range(16)]
    program.succeed("init", "module.bin")
    assert entries(tmp_path / "module.json")["module"]["type"] == "SPIR-V"
    program.succeed("module.json")


@pytest.mark.parametrize("name", ["add.hlsl", "double.comp"])
def test_the_shader_is_read_once(tmp_path: Path, name: str) -> None:
    """Another program may change the file meanwhile: all parts of the scenario come from one state of the shader."""
    (tmp_path / name).write_text(HLSL if name == "add.hlsl" else DOUBLE)
    code = (
        "import sys\nfrom scenario_runner.cli import main\nopened = []\n"
        "sys.addaudithook(lambda event, values: opened.append(values[0]) if event == 'open' else None)\n"
        f"assert main(['init', '{name}']) == 0\nprint(opened.count('{name}'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


def test_expectations(program: Program, tmp_path: Path) -> None:
    """With --expect the results of a run become expectations, and the suite passes."""
    (tmp_path / "double.comp").write_text(DOUBLE)
    assert "1 expectation of 1 item changed" in program.succeed("init", "double.comp", "--expect").out
    check = json.loads((tmp_path / "double.check.json").read_text())
    assert check == {"outputs": {"Data": {"file": "double.expected/Data.npy", "dtype": "float32"}}}
    numbers = numpy.load(tmp_path / "double.expected" / "Data.npy").view("float32")
    assert numbers.tolist() == [2 * number + 1 for number in range(16)]
    assert "1 Pass" in program.succeed("test", ".").out


@pytest.mark.parametrize("existing", ["double.json", "double.check.json"])
def test_existing_files_stay(program: Program, tmp_path: Path, existing: str) -> None:
    """An existing scenario or check file is an error, and nothing is written."""
    (tmp_path / "double.comp").write_text(DOUBLE)
    (tmp_path / existing).write_text("mine")
    before = files_in(tmp_path)
    error = program.fail(4, "init", "double.comp", "--expect").err
    assert error == f"error: {existing}: exists, and init overwrites no file\n  help: name another file with -o\n"
    assert files_in(tmp_path) == before


def test_unsuitable_shaders(program: Program, tmp_path: Path) -> None:
    """Another stage, a missing entry point and a texture in three dimensions are errors, and nothing is written."""
    (tmp_path / "a.frag").write_text("#version 450\nvoid main() {}\n")
    volume = "layout(binding = 0) uniform sampler3D volume;\nlayout(binding = 1) buffer B { vec4 b; };"
    (tmp_path / "volume.comp").write_text(glsl("b = texelFetch(volume, ivec3(0), 0);", volume))
    before = files_in(tmp_path)
    assert "a.frag has no compute shader\n" in program.fail(2, "init", "a.frag").err
    assert "is declared as 3D" in program.fail(3, "init", "volume.comp").err
    (tmp_path / "add.hlsl").write_text(HLSL)
    assert "the entry points are: second" in program.fail(5, "init", "add.hlsl", "--entry", "none").err
    (tmp_path / "add.hlsl").unlink()
    assert files_in(tmp_path) == before


def test_a_scenario_is_no_shader(program: Program) -> None:
    """Init refuses a scenario, whether it exists or not."""
    error = program.fail(4, "init", "a.json").err
    assert error == "error: a.json: is a .json file, expected a shader\n  help: init writes a scenario for a shader\n"
