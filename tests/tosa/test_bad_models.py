"""Every model that cannot be converted gets one clear error, and no file is written."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import ScenarioRunnerError, convert
from scenario_runner.errors import FileError, MissingFileError, UnsupportedError, UsageError
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.tosa import model_converter
from scenario_runner.tosa.model_converter import VARIABLE
from scenario_runner.tosa.model_files import open_source
from tests.left_out import VGF_LIBRARY, needs
from tests.program import executable
from tests.scenes import error_of
from tests.tables import cases
from tests.tosa.models import BRANCH, BUFFER, GRID, TENSOR, add, attributes, custom, function, linear, shader
from tests.tosa.test_reading_models import FIXTURES, flatbuffer

RIGHT = attributes([BUFFER], [BUFFER], linear([BUFFER], [BUFFER], [1, 0]), workgroup_sizes=[8, 1, 1])


def changed(**changes: Any) -> str:
    """Return a model of one shader with other attributes; None leaves an attribute out."""
    given = {key: value for key, value in (RIGHT | changes).items() if value is not None}
    return function(["x"], [custom("%1", ["%x"], given, name="Scale")], ["%1"])


def model(*body: str, returned: str = "%1") -> str:
    """A model of one argument x with these operations."""
    return function(["x"], body, [returned])


MODELS: dict[str, str | bytes] = {
    "attributes that are not JSON": model(custom("%1", ["%x"], "{x", name="Scale")),
    "a missing key": changed(entry_point=None),
    "another number of operands": model(custom("%1", ["%x", "%x"], RIGHT, name="Scale")),
    "a dynamic shape": changed().replace(GRID, "tensor<?x16xf32>"),
    "a size of 5,000 digits": changed().replace(GRID, f"tensor<{'9' * 5000}x16xf32>"),
    "elements without a format": changed().replace("f32", "complex<f32>"),
    "a cycle of shaders": model(shader("%1", ["%2"], [1, 0], name="A"), shader("%2", ["%1"], [1, 0], name="B")),
    "a cycle through a graph": model(shader("%1", ["%2"], [1, 0], name="A"), add("%2", "%1", "%x")),
    "a value of another type": changed().replace(f"%x: {GRID}", "%x: tensor<64xf32>"),
    "a returned value of another type": changed().replace(f"return %1 : {GRID}", "return %1 : tensor<64xf32>"),
    "a value that is defined twice": model(shader("%1", ["%x"], [1, 0]), shader("%1", ["%x"], [1, 0])),
    "other results than declared": changed().replace(f"-> ({GRID}) attributes", f"-> ({GRID}, {GRID}) attributes"),
    "no return": changed().replace(f"return %1 : {GRID}", ""),
    "a brace too many": changed() + "}",
    "a shader without results": model(
        custom("%1", ["%x"], RIGHT).replace("%1 = ", "").replace(f"-> {GRID}", "-> ()"), returned="%x"
    ),
    "a shader in a branch": model(*BRANCH),
    "a syntax error": model(add("%1", "%x", "%x")).replace("return", "retrun"),
    "an element type that is not lowered": model(add("%1", "%x", "%x")).replace("f32", "i8"),
    "text that is no model": "hello",
    "a NUL character": "\0",
    "bytes": b"\xff\xfe" * 40,
    "bytecode that was cut": (FIXTURES / "mixed.mlirbc").read_bytes()[:900],
    "a FlatBuffer that was cut": b"\x08\0\0\0TOSA\xc8\xff\xff\xff",
}


MESSAGES = {name: message for name, *message in cases(__file__, "bad_models.txt", "MODELS")}


def matches(message: str, expected: str) -> bool:
    """Compare a message with the expected one, which may end with an ellipsis."""
    return message.startswith(expected[:-1]) if expected.endswith("…") else message == expected


@pytest.mark.parametrize("name", MODELS)
def test_bad_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shader_cache: Path, name: str) -> None:
    """The message names file, line, operation and attribute, and no file is written."""
    monkeypatch.chdir(tmp_path)
    content, (code, *lines) = MODELS[name], MESSAGES[name]
    Path("model.mlir").write_bytes(content if isinstance(content, bytes) else content.encode())
    error = error_of(ScenarioRunnerError, convert, "model.mlir", "model.vgf")
    assert matches(str(error), "\n".join(lines)), str(error)
    assert code in (error.problems[0].code, "...")
    assert os.listdir() == ["model.mlir"]


@needs(VGF_LIBRARY)
def test_code_that_does_not_compile(shader_cache: Path) -> None:
    """A failed compilation shows the compiler's message with the line of the code."""
    text = changed(shader_code="#version 450\nlayout(local_size_x = 8) in;\nvoid main() { y = 1; }\n")
    error = error_of(ScenarioRunnerError, convert, text.encode())
    assert str(error).startswith("<memory>: <shader_code of 'Scale'>:3:15: 'y' : undeclared identifier")
    assert convert(text.encode(), check=False).findings == ()


