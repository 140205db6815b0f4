"""Tests of LLVM's offload-test-suite become items: pipelines, expected numbers, conditions and errors with lines."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.left_out import DXC_LIBRARY, needs
from tests.program import Program

SHADER = """
StructuredBuffer<float> a : register(t0);
RWStructuredBuffer<float> b : register(u1);
[numthreads(1, 1, 1)] void main(uint3 i : SV_DispatchThreadID) { b[i.x] = a[i.x] * FACTOR; }
"""
BUFFERS = """
  - { Name: a, Format: Float32, Data: [ 1, -2.5, 0x1p-2 ] }
  - { Name: b, Format: Float32, FillSize: 12 }
  - { Name: right, Format: Float32, Data: [ 2, -5, 0.5 ] }
"""
SETS = """
  - Resources:
    - { Name: a, Kind: StructuredBuffer, VulkanBinding: { Binding: 0 } }
    - { Name: b, Kind: RWStructuredBuffer, VulkanBinding: { Binding: 1 } }
"""
EXACT = "{ Result: r, Rule: BufferExact, Actual: b, Expected: right }"
COMPILE = "# RUN: %dxc_target -T cs_6_0 -DFACTOR=2 -Fo %t.o %t/a.hlsl\n"
RUNS = COMPILE + "# RUN: %offloader %t/a.yaml %t.o\n"


def text_of(
    *, buffers: str = BUFFERS, sets: str = SETS, results: str = EXACT, more: str = "", lines: str = RUNS
) -> str:
    """Return the file of a test: two sections and the lines for lit."""
    return f"""#--- a.hlsl
{SHADER.strip()}
//--- a.yaml
---
Shaders:
  - {{ Stage: Compute, Entry: main }}
Buffers: {buffers.rstrip()}
DescriptorSets: {sets.rstrip()}
DispatchParameters: {{ DispatchGroupCount: [3, 1, 1] }}
Results: [ {results} ]
{more}
...
#--- end
{lines}"""


def imported(program: Program, folder: Path, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Import one test, and return the scenario and the expectations."""
    (folder / "a.test").write_bytes(text.encode())
    program.succeed("import", "offload", "a.test", "-o", "suite")
    item = folder / "suite" / "a.test"
    return json.loads((item / "scenario.json").read_text()), json.loads((item / "check.json").read_text())


