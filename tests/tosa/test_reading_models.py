"""Models are read in all three forms, however they are written."""

import struct
import subprocess
from pathlib import Path

import pytest

from scenario_runner import ScenarioRunnerError, convert
from scenario_runner.files.vk_formats import format_named
from scenario_runner.ml.flatbuffers import Tables
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.tosa.model import Model
from scenario_runner.tosa.model_converter import find_converter
from scenario_runner.tosa.model_files import open_source, parse_model
from scenario_runner.tosa.text_model import escaped
from tests.left_out import VGF_LIBRARY, needs
from tests.tosa.models import GRID, add, function, shader

FIXTURES = Path(__file__).parent / "fixtures"


def read(model: Path | str) -> Model:
    """The model in a file or a text."""
    return parse_model(open_source(model.encode() if isinstance(model, str) else model))


def flatbuffer(text: str, folder: Path) -> bytes:
    """The model as a TOSA FlatBuffer."""
    source, made = folder / "flatbuffer.mlir", folder / "flatbuffer.tosa"
    source.write_text(text)
    program = [str(find_converter()), "--tosa-flatbuffer", "-i", source, "-o", made]
    subprocess.run(program, capture_output=True, check=True)
    return made.read_bytes()


@needs(VGF_LIBRARY, "mixed")
@pytest.mark.parametrize("name", ["mixed", "unused"])
def test_bytecode_and_text(name: str) -> None:
    """Bytecode and text of one model give the same bytes, with and without shaders."""
    text = convert(FIXTURES / f"{name}.mlir").content
    assert convert(FIXTURES / f"{name}.mlirbc").content == text
    assert convert(FIXTURES / f"{name}.mlir").content == text


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("name", ["model.tosa", "model.bin"])
@pytest.mark.parametrize("shaders", [0, 1, 2])
def test_flatbuffer_and_text(tmp_path: Path, name: str, shaders: int) -> None:
    """A TOSA FlatBuffer gives the same file as text with the names of its block, whatever the name of its file."""
    body = [add("%0", "%x", "%y"), add("%1", "%0", "%x"), add("%2", "%0", "%1")]
    if shaders:
        body[1] = shader("%1", ["%0"], [2, 1])
    if shaders == 2:
        body[2:] = [shader("%3:2", ["%1", "%0"], [2, 1, 3], [1, 0, 5]), add("%2", "%3#1", "%3#0")]
    text = function(["x", "y"], body, ["%2", "%0"])
    (tmp_path / name).write_bytes(flatbuffer(text, tmp_path))
    names = {'"x,y"': '"TosaInput_0,TosaInput_1"', '"out0,out1"': '"TosaOutput_0,TosaOutput_1"'}
    for old, new in names.items():
        text = text.replace(old, new)
    assert parse_vgf(convert(tmp_path / name).content) == parse_vgf(convert(text.encode()).content)


@needs(VGF_LIBRARY)
def test_a_flatbuffer_of_an_earlier_version(tmp_path: Path) -> None:
    """The converter prints warnings about a model of TOSA 1.0.0, as ExecuTorch writes it, which the file has not."""
    model = flatbuffer(function(["x", "y"], [add("%0", "%x", "%y")], ["%0"]), tmp_path)
    expected = convert(model).content
    file = Tables(lambda at, size: model[at : at + size], len(model))
    minor = file.field(file.child(file.number(0), 0), 1)
    earlier = model[:minor] + struct.pack("<i", 0) + model[minor + 4 :]
    assert earlier != model
    assert convert(bytes(earlier)).content == expected


@needs(VGF_LIBRARY)
def test_other_ways_to_write_text() -> None:
    """The generic form, aliases of attributes and types, comments, locations and declarations change nothing."""
    usual = function(["x"], [add("%0", "%x", "%x"), shader("%1:2", ["%0"], [2, 1], [1, 0])], ["%1#1", "%1"])
    expected = convert(usual.encode()).content
    (operation,) = read(usual).functions[0].shaders
    string = escaped(operation.attributes)
    generic = (
        '// a shader { "tosa.custom" (\n  %1:2 = "tosa.custom"(%0) <{domain_name = "com.arm.VulkanCustomShader", '
        f'implementation_attrs = {string}, operator_name = "sh\\61der"}}> {{other = [1, {{a = "}}"}}]}} : '
        f"({GRID}) -> ({GRID}, {GRID}) loc(unknown) // end"
    )
    start, end = operation.span
    assert convert((usual[:start] + generic.lstrip() + usual[end:]).encode()).content == expected
    module = f"#code = {string}\nmodule {{\n{usual[:start]}{usual[start:end]}{usual[end:]}}}\n"
    at = module.index("implementation_attrs = ") + len("implementation_attrs = ")
    module = module[:at] + "#code" + module[module.index("}", module.index('set\\": 0}"', at)) + 2 :]
    assert convert(module.encode()).content == expected
    aliased = f"!grid = {GRID}\nfunc.func private @declared({GRID}) -> {GRID}\n" + usual.replace(GRID, "!grid")
    assert convert(aliased.encode()).content == expected
    assert convert(aliased.split("\n", 1)[1].replace("!grid", GRID).encode()).content == expected


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("shaders", [0, 1])
def test_elements_of_48_bits(shaders: int) -> None:
    """An argument of 48-bit integers is a tensor of 64-bit ones, also where nothing but the interface has it."""
    body = [shader("%0", ["%x"], [2, 1]) if shaders else add("%0", "%x", "%x"), add("%1", "%0", "%x")]
    text = function(["x", "y"], body, ["%1"]).replace(f"%y: {GRID}", "%y: tensor<3xi48>")
    found = parse_vgf(convert(text.encode()).content)
    y = found.resources[found.inputs[1].resource_index]
    assert (y.format, y.shape) == (format_named("VK_FORMAT_R64_SINT").value, (3,))


def test_many_operands() -> None:
    """The time for a list of values grows with its length, not with the square of it."""
    names = [f"x{number}" for number in range(20_000)]
    operands, types = ", ".join(f"%{name}" for name in names), ", ".join([GRID] * len(names))
    joined = f"%1 = tosa.concat {operands} {{axis = 0 : i32}} : ({types}) -> tensor<80000x16xf32>"
    (main,) = read(function(names, [shader("%0", ["%x0"], [2, 1]), joined], ["%0"])).functions
    assert (len(main.arguments), len(main.operations), main.is_only_shaders) == (20_000, 1, False)


def test_deep_attributes() -> None:
    """Attributes of a function may be nested to any depth, since they are skipped."""
    text = function(["x"], [shader("%0", ["%x"], [2, 1])], ["%0"])
    deep = f"{'{a = ' * 5000}1 : i32{'}' * 5000}"
    (main,) = read(text.replace("attributes {tf", f"attributes {{other = {deep}, tf")).functions
    assert (main.input_names, main.output_names) == (("x",), ("out0",))


def test_damaged_text() -> None:
    """Text that is cut anywhere gives an error of ours."""
    text = (FIXTURES / "mixed.mlir").read_text()
    for end in range(0, len(text) - 2, 61):
        with pytest.raises(ScenarioRunnerError, match=r"^<memory>:"):
            convert(text[:end].encode(), check=False)


@needs(VGF_LIBRARY)
def test_a_file_named_like_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model named ``-`` is read as a file, and not as standard input."""
    (tmp_path / "-").write_text("no model")
    monkeypatch.chdir(tmp_path)
    assert convert(FIXTURES / "mixed.mlirbc").content == convert(FIXTURES / "mixed.mlir").content
