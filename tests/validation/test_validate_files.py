"""validate: no finding on right scenarios, the three formats, and a device from a report."""

import json
import struct
import zlib
from pathlib import Path

import pytest

from scenario_runner import Runner
from scenario_runner.cli import main
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import FileError, UnsupportedError, UsageError
from scenario_runner.errors.codes import CODES
from scenario_runner.run.reported_device import read_device
from scenario_runner.validation import Options, validate_file
from scenarios.generate import HERE, cases
from tests.left_out import DXC_LIBRARY, VGF_LIBRARY, examples_with, needs
from tests.program import Program
from tests.scenes import Scene, assemble, glsl, kernel

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The doctor's report of this machine in a file."""
    path = tmp_path_factory.mktemp("doctor") / "doctor.json"
    path.write_text(json.dumps(gather()), encoding="utf-8")
    return path


@needs(DXC_LIBRARY, *examples_with("HLSL"))
@needs(VGF_LIBRARY, *examples_with(".vgf"))
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.relative_to(HERE).as_posix())
def test_nothing_is_found_in_what_is_right(case: Path) -> None:
    """No scenario of the project has a finding, hazards included, but the note about keys that other runners lack."""
    validation = validate_file(case / "scenario.json", Options(hazards=True))
    assert [(each.code, str(each)) for each in validation.findings if each.code != "SR-JSON-012"] == []
    assert validation.exit_code == 0
    assert validation.commands > 0


def test_run_and_validate_say_the_same(scene: Scene) -> None:
    """The error of a run equals the finding of validate in words, place and exit code."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", []).dispatch("s", ["x", "x"])
    path = scene.write()
    with Runner() as runner, pytest.raises(Exception, match="nothing is bound") as raised:
        runner.run(path)
    validation = validate_file(path)
    problems = [each for each in validation.findings if each.severity == "error"]
    assert tuple(problems) == raised.value.problems
    assert validation.exit_code == raised.value.exit_code


def test_the_order_is_that_of_the_file(scene: Scene) -> None:
    """Findings come by line and column, whatever rule they are of."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16)
    scene.dispatch("s", ["x", "x"]).dispatch("s", []).dispatch("s", ["x", "x", "x"])
    places = [(each.line, each.column) for each in validate_file(scene.write()).findings]
    assert places == sorted(places)
    assert len(places) == 4


def test_json(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """--format json gives every finding with code, severity, place and help, and counts for each file."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", []).dispatch("s", ["x", "x"])
    path = scene.write()
    assert main(["validate", "--format", "json", str(path)]) == 3
    captured = capsys.readouterr()
    assert captured.err == ""
    (file,) = json.loads(captured.out)["files"]
    assert (file["file"], file["valid"], file["exit_code"]) == (str(path), False, 3)
    assert file["counts"] == {"error": 1, "warning": 1, "note": 0}
    first = file["findings"][0]
    assert (first["code"], first["severity"], first["path"]) == ("SR-BIND-001", "error", str(path))
    assert first["pointer"] == "/commands/0/dispatch_compute/bindings"
    assert first["help"] == 'add {"set": 0, "id": 0, "resource_ref": "…"}'
    line = path.read_text(encoding="utf-8").splitlines()[first["line"] - 1]
    assert line[first["column"] - 1 :].startswith("[")


def test_sarif(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """--format sarif gives a SARIF 2.1.0 log with rules and lines."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", []).dispatch("s", ["x", "x"])
    path = scene.write()
    assert main(["validate", "--format", "sarif", str(path)]) == 3
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["SR-BIND-001", "SR-BIND-002"]
    assert [rule["shortDescription"]["text"] for rule in rules] == [CODES[rule["id"]].title for rule in rules]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("SR-BIND-001", "error"),
        ("SR-BIND-002", "warning"),
    ]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == path.as_uri()
        assert place["physicalLocation"]["region"]["startLine"] >= 1


@needs(VGF_LIBRARY)
def test_against_the_device_that_is_here(report: Path) -> None:
    """A report gives the same answer as the device: the scenarios that it runs are right, the others lack the same."""
    device = read_device(str(report))
    with Runner() as runner:
        for case in cases()[::6]:
            validation = validate_file(case / "scenario.json", Options(device=device))
            found = [each.message for each in validation.findings if each.severity == "error"]
            try:
                runner.run(case / "scenario.json", write_files=False, dry_run=True)
            except UnsupportedError as error:
                lacking = [problem.message for problem in error.problems]
            else:
                lacking = []
            assert (found, validation.exit_code) == (lacking, 6 if lacking else 0), case


def test_reports_that_are_none(report: Path, tmp_path: Path) -> None:
    """A file that is not a report, and a device that is not in it, are named."""
    path = tmp_path / "x.json"
    with pytest.raises(FileError, match="cannot read the report: no such file"):
        read_device(str(path))
    for content in ("", "[]", '{"devices": 3}', '{"devices": [{}]}', "[" * 100_000):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(FileError, match="report"):
            read_device(str(path))
    with pytest.raises(UsageError, match="no device is called 'nobody'"):
        read_device(str(report), "nobody")
    path.write_text('{"devices": []}')
    with pytest.raises(UsageError, match="the report lists no devices"):
        read_device(str(path))


