"""``pack``: scenarios as plain files that give the same results in this program and in the reference runner's
format."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.left_out import DXC_LIBRARY, VGF_LIBRARY, needs
from tests.program import Program, files_in
from tests.scenes import glsl

CHECKOUT = Path(__file__).resolve().parents[2]
BASICS = ["one_file", "includes_and_options", "hlsl", "push_constants"]
OTHERS = ["images/mip_levels", "barriers/explicit", "dialects/published", "ml/mixed", "algorithms/histogram"]
SHADER = glsl("b[gl_WorkGroupID.x] = b[gl_WorkGroupID.x] * SCALE + BASE;", "layout(binding = 0) buffer B { int b[]; };")
SHADER = SHADER.replace("#version 450\n", '#version 450\n#include "scale.glsl"\n#include <base.glsl>\n')


def write(folder: Path, shader: dict[str, Any], data: Any, name: str = "scenario", dst: str = "out.npy") -> Path:
    """A scenario that multiplies two integers by 3 and adds 10."""
    resources = [
        {"shader": {"uid": "s", **shader}},
        {"buffer": {"uid": "b", "size": 8, "shader_access": "readwrite", "src": data, "dst": dst}},
    ]
    bindings = [{"set": 0, "id": 0, "resource_ref": "b"}]
    commands = [{"dispatch_compute": {"shader_ref": "s", "rangeND": [2], "bindings": bindings}}]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"resources": resources, "commands": commands}))
    return path


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Any]:
    """A shader in a file with includes from its folder and from elsewhere, and the same as text."""
    for path, text in {
        "a/s.comp": SHADER,
        "a/scale.glsl": "#define SCALE 3\n",
        "inc/base.glsl": "#define BASE ADD\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    numpy.save(tmp_path / "two.npy", numpy.int32([1, -2]))
    options = {"build_options": f"-DADD=10 -I '{tmp_path}/inc'"}
    return {"file": {"src": "s.comp", **options}, "text": {"src": {"text": SHADER.split("\n")}, **options}}


@pytest.mark.parametrize("form", ["file", "text"])
def test_a_packed_scenario_stands_alone(tmp_path: Path, program: Program, sources: dict[str, Any], form: str) -> None:
    """Includes are put in place, absolute paths become relative, and nothing of the old folders is needed."""
    write(tmp_path / "a", sources[form], str(tmp_path / "two.npy"), dst=str(tmp_path / "out.npy"))
    before = files_in(tmp_path)
    ended = program.succeed("pack", "a/scenario.json", "--output", "packed")
    assert ended.out.splitlines()[0] == "packed/scenario.json"
    after = files_in(tmp_path)
    assert {name: after[name] for name in before} == before
    packed = files_in(tmp_path / "packed")
    shader = "s.comp" if form == "file" else "scenario_s.comp"
    assert set(packed) == {"scenario.json", shader, "files/two.npy"}
    assert b"#include" not in packed[shader]
    assert b"#line" not in packed[shader]
    tree = json.loads(packed["scenario.json"])
    assert tree["resources"][1]["buffer"]["src"] == "files/two.npy"
    assert tree["resources"][0]["shader"]["build_options"] == "-DADD=10"
    shutil.move(tmp_path / "packed", tmp_path / "elsewhere" / "packed")
    for name in ("a", "inc", "two.npy"):
        (shutil.rmtree if (tmp_path / name).is_dir() else os.remove)(tmp_path / name)
    assert program("elsewhere/packed/scenario.json").code == 0
    assert numpy.load(tmp_path / "elsewhere" / "packed" / "out.npy").view("i4").tolist() == [13, 4]
    assert program("pack", "elsewhere/packed/scenario.json", "--output", "again").code == 0
    assert files_in(tmp_path / "again") == packed


def test_several_keep_their_places(tmp_path: Path, program: Program, sources: dict[str, Any]) -> None:
    """Scenarios of several folders keep their relative paths, and share the files that they share."""
    plain = {"src": "../plain.comp"}
    (tmp_path / "plain.comp").write_text("void main() {}\n")
    (tmp_path / "b").mkdir()
    one = write(tmp_path / "a", plain, "../two.npy")
    two = write(tmp_path / "b", plain, "../two.npy", "other", dst="../../elsewhere/out.npy")
    (tmp_path / "b" / "other.check.json").write_text('{"outputs": {"b": {"values": [1, -2], "dtype": "int32"}}}')
    ended = program.succeed("pack", "a/scenario.json", "b/other.json", "--output", "packed", "--zip")
    assert ended.out.splitlines()[:2] == ["packed.zip: packed/a/scenario.json", "packed.zip: packed/b/other.json"]
    with zipfile.ZipFile(tmp_path / "packed.zip") as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "unpacked")
    expected = ["a/scenario.json", "b/other.check.json", "b/other.json", "plain.comp", "two.npy"]
    assert sorted(names) == [f"packed/{name}" for name in expected]
    folder = tmp_path / "unpacked" / "packed"
    assert (folder / "a" / "scenario.json").read_bytes() == one.read_bytes()
    assert (folder / "b" / "other.json").read_bytes() != two.read_bytes()
    assert json.loads((folder / "b" / "other.json").read_text())["resources"][1]["buffer"]["dst"] == "out.npy"
    assert program("test", "unpacked", "--quiet").code == 0


def test_defaults_of_a_suite(tmp_path: Path, program: Program) -> None:
    """A packed scenario has the tolerances that it had in its folder."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    numpy.save(tmp_path / "a" / "b" / "two.npy", numpy.int32([1, -2]))
    (tmp_path / "a" / "b" / "plain.comp").write_text("void main() {}\n")
    write(tmp_path / "a" / "b", {"src": "plain.comp"}, "two.npy")
    expected = {"values": [1, -3], "dtype": "int32"}
    (tmp_path / "a" / "b" / "check.json").write_text(json.dumps({"outputs": {"b": expected}}))
    (tmp_path / "a" / "suite.json").write_text('{"tolerances": {"atol": 1}}')
    assert program("pack", "a/b/scenario.json", "--output", "packed").out.splitlines()[0] == "packed/b/scenario.json"
    shutil.rmtree(tmp_path / "a")
    assert program("test", "packed", "--quiet").code == 0


