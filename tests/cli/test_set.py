"""``--set`` in all commands, and the effect of parameters from a check file."""

import json
import shutil
from pathlib import Path

import numpy
import pytest

from tests.program import Program
from tests.suite.test_parameters import CHECK, IDS, write


def test_run_with_set(program: Program, tmp_path: Path) -> None:
    """Values are JSON or strings. A missing value is an error that lists the values that exist."""
    write(tmp_path)
    program.succeed("a.json", "--set", "type=float", "--set", "n=5", "--set", "factor=0.5", "--clean")
    assert (numpy.load(tmp_path / "out" / "float_5.npy").view("float32") == numpy.arange(1, 6) * 0.5).all()
    ended = program("a.json", "--set", "n=5", "--set", "factor=1")
    assert (ended.code, ended.err) == (
        3,
        "error: a.json:14:22: the parameter 'type' is not set [SR-JSON-011]\n"
        '   14 |     "build_options": "-DTYPE=${type}",\n      |                      ^\n'
        "  help: --set type=VALUE (a.check.json has float, int); $${type} stands for the text itself\n",
    )
    for arguments, message in (
        (("--set", "n"), "argument --set: 'n': expected NAME=VALUE, such as n=4"),
        (("--set", "=4"), "argument --set: '=4': expected NAME=VALUE"),
        (("--set", "type=x", "--set", "n=null", "--set", "factor=1"), "the parameter 'n' is None, expected a number"),
        (
            ("--set", "type=int", "--set", "n=1", "--set", "factor=1", "--set", "m=1"),
            "the scenario has no parameter 'm'",
        ),
    ):
        ended = program("a.json", *arguments)
        assert ended.code in (2, 3)
        assert message in ended.err
    assert program("model.vgf", "--set", "n=4").err == "error: --set is for scenarios, and a model was given\n"


def test_bench(program: Program, tmp_path: Path) -> None:
    """bench measures one combination."""
    write(tmp_path)
    values = [word for name in ("type=int", "n=4", "factor=3") for word in ("--set", name)]
    assert program("bench", "a.json", "--repeat", "1", "--warmup", "0", *values).code == 0


def test_validate(program: Program, tmp_path: Path) -> None:
    """Without --set, each combination is checked."""
    write(tmp_path)
    valid = "valid: 2 resources, 1 command\n"
    assert program("validate", "a.json").out == "".join(f"a.json{id}: {valid}" for id in IDS)
    shown = json.loads(program("validate", "a.json", "--format", "json").out)
    assert [file["parameters"]["n"] for file in shown["files"]] == [4, 8, 4]
    assert program("validate", "a.json", "--set", "type=int", "--set", "n=1", "--set", "factor=1").code == 0
    write(tmp_path, check={**CHECK, "parameters": {**CHECK["parameters"], "n": [4, 0, 8]}})  # type: ignore[dict-item]
    ended = program("validate", "a.json", exit_code=3)
    place = "error: a.json:31:15: /resources/1/buffer/src/count: expected an integer of at least 1, got 0"
    assert [line for line in ended.err.splitlines() if "error" in line] == [
        f"{place} (with type = {type}, n = 0, factor = 3) [SR-JSON-005]" for type in ("float", "int")
    ]


def test_pack(program: Program, tmp_path: Path) -> None:
    """One combination becomes plain files with expectations, which pass in the folder where they are unpacked."""
    write(tmp_path / "in")
    values = [word for name in ("type=int", "n=4", "factor=3") for word in ("--set", name)]
    assert program("pack", "in/a.json", "--output", "out", *values).code == 0
    packed = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert packed == {"a.json", "a.check.json", "a_data.npy", "a_s.comp", "expected/int_4.npy"}
    assert "${" not in (tmp_path / "out" / "a.json").read_text() + (tmp_path / "out" / "a.check.json").read_text()
    shutil.rmtree(tmp_path / "in")
    assert program("test", "out", "--quiet").out.endswith("suite passed: 1 item\n")
    write(tmp_path / "in")
    ended = program("pack", "in/a.json", "--output", "other")
    assert (ended.code, (tmp_path / "other").exists()) == (3, False)
    assert "in/a.json:14:22: the parameter 'type' is not set" in ended.err


@pytest.mark.parametrize(
    "command", [["run"], ["validate"], ["bench"], ["pack", "--output", "o"], ["diff", "--devices", "0", "0"]]
)
def test_the_name_of_an_item_as_a_file(program: Program, tmp_path: Path, command: list[str]) -> None:
    """The error says how to run it."""
    write(tmp_path)
    ended = program(command[0], "a.json[int-4-3]", *command[1:])
    assert (ended.code, ended.err) == (
        2,
        "error: a.json[int-4-3]: names an item of a suite, expected a file\n"
        "  help: a.json '--set=type=\"int\"' --set=n=4 --set=factor=3\n",
    )


def test_a_parameter_of_the_expectations_alone(program: Program, tmp_path: Path) -> None:
    """A parameter of the check file alone can be set, and pack needs a value for it."""
    write(tmp_path)
    check = json.loads((tmp_path / "a.check.json").read_text())
    check["parameters"]["end"] = ["npy"]
    check["outputs"]["data"]["file"] = check["outputs"]["data"]["file"].replace(".npy", ".${end}")
    (tmp_path / "a.check.json").write_text(json.dumps(check))
    values = [word for name in ("type=int", "n=4", "factor=3") for word in ("--set", name)]
    ended = program("pack", "a.json", "--output", "out", *values)
    assert (ended.code, (tmp_path / "out").exists()) == (3, False)
    assert "the parameter 'end' is not set" in ended.err
    assert program("pack", "a.json", "--output", "out", *values, "--set", "end=npy").code == 0
    assert (tmp_path / "out" / "expected" / "int_4.npy").exists()
    for command in (["run"], ["validate"], ["bench", "--repeat", "1", "--warmup", "0"]):
        assert program(command[0], "a.json", *command[1:], *values, "--set", "end=npy").code == 0
    assert "int too large" not in program("validate", "a.json", *values, "--set", f"factor={10**400}").err
