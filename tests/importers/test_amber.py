"""Scripts of Amber become items: translations, runs with the verdicts of the suite, and errors with a line."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.program import Program

COMPUTE = """\
SHADER compute twice GLSL
#version 450
layout(set = 0, binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] *= 2; }
END
BUFFER numbers DATA_TYPE uint32 DATA
  1 2  # comments are left out
  0x03 4
END
PIPELINE compute pipeline
  ATTACH twice
  BIND BUFFER numbers AS storage DESCRIPTOR_SET 0 BINDING 0
END
"""
PAINT = """\
SHADER vertex corners PASSTHROUGH
SHADER fragment paint GLSL
#version 450
layout(location = 0) out vec4 color;
void main() { color = vec4(1, 0, 0.5, 1); }
END
BUFFER picture FORMAT B8G8R8A8_UNORM
PIPELINE graphics pipeline
  ATTACH corners
  ATTACH paint
  FRAMEBUFFER_SIZE 8 4
  BIND BUFFER picture AS color LOCATION 0
END
"""
VKSCRIPT = """\
# comment
[compute shader]
#version 450
layout(std430, set = 0, binding = 1) buffer Data { vec3 data[]; };
void main() { data[0] += vec3(1, 2, 3); }

[test]
ssbo 0:1 subdata vec3 0  0.5 0.25 0
compute 1 1 1
probe ssbo vec3 0:1 0 ~= 1.5 2.25 \\
  3
"""


def add(folder: Path, name: str, text: str) -> None:
    """Write a script; AmberScript gets the first line."""
    path = folder / "scripts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith(("#", "[")) else f"#!amber\n{text}", encoding="utf-8")


def item(folder: Path, name: str) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Return the resources of an item by name, the commands, and check.json."""
    scenario = json.loads((folder / "suite" / name / "scenario.json").read_text(encoding="utf-8"))
    check = json.loads((folder / "suite" / name / "check.json").read_text(encoding="utf-8"))
    bodies = [body for resource in scenario["resources"] for body in resource.values()]
    return {body["uid"]: body for body in bodies}, scenario["commands"], check


def imported(program: Program, folder: Path, text: str, name: str = "a.amber") -> Any:
    """Import a script, and return the item."""
    add(folder, name, text)
    program.succeed("import", "amber", "scripts", "--output", "suite")
    return item(folder, name)


def test_a_buffer(program: Program, tmp_path: Path) -> None:
    """Content, binding, workgroups and exact values of a buffer."""
    resources, commands, check = imported(
        program, tmp_path, COMPUTE + "RUN pipeline 4 1 1\nEXPECT numbers IDX 4 EQ 4 6"
    )
    assert resources["numbers"]["src"] == {"values": [1, 2, 3, 4], "dtype": "uint32"}
    assert (tmp_path / "suite/a.amber" / resources["twice"]["src"]).read_text().startswith("#version 450\n")
    (dispatch,) = commands
    assert dispatch["dispatch_compute"] == {
        "shader_ref": "twice",
        "bindings": [{"set": 0, "id": 0, "resource_ref": "numbers"}],
        "rangeND": [4, 1, 1],
    }
    assert check["outputs"] == {"numbers": {"at": 4, "values": [4, 6], "dtype": "uint32"}}


def test_an_expectation_before_a_write(program: Program, tmp_path: Path) -> None:
    """A frame ends before the next write of the buffer. Repeated commands are unrolled."""
    text = (
        COMPUTE + "REPEAT 2\nRUN pipeline 4 1 1\nEXPECT numbers IDX 0 EQ 2\nEND\nEXPECT numbers IDX 0 TOLERANCE 1 EQ 3"
    )
    _, commands, check = imported(program, tmp_path, text)
    assert [next(iter(command)) for command in commands] == ["dispatch_compute", "mark_boundary", "dispatch_compute"]
    assert commands[1]["mark_boundary"] == {"resources": ["numbers"], "frame_id": 0}
    rule = {"at": 0, "values": [2], "dtype": "uint32"}
    assert check["outputs"] == {"frame_0/numbers": rule, "numbers": [rule, {**rule, "values": [3], "atol": 1.0}]}