def test_all_problems_at_once(shader_cache: Path) -> None:
    """The problems of all shaders travel in one error; shaders of one name are told apart by their lines."""
    one = custom("%1", ["%x"], RIGHT | {"entry_point": 3})
    other = custom("%2", ["%1"], RIGHT | {"workgroup_sizes": [0, 1, 1]})
    error = error_of(ScenarioRunnerError, convert, model(one, other).encode())
    assert [str(problem).split(">:")[1] for problem in error.problems] == [
        " <attributes of 'shader, line 2'",
        " <attributes of 'shader, line 3'",
    ]


@needs(VGF_LIBRARY)
def test_another_domain(shader_cache: Path) -> None:
    """A custom operation of another domain is named and left to the converter, with its options."""
    text = model(custom("%1", ["%x"], "", name="Other", domain="com.arm.Other"))
    left = (
        "<memory>:2: the custom operation 'Other' of the domain 'com.arm.Other' is not a Vulkan shader: it is left to"
        " the converter"
    )
    refusal, reason = error_of(UnsupportedError, convert, text.encode()).problems
    assert (refusal.code, reason.code, str(reason)) == ("SR-CUSTOM-032", "SR-CUSTOM-035", left)
    assert str(refusal).startswith("<memory>: the converter cannot lower this model: failed to legalize operation")
    options = ["--custom-op-domain-to-opcode", "com.arm.Other:7"]
    converted = convert(text.encode(), converter_options=options)
    assert [(each.severity, str(each)) for each in converted.findings] == [("warning", left)]
    with pytest.raises(ScenarioRunnerError, match=r"com\.arm\.Other"):
        convert(text.encode(), converter_options=options, strict=True)


def test_options_of_the_converter() -> None:
    """Options that the converter does not take are the user's, no defect."""
    with pytest.raises(UsageError, match="model-converter does not take the options '--other': Unknown argument"):
        convert(model(add("%1", "%x", "%x")).encode(), converter_options=["--other"])


def test_the_output_is_the_model(tmp_path: Path) -> None:
    """The converted file never replaces the model."""
    path = tmp_path / "model.mlir"
    path.write_text(changed())
    with pytest.raises(UsageError, match="the output is the model itself"):
        convert(path, path)
    assert path.read_text() == changed()


def test_a_missing_model_for_an_output_that_exists(tmp_path: Path) -> None:
    """The error is about the model, whatever the output is."""
    (tmp_path / "out.vgf").touch()
    with pytest.raises(MissingFileError, match="cannot be opened"):
        convert(tmp_path / "nope.mlir", tmp_path / "out.vgf")


