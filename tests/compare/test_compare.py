"""Pictures compared by their format, and one rule of comparison for all commands."""

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import numpy as np
import pytest

from scenario_runner.compare.planes import Plane, ignored_elements, planes_of
from scenario_runner.compare.wrong_elements import PIECE_BYTES, Mismatch, Rule, compare
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.vk_formats import format_named
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.records import BufferPlan
from scenario_runner.plan.sources import ArraySource
from scenario_runner.suite.pytest_plugin.items import ScenarioRunner
from scenario_runner.tosa.layer_comparison import judge
from scenario_runner.tosa.model_layers import Layer
from scenario_runner.view.contents import content_of
from tests.image_files import image_planes
from tests.program import Program, run_program
from tests.scenes import Scene
from tests.tables import cases


def found(actual: Any, expected: Any, planes: tuple[Plane, ...], rule: Rule, ignored: Any = None) -> Mismatch:
    content = ArraySource(memoryview(expected).cast("B"), "expected")
    return compare(memoryview(actual).cast("B"), content, planes, rule, ignored)


def buffer(array: Any) -> tuple[Plane, ...]:
    return planes_of(BufferPlan("x", "", array.nbytes), array.nbytes, ELEMENTS[array.dtype.name])


@pytest.mark.parametrize("extra", [-3, 0, 5])
def test_chunks(extra: int) -> None:
    """Errors are found in every chunk, at its ends too, and sorted by their size."""
    count = 3 * PIECE_BYTES // 4 + extra
    expected = np.linspace(1, 2, count, dtype="f4")
    actual = expected.copy()
    places = [0, PIECE_BYTES // 4 - 1, PIECE_BYTES // 4, count - 1]
    for size, at in enumerate(places, 1):
        actual[at] += size
    result = found(actual, expected, buffer(actual), Rule(atol=0.5))
    assert (result.wrong, result.total, result.error) == (4, count, pytest.approx(4))
    assert [index for index, _, _ in result.worst] == [f"[{at}]" for at in reversed(places)]
    assert found(actual, expected, buffer(actual), Rule(atol=3.5)).wrong == 1
    assert found(actual, expected, buffer(actual), Rule(atol=4.5)).wrong == 0
    assert found(expected, expected, buffer(actual), Rule()).wrong == 0


def test_at_most_ten_are_listed() -> None:
    """The ten greatest errors, the first of equal ones first."""
    expected = np.zeros(100, "i4")
    actual = np.arange(100, dtype="i4") // 10
    result = found(actual, expected, buffer(actual), Rule())
    assert result.wrong == 90
    assert [index for index, _, _ in result.worst] == [f"[{at}]" for at in range(90, 100)]
    assert result.worst[0] == ("[90]", "0 (0x00000000)", "9 (0x00000009)")


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_rtol_at_the_ends_of_integer_types(dtype: str) -> None:
    """The magnitude of the least value and the distance between both ends count as unbounded integers."""
    ends = np.iinfo(dtype)
    expected = np.array([ends.min, ends.max, ends.min, ends.max], dtype)
    actual = np.array([ends.min + 1, ends.max - 1, ends.max, ends.min], dtype)
    near = 1.5 / ends.max
    assert found(actual, expected, buffer(actual), Rule(rtol=near)).wrong == (2 if ends.min else 3)
    assert found(actual, expected, buffer(actual), Rule(rtol=near / 2)).wrong == 4
    assert found(actual, expected, buffer(actual), Rule(rtol=2.5)).wrong == (0 if ends.min else 2)
    assert found(actual, expected, buffer(actual), Rule(atol=float(ends.max) * 2.5)).wrong == 0


def test_a_tensor_has_an_index_for_each_axis() -> None:
    """Outermost first, in the type of its format."""
    format = format_named("VK_FORMAT_R16_SFLOAT")
    plan = TensorPlan("t", "", 24, format, (2, 3, 2))
    expected = np.arange(12, dtype="f2")
    actual = expected.copy()
    actual[7] = 70
    (plane,) = planes = planes_of(plan, 24, ELEMENTS["float16"])
    assert plane.shape == (2, 3, 2)
    assert found(actual, expected, planes, Rule(rtol=0.1)).worst == (("[1, 0, 1]", "7.0 (0x4700)", "70.0 (0x5460)"),)


def test_levels_of_an_image() -> None:
    """An index begins with the level, and counts rows, columns and channels."""
    plan, planes = image_planes("VK_FORMAT_R8G8B8A8_UNORM", 4, 2, 3)
    expected = np.arange(plan.size_bytes, dtype="u1")
    actual = expected.copy()
    actual[4 * 8 + 4 + 2] += 100  # the second texel of the second level, blue
    actual[-1] -= 1
    result = found(actual, expected, planes, Rule())
    assert [index for index, _, _ in result.worst] == ["level 1 [0, 1, 2]", "level 2 [0, 0, 3]"]
    assert result.total == 4 * (8 + 2 + 1)


@pytest.mark.parametrize("format, dtype, change, difference", cases(__file__, "formats.txt", "PACKED"))
def test_packed_texels_are_compared_by_channel(format: str, dtype: str, change: str, difference: str) -> None:
    """A step of one channel is a step, wherever its bits are."""
    _, planes = image_planes(format, 2, 2)
    expected = np.zeros(4, dtype)
    actual = expected.copy()
    actual[2] = int(change, 16)
    result = found(actual, expected, planes, Rule(nan="equal"))
    assert (result.wrong, result.total, result.worst[0][0]) == (1, planes[0].element_count, "[1, 0, 1]")
    if difference != "-":
        assert found(actual, expected, planes, Rule(atol=int(difference))).wrong == 0
        assert result.error == int(difference)
        assert found(actual, expected, planes, Rule(atol=int(difference) - 0.5)).wrong == 1


@pytest.mark.parametrize("shift, bits", [(0, 11), (11, 11), (22, 10)])
def test_steps_of_small_floats(shift: int, bits: int) -> None:
    """A step leads to the next value that the format has."""
    _, planes = image_planes("VK_FORMAT_B10G11R11_UFLOAT_PACK32", 2, 1)
    one = 15 << (bits - 5)
    expected, actual = np.array([[one, one], [one + 2, one - 1]], "<u4") << shift
    assert found(actual, expected, planes, Rule(ulp=1)).wrong == 1
    assert found(actual, expected, planes, Rule(ulp=2)).wrong == 0


def test_the_unused_byte_of_depths_does_not_matter() -> None:
    """The highest byte of a 24-bit depth does not count."""
    _, planes = image_planes("VK_FORMAT_X8_D24_UNORM_PACK32", 2, 1)
    expected = np.array([5, 6], "<u4")
    assert found(expected | np.uint32(0xAB00_0000), expected, planes, Rule()).wrong == 0
    assert found(expected + np.uint32(1), expected, planes, Rule()).wrong == 2


def test_blocks_that_are_not_decoded() -> None:
    """Each word of a block is an element, in each level."""
    plan, _ = image_planes("VK_FORMAT_BC6H_SFLOAT_BLOCK", 9, 5, 2)
    planes = planes_of(plan, plan.size_bytes, ELEMENTS["uint8"], with_blocks=True)
    expected = np.zeros(plan.size_bytes, "u1")
    actual = expected.copy()
    actual[16 * 5 + 9] = 1  # the second row, the third block, its second half
    actual[16 * 6] = 2  # the second level
    result = found(actual, expected, planes, Rule())
    assert (result.wrong, result.total) == (2, 2 * (6 + 1))
    assert [index for index, _, _ in result.worst] == ["level 0 block [1, 2, 1]", "level 1 block [0, 0, 0]"]


def test_compressed_texels_are_decoded() -> None:
    """Blocks are equal, or differ in the texels that they stand for."""
    _, planes = image_planes("VK_FORMAT_BC4_UNORM_BLOCK", 4, 4)
    black, gray = (np.array([value, value, 0, 0, 0, 0, 0, 0], "u1") for value in (0, 16))
    assert found(gray, gray, planes, Rule()).wrong == 0
    assert found(gray, black, planes, Rule(nan="equal")).wrong == 16
    assert found(gray, black, planes, Rule(atol=16)).wrong == 0


def test_masked_elements_do_not_count(tmp_path: Any) -> None:
    """A mask over texels covers all their channels; a border is as wide as it says."""
    _, planes = image_planes("VK_FORMAT_R8G8_UINT", 5, 4)
    expected = np.zeros((4, 5, 2), "u1")
    actual = expected.copy()
    actual[1:3, 1:4] = 9
    actual[0, 0] = 1
    covered = np.zeros((4, 5), bool)
    covered[1:3, 1:4] = True
    np.save(tmp_path / "mask.npy", covered)
    ignored = ignored_elements(planes, str(tmp_path / "mask.npy"), 0)
    assert found(actual, expected, planes, Rule(), ignored) == Mismatch(
        2, 40, 12, (("[0, 0, 0]", "0 (0x00)", "1 (0x01)"), ("[0, 0, 1]", "0 (0x00)", "1 (0x01)")), 1.0
    )
    assert found(actual, expected, planes, Rule(), ignored_elements(planes, None, 1)).wrong == 12
    covered[1, 1] = False
    np.save(tmp_path / "mask.npy", covered)
    both = ignored_elements(planes, str(tmp_path / "mask.npy"), 1)
    assert found(actual, expected, planes, Rule(), both).wrong == 2
    with pytest.raises(ValueError, match="every element of the output is ignored"):
        ignored_elements(planes, None, 2)
    with pytest.raises(ValueError, match="the output has 2 parts"):
        ignored_elements(image_planes("VK_FORMAT_R8_UINT", 2, 2, 2)[1], str(tmp_path / "mask.npy"), 0)


FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1.0078125, 1.5, 1.25, 100.0, 60000.0, -60000.0]
BITS = [1, 2, 5, 16]  # denormals
VALUES: dict[str, list[Any]] = {
    "bool": [False, True],
    "int8": [-128, -127, -1, 0, 1, 2, 126, 127],
    "int64": [-(2**63), -(2**53) - 1, -(2**53), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 2, 2**63 - 1],
    "uint64": [0, 1, 2, 2**53, 2**53 + 1, 2**53 + 2, 2**63, 2**64 - 3, 2**64 - 2, 2**64 - 1],
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), FLOATS),
}
RULES: list[dict[str, Any]] = [
    *({}, {"atol": 0.5}, {"atol": 1.0}, {"rtol": 0.25}, {"atol": 0.25, "rtol": 0.25}, {"rtol": 2.0}),
    *({"ulp": 1}, {"ulp": 3}, {"atol": 1e300}, {"atol": float(2**53)}, {"atol": 0.5, "rtol": 2**-7, "ulp": 1}),
]