def test_files_of_a_rule_of_tosa(tmp_path: Path, program: Program) -> None:
    """Files of TOSA's rules are copied like expected files, with relative paths."""
    for folder in ("a", "elsewhere"):
        (tmp_path / folder).mkdir()
        numpy.save(tmp_path / folder / "two.npy", numpy.int32([1, -2]))
    (tmp_path / "a" / "plain.comp").write_text("void main() {}\n")
    write(tmp_path / "a", {"src": "plain.comp"}, "two.npy")
    rule = {"mode": "EXACT", "expected": str(tmp_path / "elsewhere" / "two.npy"), "data_type": "INT32"}
    (tmp_path / "a" / "check.json").write_text(json.dumps({"outputs": {"b": {"tosa": rule}}}))
    assert program("pack", "a/scenario.json", "--output", "packed").code == 0
    packed = json.loads((tmp_path / "packed" / "check.json").read_text())["outputs"]["b"]["tosa"]
    assert packed == {**rule, "expected": "files/two.npy"}
    assert (tmp_path / "packed" / "files" / "two.npy").is_file()


@pytest.mark.parametrize("order", ["one two three", "three two one"])
def test_outputs_replace_no_file_of_another(tmp_path: Path, program: Program, order: str) -> None:
    """Outputs from elsewhere get names that no other scenario reads or writes, in any order."""
    shader = {"src": {"text": "void main() {}"}}
    numpy.save(tmp_path / "In.npy", numpy.int32([1, -2]))
    write(tmp_path, shader, {"fill": 1}, "one", dst="/elsewhere/in.npy")
    write(tmp_path, shader, {"fill": 2}, "two", dst="/nowhere/in.npy")
    write(tmp_path, shader, "In.npy", "three", dst="out.npy")
    assert program("pack", *(f"{name}.json" for name in order.split()), "--output", "packed").code == 0
    trees = [json.loads((tmp_path / "packed" / f"{name}.json").read_text()) for name in order.split()]
    outputs = [tree["resources"][1]["buffer"]["dst"].casefold() for tree in trees]
    assert len({*outputs, "in.npy"}) == 4
    assert not set(outputs) & {name.casefold() for name in files_in(tmp_path / "packed")}