LAYOUTS = [
    ("vec3<float> STD430 DATA 1 2 3 4 5 6 END", 32, [1, 2, 3, 0, 4, 5, 6, 0], [(0, [1, 2, 3]), (16, [4, 5, 6])]),
    ("float[] STD140 DATA 1 2 END", 32, [1, 0, 0, 0, 2, 0, 0, 0], [(0, [1]), (16, [2])]),
    ("float STD140 DATA 1 2 END", 8, [1, 2], [(0, [1, 2])]),
    ("mat2x2<float> STD140 DATA 1 2 3 4 END", 32, [1, 2, 0, 0, 3, 4, 0, 0], [(0, [1, 2]), (16, [3, 4])]),
    ("pair STD140 DATA 1 2 3 END", 16, [1, 0, 2, 3], [(0, [1]), (8, [2, 3])]),
    ("placed DATA 1 2 END", 24, [0, 0, 1, 0, 2, 0], [(8, [1]), (16, [2])]),
]
STRUCTS = """\
STRUCT pair
  float a
  vec2<float> b
END
STRUCT placed STRIDE 24
  float a OFFSET 8
  float b OFFSET 16
END
"""


@pytest.mark.parametrize("definition, size, values, rules", LAYOUTS)
def test_layouts(
    program: Program, tmp_path: Path, definition: str, size: int, values: list[float], rules: list[Any]
) -> None:
    """Padding of vectors, arrays, matrices and structs is in the content, and no rule covers padding."""
    expected = definition.partition("DATA ")[2].removesuffix(" END")
    text = STRUCTS + COMPUTE.replace("BIND BUFFER numbers", "BIND BUFFER laid_out").replace(
        "PIPELINE", f"BUFFER laid_out DATA_TYPE {definition}\nPIPELINE"
    )
    resources, _, check = imported(program, tmp_path, f"{text}RUN pipeline 1 1 1\nEXPECT laid_out IDX 0 EQ {expected}")
    assert resources["laid_out"]["size"] == size
    assert resources["laid_out"]["src"] == {"values": values, "dtype": "float32"}
    found = check["outputs"]["laid_out"]
    found = found if isinstance(found, list) else [found]
    assert [(rule["at"], rule["values"], rule["rtol"]) for rule in found] == [(*rule, 1e-8) for rule in rules]


def test_a_drawing(program: Program, tmp_path: Path) -> None:
    """A rectangle is a strip of four vertices, from bottom left to top right. CLEAR fills each attachment."""
    text = PAINT + (
        "CLEAR_COLOR pipeline 0 51 0 255\nCLEAR pipeline\nRUN pipeline DRAW_RECT POS 0 0 SIZE 4 4\n"
        "EXPECT picture IDX 0 0 SIZE 4 4 EQ_RGBA 255 0 127 255 TOLERANCE 2\n"
        "EXPECT picture IDX 4 0 SIZE 4 4 EQ_RGB 0 51 0\n"
        "EXPECT picture IDX 4 0 SIZE 1 1 EQ_RGB 0 51 0 TOLERANCE 5%\n"
    )
    resources, (fill, draw), check = imported(program, tmp_path, text)
    assert resources["picture"]["dims"] == [1, 8, 4, 1]
    assert fill["fill"] == {"resource_ref": "picture", "value": [0, 0.2, 0, 1]}
    keys = draw["dispatch_fragment"]
    assert (keys["topology"], keys["vertex_count"]) == ("TRIANGLE_STRIP", 4)
    assert keys["vertex_attributes"] == [
        {"location": 0, "resource_ref": "vertices", "format": "VK_FORMAT_R32G32_SFLOAT"}
    ]
    assert resources["vertices"]["src"]["values"] == [-1, 1, -1, -1, 0, 1, 0, -1]
    first, second, third = check["outputs"]["picture"]
    assert first["values"] == pytest.approx([1, 0, 127 / 255, 1])
    assert first["atol"] == pytest.approx(2 / 255, abs=2e-6)
    assert second == {
        "rect": [4, 0, 4, 4],
        "channels": "RGB",
        "normalized": True,
        "values": [0, 0.2, 0],
        "atol": 0.002,
    }
    assert third["rtol"] == 0.05
    assert ["note" in rule for rule in (first, second, third)] == [True, False, False]


