"""``scenario-runner view``: one file, and the difference of two."""

from pathlib import Path

import imageio.v3
import numpy
import pytest

from scenario_runner.files.vk_formats import format_named
from tests.image_files import write_dds
from tests.program import Program, on_terminal
from tests.scenes import Scene
from tests.tables import cases

SUMMARY = """\
x.npy: float32, shape (2, 3)
  channel  min   max  mean   NaN  infinite
  all      -1.5  4.0  0.875  1    1
  first values:
    -1.5    0  1
     nan  inf  4
"""


@pytest.fixture
def image(tmp_path: Path) -> numpy.ndarray:
    """x.dds, an RGBA16F image with two levels; returns the first."""
    texels = (numpy.random.default_rng(1).random((6, 8, 4)) * 3).astype("f2")
    levels = [texels.tobytes(), texels[::2, ::2].tobytes()]
    write_dds(tmp_path / "x.dds", format_named("VK_FORMAT_R16G16B16A16_SFLOAT"), 8, 6, levels)
    return texels


def test_a_summary(program: Program, tmp_path: Path) -> None:
    """Without a terminal the summary has shape, type, least, greatest and mean of finite values, and the first
    values."""
    numpy.save(tmp_path / "x.npy", numpy.array([[-1.5, 0, 1], [numpy.nan, numpy.inf, 4]], "f4"))
    ended = program("view", "x.npy")
    assert (ended.code, ended.out, ended.err) == (0, SUMMARY, "")


def test_an_image_and_its_levels(program: Program, tmp_path: Path, image: numpy.ndarray) -> None:
    """An image says its format and levels, and each level and channel can be chosen."""
    ended = program("view", "x.dds", "--mip", "1", "--channel", "g", exit_code=0)
    lines = ended.out.splitlines()
    assert lines[0] == "x.dds: 4x3 texels of VK_FORMAT_R16G16B16A16_SFLOAT, level 1 of 2"
    green = image[::2, ::2, 1]
    mean = green.astype("f8").mean()
    assert lines[2].split() == ["G", str(green.min()), str(green.max()), f"{mean:.6g}", "0", "0"]
    assert [line.split() for line in lines[4:]] == [[f"{value:g}" for value in row] for row in green]


def test_pictures_of_arrays(program: Program, tmp_path: Path) -> None:
    """A number alone is a picture of one texel; of four channels the picture shows three and the numbers all."""
    numpy.save(tmp_path / "one.npy", numpy.float32(3))
    program.succeed("view", "one.npy", "--png", "one.png")
    assert imageio.v3.imread(tmp_path / "one.png").tolist() == [[[255, 255, 255]]]
    array = numpy.arange(16, dtype="f4").reshape(2, 2, 4)
    numpy.save(tmp_path / "four.npy", array)
    ended = program.succeed("view", "four.npy", "--png", "four.png", "--range", "0:255")
    assert (imageio.v3.imread(tmp_path / "four.png") == array[..., :3]).all()
    assert ended.out.splitlines()[-4:] == [
        "  first values:", "      0,1,2,3      4,5,6,7", "    8,9,10,11  12,13,14,15",
        "  black is 0, white is 255 of channels 0, 1, 2",
    ]  # fmt: skip


def test_a_picture(program: Program, tmp_path: Path, image: numpy.ndarray) -> None:
    """--png writes the picture, with the range that was asked for; a range may begin below zero."""
    ended = program("view", "x.dds", "--channel", "R", "--range", "-1:3", "--png", "out/x.png", exit_code=0)
    assert "  black is -1, white is 3\n" in ended.out
    expected = (image[..., 0].astype("f8") + 1) / 4 * 255
    picture = imageio.v3.imread(tmp_path / "out" / "x.png").astype("f8")
    assert picture.shape == (6, 8, 3)
    assert numpy.abs(picture - expected[..., None]).max() <= 0.501


def test_a_buffer(program: Program, tmp_path: Path) -> None:
    """A buffer's output file is shown as numbers."""
    array = numpy.arange(12, dtype="f4").reshape(3, 4) / 4
    numpy.save(tmp_path / "b.npy", array.reshape(-1).view("i1"))
    ended = program("view", "b.npy", "--dtype", "float32", "--shape", "-1,4", exit_code=0)
    assert ended.out.splitlines()[0] == "b.npy: float32, shape (3, 4)"
    assert ended.out.splitlines()[-1].split() == ["2", "2.25", "2.5", "2.75"]


