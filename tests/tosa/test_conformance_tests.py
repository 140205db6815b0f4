"""Conformance tests of TOSA's generator become suites; the folders in ``tosa`` are the generator's."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import FileError, MissingPackageError, UnsupportedError
from scenario_runner.tosa.model_converter import VARIABLE
from tests.left_out import TOSA_TOOLS, VGF_LIBRARY, needs
from tests.program import Program, executable
from tests.tables import cases

pytestmark = [needs(VGF_LIBRARY), needs(TOSA_TOOLS)]

TESTS = Path(__file__).parent / "conformance"
RECIPROCAL = "reciprocal/reciprocal_2x3_f32"
UNSIGNED_INPUT = "rescale/rescale_1x2x3_i16_outi16_sc0_rmI_pc0_iu1_ou0"
UNSIGNED_OUTPUT = "rescale/rescale_1x2x3_i16_outi8_sc0_rmS_pc0_iu0_ou1"
DYNAMIC = "pad/pad_35x39_f16_pad0000_dyn"
REFUSED = "concat/concat_ERRORIF_AxisLargerRank_2x3_i8_axis10"
NOT_REFUSED = "abs/abs_ERRORIF_WrongInputList_5_f16"
NOBODY_REFUSES = "neither the converter nor the checks before a run refuse it"
IMPORT = ("import", "tosa", "tests", "--output", "suite")


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A copy of the tests."""
    return shutil.copytree(TESTS, tmp_path / "tests")


def only(tests: Path, *names: str) -> None:
    """Remove the other tests."""
    for folder in tests.glob("*/*"):
        if folder.relative_to(tests).as_posix() not in names:
            shutil.rmtree(folder)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_tests_become_items(program: Program, tests: Path, tmp_path: Path) -> None:
    """Each test becomes a folder with model, inputs, scenario and expectations, and the last lines give the reasons
    for refusals.

    The imported suite passes: constants alone, rank 0, unsigned tensors, bfloat16, an unread input. Models that the
    converter or the check of graphs refuses are NotSupported or expected errors. An error test that nothing refuses
    does not run.
    """
    ended = program.succeed(*IMPORT)
    *reasons, last = ended.out.splitlines()
    assert reasons == [
        "expected error: 1: the converter cannot lower this model",
        "expected error: 1: the converter takes it, and the checks before a run refuse it",
        f"not supported: 1: {NOBODY_REFUSES}: Op input list does not match expected input",
        "not supported: 1: the converter cannot lower this model: failed to legalize operation 'tosa.cond_if'",
    ]
    assert last.startswith("7 imported, 2 not supported, 2 expected to fail, 0 errors in ")
    suite = tmp_path / "suite"
    names = sorted(path.parent.relative_to(suite).as_posix() for path in suite.rglob("scenario.json"))
    assert names == sorted(path.relative_to(tests).as_posix() for path in tests.glob("*/*"))

    check = read(suite / RECIPROCAL, "check.json")
    rule = {"mode": "ULP", "parameters": {"ulp": 1.0}, "data_type": "FP32", "expected": "ref-result-0.npy"}
    assert check == {"outputs": {"result-0": {"tosa": rule}}}
    expected = numpy.load(suite / RECIPROCAL / "ref-result-0.npy")
    assert expected.dtype == "f8"
    numpy.testing.assert_allclose(expected, 1 / numpy.load(tests / RECIPROCAL / "input-0.npy").astype("f8"), 1e-15)

    rule = read(suite / UNSIGNED_INPUT, "check.json")["outputs"]["result-0"]["tosa"]
    assert (rule["mode"], rule["parameters"]) == ("RESCALE_INEXACT", {"unsigned_data": False})
    assert (suite / UNSIGNED_INPUT / rule["bounds"]).is_file()

    ended = program.succeed("test", "suite", "--verbose")
    assert "11 items in " in ended.out
    assert "9 Pass, 2 NotSupported" in ended.out
    assert f"NotSupported suite/{NOT_REFUSED}/scenario.json: {NOBODY_REFUSES}: Op input list" in ended.out
    reason = "NotSupported suite/cond_if/cond_if_binary_0_i8_cond0/scenario.json: the converter cannot lower this model"
    assert reason in ended.out


def test_a_model_that_is_gone(program: Program, tests: Path) -> None:
    """An error test without its model cannot run."""
    only(tests, REFUSED)
    assert program(*IMPORT).code == 0
    (tests.parent / "suite" / REFUSED / "test.tosa").unlink()
    ended = program("test", "suite", "--retries", "0", exit_code=1)
    assert f"Missing suite/{REFUSED}/scenario.json: " in ended.out
    assert f"{REFUSED}/test.tosa: is not a file" in ended.out


