"""Files that a failure leaves, and comparisons with earlier results."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy
import numpy as np
import pytest
from PIL import Image

from scenario_runner.cli.suites.report import changes
from scenario_runner.errors import FileError
from scenario_runner.files.vk_formats import format_named
from scenario_runner.suite.outcomes import Outcome
from scenario_runner.suite.suite_run import read_baselines
from scenario_runner.suite.verdicts_and_retries import Row, write_tables
from scenario_runner.view.picture import IGNORED_COLOR
from tests.image_files import write_dds
from tests.scenes import Scene
from tests.suite.collected import Collected

Run = Callable[..., Outcome]


def test_a_wrong_picture(scene: Scene, run: Run) -> None:
    """A wrong image has pictures of the expected texels, the actual texels and the error."""
    picture = np.zeros((1, 12, 16, 4), "u1")
    picture[..., 3] = 255
    image = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 16, 12, 1], "shader_access": "readwrite"}
    scene.npy("picture.npy", picture)
    scene.resource("image", uid="i", src="picture.npy", dst="i.png", **image)
    picture[0, 5, 6, 1] = 200
    scene.npy("expected/i.npy", picture)
    outcome = run()
    assert outcome.reason == "i: 1 of 768 elements (0.13 %) is wrong at [5, 6, 1]: 0 (0x00), expected 200 (0xc8)"
    (output,) = outcome.outputs
    assert output.files == {
        "actual_array": "suite/item/i.actual.npy",
        "expected_array": "suite/item/i.expected.npy",
        "expected": "suite/item/i.expected.png",
        "actual": "suite/item/i.actual.png",
        "error": "suite/item/i.error.png",
    }
    shown = {
        what: Image.open(scene.folder / "results" / path) for what, path in output.files.items() if path[-1] == "g"
    }
    assert {each.size for each in shown.values()} == {(16, 12)}
    assert shown["expected"].getpixel((6, 5)) == (0, 200, 0, 255)
    assert shown["actual"].getpixel((6, 5)) == (0, 0, 0, 255)
    assert shown["error"].getpixel((6, 5)) == (255, 255, 255)
    assert shown["error"].getpixel((0, 0)) == (0, 0, 0)
    good = {"i": {"metrics": {"psnr": {"min": 20}, "ssim": {"min": 0.5}, "histogram_emd": {"max": 0.1}}}}
    assert run(outputs=good).status == "Pass"
    scene.npy("mask.npy", np.arange(12 * 16).reshape(12, 16) == 5 * 16 + 6)
    assert run(outputs={"i": {"mask": "mask.npy"}}).status == "Pass"


@pytest.fixture
def levels(scene: Scene) -> Scene:
    """An image i with three levels, all zero."""
    image = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 16, 12, 1], "shader_access": "readwrite"}
    scene.resource("image", uid="i", dst="i.dds", mips=3, **image)
    return scene


def test_the_pictures_show_the_level_that_is_wrong(levels: Scene, run: Run) -> None:
    """The pictures show the first wrong level."""
    sizes = [(12, 16), (6, 8), (3, 4)]
    expected = [bytes(4 * height * width) for height, width in sizes]
    expected[1] = bytes(4 * (2 * 8 + 3)) + bytes([0, 80, 0, 0]) + bytes(4 * (3 * 8 + 4))
    path = levels.file("expected/i.dds", b"")
    write_dds(path, format_named("VK_FORMAT_R8G8B8A8_UNORM"), 16, 12, expected)
    outcome = run()
    assert outcome.reason.startswith("i: 1 of 1008 elements (0.0992 %) is wrong at level 1 [2, 3, 1]")
    with Image.open(levels.folder / "results" / outcome.outputs[0].files["error"]) as picture:
        assert picture.size == (8, 6)
        assert picture.getpixel((3, 2)) == (255, 255, 255)


def test_what_a_mask_covers_has_its_own_colour(scene: Scene, run: Run) -> None:
    """In the picture of errors; errors that do not count do not change its scale."""
    image = {"format": "VK_FORMAT_B8G8R8A8_UNORM", "dims": [1, 4, 2, 1], "shader_access": "readwrite"}
    scene.resource("image", uid="i", dst="i.npy", **image)
    picture = np.zeros((2, 4, 4), "u1")
    picture[0, 0], picture[1, 2, 1], picture[1, 3] = 255, 9, (200, 3, 0, 0)
    scene.npy("expected/i.npy", picture)
    mask = np.zeros((2, 4, 4), bool)
    mask[0, 0] = mask[1, 3, 0] = True  # all of a texel, and the blue of another one
    scene.npy("mask.npy", mask)
    outcome = run(outputs={"i": {"mask": "mask.npy"}})
    assert outcome.reason.startswith("i: 2 of 27 compared elements (7.41 %) are wrong at [1, 2, 1]")
    with Image.open(scene.folder / "results" / outcome.outputs[0].files["error"]) as found:
        colors = {place: found.getpixel(place) for place in ((0, 0), (2, 1), (3, 1), (1, 0))}
    assert colors == {(0, 0): IGNORED_COLOR, (2, 1): (255, 255, 255), (3, 1): (255, 0, 0), (1, 0): (0, 0, 0)}


def test_an_alpha_that_hides_everything_is_not_shown(scene: Scene, run: Run) -> None:
    """Colours that a shader wrote without an alpha can be seen."""
    image = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 4, 2, 1], "shader_access": "readwrite"}
    scene.resource("image", uid="i", dst="i.npy", **image)
    picture = np.zeros((2, 4, 4), "u1")
    picture[1, 2, 1] = 200
    scene.npy("expected/i.npy", picture)
    files = run().outputs[0].files
    with Image.open(scene.folder / "results" / files["expected"]) as found:
        assert found.getpixel((2, 1)) == (0, 200, 0)
    picture[1, 2, 3] = 255
    scene.npy("expected/i.npy", picture)
    with Image.open(scene.folder / "results" / run().outputs[0].files["actual"]) as found:
        assert found.mode == "RGBA"


@pytest.mark.parametrize(
    "dims, wrong, size, white",
    [
        ([1, 5, 6, 3], (0, 2, 4, 1), (6, 5), (4, 2)),
        ([1, 5, 6, 1], (0, 2, 4, 0), (6, 5), (4, 2)),
        ([2, 5, 6], (1, 4, 3), (6, 10), (3, 9)),
    ],
)
def test_pictures_of_tensors(
    scene: Scene, run: Run, dims: list[int], wrong: tuple[int, ...], size: tuple[int, int], white: tuple[int, int]
) -> None:
    """Up to four channels behind height and width are colours; else the last two axes are rows and columns."""
    tensor = {"format": "VK_FORMAT_R8_UINT", "dims": dims, "shader_access": "readonly", "dst": "t.npy"}
    scene.resource("tensor", uid="t", **tensor)
    expected, mask = np.zeros(dims, "u1"), np.zeros(dims, bool)
    expected[wrong] = 7
    mask[0, 0, 0] = True
    scene.npy("expected/t.npy", expected)
    scene.npy("mask.npy", mask)
    outcome = run(outputs={"t": {"mask": "mask.npy"}})
    assert outcome.status == "Fail"
    with Image.open(scene.folder / "results" / outcome.outputs[0].files["error"]) as found:
        assert (found.size, found.getpixel(white)) == (size, (255, 255, 255))
        assert found.getpixel((0, 0)) == IGNORED_COLOR


@pytest.mark.parametrize("name, has_picture", [("BC4_SNORM", False), ("BC6H_UFLOAT", True)])
def test_blocks_are_compared_byte_by_byte(scene: Scene, run: Run, name: str, has_picture: bool) -> None:
    """Blocks with an exact expectation are compared without decoding, which could hide a difference or be
    impossible."""
    format = format_named(f"VK_FORMAT_{name}_BLOCK")
    image = {"format": format.name, "dims": [1, 8, 4, 1], "shader_access": "readonly"}
    scene.resource("image", uid="i", src="i.dds", dst="out.dds", **image)
    words = np.zeros(2 * format.block_size_bytes, "u1")
    write_dds(scene.folder / "i.dds", format, 8, 4, [words.tobytes()])
    words[-3] = 1
    write_dds(scene.file("expected/i.dds", b""), format, 8, 4, [words.tobytes()])
    outcome = run()
    wrong = "at block [0, 1, 0]" if format.block_size_bytes == 8 else "at block [0, 1, 1]"
    assert outcome.status == "Fail"
    assert wrong in outcome.reason
    arrays = {"expected_array", "actual_array"} if has_picture else set()
    assert set(outcome.outputs[0].files) == {"expected", "actual"} | ({"error"} if has_picture else set()) | arrays


def rows(**verdicts: str) -> dict[str, Row]:
    return {id: Row(verdict, 1.0) for id, verdict in verdicts.items()}


def test_changes_of_verdicts() -> None:
    """The comparison lists new failures, mended items, other changes, new items and missing items."""
    before = rows(a="Pass", b="Fail", c="Pass", d="Fail", e="Skip", gone="Pass", same="Fail")
    after = rows(a="Fail", b="Pass", c="Flake", d="Crash", e="Pass", new="Pass", bad="Crash", same="Fail")
    parts = {title: list(lines.values()) for title, lines in changes(before, after).items() if lines}
    assert parts == {
        "new failures": ["a: Pass -> Fail", "bad: new -> Crash"],
        "fixed": ["b: Fail -> Pass"],
        "changed": ["c: Pass -> Flake", "d: Fail -> Crash", "e: Skip -> Pass"],
        "new items": ["bad", "new"],
        "items without a result now": ["gone"],
    }


def slower(before: numpy.ndarray, after: numpy.ndarray) -> tuple[str, list[str]]:
    """The title of the items that take longer, and their ids."""
    runs = ({f"{n:04}": Row("Pass", float(seconds)) for n, seconds in enumerate(times)} for times in (before, after))
    parts = changes(*runs)
    (title,) = (title for title in parts if title.startswith("slower"))
    return title, list(parts[title])


def test_slower_items_stand_out_of_noise() -> None:
    """On a machine of half the speed, with noise of 20 %, only those are slower that take longer still."""
    random = numpy.random.default_rng(1)
    before = random.uniform(0.1, 1, 500)
    after = before * 2 * random.normal(1, 0.2, 500).clip(0.5, 1.5)
    after[[7, 70]] = before[[7, 70]] * 10
    title, ids = slower(before, after)
    assert ids == ["0007", "0070"]
    assert float(title.split()[-4]) == pytest.approx(2, rel=0.05)


def test_times_without_noise() -> None:
    """Differences of a few milliseconds and of a few percent are none."""
    before = numpy.full(20, 0.004)
    after = before.copy()
    after[3], after[4] = 0.01, 0.0041
    assert slower(before, after)[1] == []
    assert slower(before * 100, after * 100)[1] == ["0003"]


def test_few_items_must_be_twice_as_slow() -> None:
    """Two times say nothing about noise."""
    assert slower(numpy.array([1.0, 1.0]), numpy.array([1.9, 2.1]))[1] == ["0001"]


def test_tables(tmp_path: Path) -> None:
    """Names are sorted, an unsupported item is a Skip, and the failures are a baseline."""
    given = rows(b="Fail", a="Pass", c="NotSupported", d="UnexpectedImprovement(Pass)", e="KnownFlake")
    given["f,g"] = Row("Crash", 0.25)
    write_tables(str(tmp_path / "new"), given)
    assert (tmp_path / "new" / "results.csv").read_text() == (
        "a,Pass,1.000000\nb,Fail,1.000000\nc,Skip,1.000000\nd,UnexpectedImprovement(Pass),1.000000\n"
        'e,KnownFlake,1.000000\n"f,g",Crash,0.250000\n'
    )
    failures = tmp_path / "new" / "failures.csv"
    with failures.open(newline="") as file:
        assert list(csv.reader(file)) == [["b", "Fail"], ["d", "UnexpectedImprovement(Pass)"], ["f,g", "Crash"]]
    baseline = read_baselines([str(failures)], Collected())
    assert [baseline.get(name, (None,))[0] for name in ("b", "d", "f,g")] == ["Fail", "Pass", "Crash"]


def test_names_that_look_like_comments(tmp_path: Path) -> None:
    """Names like comments are quoted, so that the next run reads them as names."""
    write_tables(str(tmp_path), {"#x": Row("Fail", 0), " y ": Row("Fail", 0)})
    baseline = read_baselines([str(tmp_path / "failures.csv")], Collected())
    assert [baseline.get(name, (None,))[0] for name in ("#x", " y ")] == ["Fail", "Fail"]


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    """A table that cannot be written is an error with the file's name."""
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(FileError, match=r"results\.csv"):
        write_tables(str(tmp_path), {})