def rule_of(folder: Path, check: dict[str, Any], output: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the expected numbers of an output, and the tolerances."""
    rule = dict(check["outputs"][output])
    return numpy.load(folder / "suite" / "a.test" / rule.pop("file")).tolist(), rule


@needs(DXC_LIBRARY)
def test_the_suite_runs(tmp_path: Path, program: Program) -> None:
    """Right numbers pass, and wrong numbers fail. A test that must fail is right about wrong numbers."""
    wrong = BUFFERS.replace("-5", "-6")
    for name, text in (
        ("right", text_of()),
        ("wrong", text_of(buffers=wrong)),
        ("fails", text_of(buffers=wrong, lines=RUNS.replace("%off", "not %off"))),
        ("error", text_of(results="", lines=RUNS.replace("%off", "not %off"), buffers=BUFFERS.replace("12", "0"))),
    ):
        (tmp_path / "tests" / "deep").mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / "deep" / f"{name}.test").write_text(text)
    program.succeed("import", "offload", "tests", "-o", "suite")
    ended = program("test", "suite", "--json", "report.json")
    tests = json.loads((tmp_path / "report.json").read_text())["results"]["tests"]
    verdicts = {Path(each["name"]).parent.name: each["rawStatus"] for each in tests}
    assert verdicts == {"right.test": "Pass", "wrong.test": "Fail", "fails.test": "ExpectedFail", "error.test": "Pass"}
    assert "-5.0 (0xc0a00000), expected -6.0" in ended.out


DRAW = """#--- v.hlsl
struct Out { float4 at : SV_Position; float3 color : COLOR; };
Out go(float2 at : POSITION, float3 color : COLOR) { Out o = { float4(at, 0.5, 1), color }; return o; }
#--- p.hlsl
float4 go(float4 at : SV_Position, float3 color : COLOR) : SV_Target { return float4(color, 1); }
#--- draw.yaml
Shaders: [ { Stage: Vertex, Entry: go }, { Stage: Pixel, Entry: go } ]
Buffers:
  - Name: vertices
    Format: Float32
    Data: [ -1, 0, 1, 0.5, 0, -1, 2, 1, 0.5, 0, 3, 0, 1, 0.5, 0 ]
  - { Name: target, Format: Float32, Channels: 4, FillSize: 64, OutputProps: { Width: 2, Height: 2, Depth: 1 } }
  - { Name: right, Format: Float32, Channels: 4, Data: [ 1, 0.5, 0, 1, 1, 0.5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 ] }
Bindings:
  VertexBuffer: vertices
  VertexAttributes:
    - { Name: POSITION, Format: Float32, Channels: 2, Offset: 0 }
    - { Name: COLOR, Format: Float32, Channels: 3, Offset: 8 }
  RenderTarget: target
DescriptorSets:
Results: [ { Result: r, Rule: BufferExact, Actual: target, Expected: right } ]
#--- end
# RUN: %dxc_target -T vs_6_0 -E go -Fo %t-v.o %t/v.hlsl
# RUN: %dxc_target -T ps_6_0 -E go -Fo %t-p.o %t/p.hlsl
# RUN: %offloader %t/draw.yaml %t-v.o %t-p.o
"""


@needs(DXC_LIBRARY)
def test_a_draw(tmp_path: Path, program: Program) -> None:
    """Attributes follow each other in the vertex buffer, and the y axis points up: the first row is drawn."""
    scenario, _ = imported(program, tmp_path, DRAW)
    fill, draw = (next(iter(command.values())) for command in scenario["commands"])
    assert (fill["value"], draw["vertex_count"], draw["viewport"]) == (1, 3, {"y": 2, "width": 2, "height": -2})
    assert [(each["location"], each["offset"], each["stride"]) for each in draw["vertex_attributes"]] == [
        (0, 0, 20),
        (1, 8, 20),
    ]
    program.succeed("test", "suite")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_scenario(tmp_path: Path, program: Program, line_end: str) -> None:
    """Sources, options, content and bindings come from the sections and the RUN line."""
    scenario, check = imported(program, tmp_path, text_of().replace("\n", line_end))
    item = tmp_path / "suite" / "a.test"
    shader = scenario["resources"][2]["shader"]
    assert (shader["build_options"], shader["entry"]) == ("-T cs_6_0 -DFACTOR=2 -fspv-target-env=vulkan1.3", "main")
    assert (item / shader["src"]).read_text().strip() == SHADER.strip()
    assert scenario["resources"][0]["buffer"]["src"] == {"values": [1, -2.5, 0.25], "dtype": "float32"}
    assert scenario["resources"][1]["buffer"]["size"] == 12
    dispatch = scenario["commands"][0]["dispatch_compute"]
    assert (dispatch["rangeND"], [each["resource_ref"] for each in dispatch["bindings"]]) == ([3, 1, 1], ["a", "b"])
    assert rule_of(tmp_path, check, "b") == ([2, -5, 0.5], {})


@pytest.mark.parametrize(
    "rule, tolerance",
    [
        ("BufferFloatULP, ULPT: 3", {"ulp": 3, "denormals": "any"}),
        ("BufferFloatULP, ULPT: 0, DenormMode: FTZ, ZeroTolerance: 0.5", {"ulp": 0, "zero": 0.5}),
        ("BufferFloatEpsilon, Epsilon: 0, DenormMode: Preserve", {"atol": 0}),
        ("BufferFloatEpsilon, Epsilon: 1", {"atol": 1 - 2**-24, "denormals": "any"}),
    ],
)
def test_tolerances(tmp_path: Path, program: Program, rule: str, tolerance: dict[str, Any]) -> None:
    """A rule becomes a tolerance. Epsilon is the first error that is too large."""
    _, check = imported(program, tmp_path, text_of(results=EXACT.replace("BufferExact", rule)))
    assert rule_of(tmp_path, check, "b") == ([2, -5, 0.5], tolerance)


CHECKED = (
    "RWBuffer<float> b[2];"
    and """
  - { Name: a, Format: Int32, Data: [ 7, 7 ] }
  - { Name: b, Format: Float32, ArraySize: 2, FillSize: 8 }
  - { Name: c, Format: Hex16, FillSize: 4 }
  - { Name: d, Format: Int64, FillSize: 24 }
"""
)
PRINTED = """
# CHECK: Name: b
# CHECK: Counters: [ 3, 4 ]
# CHECK: Data:
# CHECK-NEXT: - [ 1.5, -2 ]
# CHECK: - [ nan, {{3.14.*}} ]
# CHECK: Data: [
# CHECK: 0xAB,
# CHECK-NOT: 0xFF
# CHECK: 0x10
# CHECK: ]
# CHECK: Data: [ -9, 8
"""


def test_printed_numbers(tmp_path: Path, program: Program) -> None:
    """Numbers for FileCheck belong to the named buffer, else to the next written buffer of that size."""
    names = (("a", "StructuredBuffer", 0), ("b", "RWStructuredBuffer", 1), ("c", "RWBuffer", 3), ("d", "RWBuffer", 4))
    sets = "\n  - Resources:" + "".join(
        f"\n    - {{ Name: {name}, Kind: {kind}, VulkanBinding: {{ Binding: {id} }} }}" for name, kind, id in names
    )
    sets = sets.replace("Binding: 1 }", "Binding: 1, CounterBinding: 2 }, HasCounter: true")
    scenario, check = imported(program, tmp_path, text_of(buffers=CHECKED, sets=sets, results="", lines=RUNS + PRINTED))
    bindings = scenario["commands"][0]["dispatch_compute"]["bindings"]
    assert bindings[1:3] == [
        {"set": 0, "id": 1, "resource_refs": ["b_0", "b_1"]},
        {"set": 0, "id": 2, "resource_refs": ["b_0_counter", "b_1_counter"]},
    ]
    assert [rule_of(tmp_path, check, f"b_{index}_counter") for index in (0, 1)] == [([3], {}), ([4], {})]
    assert rule_of(tmp_path, check, "b_0") == ([1.5, -2], {"rtol": 1e-2, "atol": 0})
    assert str(rule_of(tmp_path, check, "b_1")) == "([nan, 3.140000104904175], {'rtol': 0.01, 'atol': 0})"
    assert rule_of(tmp_path, check, "c") == ([0xAB, 0x10], {})
    assert check["outputs"]["d"] == {"at": 0, "values": [-9, 8], "dtype": "int64"}


@pytest.mark.parametrize(
    "kind, buffer, format",
    [
        ("Buffer", "Format: Int32", "VK_FORMAT_R32_SINT"),
        ("Buffer", "Format: UInt16, Channels: 4", "VK_FORMAT_R16G16B16A16_UINT"),
        ("RWBuffer", "Format: Float32, Channels: 3", "VK_FORMAT_R32G32B32_SFLOAT"),
        ("RWBuffer", "Format: Int64, Channels: 2", "VK_FORMAT_R32G32B32A32_SINT"),
        ("RWBuffer", "Format: UInt32, Channels: 4", None),
        ("StructuredBuffer", "Format: UInt32, Channels: 4", None),
    ],
)
def test_texel_formats(tmp_path: Path, program: Program, kind: str, buffer: str, format: str | None) -> None:
    """A binding has a format where the shader does not declare the same."""
    sets = SETS.replace("Kind: StructuredBuffer", f"Kind: {kind}")
    scenario, _ = imported(
        program,
        tmp_path,
        text_of(
            buffers=BUFFERS.replace("a, Format: Float32", f"a, {buffer}").replace(
                "1, -2.5, 0x1p-2", "1, 2, 3, 4, 5, 6"
            ),
            sets=sets,
        ),
    )
    assert scenario["commands"][0]["dispatch_compute"]["bindings"][0].get("format") == format


@pytest.mark.parametrize(
    "lines, expected",
    [
        ("REQUIRES: Half, Double", {"needs": ["shaderFloat16", "shaderFloat64"]}),
        ("REQUIRES: Int64 && SM_6_6 && (!Vulkan || VulkanInt64BufferAtomics)",
         {"needs": ["shaderBufferInt64Atomics", "shaderInt64"]}),
        ("REQUIRES: Metal", {"not_supported": "REQUIRES: Metal"}),
        ("UNSUPPORTED: Clang, !DXC", {}),
        ("UNSUPPORTED: Vulkan && !VK_KHR_maintenance4", {"extensions": ["VK_KHR_maintenance4"]}),
        ("UNSUPPORTED: Lavapipe", {"when": [{"device": "llvmpipe*", "not_supported": "UNSUPPORTED: Lavapipe"}]}),
        ("XFAIL: *", {"expected_fail": "XFAIL: *"}),
        ("XFAIL: DXC && !Clang && (Metal || Vulkan)", {"expected_fail": "XFAIL: DXC && !Clang && (Metal || Vulkan)"}),
        ("XFAIL: Vulkan && (NV || QC) && !Clang",
         {"when": [{"vendor": vendor, "expected_fail": "XFAIL: Vulkan && (NV || QC) && !Clang"}
                   for vendor in ("nvidia", "qualcomm")]}),
    ],
)  # fmt: skip
def test_conditions(tmp_path: Path, program: Program, lines: str, expected: dict[str, Any]) -> None:
    """Words about DXC, Vulkan and Linux are decided. Words about the device become requirements and conditions."""
    _, check = imported(program, tmp_path, text_of(lines=RUNS + f"# {lines}\n"))
    needs = check.pop("needs", {"features": [], "extensions": []})
    assert needs["features"] == expected.pop("needs", [])
    assert needs["extensions"] == expected.pop("extensions", [])
    assert sorted(check.pop("when", []), key=str) == expected.pop("when", [])
    check.pop("outputs", None)
    assert check == expected


def test_a_comment_is_the_reason(tmp_path: Path, program: Program) -> None:
    """The comment above a directive follows the condition."""
    _, check = imported(program, tmp_path, text_of(lines=RUNS + "# Crashes now\n# and then.\n# XFAIL: DXC\n"))
    assert check["expected_fail"] == "XFAIL: DXC; Crashes now and then."


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"sets": SETS.replace(", VulkanBinding: { Binding: 0 }", "")}, "a resource without VulkanBinding"),
        ({"more": "Samplers: [ { Name: s, Kind: SamplerComparison } ]"}, "samplers that compare depths"),
        ({"more": "AccelerationStructures: { BLAS: [] }"}, "ray tracing"),
        ({"results": EXACT.replace("Exact", "Near, Distance: 4")}, "the rule BufferNear"),
        ({"more": "Bindings: { Topology: PatchList }"}, "the topology PatchList"),
        ({"lines": RUNS + "# RUN: imgdiff a b\n"}, "comparison with a picture that the suite lacks"),
        ({"lines": RUNS + RUNS}, "2 runs of a pipeline"),
    ],
)
def test_not_supported(tmp_path: Path, program: Program, changes: dict[str, str], reason: str) -> None:
    """A test that no scenario can express has a reason, and the end counts the reasons."""
    (tmp_path / "a.test").write_text(text_of(**changes))
    ended = program.succeed("import", "offload", "a.test", "-o", "suite")
    assert ended.out.startswith(f"not supported: 1: {reason}\n0 imported, 1 not supported, ")
    assert json.loads((tmp_path / "suite/a.test/check.json").read_text()) == {"not_supported": reason}


def test_local_settings(tmp_path: Path, program: Program) -> None:
    """lit.local.cfg of a folder, or of a folder above, can exclude tests."""
    (tmp_path / "tests/below").mkdir(parents=True)
    (tmp_path / "tests/below/a.test").write_text(text_of())
    (tmp_path / "tests/lit.local.cfg").write_text(
        "if 'DirectX' not in config.available_features:\n  config.unsupported = True\n"
    )
    ended = program.succeed("import", "offload", "tests", "-o", "suite")
    assert ended.out.startswith("not supported: 1: lit.local.cfg: without DirectX\n")


BAD = {
    "no integer": (
        text_of(sets=SETS.replace("Binding: 1", "Binding: one")),
        ":16: /DescriptorSets/0/Resources/1/VulkanBinding/Binding: expected an integer, got 'one'",
    ),
    "no list": (text_of(buffers="{ Name: b }"), ":9: /Buffers: expected an array, got an object"),
    "unknown key": (text_of(more="Bufers: []"), ":19: /Bufers: unknown key 'Bufers'"),
    "missing key": (
        text_of(buffers=BUFFERS.replace("Name: b, ", "")),
        ":11: /Buffers/1: the required key 'Name' is missing",
    ),
    "unknown format": (
        text_of(buffers=BUFFERS.replace("Float32, F", "Float24, F")),
        ":11: /Buffers/1/Format: expected one of",
    ),
    "wrong number": (
        text_of(buffers=BUFFERS.replace("-2.5", "two")),
        ":10: /Buffers/0: the numbers are wrong: could not convert",
    ),
    "large number": (
        text_of(buffers=BUFFERS.replace("Float32, Data: [ 1, -2.5, 0x1p-2", "Hex8, Data: [ 256")),
        ":10: /Buffers/0: the numbers are wrong: Python integer 256 out of bounds",
    ),
    "syntax": (text_of(more="x: [ 1"), ":20: the YAML cannot be read: did not find expected ',' or ']'"),
    "alias": (text_of(more="x: &x 1\ny: *x"), ":20: has the alias *x"),
    "depth": (text_of(more=f"x: {'[' * 40}{']' * 40}"), ":19: nests more than 32 levels"),
    "twice": (text_of(more="Buffers: []"), ":19: has the key 'Buffers' twice, or no text as a key"),
    "name": (text_of(results=EXACT.replace("right", "left")), ":6: the pipeline is wrong: nothing is called 'left'"),
    "sizes": (
        text_of(buffers=BUFFERS.replace("FillSize: 12", "FillSize: 16")),
        ":6: the pipeline is wrong: 'b' has [16] bytes, 'right' has [12]",
    ),
    "section": (text_of(lines=RUNS.replace("%t/a.yaml", "%t/b.yaml")), ": has no section called 'b.yaml'"),
    "run": (text_of(lines=""), ": has no RUN line"),
    "sections": (RUNS, ": has no section called 'a.yaml'"),
    "quote": (text_of(lines="# RUN: %offloader 'x\n"), ":22: the RUN line cannot be split: No closing quotation"),
    "channels": (
        text_of(buffers=BUFFERS.replace("a, F", "a, Channels: 5, F")),
        ":10: /Buffers/0/Channels: expected an ",
    ),
    "stage": (text_of().replace("Compute, E", "Pixel, E"), ":6: the pipeline is wrong: the stages are Pixel, expected"),
    "tolerance": (
        text_of(results=EXACT.replace("BufferExact", "BufferFloatEpsilon, Epsilon: nan")),
        ":18: /Results/0/Epsilon: expected a finite number, got 'nan'",
    ),
    "place": (
        text_of(sets=SETS.replace("Binding: 1", "Binding: -1")),
        ":16: /DescriptorSets/0/Resources/1/VulkanBinding",
    ),
    "groups": (
        text_of().replace("[3, 1", "[-3, 1"),
        ":17: /DispatchParameters/DispatchGroupCount/0: expected an integer of at least 0, got '-3'",
    ),
    "image": (
        text_of(
            buffers=BUFFERS.replace("b, F", "b, OutputProps: { Width: 2, Height: 2, Depth: 1 }, F"),
            sets=SETS.replace("RWStructuredBuffer", "RWTexture2D"),
        ),
        ":6: the pipeline is wrong: 'b' has 2 x 2 texels, but 3 numbers are expected",
    ),
    "control": (text_of().replace("main }", "\x1b }"), ":6: the YAML cannot be read: unacceptable character #x001b: "),
    "condition": (text_of(lines=RUNS + "# XFAIL: (DXC\n"), ":24: the condition '(DXC' cannot be read"),
}


def test_wrong_tests(tmp_path: Path, program: Program) -> None:
    """Each wrong test is reported with the line, and leaves no folder. The right test is imported."""
    (tmp_path / "tests").mkdir()
    for name, text in {"right": text_of(), **{name: text for name, (text, _) in BAD.items()}}.items():
        (tmp_path / "tests" / f"{name}.test").write_text(text)
    ended = program("import", "offload", "tests", "-o", "suite")
    reported = ended.err + ended.out
    assert ended.code == 4
    assert len(reported.splitlines()) <= 2 * len(BAD) + 2
    for name, (_, message) in BAD.items():
        assert f"error: tests/{name}.test{message}" in reported
    assert reported.count("[SR-IMPORT-001]") == len(BAD)
    assert f"1 imported, 0 not supported, 0 expected to fail, {len(BAD)} errors" in reported
    assert [path.name for path in (tmp_path / "suite").iterdir()] == ["right.test"]


def test_names_stay_in_the_folder(tmp_path: Path, program: Program) -> None:
    """Names of buffers and sections are no paths."""
    text = text_of(buffers=BUFFERS.replace("-2.5", "nan"))  # content with NaN is a file
    text = text.replace("Name: a,", "Name: ../../a,").replace("a.hlsl", "../../a.hlsl")
    scenario, _ = imported(program, tmp_path, text)
    files = [next(iter(each.values()))["src"] for each in scenario["resources"] if "src" in next(iter(each.values()))]
    assert all((tmp_path / "suite/a.test" / file).is_file() and "/" not in file for file in files)


def test_unknown_words_are_listed_once(tmp_path: Path, program: Program) -> None:
    """A word that no condition of the suite had yet counts as false."""
    (tmp_path / "tests").mkdir()
    for name in "ab":
        (tmp_path / "tests" / f"{name}.test").write_text(text_of(lines=RUNS + "# XFAIL: NewWord\n"))
    ended = program("import", "offload", "tests", "-o", "suite")
    assert (ended.out + ended.err).count("the condition 'NewWord' is not known and counts as false") == 1