VERTEX_DATA = """\
BUFFER positions DATA_TYPE vec3<float> DATA -1 -1 0 3 -1 0 -1 3 0 END
BUFFER colors DATA_TYPE R8G8B8A8_UNORM DATA 1 2 3 4 1 2 3 4 1 2 3 4 END
BUFFER order DATA_TYPE uint16 DATA 0 1 2 END
BUFFER depth FORMAT D32_SFLOAT
DERIVE_PIPELINE derived FROM pipeline
  VERTEX_DATA positions LOCATION 0
  VERTEX_DATA colors LOCATION 1 RATE instance OFFSET 4
  INDEX_DATA order
  BIND BUFFER depth AS depth_stencil
  POLYGON_MODE line
  VIEWPORT 1 2 SIZE 3 4 MIN_DEPTH 0.5
  DEPTH
    TEST on
    WRITE on
    COMPARE_OP less_or_equal
    BOUNDS min 0 max 1
    BIAS constant 1 clamp 0 slope 2
  END
END
CLEAR_DEPTH derived 0.5
CLEAR derived
RUN derived DRAW_ARRAY AS TRIANGLE_LIST INDEXED START_IDX 1 COUNT 2
"""


def test_a_drawing_with_vertex_data(program: Program, tmp_path: Path) -> None:
    """Attributes have the padded stride of the buffer, and START_IDX of an indexed draw is added to the indices."""
    _, (_, clear, draw), _ = imported(program, tmp_path, PAINT + VERTEX_DATA)
    assert clear["fill"] == {"resource_ref": "depth", "value": 0.5}
    keys = draw["dispatch_fragment"]
    assert keys["vertex_attributes"] == [
        {"location": 0, "resource_ref": "positions", "format": "VK_FORMAT_R32G32B32_SFLOAT", "stride": 16},
        {"location": 1, "resource_ref": "colors", "format": "VK_FORMAT_R8G8B8A8_UNORM", "stride": 4}
        | {"input_rate": "INSTANCE", "offset": 4},
    ]
    assert (keys["vertex_count"], keys["first_vertex"]) == (2, 1)
    assert keys["index_buffer"] == {"resource_ref": "order", "index_type": "UINT16"}
    assert keys["polygon_mode"] == "LINE"
    assert keys["viewport"] == {"x": 1, "y": 2, "width": 3, "height": 4, "min_depth": 0.5}
    assert keys["depth_attachment"] == {
        "resource_ref": "depth",
        "write": True,
        "compare_op": "LESS_OR_EQUAL",
        "bias": {"constant": 1, "clamp": 0, "slope": 2},
    }


def test_descriptors(program: Program, tmp_path: Path) -> None:
    """Arrays, parts of buffers, texel buffers, mip levels, samplers and specialization constants."""
    text = (
        COMPUTE.replace(
            "PIPELINE",
            "BUFFER texels DATA_TYPE R8G8B8_SNORM DATA 1 2 3 4 -5 6 END\n"
            "IMAGE image FORMAT R8G8B8A8_UNORM MIP_LEVELS 2 DIM_2D WIDTH 4 HEIGHT 2 FILL 255\n"
            "SAMPLER soft MAG_FILTER linear ADDRESS_MODE_U clamp_to_border ADDRESS_MODE_V clamp_to_border\nPIPELINE",
        )
        .replace("  ATTACH twice", "  ATTACH twice SPECIALIZE 3 AS uint32 7")
        .replace(
            "BINDING 0\n",
            "BINDING 0 DESCRIPTOR_OFFSET 4 DESCRIPTOR_RANGE 8\n"
            "  BIND BUFFER_ARRAY numbers numbers AS uniform_dynamic DESCRIPTOR_SET 1 BINDING 2 OFFSET 0 256\n"
            "  BIND BUFFER texels AS uniform_texel_buffer DESCRIPTOR_SET 0 BINDING 1\n"
            "  BIND BUFFER image AS combined_image_sampler SAMPLER soft DESCRIPTOR_SET 0 BINDING 3 BASE_MIP_LEVEL 1\n",
        )
        + "RUN pipeline 1 1 1\n"
    )
    resources, (dispatch,), _ = imported(program, tmp_path, text)
    assert dispatch["dispatch_compute"]["bindings"] == [
        {"set": 0, "id": 0, "resource_ref": "numbers", "offset": 4, "size": 8},
        {"set": 1, "id": 2, "resource_refs": [{"resource_ref": "numbers"}, {"resource_ref": "numbers", "offset": 256}]},
        {"set": 0, "id": 1, "format": "VK_FORMAT_R8G8B8_SNORM", "resource_ref": "texels"},
        {"set": 0, "id": 3, "resource_ref": "image", "lod": 1},
    ]
    assert resources["twice"]["specialization_constants"] == [{"id": 3, "value": 7}]
    assert resources["texels"]["src"] == {"values": [1, 2, 3, 4, -5, 6], "dtype": "int8"}  # as devices read it
    image = resources["image"]
    assert (image["mips"], image["mag_filter"], image["border_address_mode"]) == (2, "LINEAR", "CLAMP_BORDER")
    content = numpy.load(tmp_path / "suite/a.amber" / image["src"])
    assert (content.shape, content.min()) == ((2, 4, 4), 255)