def test_a_terminal_shows_colours(tmp_path: Path) -> None:
    """On a terminal each character is two texels: the upper one as its colour, the lower one behind it."""
    texels = numpy.array([[[250, 0, 1], [2, 3, 4]], [[5, 6, 7], [8, 9, 10]]], "u1")
    imageio.v3.imwrite(tmp_path / "x.png", texels)
    code, printed = on_terminal(tmp_path, "view", "x.png")
    assert code == 0
    assert "\x1b[38;2;250;0;1;48;2;5;6;7m▀" in printed
    assert "\x1b[38;2;2;3;4;48;2;8;9;10m▀" in printed
    imageio.v3.imwrite(tmp_path / "wide.png", numpy.zeros((4, 400, 3), "u1"))
    assert on_terminal(tmp_path, "view", "wide.png", columns=50)[1].count("▀") == 50


def test_a_terminal_takes_what_no_png_does(tmp_path: Path) -> None:
    """Long arrays are drawn as small as the terminal is, and of empty ones there are the numbers alone."""
    numpy.save(tmp_path / "long.npy", numpy.arange(200_000))
    assert on_terminal(tmp_path, "view", "long.npy", columns=60)[1].count("▀") == 60
    numpy.save(tmp_path / "empty.npy", numpy.zeros((0, 3)))
    code, printed = on_terminal(tmp_path, "view", "empty.npy")
    assert code == 0
    assert "empty.npy: float64, shape (0, 3)" in printed
    assert "▀" not in printed


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_shows_numbers(tmp_path: Path, env: dict[str, str]) -> None:
    """A terminal without colours shows the first values, as a pipe does."""
    numpy.save(tmp_path / "x.npy", numpy.array([[1, 2], [3, 40]]))
    lines = on_terminal(tmp_path, "view", "x.npy", env=env)[1].splitlines()
    assert lines[-3:] == ["  first values:", "    1   2", "    3  40"]


def test_equal_files(program: Program, tmp_path: Path, image: numpy.ndarray) -> None:
    """Files with equal values are equal whatever their kind; the exit code is 0."""
    numpy.save(tmp_path / "x.npy", image[None])
    ended = program("view", "--diff", "x.dds", "x.npy")
    assert (ended.code, ended.out, ended.err) == (0, "x.dds and x.npy are equal: 192 elements\n", "")


def test_different_files(program: Program, tmp_path: Path) -> None:
    """Differing files show the first place, the worst errors and the region, with exit code 1."""
    one = numpy.arange(1, 49, dtype="f4").reshape(1, 4, 6, 2)
    other = one.copy()
    other[0, 1, 2, 1] += numpy.float32(0.5)
    other[0, 3, 4, 0] = numpy.nan
    other[0, 2, 5, 0] = numpy.nextafter(other[0, 2, 5, 0], numpy.float32(0))
    numpy.save(tmp_path / "a.npy", one)
    numpy.save(tmp_path / "b.npy", other)
    ended = program("view", "--diff", "a.npy", "b.npy", "--png", "heat.png")
    first, second = one[0, 1, 2, 1], other[0, 1, 2, 1]
    steps = int(second.view("u4")) - int(first.view("u4"))
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.splitlines() == [
        "a.npy and b.npy differ: 3 of 48 elements (6.25 %)",
        f"  first at       [0, 1, 2, 1]: 18.0 (0x{int(first.view('u4')):08x}) against 18.5"
        f" (0x{int(second.view('u4')):08x})",
        "  absolute error 0.5 at [0, 1, 2, 1]",
        f"  relative error {0.5 / 18:.9g} at [0, 1, 2, 1]",
        f"  ULP            {steps} at [0, 1, 2, 1]",
        "  NaN            0 in the first alone, 1 in the second alone, 0 in both",
        "  within         rows 1 to 3, columns 2 to 5",
    ]
    picture = imageio.v3.imread(tmp_path / "heat.png")
    assert numpy.argwhere(picture.any(axis=-1)).tolist() == [[1, 2], [2, 5], [3, 4]]
    assert picture[1, 2].tolist() == [255, 255, 255]


def test_other_shapes_differ(program: Program, tmp_path: Path) -> None:
    """Files of different shapes differ, and both are said."""
    numpy.save(tmp_path / "a.npy", numpy.zeros((2, 3), "f4"))
    numpy.save(tmp_path / "b.npy", numpy.zeros((3, 2), "f4"))
    ended = program("view", "--diff", "a.npy", "b.npy")
    assert (ended.code, ended.err) == (1, "")
    assert ended.out == ("a.npy and b.npy cannot be compared: float32, shape (2, 3) against float32, shape (3, 2)\n")


