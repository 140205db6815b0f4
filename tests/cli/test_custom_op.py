"""``scenario-runner custom-op``."""

import json
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.cli import main
from tests.program import Program
from tests.tosa.attributes import SOURCE, text_of
from tests.tosa.models import custom

VALUES = "tensor<8xf32>"
TWO = {"workgroup_sizes": [2, 1, 1]}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, shader_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named without a folder."""
    monkeypatch.chdir(tmp_path)


def model(*changes: dict[str, Any]) -> str:
    """A model with a chain of shaders; each has the attributes with one of the changes."""
    lines = [f"func.func @main(%0: {VALUES}) -> {VALUES} {{"]
    for number, change in enumerate(changes, 1):
        given = json.loads(text_of(TWO | change))
        lines.append("  " + custom(f"%{number}", [f"%{number - 1}"], given, name=f"op{number % 3}", type=VALUES))
    return "\n".join([*lines, f"  return %{len(changes)} : {VALUES}", "}", ""])


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Right attributes are summed up in a line."""
    (tmp_path / "scale.json").write_text(text_of(TWO))
    assert main(["custom-op", "check", "scale.json"]) == 0
    assert capsys.readouterr() == (
        "scale.json: valid: GLSL shader, entry point 'main', local size 4 x 1 x 1, workgroups 2 x 1 x 1, 1 input,"
        " 1 output, 2 push constants\n",
        "",
    )


def test_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings do not fail the check, but with --strict."""
    (tmp_path / "scale.json").write_text(text_of({}))
    assert main(["custom-op", "check", "scale.json"]) == 0
    assert capsys.readouterr().err.startswith("warning: scale.json:3:22: /workgroup_sizes: [4, 1, 1] is the local size")
    assert main(["custom-op", "check", "--strict", "scale.json"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.startswith("error: scale.json:")) == ("", True)


def test_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file is checked, and the first wrong file gives the exit code."""
    (tmp_path / "compile.json").write_text(text_of(TWO | {"shader_code": "#version 450\nvoid main() { x; }"}))
    (tmp_path / "place.json").write_text(text_of({"workgroup_sizes": [0, 1, 1]}))
    assert main(["custom-op", "check", "compile.json", "missing.json", "place.json"]) == 5
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == [
        "error: <shader_code of 'compile'>:2:15: 'x' : undeclared identifier [SR-SHADER-010]",
        "error: missing.json: cannot be opened: no such file or directory [SR-FILE-006]",
        "error: place.json:4:5: /workgroup_sizes/0: expected an integer of at least 1, got 0 [SR-JSON-005]",
    ]


def test_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All shaders of a model are checked, with the operands that they have there; each finding names its shader."""
    (tmp_path / "model.mlir").write_text(model({}, {"input_0_binding": 7}, resource_twice(), {"entry_point": "..."}))
    assert main(["custom-op", "check", "model.mlir"]) == 3
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert [line.split(":")[1] for line in errors] == [" model.mlir"] * 3
    assert [line.split("'")[1] for line in errors] == ["op2", "op0", "op1[1]"]


def resource_twice() -> dict[str, Any]:
    """A second input, which the operation does not have."""
    return {"input_1_vkformat": "VK_FORMAT_R32_SFLOAT"}


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints each operation and each finding with its place."""
    (tmp_path / "scale.json").write_text(text_of(TWO | {"push_constants": "..."}))
    (tmp_path / "model.mlir").write_text(model({}))
    assert main(["custom-op", "check", "--json", "scale.json", "model.mlir"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    file, of_model = document["files"]
    assert (file["file"], file["valid"], file["exit_code"]) == ("scale.json", True, 0)
    assert file["operations"] == [
        {
            "operation": "scale",
            "is_shader": True,
            "errors": 0,
            "language": "GLSL",
            "entry_point": "main",
            "workgroup_sizes": [2, 1, 1],
            "local_size": [4, 1, 1],
            "push_constants_size_bytes": 8,
            "push_constants": [],
        }
    ]
    assert [(each["code"], each["pointer"], each["path"]) for each in file["findings"]] == [
        ("SR-CUSTOM-017", "/push_constants", "scale.json")
    ]
    assert [each["operation"] for each in of_model["operations"]] == ["op1"]


def test_standard_input(program: Program, tmp_path: Path) -> None:
    """A '-' is standard input, for attributes and for models; a model without shaders is said to have none."""
    ended = program.succeed("custom-op", "check", "-", stdin=text_of(TWO))
    assert ended.out.startswith("-: valid: GLSL shader")
    ended = program("custom-op", "check", "-", stdin=model())
    assert (ended.code, ended.out, ended.err) == (0, "-: valid: no shaders\n", "")


@pytest.mark.parametrize("content", [b"\xff\xfe{", b"", b"{", b"[]", b"junk", b"\x00" * 40])
def test_junk(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    """A file with neither attributes nor a model is an error with the file's name."""
    for name in ("junk.json", "junk.bin"):
        (tmp_path / name).write_bytes(content)
        assert main(["custom-op", "check", name]) in (3, 4)
        assert capsys.readouterr().err.startswith(f"error: {name}:")


def test_attributes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Attributes that are made from a shader pass the check."""
    (tmp_path / "scale.comp").write_text(SOURCE)
    assert main(["custom-op", "attributes", "scale.comp", "--workgroups", "2", "1", "1"]) == 0
    (tmp_path / "scale.json").write_text(capsys.readouterr().out)
    assert main(["custom-op", "check", "--strict", "scale.json"]) == 0
    assert main(["custom-op", "attributes", "scale.comp", "--workgroups", "2", "0", "1"]) == 2