def test_equal_buffers_and_requirements(program: Program, tmp_path: Path) -> None:
    """A compared buffer is an output, too. Features become needs, and robust access a setting of the run."""
    text = COMPUTE.replace("PIPELINE", "BUFFER same DATA_TYPE uint32 SIZE 4 SERIES_FROM 2 INC_BY 2\nPIPELINE")
    text = "DEVICE_FEATURE VulkanMemoryModelFeatures.vulkanMemoryModel\nDEVICE_FEATURE robustBufferAccess\n" + text
    text += "RUN pipeline 4 1 1\nEXPECT numbers EQ_BUFFER same\nEXPECT numbers RMSE_BUFFER same TOLERANCE 2\n"
    resources, _, check = imported(program, tmp_path, text, "b.expect_fail.amber")
    assert resources["same"]["src"]["values"] == [2, 4, 6, 8]
    assert check == {
        "outputs": {
            "numbers": [{"equals": "same"}, {"equals": "same", "metrics": {"rmse": {"max": 2}}, "dtype": "uint32"}],
            "same": {"unchecked": True},
        },
        "needs": {"features": ["vulkanMemoryModel"], "at_least": True},
        "robustness": True,
        "expected_fail": "the suite expects a failure",
    }


def test_vkscript(program: Program, tmp_path: Path) -> None:
    """A script without #!amber is VkScript, with any extension. Data after the first command is copied."""
    text = VKSCRIPT + "ssbo 0:1 subdata vec3 0 7 8 9\ncompute 1 1 1\ntolerance 2%\nprobe ssbo vec3 0:1 0 ~= 8 10 12\n"
    resources, commands, check = imported(program, tmp_path, text, "old.amber")
    assert resources["buffer_0_1"]["src"]["values"] == [0.5, 0.25, 0, 0]
    assert [next(iter(command)) for command in commands] == [
        "dispatch_compute",
        "mark_boundary",
        "copy",
        "dispatch_compute",
    ]
    source = commands[2]["copy"]["from"]
    assert resources[source]["src"]["values"] == [7, 8, 9, 0]
    assert check["outputs"]["frame_0/buffer_0_1"] == {
        "at": 0,
        "values": [1.5, 2.25, 3],
        "dtype": "float32",
        "rtol": 1e-8,
    }
    assert check["outputs"]["buffer_0_1"]["rtol"] == 0.02


VERTICES = "0/R32G32_SFLOAT 1/ubyte/vec2\n-1 -1 1 2\n3 -1 3 4\n-1 3 5 6"
REQUIREMENTS = "shaderFloat64\nVK_KHR_16bit_storage"
DRAWING = """\
[require]
fbsize 8 4
framebuffer R8G8B8A8_UNORM
REQUIREMENTS
[vertex shader passthrough]
[fragment shader]
#version 450
layout(location = 0) out vec4 c;
void main() { c = vec4(0, 1, 0, 1); }
[vertex data]
VERTICES
[test]
clear color 1 0 0 1
clear
draw arrays GL_TRIANGLES 0 3
relative probe rect rgb (0.5, 0, 0.5, 1) (0, 1, 0)
probe all rgba 0 1 0 1
"""


