"""SPIR-V files go through spirv-val where it is installed: once for each content, and only as far as it can judge."""

import os
import shutil
from pathlib import Path

import pytest

from scenario_runner.errors import UsageError
from scenario_runner.shaders.compilers.compiler_processes import Processes
from scenario_runner.shaders.compilers.search import VALIDATOR_VARIABLE as VARIABLE
from scenario_runner.shaders.compilers.search import Validator, find_validator
from scenario_runner.shaders.spirv_val import complaint
from tests.program import Program, executable
from tests.scenes import Scene, assemble, glsl, kernel

FIXTURES = Path(__file__).resolve().parent / "spirv" / "fixtures"
# Loads a float and stores it as an integer: every id is defined, and the types are wrong.
WRONG = kernel("""
    OpDecorate %array ArrayStride 4
    OpMemberDecorate %block 0 Offset 0
    OpDecorate %block Block
    Bind %data 0 0
    %float = OpTypeFloat 32
    %int = OpTypeInt 32 1
    %zero = OpConstant %int 0
    %array = OpTypeRuntimeArray %float
    %block = OpTypeStruct %array
    %pointer = OpTypePointer StorageBuffer %block
    %element = OpTypePointer StorageBuffer %float
    %data = OpVariable %pointer StorageBuffer
    main:
    %place = OpAccessChain %element %data %zero %zero
    OpStore %place %zero
""")
RIGHT = WRONG.replace("OpStore %place %zero", "%one = OpLoad %float %place\nOpStore %place %one")


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one line for each time that the real spirv-val was started."""
    real, log = shutil.which("spirv-val"), tmp_path / "calls.txt"
    assert real is not None
    log.touch()
    text = f'#!/bin/sh\necho called >> "{log}"\nexec "{real}" "$@"\n'
    monkeypatch.setenv(VARIABLE, str(executable(tmp_path / "counting-spirv-val", text)))
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    return log


@pytest.fixture
def validator() -> Validator:
    """The installed spirv-val."""
    found = find_validator()
    assert found is not None
    return found


def scene_of(scene: Scene, code: bytes, uid: str = "shader") -> Path:
    scene.module(uid, code).buffer("data", size=16)
    return scene.dispatch(uid, ["data"]).write()


def test_a_module_that_breaks_a_rule(scene: Scene, program: Program, counting: Path) -> None:
    """A run and validate refuse it alike, with the validator's own words."""
    path = scene_of(scene, assemble(WRONG))
    for command in ((path,), ("validate", path)):
        ended = program(*command, exit_code=5)
        assert "shader.spv: the module is not valid SPIR-V: OpStore Pointer" in ended.err
        assert f"{VARIABLE}=off turns it off" in ended.err
    assert "[SR-SHADER-013]" in ended.err
    assert counting.read_text() == "called\n"  # the second time the answer was kept
    assert not (scene.folder / "data.out.npy").exists()


def test_a_valid_module_is_checked_once(scene: Scene, program: Program, counting: Path) -> None:
    """A second run, or another scenario with the same bytes, does not start the validator."""
    path = scene_of(scene, assemble(RIGHT))
    assert program("validate", path).code == 0
    assert program(path).code == 0
    other = Scene(scene.folder / "other")
    assert program(scene_of(other, assemble(RIGHT), uid="another")).code == 0
    assert counting.read_text() == "called\n"
    assert program(path, "--no-cache").code == 0
    assert counting.read_text() == "called\n" * 2


def test_what_a_compiler_made_is_not_checked(scene: Scene, program: Program, counting: Path) -> None:
    """GLSL costs no process more."""
    scene.shader("shader", glsl("data[0] = 1;", "layout(set = 0, binding = 0) buffer D { float data[]; };"))
    scene.buffer("data", size=16).dispatch("shader", ["data"])
    assert program(scene.write()).code == 0
    assert counting.read_text() == ""


def test_several_modules_are_all_reported(scene: Scene, program: Program, counting: Path) -> None:
    """Each wrong shader has its own line."""
    for number in range(3):
        scene.module(f"shader{number}", assemble(WRONG.replace("ArrayStride 4", f"ArrayStride {4 + 4 * number}")))
        scene.dispatch(f"shader{number}", ["data"])
    ended = program(scene.buffer("data", size=16).write())
    assert [f"shader{number}.spv: the module" in ended.err for number in range(3)] == [True] * 3
    assert counting.read_text() == "called\n" * 3