def test_files_of_unsigned_tensors(program: Program, tests: Path, tmp_path: Path) -> None:
    """The signed numbers of a test are the bits of an unsigned input."""
    only(tests, UNSIGNED_INPUT)
    signed = numpy.array([[[-1, -32768, 5], [0, 1, 2]]], "i2")
    numpy.save(tests / UNSIGNED_INPUT / "input-0.npy", signed)
    assert program(*IMPORT).code == 0
    unsigned = numpy.load(tmp_path / "suite" / UNSIGNED_INPUT / "input-0.npy")
    assert unsigned.dtype == "u2"
    assert unsigned.tolist() == [[[65535, 32768, 5], [0, 1, 2]]]


def test_a_second_import_keeps_what_is_there(program: Program, tests: Path, tmp_path: Path) -> None:
    """A second import takes only tests with changed files, and the last lines show all reasons."""
    only(tests, RECIPROCAL, UNSIGNED_OUTPUT, REFUSED)
    first = program(*IMPORT)
    numpy.save(tests / RECIPROCAL / "input-0.npy", numpy.full((2, 3), 8, "f4"))
    before = (tmp_path / "suite" / UNSIGNED_OUTPUT).stat().st_ino
    second = program(*IMPORT, "--jobs", "1", exit_code=0)
    assert second.out.splitlines()[:-1] == first.out.splitlines()[:-1]
    assert "0 errors, 2 of them unchanged in " in second.out
    assert (numpy.load(tmp_path / "suite" / RECIPROCAL / "ref-result-0.npy") == 0.125).all()
    assert (tmp_path / "suite" / UNSIGNED_OUTPUT).stat().st_ino == before


def describe(folder: Path, **changes: Any) -> None:
    """Change keys of desc.json."""
    (folder / "desc.json").write_text(json.dumps(read(folder, "desc.json") | changes), encoding="utf-8")


def judge_by(folder: Path, **changes: Any) -> None:
    """Change keys of the result's compliance in desc.json."""
    meta = read(folder, "desc.json")["meta"]
    meta["compliance"]["tensors"]["result-0"] |= changes
    describe(folder, meta=meta)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no description": lambda folder: (folder / "desc.json").unlink(),
    "no JSON": lambda folder: (folder / "desc.json").write_text("{"),
    "a JSON model": lambda folder: describe(folder, tosa_file="test.json"),
    "no model": lambda folder: (folder / "test.tosa").unlink(),
    "no data": lambda folder: (folder / "input-0.npy").unlink(),
    "an unknown mode": lambda folder: judge_by(folder, mode="ULPS"),
    "no compliance": lambda folder: describe(folder, meta={}),
    "no model in the file": lambda folder: (folder / "test.tosa").write_bytes(b""),
    "parameters of another mode": lambda folder: judge_by(folder, ulp_info={"ulp": 1, "scale": 2}),
    "a result in another folder": lambda folder: describe(folder, ofm_file=["../../result.npy"]),
    "a result with the name of an input": lambda folder: describe(folder, ofm_file=["input-0.npy"]),
    "names without files": lambda folder: describe(folder, ifm_file=[]),
    "a name that the model lacks": lambda folder: describe(folder, ofm_name=["const-0"]),
    "data of another shape": lambda folder: numpy.save(folder / "input-0.npy", numpy.ones(5, "f4")),
}


@pytest.mark.parametrize("damage, message, help", cases(__file__, "damaged_tests.txt", "DAMAGES"))
def test_a_damaged_test(program: Program, tests: Path, tmp_path: Path, damage: str, message: str, help: str) -> None:
    """A damaged test is one error with a help and leaves no file, and the others are imported."""
    only(tests, RECIPROCAL, REFUSED)
    DAMAGES[damage](tests / RECIPROCAL)
    ended = program(*IMPORT, exit_code=FileError.exit_code)
    error, *rest = ended.err.splitlines()
    assert error.startswith("error: ")
    assert message.replace("TEST", RECIPROCAL) in error
    codes = {"reference": " [SR-TOSA-002]", "function": " [SR-CUSTOM-030]"}
    assert error.endswith(next((code for word, code in codes.items() if word in message), " [SR-TOSA-001]"))
    assert len(rest) == (help != "...")
    assert help.removeprefix("...") in "".join(rest)
    assert "0 imported, 0 not supported, 1 expected to fail, 1 error in " in ended.out
    assert [path.name for path in (tmp_path / "suite").iterdir() if any(path.iterdir())] == ["concat"]