def test_a_drawing_of_vkscript(program: Program, tmp_path: Path) -> None:
    """Interleaved vertex data becomes a buffer for each attribute. Relative probes count from 0 to 1."""
    text = DRAWING.replace("VERTICES", VERTICES).replace("REQUIREMENTS", REQUIREMENTS)
    resources, (_, draw), check = imported(program, tmp_path, text, "draw.vkscript")
    assert resources["vertices_0"]["src"]["values"] == [-1, -1, 3, -1, -1, 3]
    assert resources["vertices_1"]["src"] == {"values": [1, 2, 3, 4, 5, 6], "dtype": "uint8"}
    assert draw["dispatch_fragment"]["vertex_attributes"][1]["format"] == "VK_FORMAT_R8G8_UINT"
    first, second = check["outputs"]["framebuffer"]
    assert first["rect"] == [4, 0, 4, 4]
    assert second["rect"] == [0, 0, 8, 4]
    assert check["needs"] == {"features": ["shaderFloat64"], "extensions": ["VK_KHR_16bit_storage"], "at_least": True}


RUN = COMPUTE + "RUN pipeline 4 1 1\nEXPECT numbers IDX "
TRIANGLE = "0/R32G32_SFLOAT\n-1 -1\n3 -1\n-1 3"
PICTURE = """\
CLEAR_COLOR pipeline 0 51 0 255
CLEAR pipeline
RUN pipeline DRAW_RECT POS 1 2 SIZE 3 2
EXPECT picture IDX 1 2 SIZE 3 2 EQ_RGBA 255 0 127 255 TOLERANCE 1
EXPECT picture IDX 0 0 SIZE 8 2 EQ_RGBA 0 51 0 255
EXPECT picture IDX 4 2 SIZE 4 2 EQ_RGB 0 51 0
"""
SAME = "BUFFER same DATA_TYPE uint32 SIZE 4 SERIES_FROM 2 INC_BY 2\nEXPECT numbers EQ_BUFFER same\n"
TESTED = PAINT.replace("  FRAMEBUFFER", "  DEPTH\nTEST on\nEND\n  FRAMEBUFFER") + "CLEAR_DEPTH pipeline 0\n"
GRID = PAINT + "RUN pipeline DRAW_GRID POS 0 0 SIZE 8 4 CELLS 4 2\nEXPECT picture IDX 0 0 SIZE 8 4 EQ_RGB 255 0 "
VERDICTS = {
    "buffer.amber": ("Pass", RUN + "0 EQ 2 4 6 8"),
    "wrong.amber": ("Fail", RUN + "0 EQ 2 4 6 9"),
    "b.expect_fail.amber": ("ExpectedFail", RUN + "0 EQ 2 4 6 9"),
    "frames.amber": ("Pass", RUN + "8 EQ 6\nRUN pipeline 4 1 1\nEXPECT numbers IDX 8 EQ 12"),
    "frame.amber": ("Fail", RUN + "8 EQ 12\nRUN pipeline 4 1 1"),
    "picture.amber": ("Pass", PAINT + PICTURE),
    "depth.amber": ("Pass", TESTED + PICTURE),  # a test without an operation compares with ALWAYS
    "tolerance.amber": ("Fail", PAINT + PICTURE.replace("0 127 255 T", "0 125 255 T")),
    "texel.amber": ("Fail", PAINT + PICTURE.replace("0 51 0\n", "0 52 0\n")),
    "grid.amber": ("Pass", GRID + "128"),
    "other_grid.amber": ("Fail", GRID + "129 TOLERANCE 0"),
    "same.amber": ("Pass", RUN + f"0 EQ 2\n{SAME}EXPECT same RMSE_BUFFER numbers TOLERANCE 0"),
    "old.vkscript": (
        "Pass",
        VKSCRIPT + "ssbo 0:1 subdata vec3 0 7 8 9\ncompute 1 1 1\nprobe ssbo vec3 0:1 0 == 8 10 12",
    ),
    "drawing.vkscript": ("Pass", DRAWING.replace("VERTICES", TRIANGLE).replace("REQUIREMENTS", "")),
    "missing.amber": ("Skip", "DEVICE_EXTENSION VK_EXT_nobody_has_this\n" + RUN + "0 EQ 2"),
}


