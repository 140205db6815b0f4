"""Parameters that only the expectations of a scenario use."""

import json
from pathlib import Path

from tests.program import Program
from tests.suite.test_parameters import write


def test_a_parameter_of_the_expectations_alone(program: Program, tmp_path: Path) -> None:
    """It can be set where the check file has it, and pack needs it."""
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