@needs(DXC_LIBRARY, "basics/hlsl")
@needs(VGF_LIBRARY, "ml/mixed")
@pytest.mark.parametrize("case", [*(f"basics/{name}" for name in BASICS), *OTHERS])
def test_examples_give_the_same(case: str, tmp_path: Path, runner: Runner, program: Program) -> None:
    """A packed example gives the same bytes, has no object in src, and is packed into the same files again."""
    path = CHECKOUT / "scenarios" / case / "scenario.json"
    assert program("pack", path, "--output", "packed").code == 0
    packed = tmp_path / "packed" / "scenario.json"
    tree = json.loads(packed.read_text())
    for entry in tree["resources"]:
        for body in entry.values():
            assert isinstance(body.get("src", ""), str)
            assert not os.path.isabs(body.get("src", ""))
    for source, folder in ((path, "one"), (packed, "two")):
        runner.run_to_files(source, output_dir=tmp_path / folder)
    outputs = files_in(tmp_path / "one")
    assert outputs
    assert files_in(tmp_path / "two") == outputs
    assert program("pack", packed, "--output", "again").code == 0
    assert files_in(tmp_path / "again") == files_in(tmp_path / "packed")
    assert ("check.json" in files_in(tmp_path / "packed")) == (path.parent / "check.json").exists()
    assert files_in(tmp_path / "packed" / "expected") == files_in(path.parent / "expected")


def test_the_size_of_push_constants_is_said(tmp_path: Path, program: Program) -> None:
    """A missing size of push constants is added for other runners, and a given size stays."""
    text = "layout(push_constant) uniform P { float a, b, c; }; void main() { float sum = a + b; }"
    shaders: list[dict[str, Any]] = [
        {"shader": {"uid": "open", "src": {"text": text}}},
        {"shader": {"uid": "said", "src": {"text": text}, "push_constants_size": 16}},
        {"shader": {"uid": "none", "src": {"text": "void main() {}"}}},
    ]
    data = {"raw_data": {"uid": "r", "src": {"fill": 1, "dtype": "uint8", "count": 9}}}
    commands = [
        {"dispatch_compute": {"shader_ref": uid, "rangeND": [1], "bindings": [], **push}}
        for uid, push in (("open", {"push_data_ref": "r"}), ("said", {"push_data_ref": "r"}), ("none", {}))
    ]
    (tmp_path / "x.json").write_text(json.dumps({"resources": [*shaders, data], "commands": commands}))
    assert program("pack", "x.json", "--output", "packed").code == 0
    packed = json.loads((tmp_path / "packed" / "x.json").read_text())["resources"]
    assert [entry.get("shader", {}).get("push_constants_size") for entry in packed] == [12, 16, None, None]
    assert program("packed/x.json").code == 0


def test_generated_files(tmp_path: Path, program: Program) -> None:
    """Objects become arrays of their type and shape, with defaults filled in, and images get four dimensions."""
    keys = {"shader_access": "readwrite"}
    resources = [
        {"shader": {"uid": "s", "type": "HLSL", "src": {"text": "[numthreads(1, 1, 1)] void main() {}"}}},
        {"raw_data": {"uid": "r", "src": {"values": [1, 2], "dtype": "uint16"}}},
        {"buffer": {"uid": "b", "src": {"values": [[1], [2]], "dtype": "bfloat16"}, **keys}},
        {"tensor": {"uid": "t", "format": "VK_FORMAT_R8_SINT", "src": {"values": [[1, 2, 3], [4, 5, 6]]}, **keys}},
        {"image": {"uid": "i", "format": "VK_FORMAT_R8G8_UINT", "src": {"values": [[[1, 2]], [[3, 4]]]}, **keys}},
        {"graph_constant": {"uid": "c", "format": "VK_FORMAT_R32_SINT", "dims": [3], "src": {"series": [5, -1]}}},
    ]
    (tmp_path / "x.json").write_text(json.dumps({"resources": resources, "commands": []}))
    assert program("pack", "x.json", "--output", "packed").code == 0
    folder = tmp_path / "packed"
    names = {"x.json", "x_s.hlsl", "x_r.npy", "x_b.npy", "x_t.npy", "x_i.npy", "x_c.npy"}
    assert set(files_in(folder)) == names
    arrays = {name: numpy.load(folder / f"x_{name}.npy") for name in "rbtic"}
    assert (arrays["r"].dtype, arrays["r"].tolist()) == (numpy.uint16, [1, 2])
    assert arrays["b"].tobytes() == numpy.uint16([0x3F80, 0x4000]).tobytes()
    assert (arrays["t"].dtype, arrays["t"].tolist()) == (numpy.int8, [[1, 2, 3], [4, 5, 6]])
    assert (arrays["i"].dtype, arrays["i"].tolist()) == (numpy.uint8, [[[[1, 2]], [[3, 4]]]])
    assert (arrays["c"].dtype, arrays["c"].tolist()) == (numpy.int32, [5, 4, 3])
    bodies = {
        body["uid"]: body
        for entry in json.loads((folder / "x.json").read_text())["resources"]
        for body in entry.values()
    }
    assert bodies["b"]["size"] == 4
    assert bodies["t"]["dims"] == [2, 3]
    assert bodies["i"]["dims"] == [1, 1, 2, 1]