def test_folders_without_tests(program: Program, tests: Path, tmp_path: Path) -> None:
    """A path that is no folder, or has no test, is an error, as is a folder of the suite that was made by somebody else
    and a second test of one name."""
    (tmp_path / "empty").mkdir()
    ended = program("import", "tosa", "nowhere", "empty", "--output", "suite", exit_code=FileError.exit_code)
    assert "error: nowhere: is not a folder [SR-TOSA-001]\n" in ended.err
    assert "error: empty: has no test: no folder in it has a desc.json [SR-TOSA-001]\n" in ended.err
    assert not (tmp_path / "suite").exists()

    only(tests, RECIPROCAL)
    ended = program("import", "tosa", "tests", "--output", "tests", exit_code=FileError.exit_code)
    assert f"{RECIPROCAL}: is in the way: it was not imported [SR-TOSA-001]\n" in ended.err
    assert (tests / RECIPROCAL / "test.tosa").exists()
    ended = program("import", "tosa", "tests", tests / RECIPROCAL, tests / RECIPROCAL, "--output", "suite")
    assert ended.code == FileError.exit_code
    assert (
        f"{RECIPROCAL}: has the same name 'reciprocal_2x3_f32' as the test in {tests / RECIPROCAL} [SR-TOSA-001]\n"
        in ended.err
    )
    assert "2 imported" in ended.out


def test_a_converter_that_is_stopped(program: Program, tests: Path, tmp_path: Path) -> None:
    """A stopped converter is an error, and the next import tries the test again."""
    only(tests, RECIPROCAL, REFUSED)
    stopped = executable(tmp_path / "converter", "#!/bin/sh\nkill -KILL $$\n")
    ended = program(*IMPORT, env={VARIABLE: str(stopped)}, exit_code=UnsupportedError.exit_code)
    assert ended.err.count("test.tosa: the converter was ended by SIGKILL [SR-CUSTOM-039]\n") == 2
    assert "0 imported, 0 not supported, 0 expected to fail, 2 errors in " in ended.out
    assert "1 imported, 0 not supported, 1 expected to fail, 0 errors in " in program(*IMPORT).out


def test_a_suite_among_the_tests(program: Program, tests: Path) -> None:
    """An imported suite is not searched for tests, and a folder with a damaged record is refused."""
    only(tests, REFUSED)
    arguments = ("import", "tosa", "tests", "--output", "tests/suite")
    assert program(*arguments).code == 0
    ended = program.succeed(*arguments)
    assert "1 expected to fail, 0 errors, 1 of them unchanged" in ended.out
    (tests / "suite" / REFUSED / "import.json").write_text("{}")
    assert f"{REFUSED}: is in the way: it was not imported [SR-TOSA-001]\n" in program(*arguments).err


def test_without_the_converter(program: Program, tests: Path, tmp_path: Path) -> None:
    """Without the converter nothing is imported, and an item that needs it is MissingTool."""
    only(tests, REFUSED)
    nowhere = {VARIABLE: str(tmp_path / "nowhere")}
    ended = program(*IMPORT, env=nowhere)
    assert ended.code == UnsupportedError.exit_code == MissingPackageError.exit_code
    assert ended.err.startswith("error: the converter of machine-learning operations is not installed\n  help: pip ")
    assert program(*IMPORT).code == 0
    ended = program("test", "suite", env=nowhere, exit_code=17)
    assert "1 MissingTool" in ended.out


def run_harness(folder: Path, **environment: str) -> str:
    """The last line of the harness for the folder ``tests``."""
    command = [sys.executable, "-m", "runner.tosa_verif_run_tests", "--sut-module", "scenario_runner.tosa.harness"]
    done = subprocess.run(
        [*command, "-r", "-t", "tests"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    totals = "Totals (scenario_runner.tosa.harness): "
    return next((line for line in done.stdout.splitlines() if line.startswith(totals)), done.stderr)


def test_the_official_harness(tests: Path, tmp_path: Path) -> None:
    """TOSA's harness runs tests on a device through the module of this program, and judges the outputs."""
    only(tests, RECIPROCAL, UNSIGNED_OUTPUT, REFUSED, NOT_REFUSED)
    counts = "2 expected_pass, 1 expected_failure, 1 unexpected_pass, 0 unexpected_failure, 0 internal_error, 0 skipped"
    assert run_harness(tmp_path).endswith(f": {counts}")


def test_the_official_harness_without_the_converter(tests: Path, tmp_path: Path) -> None:
    """The harness counts a missing converter as a failure, not as a refusal of the model."""
    only(tests, REFUSED)
    totals = run_harness(tmp_path, **{VARIABLE: str(tmp_path / "nowhere")})
    assert "0 expected_failure" in totals
    assert "1 unexpected_failure" in totals