def test_a_file_that_cannot_be_read(program: Program, tmp_path: Path, image: numpy.ndarray) -> None:
    """A missing or broken file is an error with its name and exit code 4; the other files are shown."""
    (tmp_path / "short.dds").write_bytes((tmp_path / "x.dds").read_bytes()[:-1])
    ended = program("view", "none.npy", "short.dds", "x.dds", exit_code=4)
    errors = ended.err.splitlines()
    assert errors[0] == "error: none.npy: cannot be opened: no such file or directory [SR-FILE-006]"
    assert errors[1].startswith("error: short.dds: is truncated: ")
    assert "x.dds: 8x6 texels" in ended.out
    assert program("view", "--diff", "x.dds", "none.npy").code == 4
    numpy.save(tmp_path / "empty.npy", numpy.zeros((0, 3)))
    ended = program("view", "empty.npy", "--png", "x.png")
    assert (ended.code, ended.err) == (4, "error: empty.npy: is empty, so it has no picture [SR-FILE-001]\n")


SENSELESS = cases(__file__, "viewing.txt", "VIEW") + cases(__file__, "viewing.txt", "VIEW_DIFF")


@pytest.mark.parametrize("arguments, code, error", SENSELESS)
def test_what_makes_no_sense(
    program: Program, tmp_path: Path, image: numpy.ndarray, arguments: str, code: str, error: str
) -> None:
    """Contradicting options and wrong values are errors in one sentence."""
    (tmp_path / "folder").mkdir()
    for name in ("a.npy", "b.npy"):
        numpy.save(tmp_path / name, numpy.float32([1]))
    ended = program("view", *arguments.split())
    assert (ended.code, ended.out) == (int(code), "")
    assert ended.err.startswith(f"error: {error}")


@pytest.fixture
def pair(tmp_path: Path) -> None:
    """Two tensors that differ in three places: by 0.5 of 100, by one float of 2, and by 0.25 of 0.25."""
    one = numpy.float32([100, 2, 0.25, 7])
    other = numpy.float32([100.5, numpy.nextafter(numpy.float32(2), numpy.float32(3)), 0.5, 7])
    numpy.save(tmp_path / "a.npy", one)
    numpy.save(tmp_path / "b.npy", other)


@pytest.mark.parametrize("options, counts", cases(__file__, "viewing.txt", "TOLERANCES"))
@pytest.mark.usefixtures("pair")
def test_tolerances(program: Program, options: str, counts: str) -> None:
    """An element counts where every one of its errors is above its limit; the limits are inclusive."""
    differing, tolerated = map(int, counts.split())
    ended = program("view", "--diff", "a.npy", "b.npy", *options.split())
    assert (ended.code, ended.err) == (int(differing > 0), "")
    head = ended.out.splitlines()[0]
    if differing:
        more = f", {tolerated} more within the tolerance" if tolerated else ""
        assert head == f"a.npy and b.npy differ: {differing} of 4 elements ({25 * differing} %){more}"
    else:
        assert head == f"a.npy and b.npy are equal: 4 elements, {tolerated} of them within the tolerance"
    assert "  absolute error 0.5 at [0]" in ended.out.splitlines()  # also where it is tolerated
    assert ("  first at" in ended.out) == bool(differing)


def test_no_tolerance_for_what_is_no_number(program: Program, tmp_path: Path) -> None:
    """NaN against a number, and infinity against a number, differ whatever the tolerance is."""
    numpy.save(tmp_path / "a.npy", numpy.float32([numpy.nan, numpy.inf, 1]))
    numpy.save(tmp_path / "b.npy", numpy.float32([1, 1, 2]))
    ended = program("view", "--diff", "a.npy", "b.npy", "--atol", "1e30", "--rtol", "1e30", exit_code=1)
    assert ended.out.startswith("a.npy and b.npy differ: 2 of 3 elements")