@pytest.mark.parametrize(
    "change, code, message",
    [
        ("missing data", 4, "two.npy: cannot be opened: no such file or directory"),
        ("wrong scenario", 3, "the required key 'commands' is missing"),
        ("no scenario", 4, "none.json: cannot read the scenario: no such file or directory"),
        ("own folder", 2, "scenario.json' would be replaced"),
        ("a file as the folder", 4, "cannot be created"),
        ("a link in the folder", 2, "'scenario.json' is a link that leads out of the folder"),
        ("an include by a macro", 4, "includes a file through a macro: its text cannot be inserted"),
        ("empty expectations", 3, "a/check.json:1:1: the file is empty"),
        ("no output", 2, "--output"),
        ("a name that is not UTF-8", 2, r"--zip: a ZIP file cannot hold the name b'p\xff', which is not UTF-8"),
        ("a missing expected file", 4, "a/gone.npy: cannot be opened: no such file or directory"),
        (
            "a fill beyond its type",
            3,
            "fill: graph_constant 'c' has a wrong value: 300 is not in the range of int8, -128 to 127",
        ),
    ],
)
def test_mistakes(
    tmp_path: Path, program: Program, sources: dict[str, Any], change: str, code: int, message: str
) -> None:
    """A mistake leaves all files as they were, and adds none."""
    path = write(tmp_path / "a", sources["file"], "../two.npy", dst="out.npy")
    arguments = ["pack", "a/scenario.json", "--output", "packed"]
    match change:
        case "missing data":
            os.remove(tmp_path / "two.npy")
        case "wrong scenario":
            path.write_text('{"resources": []}')
        case "no scenario":
            arguments.insert(2, "none.json")
        case "own folder":
            arguments[-1] = "."
        case "a file as the folder":
            (tmp_path / "packed").write_text("")
        case "a link in the folder":
            write(tmp_path / "a", sources["file"], {"fill": 0}, dst="out.npy")
            (tmp_path / "packed").mkdir()
            (tmp_path / "packed" / "scenario.json").symlink_to(tmp_path / "inc" / "base.glsl")
        case "an include by a macro":
            (tmp_path / "a" / "s.comp").write_text('#define X "scale.glsl"\n#include X\nvoid main() {}\n')
        case "empty expectations":
            (tmp_path / "a" / "check.json").write_text("")
        case "no output":
            del arguments[2:]
        case "a name that is not UTF-8":
            arguments[-1:] = [os.fsdecode(b"p\xff"), "--zip"]
        case "a missing expected file":
            check = {"parameters": {"name": ["gone"]}, "outputs": {"b": {"file": "${name}.npy", "dtype": "int32"}}}
            (path.parent / "check.json").write_text(json.dumps(check))
            arguments += ["--set", "name=gone"]
        case "a fill beyond its type":
            constant = {"uid": "c", "format": "VK_FORMAT_R8_SINT", "dims": [3], "src": {"fill": 300}}
            path.write_text(json.dumps({"resources": [{"graph_constant": constant}], "commands": []}))
            validated = program("validate", "a/scenario.json")
            assert (validated.code, message in validated.err) == (code, True)
            message = f"error: a/scenario.json:1:108: /resources/0/graph_constant/src/{message}"
    before = files_in(tmp_path)
    ended = program(*arguments, exit_code=code)
    assert message in ended.err
    assert ended.out == ""
    assert files_in(tmp_path) == before