def test_shader_show(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """shader show prints the interface of GLSL and SPIR-V shaders, also as JSON."""
    folder = checkout / "scenarios" / "basics"
    assert main(["shader", "show", str(folder / "uniform_buffer" / "transform.comp")]) == 0
    out = capsys.readouterr().out
    assert "entry point 'main': GLCompute, workgroups of 16 x 1 x 1\n" in out
    assert "0    0        Transform  uniform buffer  reads   132 bytes\n" in out
    assert main(["shader", "show", "--json", str(folder / "spirv" / "two_entries.spv")]) == 0
    (module,) = json.loads(capsys.readouterr().out)["modules"]
    assert [entry["name"] for entry in module["entry_points"]] == ["twice", "minus"]


def test_shader_show_with_macros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-D and -I are given to the compiler."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "size.glsl").write_text("#define SIZE (N * 2)\n", encoding="utf-8")
    text = f'#version 450\n#extension GL_GOOGLE_include_directive : require\n#include "size.glsl"\n{DATA}\n'
    path = tmp_path / "s.comp"
    path.write_text(text + "layout(local_size_x = SIZE) in;\nvoid main() { data[0] = 1; }\n", encoding="utf-8")
    assert main(["shader", "show", "-D", "N=4", "-I", str(tmp_path / "inner"), str(path)]) == 0
    assert "workgroups of 8 x 1 x 1" in capsys.readouterr().out


@needs(VGF_LIBRARY)
def test_shader_show_a_model(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """shader show prints every module of a .vgf file, and names a module without code."""
    assert main(["shader", "show", str(checkout / "scenarios" / "ml" / "classifier" / "model.vgf")]) == 0
    out = capsys.readouterr().out
    assert ": module 0 '" in out
    assert "graph '" in out


@pytest.mark.parametrize("content", [b"", b"\x03\x02\x23\x07", b"\x03\x02\x23\x07" + bytes(400), b"\xff" * 64])
def test_shader_show_garbage(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not a module ends with one error."""
    path = tmp_path / "x.spv"
    path.write_bytes(content)
    assert main(["shader", "show", str(path)]) == 5
    assert capsys.readouterr().err.startswith(f"error: {path}")


def test_shader_show_a_vertex_shader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs and outputs are shown with their locations, built-in ones by name."""
    path = tmp_path / "s.vert"
    path.write_text(
        "#version 450\nlayout(location = 0, component = 2) in vec2 place;\nlayout(location = 3) out mat3 turn;\n"
        "layout(location = 6) flat out ivec2 number;\n"
        "void main() { gl_Position = place.xyxy; turn = mat3(1); number = ivec2(0); }\n",
        encoding="utf-8",
    )
    assert main(["shader", "show", str(path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0.2", "place", "float32x2"] in lines
    assert ["3-5", "turn", "float32x3x3"] in lines
    assert ["6", "number", "int32x2", "flat"] in lines
    assert ["built-in", "outputs:", "Position,"] in [line[:3] for line in lines]
    assert main(["shader", "show", "--json", str(path)]) == 0
    (module,) = json.loads(capsys.readouterr().out)["modules"]
    (entry,) = module["entry_points"]
    assert entry["outputs"][1] == {
        "name": "number",
        "location": 6,
        "locations": 1,
        "component": 0,
        "index": 0,
        "type": "int32x2",
        "interpolation": ["flat"],
    }


@pytest.mark.parametrize("limit", ["maxComputeWorkGroupCount", "maxComputeWorkGroupInvocations"])
@pytest.mark.parametrize("value", [None, "64", {"a": 1}, [1, 2], [1, 2, "3"], [[1], 2, 3], 1.5, True])
def test_a_report_with_limits_that_are_none(report: Path, tmp_path: Path, limit: str, value: object) -> None:
    """A limit that is not a number, or not one for each axis, is told before anything is compared with it."""
    given = json.loads(report.read_text())
    given["devices"][0]["limits"][limit] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(given))
    with pytest.raises(FileError, match=f"the file is not a report of the doctor: TypeError: limits/{limit} is "):
        read_device(str(path))


def test_names_of_a_module_do_not_reach_the_terminal_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables show control characters of names by their codes, and the beginning of long names."""
    text = kernel(f"""
        OpExtension "SPV_\x1b]0;title\x07"
        OpEntryPoint GLCompute %main "m\x1b[31mn"
        OpName %size "{"n" * 5000}"
        OpName %other "red \x1b[31m"
        OpDecorate %size SpecId 0
        OpDecorate %other SpecId 1
        %size = OpSpecConstant %uint 1
        %other = OpSpecConstant %uint 1
    """)
    path = tmp_path / "shader.spv"
    path.write_bytes(assemble(text))
    assert main(["shader", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"red \x1b[31m" in shown
    assert r"entry point 'm\x1b[31mn'" in shown
    assert f"{'n' * 100}…" in shown
    assert "n" * 101 not in shown


def test_rows_of_a_png_file(program: Program, scene: Scene) -> None:
    """An image file with too few rows is found by validate and by a run, and named in the scenario."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 6, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(40)))
    scene.file("a.png", b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b""))
    image = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readonly", "src": "a.png"}
    scene.resource("image", uid="i", **image).write()
    for words in (["validate"], []):
        ended = program.fail(4, *words, "scenario.json")
        assert "a.png: has 40 bytes of rows, expected 68 of an image of its size" in ended.err
    assert ": /resources/0/image/src: " in program("validate", "scenario.json").err


def test_offsets_that_a_device_does_not_align(program: Program, scene: Scene) -> None:
    """An offset in a memory group that only the device refuses is valid, unsupported by it, and seen in its report."""
    scene.buffer("x", size=64, memory_group={"id": "g"}).buffer("y", size=64, memory_group={"id": "g", "offset": 4})
    scene.write()
    assert program("validate", "scenario.json").code == 0
    (scene.folder / "doctor.json").write_text(program("doctor", "--json").out)
    for words in (["validate", "--against", "doctor.json"], []):
        ended = program(*words, "scenario.json", exit_code=6)
        assert "/resources/1/buffer/memory_group/offset: memory group 'g' places 'y' at offset 4" in ended.err