def pairs(name: str) -> tuple[Any, Any]:
    """All pairs of the values of a type: expected and actual ones."""
    type = numpy.dtype(getattr(ml_dtypes, name, None) or name)
    values = numpy.array(VALUES[name], type)
    if values.dtype.kind not in "biu":
        denormals = numpy.array(BITS, f"u{type.itemsize}").view(type)
        values = numpy.concatenate([values, denormals, [ml_dtypes.finfo(type).max.astype(type)]])
    first, second = numpy.meshgrid(values, values, indexing="ij")
    return first.reshape(-1).copy(), second.reshape(-1).copy()


def ordinal(value: Any) -> int:
    """The number of a float among all of its type; both zeros have one."""
    bits = int.from_bytes(value.tobytes(), "little")
    sign = 1 << 8 * value.dtype.itemsize - 1
    return -(bits - sign) if bits & sign else bits


def is_right(e: Any, a: Any, atol: float = 0.0, rtol: float = 0.0, ulp: int = 0) -> bool:
    """Return the verdict of exact arithmetic."""
    if e.dtype.kind in "biu":
        error = abs(int(a) - int(e))
        return error <= ulp or error <= Fraction(atol) + Fraction(rtol) * abs(int(e))
    x, y = float(e), float(a)
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    bound = Fraction(atol) + Fraction(rtol) * abs(Fraction(x))
    return abs(Fraction(y) - Fraction(x)) <= bound or abs(ordinal(a) - ordinal(e)) <= ulp