@pytest.mark.parametrize("kind", ["png", "float"])
def test_signal_to_noise(program: Program, tmp_path: Path, kind: str) -> None:
    """PSNR of images, with the peak of their type: 255 of 8 bits, 1.0 of floats."""
    rng = numpy.random.default_rng(8)
    one = rng.integers(0, 256, (6, 9, 3)).astype("u1")
    other = numpy.clip(one.astype("i4") + rng.integers(-3, 4, one.shape), 0, 255).astype("u1")
    peak, extension = 255.0, "png"
    if kind == "png":
        imageio.v3.imwrite(tmp_path / "a.png", one)
        imageio.v3.imwrite(tmp_path / "b.png", other)
    else:
        one, other, peak, extension = one.astype("f4") / 255, other.astype("f4") / 255, 1.0, "npy"
        numpy.save(tmp_path / "a.npy", one)
        numpy.save(tmp_path / "b.npy", other)
    mean = ((one.astype("f8") - other.astype("f8")) ** 2).mean()
    ended = program("view", "--diff", f"a.{extension}", f"b.{extension}")
    assert f"  PSNR           {10 * numpy.log10(peak**2 / mean):.2f} dB" in ended.out.splitlines()
    numpy.save(tmp_path / "flat.npy", one[..., 0])
    numpy.save(tmp_path / "other.npy", other[..., 0])
    assert "PSNR" not in program("view", "--diff", "flat.npy", "other.npy").out


def test_folders(program: Program, tmp_path: Path) -> None:
    """Two folders are compared file by file, by relative paths; files that one lacks are named."""
    for name, content in (("x.npy", 1), ("frames/y.npy", 2), ("z.npy", 3)):
        for folder in ("one", "two"):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            numpy.save(tmp_path / folder / name, numpy.float32([content]))
        (tmp_path / folder / "notes.txt").write_text("not compared")
    ended = program.succeed("view", "--diff", "one", "two")
    assert ended.out.splitlines() == [
        "one/frames/y.npy and two/frames/y.npy are equal: 1 element",
        "one/x.npy and two/x.npy are equal: 1 element",
        "one/z.npy and two/z.npy are equal: 1 element",
        "3 files: 3 equal, 0 different, 0 in one folder alone",
    ]
    numpy.save(tmp_path / "two" / "x.npy", numpy.float32([1.5]))
    numpy.save(tmp_path / "one" / "left.npy", numpy.float32([1]))
    (tmp_path / "one" / "frames" / "y.npy").unlink()
    ended = program("view", "--diff", "one", "two")
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.splitlines()[-4:] == [
        "one/z.npy and two/z.npy are equal: 1 element",
        "only in one: left.npy",
        "only in two: frames/y.npy",
        "4 files: 1 equal, 1 different, 2 in one folder alone",
    ]
    (tmp_path / "one" / "left.npy").unlink()
    (tmp_path / "two" / "frames" / "y.npy").unlink()
    ended = program("view", "--diff", "one", "two", "--rtol", "0.5")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "2 files: 2 equal, 0 different, 0 in one folder alone")


def test_a_broken_file_in_a_folder(program: Program, tmp_path: Path) -> None:
    """A file that cannot be read is an error with exit code 4; the others are compared."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        numpy.save(tmp_path / folder / "x.npy", numpy.float32([1]))
        (tmp_path / folder / "a.npy").write_bytes(b"nothing")
    ended = program("view", "--diff", "one", "two", exit_code=4)
    assert ended.err.startswith("error: one/a.npy: ")
    assert ended.out.splitlines()[-1] == "2 files: 1 equal, 1 different, 0 in one folder alone"


@pytest.mark.parametrize("format, dtype", [("VK_FORMAT_R8G8B8A8_UNORM", "u1"), ("VK_FORMAT_R16G16_UNORM", "u2")])
def test_captured_images_are_not_stretched(program: Program, scene: Scene, format: str, dtype: str) -> None:
    """A UNORM image that a run captured is shown from 0 to the greatest value of its type, as a .dds file of it is."""
    most = numpy.iinfo(dtype).max
    items = 4 if dtype == "u1" else 2
    texels = (numpy.random.default_rng(2).integers(40, 60, (1, 3, 5, items)) * (most // 255)).astype(dtype)
    image = {"format": format, "dims": [1, 5, 3, 1], "shader_access": "readonly", "src": scene.npy("in.npy", texels)}
    scene.resource("image", uid="x", dst="x.dds", **image).command("mark_boundary", resources=["x"], frame_id=0)
    assert program(scene.write(), "--capture-dir", "frames").code == 0
    assert (numpy.load(scene.folder / "frames" / "frame_0" / "x.npy") == texels).all()
    for path in ("frames/frame_0/x.npy", "x.dds"):
        ended = program("view", path, "--png", "x.png", "--channel", "0")
        assert f"  black is 0, white is {most:g}\n" in ended.out
        picture = imageio.v3.imread(scene.folder / "x.png")[..., 0].astype("f8")
        assert numpy.abs(picture - texels[0, ..., 0] / most * 255).max() <= 0.51
    numpy.save(scene.folder / "tensor.npy", texels[0])
    assert f"white is {most:g}" not in program("view", "tensor.npy", "--png", "t.png", "--channel", "0").out
