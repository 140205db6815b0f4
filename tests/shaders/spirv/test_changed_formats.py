"""Modules with changed formats of storage images, checked by spirv-val and read again."""

import shutil
import subprocess
from pathlib import Path

import pytest

from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import DescriptorBinding, Module, read_module
from scenario_runner.shaders.spirv.storage_image_formats import ChangedFormats, change_formats
from tests.scenes import assemble, kernel

HEAD = "#version 450\nlayout(local_size_x = 1) in;\n"
# put(p) writes, get(p) reads, both(p, q) calls them; main does put(a), both(b, c).
FUNCTIONS = kernel("""
    OpEntryPoint GLCompute %main "main" %a %b %c
    Bind %a 0 0
    Bind %b 0 1
    Bind %c 0 2
    %float = OpTypeFloat 32
    %int = OpTypeInt 32 1
    %v4 = OpTypeVector %float 4
    %i2 = OpTypeVector %int 2
    %image = OpTypeImage %float 2D 0 0 0 2 Rgba16f
    %pointer = OpTypePointer UniformConstant %image
    %writing = OpTypeFunction %void %pointer %v4
    %reading = OpTypeFunction %v4 %image
    %copying = OpTypeFunction %void %pointer %pointer
    %one = OpConstant %float 1
    %ones = OpConstantComposite %v4 %one %one %one %one
    %zero = OpConstant %int 0
    %origin = OpConstantComposite %i2 %zero %zero
    %a = OpVariable %pointer UniformConstant
    %b = OpVariable %pointer UniformConstant
    %c = OpVariable %pointer UniformConstant
    main:
    %r1 = OpFunctionCall %void %put %a %ones
    %r2 = OpFunctionCall %void %both %b %c
    OpReturn
    OpFunctionEnd
    %both = OpFunction %void None %copying
    %p = OpFunctionParameter %pointer
    %q = OpFunctionParameter %pointer
    %l2 = OpLabel
    %qi = OpLoad %image %q
    %copy = OpCopyObject %image %qi
    %texel = OpFunctionCall %v4 %get %copy
    %r3 = OpFunctionCall %void %put %p %texel
    OpReturn
    OpFunctionEnd
    %put = OpFunction %void None %writing
    %pp = OpFunctionParameter %pointer
    %value = OpFunctionParameter %v4
    %l3 = OpLabel
    %pi = OpLoad %image %pp
    OpImageWrite %pi %origin %value
    OpReturn
    OpFunctionEnd
    %get = OpFunction %v4 None %reading
    %gi = OpFunctionParameter %image
    %l4 = OpLabel
    %got = OpImageRead %v4 %gi %origin
    OpReturnValue %got
    OpFunctionEnd
""")
EXTENDED = "StorageImageExtendedFormats"
READ, WRITE = "StorageImageReadWithoutFormat", "StorageImageWriteWithoutFormat"


def compiled(text: str, language: str = "GLSL") -> Module:
    request = CompileRequest(source=text, name="a", language=language)  # type: ignore[arg-type]
    return read_module(compile_all([request])[0])


def bindings(module: Module) -> dict[str, DescriptorBinding]:
    return {each.name: each for each in module.entry_points[0].interface.bindings}


def formats(module: Module) -> dict[str, str]:
    found = {name: each.image for name, each in bindings(module).items()}
    return {name: image.format for name, image in found.items() if image is not None}


def opened(module: Module, *names: str, format: str = "Unknown") -> ChangedFormats | None:
    return change_formats(module.source, {bindings(module)[name].variable: format for name in names})


def changed(module: Module, *names: str, folder: Path, format: str = "Unknown") -> Module:
    """The module with another format for images of these names; valid by spirv-val."""
    made = opened(module, *names, format=format)
    assert made is not None
    path = folder / "changed.spv"
    path.write_bytes(made.code)
    validator = shutil.which("spirv-val")
    assert validator is not None, "this test needs spirv-val (Debian: spirv-tools)"
    done = subprocess.run([validator, "--target-env", "vulkan1.2", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return read_module(made.code)


@pytest.mark.parametrize("format, capability", [("Rgba16f", set()), ("R16f", {EXTENDED}), ("Rg16Snorm", {EXTENDED})])
def test_a_format_of_the_image(format: str, capability: set[str], tmp_path: Path) -> None:
    """A format that SPIR-V has a name for takes no reads without format; some take a capability of their own."""
    text = f"{HEAD}layout(binding = 0, rgba32f) uniform image2D a;\nlayout(binding = 1, rgba32f) uniform image2D b;\n"
    module = compiled(text + "void main() { imageStore(a, ivec2(0), imageLoad(b, ivec2(1))); }\n")
    after = changed(module, "a", folder=tmp_path, format=format)
    assert formats(after) == {"a": format, "b": "Rgba32f"}
    assert set(after.capabilities) - set(module.capabilities) == capability


def test_images_of_several_formats_become_one_type(tmp_path: Path) -> None:
    """Types that differ in nothing but the format are one type afterwards, also where the module has it already."""
    module = compiled(
        HEAD + "layout(binding = 0, rgba32f) uniform image2D a;\nlayout(binding = 1, r32f) uniform image2D b;\n"
        "layout(binding = 2) uniform writeonly image2D c;\nlayout(binding = 3, rgba8) uniform image2D d;\n"
        "void main() {\n  imageStore(b, ivec2(0), imageLoad(a, ivec2(1)));\n"
        "  imageStore(c, ivec2(0), imageLoad(d, ivec2(0)));\n}\n"
    )
    after = changed(module, "a", "b", folder=tmp_path)
    assert formats(after) == {"a": "Unknown", "b": "Unknown", "c": "Unknown", "d": "Rgba8"}
    after = changed(module, "a", "b", "d", folder=tmp_path)
    assert set(formats(after).values()) == {"Unknown"}


@pytest.mark.parametrize("named", [("a",), ("b",), ("a", "b", "c")])
def test_functions_that_take_images(named: tuple[str, ...], tmp_path: Path) -> None:
    """Variables passed to one parameter change their type together, and others keep it."""
    module = read_module(assemble(FUNCTIONS, "spv1.5"))
    after = formats(changed(module, *named, folder=tmp_path))
    together = {"a": "Unknown", "b": "Unknown", "c": "Rgba16f"}
    assert after == (dict.fromkeys("abc", "Unknown") if "c" in named else together)
    assert formats(changed(module, "b", folder=tmp_path, format="Rgba8")) == together, "a keeps its image's format"
    assert formats(changed(module, "a", "b", folder=tmp_path, format="Rgba8"))["a"] == "Rgba8"
    assert formats(changed(module, "c", folder=tmp_path)) == {"a": "Rgba16f", "b": "Rgba16f", "c": "Unknown"}


def test_arrays_of_images(tmp_path: Path) -> None:
    """An array's element type changes with it."""
    module = compiled(
        HEAD + "layout(binding = 0, rgba8) uniform image2D a[2];\nlayout(binding = 1, rgba8) uniform image2D b;\n"
        "void main() { imageStore(a[1], ivec2(0), imageLoad(b, ivec2(0))); }\n"
    )
    assert formats(changed(module, "a", folder=tmp_path)) == {"a": "Unknown", "b": "Rgba8"}