def scaled(rule: dict[str, Any], factor: float) -> dict[str, Any]:
    """The rule with slightly other bounds."""
    return {key: value if key == "ulp" else value * factor for key, value in rule.items()}


def wrong_count(name: str, rule: dict[str, Any]) -> int:
    return sum(not is_right(e, a, **rule) for e, a in zip(*pairs(name), strict=True))


@pytest.fixture(scope="module")
def scenario_runner() -> Iterator[ScenarioRunner]:
    """The fixture of the pytest plugin."""
    checker = ScenarioRunner()
    yield checker
    checker.runner.close()


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory, shader_cache: Path) -> Scene:
    """Each pair as files in the folders "expected" and "actual", and as buffers in the dumps a and b."""
    scene = Scene(tmp_path_factory.mktemp("dumps"))
    other = Scene(scene.folder)
    for name in VALUES:
        expected, actual = pairs(name)
        scene.buffer(name, actual)
        scene.npy(f"actual/{name}.npy", actual)
        src = scene.npy(f"expected/{name}.npy", expected)
        other.resource("buffer", uid=name, size=expected.nbytes, shader_access="readwrite", src=src)
    other.write("other.json")
    scene.write()
    for file, folder in (("other.json", "a"), ("scenario.json", "b")):
        assert run_program(scene.folder, file, "--dump-all", folder, "--output", "out").code == 0
    return scene


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_all_count_the_same_wrong_elements(dumps: Scene, scenario_runner: ScenarioRunner, rule: dict[str, Any]) -> None:
    """The count equals exact arithmetic for NaN, infinities, both zeros, denormals and the ends of each range."""
    program = Program(dumps.folder)
    options = [f"--{key}={value}" for key, value in rule.items()]
    typed = [f"--dtype={name}={name}" for name in VALUES]
    counts = dict[str, dict[str, int]]()
    for name, resource in zip(VALUES, dumps.resources, strict=True):
        expected, actual = pairs(name)
        contents = [content_of(name, array) for array in (actual, expected)]
        layer: Any = Layer(name, name, "ADD", None, (), ())  # type: ignore[arg-type]
        judged = judge(layer, contents[0], contents[1:], Rule(**rule, nan="equal"))
        counts[name] = {"compare-layers": judged.wrong or 0}
        if "ulp" not in rule:
            path = dumps.file(f"{name}.json", json.dumps({"resources": [resource], "commands": []}))
            counts[name]["fixture"] = of_fixture(scenario_runner, path, name, expected, rule)
    shown = program("view", "--diff", "expected", "actual", *options).out
    assert f"{len(VALUES)} files: " in shown
    differing = dict(re.findall(r"actual/(\w+)\.npy differ: (\d+) of", shown))
    for name in VALUES:
        counts[name]["view"] = int(differing.get(name, 0))
    different = json.loads(program("diff", "a", "b", "--json", *typed, *options).out)["different"]
    for name in VALUES:
        counts[name]["diff"] = sum(each["different"] for each in different if each["resource"] == name)
    wanted = {name: counts[name]["diff"] for name in VALUES}
    assert counts == {name: dict.fromkeys(counts[name], wanted[name]) for name in VALUES}
    for name in VALUES:  # bounds are rounded to doubles, so both verdicts hold for what lies on a bound
        least, most = (wrong_count(name, scaled(rule, factor)) for factor in (1 + 2**-50, 1 - 2**-50))
        assert least <= wanted[name] <= most, name
    for fewer, code in ((0, 0), (1, 1)):  # as many wrong elements may be there as are, and then one less
        outputs = {
            name: {"dtype": name, "nan": "equal", **rule, "allowed_count": max(0, count - fewer)}
            for name, count in wanted.items()
        }
        (dumps.folder / "check.json").write_text(json.dumps({"outputs": outputs}))
        failing = sum(map(bool, wanted.values())) if fewer else 0
        ended = program("test", "scenario.json")
        assert ended.code == (code if failing else 0)
        assert failing < 2 or re.search(rf"\(and {failing - 1} more outputs?\)", ended.out), ended.out


def of_fixture(scenario_runner: ScenarioRunner, path: Path, name: str, expected: Any, rule: dict[str, Any]) -> int:
    """The wrong elements that the fixture of the pytest plugin counts."""
    try:
        scenario_runner.check(path, expected={name: expected}, **rule)
    except AssertionError as error:
        return int(str(error).split(": ", 1)[1].split(" ", 1)[0])
    return 0