def test_verdicts(program: Program, tmp_path: Path) -> None:
    """Each imported script has the verdict that Amber would have."""
    for name, (_, text) in VERDICTS.items():
        add(tmp_path, name, text)
    program.succeed("import", "amber", "scripts", "--output", "suite")
    ended = program("test", "suite", "--results", "results", "--retries", "0", exit_code=1)
    note = "Amber does not divide TOLERANCE by 255, and accepts larger errors"
    assert {line.split()[1] for line in ended.out.splitlines() if note in line} == {
        "suite/tolerance.amber/scenario.json:"
    }
    rows = (tmp_path / "results/results.csv").read_text(encoding="utf-8").splitlines()
    found = {Path(row.split(",")[0]).parent.name: row.split(",")[1] for row in rows}
    assert found == {name: verdict for name, (verdict, _) in VERDICTS.items()}


UNSUPPORTED = {
    "SHADER geometry g GLSL\nEND": "geometry shaders",
    "IMAGE i FORMAT R32_UINT DIM_1D WIDTH 2 FILL 0": "1D images",
    "BUFFER b FORMAT R8_UNORM SAMPLES 4": "multisampling",
    "EXPECT numbers IDX 0 LT 3": "comparisons other than equality",
    "SAMPLER s ADDRESS_MODE_U repeat ADDRESS_MODE_V clamp_to_edge": "samplers with different address modes",
}


def test_what_scenarios_lack(program: Program, tmp_path: Path) -> None:
    """Scripts with other features are NotSupported with the reason, and the end counts the reasons."""
    for number, text in enumerate([*UNSUPPORTED, "SHADER geometry g GLSL\nEND"]):
        add(tmp_path, f"{number}.amber", COMPUTE + text)
    add(tmp_path, "refused.expect_fail.amber", COMPUTE + "RUN")
    ended = program.succeed("import", "amber", "scripts", "--output", "suite")
    *reasons, last = ended.out.splitlines()
    assert reasons[0] == "expected error: 1: the importer refuses the script, as the suite expects"
    assert reasons[1] == "not supported: 2: geometry shaders"
    rare = [reason for reason in UNSUPPORTED.values() if reason != "geometry shaders"]
    assert reasons[2:] == [f"not supported: 1: {reason}" for reason in sorted(rare)]
    assert last.startswith("0 imported, 6 not supported, 1 expected to fail, 0 errors in ")
    assert "7 NotSupported" in program("test", "suite", exit_code=6).out


def test_assembly(program: Program, tmp_path: Path) -> None:
    """SPIR-V assembly becomes a module; without spirv-as it is an error."""
    assembly = 'OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpEntryPoint GLCompute %main "main"\n'
    assembly += "OpExecutionMode %main LocalSize 1 1 1\n%void = OpTypeVoid\n%type = OpTypeFunction %void\n"
    assembly += "%main = OpFunction %void None %type\n%label = OpLabel\nOpReturn\nOpFunctionEnd\n"
    text = f"SHADER compute nothing SPIRV-ASM TARGET_ENV spv1.3\n{assembly}END\n"
    text += "PIPELINE compute p\n  ATTACH nothing\nEND\n"
    assert shutil.which("spirv-as"), "install spirv-tools"
    resources, _, _ = imported(program, tmp_path, text + "RUN p 1 1 1\n")
    module = (tmp_path / "suite/a.amber" / resources["nothing"]["src"]).read_bytes()
    assert numpy.frombuffer(module[:8], "<u4").tolist() == [0x07230203, 0x00010300]
    assert "1 Pass" in program.succeed("test", "suite").out
    add(tmp_path, "a.amber", text.replace("OpReturn", "OpReturns") + "RUN p 1 1 1\n")
    assert (
        "not supported: 1: spirv-as: Invalid Opcode name 'OpReturns'"
        in program("import", "amber", "scripts", "-o", "suite").out
    )
    ended = program("import", "amber", "scripts", "--output", "other", env={"PATH": "/nowhere"}, exit_code=6)
    assert "spirv-as is not installed" in ended.err
