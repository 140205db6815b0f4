"""Reading whole files: their content, and the error of each bad file."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from vgf_samples import (
    FIXTURES,
    R32_SFLOAT,
    STORAGE_BUFFER,
    TENSOR,
    fixture_bytes,
    legacy_constants,
    one_shader,
    with_constants,
)

from scenario_runner.errors import FileError
from scenario_runner.files.input import SourceFile
from scenario_runner.ml.vgf_file import parse_vgf, read_open_vgf, read_vgf
from scenario_runner.ml.vgf_model import GraphConstant, ModelResource
from tests.scenes import error_of


def refusal(content: bytes) -> str:
    """Return the message that refuses a file."""
    error = error_of(FileError, parse_vgf, content, name="model.vgf")
    assert error.problems[0].code in ("SR-FILE-013", "SR-FILE-014")
    return str(error)


@pytest.mark.parametrize("name, version", [("conv", (0, 5, 0)), ("conv_0_4", (0, 4, 0))])
def test_a_convolution_has_its_weights_as_a_constant(name: str, version: tuple[int, int, int]) -> None:
    """The weights of the model's source come back bit by bit, whichever format version holds them."""
    content = (FIXTURES / f"{name}.vgf").read_bytes()
    vgf = parse_vgf(content)
    weights = np.array([(i * 7 % 11 - 5) / 8 for i in range(72)], np.float32)
    assert vgf.version == version
    assert [c.size_bytes for c in vgf.constants] == [288]
    np.testing.assert_array_equal(np.frombuffer(vgf.constants[0].data or b"", np.float32), weights)
    np.testing.assert_array_equal(
        np.frombuffer(content, np.float32, 72, read_vgf(FIXTURES / f"{name}.vgf").constants[0].offset_bytes), weights
    )
    row = ModelResource("constant", None, R32_SFLOAT, (4, 3, 3, 2), (), None, None)
    assert vgf.resources[vgf.constants[0].resource_index] == row
    (segment,) = vgf.segments
    assert (segment.type, segment.constants) == ("graph", (GraphConstant(0, 0),))
    assert vgf.modules[segment.module_index].language == "SPIR-V"


def test_a_mixed_model_has_graphs_around_a_shader_and_views_that_share_memory() -> None:
    """The input x is a tensor for the graph and a buffer for the shader, in one alias group."""
    vgf = read_vgf(FIXTURES / "mixed.vgf")
    assert [s.type for s in vgf.segments] == ["graph", "compute", "graph"]
    shader = vgf.modules[vgf.segments[1].module_index]
    assert shader.language == "GLSL"
    assert isinstance(shader.code, str)
    assert "a[i] * a[i] + 0.5 * b[i]" in shader.code
    assert vgf.segments[1].dispatch_shape == (4, 1, 1)
    x = vgf.resources[vgf.inputs[0].resource_index]
    views = [r for r in vgf.resources if r.alias_group == x.alias_group]
    assert sorted(r.descriptor_type or 0 for r in views) == [STORAGE_BUFFER, TENSOR]


def test_a_placeholder_module_has_no_code() -> None:
    """A shader that was left out has neither language nor code."""
    vgf = read_vgf(FIXTURES / "placeholder.vgf")
    module = vgf.modules[vgf.segments[1].module_index]
    assert (module.type, module.language, module.code, module.entry_point) == ("compute", None, None, "main")


@pytest.mark.parametrize("cut", [5, 0.3, 0.6, 0.9])
def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path: Path, cut: float) -> None:
    """Reading a file that got shorter after it was opened ends in an error, not in a signal."""
    path = tmp_path / "model.vgf"
    path.write_bytes(with_constants([b"abcd"]))
    with SourceFile(path) as file:
        os.truncate(path, int(cut if cut > 1 else cut * file.size_bytes))
        with pytest.raises(FileError, match=r"ends after \d+ bytes, expected at least \d+"):
            read_open_vgf(file)