@needs(VGF_LIBRARY)
def test_views_of_different_sizes(shader_cache: Path) -> None:
    """Formats that the converter changes for graphs must fit the shaders' formats."""
    formats = {"input_0_vkformat": "VK_FORMAT_R64_SINT", "output_0_vkformat": "VK_FORMAT_R64_SINT"}
    body = [custom("%1", ["%x"], attributes([TENSOR], [TENSOR], None, **formats)), add("%2", "%x", "%1")]
    error = error_of(ScenarioRunnerError, convert, function(["x"], body, ["%2"]).replace("f32", "i64").encode())
    assert error.problems[0].code == "SR-CUSTOM-036"
    assert str(error).startswith("<memory>: the shaders do not fit together: /resources/")


@needs(VGF_LIBRARY)
def test_several_functions(shader_cache: Path) -> None:
    """Without a name the only function or main is converted, with a note about the others."""
    main, other = model(add("%1", "%x", "%x")), function(["a", "b"], [add("%1", "%a", "%b")], ["%1"], name="other")
    both = convert((other + main).encode())
    assert [(each.code, str(each)) for each in both.findings] == [
        ("SR-CUSTOM-037", "<memory>: only the function 'main' is converted, not 'other'")
    ]
    assert parse_vgf(both.content) == parse_vgf(convert(main.encode()).content)
    chosen = convert((other + main).encode(), function="other")
    assert parse_vgf(chosen.content) == parse_vgf(convert(other.encode()).content)
    bytecode = convert(FIXTURES / "functions.mlirbc")
    assert [str(each).split(": ")[1] for each in bytecode.findings] == [
        "only the function 'main' is converted, not 'other'"
    ]
    assert [each.shape for each in parse_vgf(bytecode.content).resources] == [(4,), (4,)]
    with pytest.raises(UsageError, match="<memory>: the model has no function 'x'; it has 'other', 'main'"):
        convert((other + main).encode(), function="x")
    with pytest.raises(UsageError, match="<memory>: the model has the functions 'other', 'third'"):
        convert((other + main.replace("@main", "@third")).encode())


def test_cycles_of_a_flatbuffer(tmp_path: Path) -> None:
    """An operator that reads its own result, which aborts the converter, is refused with a reason."""
    content = flatbuffer((FIXTURES / "mixed.mlir").read_text(), tmp_path)
    # the names of the shader's operand and result in its operator
    operand, result = b"layer_0", b"layer_2"
    shader = content.rindex(b"com.arm.VulkanCustomShader")
    names = {
        name: [at for at in range(shader, len(content)) if content.startswith(name, at)] for name in (operand, result)
    }
    damaged = bytearray(content)
    for at in names[operand][:1]:
        damaged[at : at + len(operand)] = result
    assert str(error_of(FileError, convert, bytes(damaged))) == (
        "<memory>: is not a valid TOSA model: operator 2 (custom operation 'Mix') reads 'layer_2', which no operator"
        " before it makes"
    )


def test_the_converters_own_reason(tmp_path: Path) -> None:
    """The converter's reason for refusing a FlatBuffer is shown."""
    zero, filter = "tensor<1xf32>", "tensor<2x1x1x3xf32>"
    text = (
        f"func.func @main(%x: tensor<1x4x4x3xf32>, %w: {filter}, %b: tensor<2xf32>, %z: {zero}) -> tensor<1x4x4x2xf32>"
        " {\n  %1 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, "
        "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : "
        f"(tensor<1x4x4x3xf32>, {filter}, tensor<2xf32>, {zero}, {zero}) -> tensor<1x4x4x2xf32>\n"
        "  return %1 : tensor<1x4x4x2xf32>\n}\n"
    )
    assert str(error_of(UnsupportedError, convert, flatbuffer(text, tmp_path))).startswith(
        "<memory>: the converter cannot lower this model: cannot retrieve the zero points from op; "
    )


