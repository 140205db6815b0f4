"""The table of file formats: who holds what, and that a class and a line are all that a format needs."""

from __future__ import annotations

import sys

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError
from scenario_runner.files import codec
from scenario_runner.files.codec import all_codecs, codec_for, codec_of, is_known
from scenario_runner.files.output import CreateOutput
from scenario_runner.formats import Format, format_named
from scenario_runner.scenario.syntax import declared_files
from scenario_runner.validation import validate_file
from scenario_runner.viewing.difference import folder_pairs
from scenario_runner.viewing.reading import read_content
from tests.scenes import Scene

PAIRS = format_named("VK_FORMAT_R8G8_UINT")
SIGNATURE = b"FLAT"


class FlatCodec(codec.Codec):
    """A format of the tests: four letters, then rows of up to 255 texels of one format."""

    extension = ".flat"
    signature = SIGNATURE

    def why_not(self, format: Format) -> str | None:
        return None if format.name == PAIRS.name else "flat files have pairs of bytes"

    def read_header(self, path: str) -> codec.ImageHeader:
        with open(path, "rb") as file:
            width, height = file.read(6)[4:]
        return codec.ImageHeader(format_named("VK_FORMAT_R8G8_UINT"), width, height)

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> codec.ImageReader:
        found = self.read_header(path)
        codec.check_extent(path, found.width, found.height, width, height)
        return _FlatImage(path)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> codec.ImageWriter:
        return _FlatWriter(create(path, 0), planes, 1, SIGNATURE + bytes([width, height]))

    def is_divisible(self, path: str) -> bool:
        return False


class _FlatImage(codec.ImageReader):
    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._texels = file.read()[6:]

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return len(self._texels)

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        view[:] = self._texels[offset : offset + len(view)]


class _FlatWriter(codec.HeldImageWriter):
    def _finish(self) -> None:
        self._output.write(self._held[0])


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format .flat in the table, by its class and its line."""
    monkeypatch.setitem(sys.modules, "scenario_runner.files.flat_codec", sys.modules[__name__])
    monkeypatch.setitem(codec._CLASSES, ".flat", ("flat_codec", "FlatCodec"))


def test_each_line_of_the_table_is_true() -> None:
    """Each codec stands under its own extension, and no signature begins another one."""
    codecs = all_codecs()
    assert [each.extension for each in codecs] == list(codec._CLASSES)
    assert all(codec_of("x" + each.extension.upper()) is each for each in codecs)
    signatures = [each.signature for each in codecs]
    assert not [(a, b) for a in signatures for b in signatures if a is not b and a.startswith(b)]


@pytest.mark.parametrize(
    "resource, name, mips, extension",
    [
        ("buffer", None, 1, ".npy"),
        ("tensor", None, 1, ".npy"),
        ("image", "R8G8B8A8_UNORM", 1, ".npy"),
        ("image", "R8G8B8A8_UNORM", 3, ".dds"),
        ("image", "BC1_RGBA_UNORM_BLOCK", 1, ".dds"),
        ("image", "R64_SINT", 3, ".npy"),  # no file holds the levels of these
    ],
)
def test_the_first_codec_that_holds_everything_is_chosen(
    resource: str, name: str | None, mips: int, extension: str
) -> None:
    """Files that the program names itself are of the first format in the table that loses nothing."""
    format = None if name is None else format_named("VK_FORMAT_" + name)
    assert codec_for(resource, format, mips).extension == extension


def test_a_name_without_a_codec() -> None:
    """The error lists the extensions that hold such a resource; arrays need none."""
    with pytest.raises(FileError, match=r"^a\.txt: has the extension '\.txt', expected one of an image: '\.npy',"):
        codec_of("a.txt")
    with pytest.raises(FileError, match=r"^a\.png: has the extension '\.png', expected '\.npy' for a tensor$"):
        codec_of("a.png", "tensor")
    assert codec_of("a", "buffer").extension == ".npy"
    assert not is_known("a")


@pytest.mark.usefixtures("flat")
def test_a_format_is_a_class_and_a_line(scene: Scene) -> None:
    """A new format is read, checked, written, recognized, viewed and compared without another change."""
    texels = numpy.random.default_rng(3).integers(0, 256, (3, 5, 2), numpy.uint8)
    scene.file("in.flat", SIGNATURE + bytes([5, 3]) + texels.tobytes())
    keys = {"dims": [1, 5, 3, 1], "format": PAIRS.name, "shader_access": "readonly"}
    path = scene.resource("image", uid="x", src="in.flat", dst="out/y.flat", **keys).write()
    with Runner() as runner:
        assert (runner.run(path)["x"] == texels).all()
    written = scene.folder / "out" / "y.flat"
    assert written.read_bytes() == (scene.folder / "in.flat").read_bytes()
    assert declared_files(path.read_text(), str(scene.folder)).on_disk() == [str(written)]
    shown = read_content(str(written))
    assert shown.title == "5x3 texels of VK_FORMAT_R8G8_UINT"
    assert [channel.name for channel in shown.channels] == ["R", "G"]
    assert (shown.channels[1].raw == texels[..., 1]).all()
    assert folder_pairs(str(scene.folder / "out"), str(scene.folder / "out"))[0] == ["y.flat"]


@pytest.mark.usefixtures("flat")
def test_what_a_new_format_cannot_hold(scene: Scene) -> None:
    """Formats that it does not hold and buffers are refused before the run, in the words of the others."""
    keys = {"dims": [1, 5, 3, 1], "format": "VK_FORMAT_R8_UINT", "shader_access": "readonly"}
    scene.resource("image", uid="x", dst="x.flat", **keys)
    scene.resource("buffer", uid="b", size=4, shader_access="readonly", dst="b.flat")
    findings = validate_file(scene.write()).findings
    (image,) = [each for each in findings if "/resources/0/" in str(each)]
    assert "cannot hold texels of the format 'VK_FORMAT_R8_UINT': flat files have pairs of bytes" in image.message
    assert image.help == "choose the name of a .npy or .dds or .png file"
    with pytest.raises(FileError, match=r"b\.flat: has the extension '\.flat', expected '\.npy' for a buffer"):
        codec_of("b.flat", "buffer")