def test_off_once_is_not_off_for_ever(scene: Scene, program: Program, counting: Path) -> None:
    """With the variable set to off, only our own checks are left. A module that passed so is refused as soon as the
    validator is on, although plan and module are kept."""
    assert (
        program("validate", scene_of(Scene(scene.folder / "wrong"), assemble(WRONG)), env={VARIABLE: "off"}).code == 0
    )
    path = scene_of(scene, assemble(RIGHT.replace("%zero =", "%twice = OpTypeFloat 32\n%zero =")))
    assert [program(path, env={VARIABLE: "off"}).code for _ in range(2)] == [0, 0]
    assert counting.read_text() == ""
    assert [program(path).code for _ in range(2)] == [5, 5]
    assert counting.read_text() == "called\n"


def test_without_the_validator(scene: Scene, program: Program, tmp_path: Path) -> None:
    """Without spirv-val a module that only spirv-val refuses passes, and a truncated module does not."""
    folder = tmp_path / "bin"
    folder.mkdir()
    env = {"PATH": str(folder), "SCENARIO_RUNNER_CACHE": str(tmp_path / "cache")}
    assert program("validate", scene_of(scene, assemble(WRONG)), env=env).code == 0
    other = Scene(scene.folder / "other")
    ended = program("validate", scene_of(other, assemble(RIGHT)[:-4]), env=env, exit_code=5)
    assert "has no end: the module is cut off" in ended.err


@pytest.mark.parametrize("decoration, code", [("BuiltIn WorkgroupId", 0), ("Location 0", 5), ("Restrict", 5)])
def test_inputs_of_compute_shaders(scene: Scene, program: Program, decoration: str, code: int) -> None:
    """Inputs of compute shaders must be built in, since spirv-val accepts others and drivers crash on them."""
    declared = ("%vector = OpTypeVector %uint 3", "%of_input = OpTypePointer Input %vector")
    declared += ("%input = OpVariable %of_input Input", "%main = ")
    changes = {
        '"main"': '"main" %input',
        "OpDecorate %block": f"OpDecorate %input {decoration}\nOpDecorate %block",
        "%main = ": "\n".join(declared),
        "%one = ": "%read = OpLoad %vector %input\n%one = ",
    }
    text = RIGHT
    for old, new in changes.items():
        text = text.replace(old, new)
    ended = program("validate", scene_of(scene, assemble(text)), exit_code=code)
    assert ("the compute shader 'main' has an input or output that is not built in" in ended.err) == bool(code)


def test_a_program_that_is_not_there(scene: Scene, program: Program) -> None:
    """A named validator that does not exist is a mistake in the call."""
    ended = program(scene_of(scene, assemble(RIGHT)), env={VARIABLE: "nowhere/spirv-val"}, exit_code=2)
    assert f"{VARIABLE} names 'nowhere/spirv-val', which is not a program" in ended.err


def test_find_validator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the variable, else on PATH; the identity follows the file."""
    monkeypatch.delenv(VARIABLE, raising=False)
    found = find_validator()
    assert found is not None
    assert found.path == shutil.which("spirv-val")
    monkeypatch.setenv(VARIABLE, "off")
    assert find_validator() is None
    copy = tmp_path / "copy"
    shutil.copy(found.path, copy)
    monkeypatch.setenv(VARIABLE, str(copy))
    first = find_validator()
    os.utime(copy, ns=(1, 1))
    assert first != find_validator()
    copy.chmod(0o644)
    with pytest.raises(UsageError):
        find_validator()


def test_what_it_does_not_know_is_not_refused(validator: Validator, tmp_path: Path) -> None:
    """Modules of extensions that may be newer than the validator: it finds nothing, or cannot tell."""
    for number, path in enumerate(sorted(FIXTURES.glob("*.spv"))):
        folder = str(tmp_path / str(number))
        assert not complaint(validator, path.read_bytes(), Processes(), folder, has_extensions=True)


@pytest.mark.parametrize("has_extensions, refused", [(False, True), (True, False)])
def test_an_unknown_number(validator: Validator, tmp_path: Path, has_extensions: bool, refused: bool) -> None:
    """An opcode that the validator does not know may be of a newer extension, where there is an extension at all."""
    code = assemble(RIGHT).replace((1 << 16 | 253).to_bytes(4, "little"), (1 << 16 | 6999).to_bytes(4, "little"))
    found = complaint(validator, code, Processes(), str(tmp_path / "f"), has_extensions=has_extensions)
    assert found == ("Invalid opcode: 6999" if refused else "")


def test_a_validator_that_fails(validator: Validator, tmp_path: Path) -> None:
    """A validator that fails without a message is ignored."""
    silent = validator._replace(path=shutil.which("false") or "")
    assert complaint(silent, assemble(RIGHT), Processes(), str(tmp_path / "f"), has_extensions=False) == ""
    missing = validator._replace(path=str(tmp_path / "missing"))
    with pytest.raises(OSError, match="missing"):
        complaint(missing, assemble(RIGHT), Processes(), str(tmp_path / "g"), has_extensions=False)