def test_a_converter_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged bytecode can make the converter loop: it has a time limit."""
    damaged = bytearray((FIXTURES / "mixed.mlirbc").read_bytes())
    damaged[410] = 0x52
    monkeypatch.setattr(model_converter, "TIMEOUT_S", 1.0)
    with pytest.raises(UnsupportedError, match="<memory>: the converter did not finish within 1"):
        convert(bytes(damaged))


@pytest.mark.parametrize("size", [0, 8, 40, 200, 1000])
def test_a_flatbuffer_that_was_cut(tmp_path: Path, size: int) -> None:
    """A truncated FlatBuffer is damaged at any length."""
    content = flatbuffer((FIXTURES / "mixed.mlir").read_text(), tmp_path)
    with pytest.raises(FileError):
        convert(content[:size])


def test_a_flatbuffer_that_is_cut_while_it_is_converted(tmp_path: Path) -> None:
    """Another program may shorten the file after its tables were read."""
    path = tmp_path / "model.tosa"
    path.write_bytes(flatbuffer((FIXTURES / "mixed.mlir").read_text(), tmp_path) + bytes(3 << 20))
    parts = open_source(path).parts()
    next(parts)
    os.truncate(path, 1 << 20)
    with pytest.raises(FileError, match="ends after 1048576 bytes, expected at least 2097152"):
        next(parts)


def test_no_room_for_the_converters_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full temporary folder is an error about the model, not about standard output."""

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(model_converter, "TemporaryFile", full)
    with pytest.raises(UnsupportedError, match="temporary file for the converter: no space left on device") as caught:
        convert(changed().encode().replace(b"custom", b"other"))
    assert (caught.value.problems[0].code, caught.value.exit_code) == ("SR-CUSTOM-039", 6)


def test_files(tmp_path: Path, shader_cache: Path) -> None:
    """A model that is not there, and outputs that cannot be written."""
    with pytest.raises(MissingFileError):
        convert(tmp_path / "no.mlir", tmp_path / "out.vgf")
    (tmp_path / "model.mlir").write_text(changed())
    with pytest.raises(FileError, match="is a folder, expected the name of a file to write"):
        convert(tmp_path / "model.mlir", tmp_path)
    with pytest.raises(FileError, match="cannot be created: not a directory"):
        convert(tmp_path / "model.mlir", tmp_path / "model.mlir" / "out.vgf")
    assert os.listdir(tmp_path) == ["model.mlir"]


def fake_converter(folder: Path, program: str) -> str:
    """Write a program in place of the converter."""
    return str(executable(folder / "converter", f"#!{sys.executable}\n{program}\n"))


@needs(VGF_LIBRARY)
def test_without_the_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shader_cache: Path) -> None:
    """Without the converter, models of shaders alone are converted, and others are refused with the package to
    install."""
    monkeypatch.setattr("scenario_runner.tosa.model_converter.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert convert(changed().encode(), check=False).content
    (problem,) = error_of(UnsupportedError, convert, model(add("%1", "%x", "%x")).encode()).problems
    assert problem.code == "SR-CUSTOM-031"
    assert str(problem) == (
        "<memory>: the converter of machine-learning operations (package ai_ml_sdk_model_converter) is not installed"
    )
    assert problem.help == "install it: pip install ai_ml_sdk_model_converter"
    with pytest.raises(UnsupportedError, match="is not installed"):
        convert(FIXTURES / "mixed.mlirbc")


@pytest.mark.parametrize(
    "program, expected",
    [
        ("import os; os.abort()", "<memory>: the converter was ended by SIGABRT"),
        ("import sys; sys.exit(3)", "<memory>: the converter ended with the exit code 3 and no reason"),
        ("", "<memory>: the converter wrote nothing"),
    ],
)
def test_a_converter_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, expected: str) -> None:
    """A crash, an end without a reason and no result are told apart."""
    monkeypatch.setenv(VARIABLE, fake_converter(tmp_path, program))
    error = error_of(ScenarioRunnerError, convert, model(add("%1", "%x", "%x")).encode())
    assert (error.problems[0].code, error.exit_code) == ("SR-CUSTOM-033", 6)
    assert str(error).startswith(expected)


def test_a_converter_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the program."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(UnsupportedError, match="none cannot be started: no such file or directory"):
        convert(model(add("%1", "%x", "%x")).encode())
