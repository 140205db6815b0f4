"""`view --diff` with tolerances, PSNR and folders."""

from pathlib import Path

import imageio.v3
import numpy
import pytest

from tests.program import Program
from tests.scenes import Scene
from tests.tables import cases


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
    ended = program("view", "--diff", "a.npy", "b.npy", "--atol", "1e30", "--rtol", "1e30")
    assert ended.code == 1
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
    ended = program("view", "--diff", "one", "two")
    assert (ended.code, ended.err) == (0, "")
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
    ended = program("view", "--diff", "one", "two")
    assert ended.code == 4
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