@pytest.mark.parametrize("size_mb", [64, pytest.param(500, marks=pytest.mark.heavy)])
def test_large_constants_cost_no_memory(tmp_path: Path, size_mb: int) -> None:
    """Opening a file with large constants grows the process by a few megabytes only."""
    path = tmp_path / "large.vgf"
    part = np.random.default_rng(1).bytes(1 << 20)
    path.write_bytes(with_constants([part * (size_mb // 4)] * 4))
    code = (
        "import resource, sys, scenario_runner.ml.vgf_file as vgf, vgfpy\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "file = vgf.read_vgf(sys.argv[1])\n"
        "print(sum(c.size_bytes for c in file.constants), peak() - before)\n"
    )
    out = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout
    size, growth_kb = map(int, out.split())
    assert size == size_mb << 20
    assert growth_kb < 8 << 10


def test_the_legacy_magic_is_accepted() -> None:
    """Files that begin with the number of old writers read like others."""
    content = bytearray(one_shader())
    struct.pack_into("<I", content, 0, 0xF0E1D2C3)
    assert parse_vgf(content) == parse_vgf(one_shader())


def test_legacy_constants_are_read_and_copied() -> None:
    """The FlatBuffers constants of format 0.3 have resource, sparsity dimension and data."""
    content = legacy_constants(with_constants([b"abc", b"d"]), [(1, -1, b"xyz"), (2, 0, b"e")], (0, 3, 0))
    vgf = parse_vgf(content)
    assert vgf.version == (0, 3, 0)
    assert [(c.resource_index, c.sparsity_dimension, bytes(c.data or b"")) for c in vgf.constants] == [
        (1, None, b"xyz"),
        (2, 0, b"e"),
    ]


def test_the_twice_bound_model_is_refused() -> None:
    """A shader with one binding for an input and an output, which the converter accepts, is refused."""
    assert refusal(fixture_bytes("twice_bound")) == (
        "model.vgf: /segments/0/descriptor_sets/0/slots/1: the binding 0 is used twice, for the resources 0 and 2"
    )


@pytest.mark.parametrize("content, message",
    [
        (b"", "/header: the file has 0 bytes, but a VGF file begins with a header of 128 bytes"),
        (fixture_bytes("conv")[:9], "/header: the file has 9 bytes, but a VGF file begins with a header of 128 bytes"),
        (bytes(200), r"/header: this is not a VGF file: it begins with b'\x00\x00\x00\x00' where b'VGF1' is expected"),
    ],
)  # fmt: skip
def test_what_is_no_vgf_file_is_refused(content: bytes, message: str) -> None:
    """A short file and a foreign one are told apart."""
    assert refusal(content) == f"model.vgf: {message}"


@pytest.mark.parametrize("version", [(0, 6, 0), (1, 0, 0), (0, 2, 9), (255, 5, 0)])
def test_an_unknown_version_is_refused(version: tuple[int, int, int]) -> None:
    """A newer or invented format version is refused with the readable versions."""
    content = bytearray(fixture_bytes("conv"))
    content[8:11] = bytes(version)
    text = ".".join(map(str, version))
    assert refusal(content) == (
        f"model.vgf: /header: the file has the VGF format {text}, but formats 0.3 to 0.5 can be read"
    )


@pytest.mark.parametrize("section", range(4))
@pytest.mark.parametrize("offset, size", [(2**64 - 8, 16), (0, 64), (128, 2**63), (2400, 8)])
def test_a_section_outside_the_file_is_refused(section: int, offset: int, size: int) -> None:
    """A section that does not lie within the file is named with its bounds."""
    content = bytearray(fixture_bytes("conv"))
    struct.pack_into("<QQ", content, 16 + 16 * section, offset, size)
    name = ("module", "model sequence", "model resource", "constant")[section]
    assert refusal(content) == (
        f"model.vgf: /header: the header places the {name} section at bytes {offset} to {offset + size}, "
        "but the file has 2400 bytes, and the first 128 are the header"
    )


@pytest.mark.parametrize("section", range(3))
def test_an_empty_or_invalid_table_is_refused(section: int) -> None:
    """A section that holds no table is named with its size."""
    for size in (0, 3, 64):
        content = bytearray(fixture_bytes("conv"))
        struct.pack_into("<QQ", content, 16 + 16 * section, len(content), size)
        content += b"\xff" * size
        name = ("module", "model sequence", "model resource")[section]
        assert f"the {name} section ({size} bytes) holds no valid table" in refusal(content)


@pytest.mark.parametrize(
    "position, value, message",
    [
        (8, struct.pack("<Q", 2**61), "/constants: 2305843009213693952 constants do not fit into the constant section"),
        (20, struct.pack("<i", -2), "/constants/0/sparsity_dimension: the sparsity dimension is -2, expected -1"),
        (24, struct.pack("<Q", 2**40), "/constants/0: the record places the data at bytes 0 to 1099511627776 of 16"),
        (32, struct.pack("<Q", 2**64 - 1), "/constants/0: the record places the data at bytes 18446744073709551615 to"),
    ],
)
def test_a_lying_constant_section_is_refused(position: int, value: bytes, message: str) -> None:
    """Counts, sizes and offsets of constants are checked against the section."""
    content = bytearray(with_constants([bytes(8), bytes(8)]))
    offset = struct.unpack_from("<Q", content, 64)[0]
    content[offset + position : offset + position + len(value)] = value
    assert refusal(content).startswith(f"model.vgf: {message}")


def test_a_name_that_is_no_text_is_refused() -> None:
    """Bytes that are not UTF-8 are an error of ours."""
    content = one_shader(names=("input name", "y")).replace(b"input name", b"input\xff\xfename"[:10])
    assert refusal(content) == "model.vgf: a text of the model sequence section is not valid UTF-8"


def test_a_missing_file_a_directory_and_a_pipe_are_refused(tmp_path: Path) -> None:
    """A directory, a pipe or a missing file is refused at once, without waiting for a writer."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name, reason in {
        "absent": "cannot be opened: no such file or directory",
        "": "is a folder, expected a file",
        "pipe": "is a pipe, a device or a socket, expected a file",
        "empty": "/header: the file has 0 bytes, but a VGF file begins with a header of 128 bytes",
    }.items():
        path = tmp_path / name
        assert str(error_of(FileError, read_vgf, path)) == f"{path}: {reason}"


def test_without_the_library_the_error_says_what_to_install() -> None:
    """A machine without the ml extra gets the command that installs it."""
    code = (
        "import sys; sys.modules['vgfpy'] = None\n"
        "from scenario_runner.errors import UnsupportedError\n"
        "from scenario_runner.ml.vgf_file import read_vgf\n"
        "try: read_vgf(sys.argv[1])\n"
        "except UnsupportedError as error: print(error.problems[0].code, error, error.problems[0].help, sep='|')\n"
    )
    path = FIXTURES / "conv.vgf"
    out = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout
    assert out == (
        "SR-FEATURE-005|reading VGF files needs the package ai_ml_sdk_vgf_library, which is not installed|"
        "install it with 'scenario-runner doctor --fix', or: pip install 'ai_ml_sdk_vgf_library>=0.11'\n"
    )
