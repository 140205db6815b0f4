"""Objects in ``src``, computed here from the definitions of docs/contents.md with NumPy alone."""

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, Scenario, ScenarioRunnerError, from_dict, load, loads
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.scenario.inline_contents import STRUCT_CODES
from scenario_runner.suite.hashes import dependencies, item_hashes
from scenario_runner.suite.outcomes import Item
from scenario_runner.validation import validate_file
from tests.program import Program

NOTHING = {"shader": {"uid": "nothing", "src": {"text": "void main() {}"}}}
RUN = {"dispatch_compute": {"shader_ref": "nothing", "rangeND": [1], "bindings": []}}
COUNT = 1000
FLOATS = {"float16": "f2", "float32": "f4", "float64": "f8"}
INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SMALL_FLOATS = {"bfloat16": (8, -126), "float8_e4m3": (4, -6), "float8_e5m2": (3, -14)}  # bits, least exponent


def scenario(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"resources": [NOTHING, *resources], "commands": [RUN]}


def buffer(uid: str = "b", *, src: Any, **keys: Any) -> dict[str, Any]:
    return {"buffer": {"uid": uid, "shader_access": "readwrite", "src": src, **keys}}


def image(format: str, *, src: Any, **keys: Any) -> dict[str, Any]:
    format = f"VK_FORMAT_{format}"
    return {"image": {"uid": "b", "format": format, "shader_access": "readwrite", "src": src, **keys}}


def tensor(format: str, *, src: Any, **keys: Any) -> dict[str, Any]:
    format = f"VK_FORMAT_{format}"
    return {"tensor": {"uid": "b", "format": format, "shader_access": "readwrite", "src": src, **keys}}


def split_mix(seed: int, count: int, first: int = 0) -> Any:
    z = numpy.uint64(seed) + numpy.arange(first + 1, first + count + 1, dtype="u8") * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def unit(seed: int, count: int) -> Any:
    return (split_mix(seed, count) >> numpy.uint64(11)) * 2.0**-53


def rounded(values: Any, significant_bits: int, least_exponent: int) -> Any:
    """The nearest floats with so many bits, halfway cases to the even one; exact in double precision."""
    _, exponents = numpy.frexp(values)
    quantum = numpy.exp2(numpy.maximum(exponents - 1, least_exponent) - significant_bits + 1)
    return numpy.rint(values / quantum) * quantum


def test_the_first_number_is_the_published_one() -> None:
    """SplitMix64 with the seed 1234567 gives the published first numbers."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert split_mix(1234567, 4).tolist() == expected


def test_types_have_one_size() -> None:
    """Types of items have the same names and sizes as elsewhere."""
    assert list(STRUCT_CODES) == list(ELEMENTS)
    for name, element in ELEMENTS.items():
        assert struct.calcsize(STRUCT_CODES[name]) == element.size_bytes


def test_random_numbers(runner: Runner) -> None:
    """Random numbers of every type are the defined ones, with and without a range."""
    spans = {name: {"random": 5, "dtype": name, "count": COUNT} for name in [*INTEGERS, *FLOATS, *SMALL_FLOATS]}
    ranged = {f"{name}_2": {**spans[name], "range": [-3, 4]} for name in [*FLOATS, *SMALL_FLOATS, "int8", "int64"]}
    more = {"bool": {"random": 5, "dtype": "bool", "count": COUNT}, "dice": {"random": 2**64 - 1, "range": [1, 6],
            "dtype": "uint16", "count": COUNT}}  # fmt: skip
    result = runner.run(scenario(*(buffer(uid, src=src) for uid, src in (spans | ranged | more).items())))
    z = split_mix(5, COUNT)
    for name in INTEGERS:
        limits = numpy.iinfo(name)
        expected = (z & numpy.uint64(limits.max - limits.min)) + numpy.uint64(limits.min % 2**64)
        assert (result.array(name, name) == expected.astype(name)).all(), name
    for suffix, floats in (("", unit(5, COUNT)), ("_2", -3.0 + 7.0 * unit(5, COUNT))):
        for name, code in FLOATS.items():
            assert (result.array(name + suffix, code) == floats.astype(code)).all(), name
        for name, (bits, least) in SMALL_FLOATS.items():
            got = ELEMENTS[name].numbers(result.array(name + suffix, ELEMENTS[name].dtype))
            assert (got == rounded(floats, bits, least)).all(), name
    for name in ("int8", "int64"):
        assert (result.array(f"{name}_2", name) == -3 + (z % numpy.uint64(8)).astype("i8")).all()
    assert (result.array("bool", "u1") == z % numpy.uint64(2)).all()
    assert (result.array("dice", "u2") == 1 + split_mix(2**64 - 1, COUNT) % numpy.uint64(6)).all()


def test_values_fills_and_series(runner: Runner) -> None:
    """Values, fills and series equal NumPy's, and texts stand for numbers that JSON lacks."""
    contents = {
        "floats": {"values": [0.1, -2, "inf", 1e-40, "0x7fc00001"]},
        "halves": {"values": [0.1, 65504, "-inf"], "dtype": "float16"},
        "bytes": {"values": [[1, -128], [127, 0]], "dtype": "int8"},
        "large": {"values": [2**64 - 1, 0], "dtype": "uint64"},
        "flags": {"values": [True, False, 1], "dtype": "bool"},
        "brain": {"values": [1, 3.140625], "dtype": "bfloat16"},
        "down": {"series": [10, -3], "dtype": "int16", "count": 7},
        "ramp": {"series": [-1, 0.1], "count": 100_000},
        "pattern": {"fill": [1, 2, 3], "dtype": "uint8", "count": 99_999},
        "high": {"series": [2**63, 2], "dtype": "uint64", "count": 3},
    }
    result = runner.run(scenario(*(buffer(uid, src=src) for uid, src in contents.items())))
    specials = numpy.float32([0.1, -2, numpy.inf, 1e-40, 0])
    specials.view("u4")[4] = 0x7FC00001
    expected = {
        "floats": specials,
        "halves": numpy.array([0.1, 65504, -numpy.inf], "f2"),
        "bytes": numpy.int8([1, -128, 127, 0]),
        "large": numpy.uint64([2**64 - 1, 0]),
        "flags": numpy.uint8([1, 0, 1]),
        "brain": numpy.float32([1, 3.140625]).view("u2")[1::2],
        "down": numpy.int16([10, 7, 4, 1, -2, -5, -8]),
        "ramp": (-1 + 0.1 * numpy.arange(100_000)).astype("f4"),
        "pattern": numpy.tile(numpy.uint8([1, 2, 3]), 33_333),
        "high": numpy.uint64([2**63, 2**63 + 2, 2**63 + 4]),
    }
    for uid, array in expected.items():
        assert result.array(uid, "u1").tobytes() == array.tobytes(), uid


def test_pieces_and_memory(runner: Runner) -> None:
    """Pieces equal parts of the whole, and large content is never whole in memory."""
    count = 1 << 22
    sources = {"random": {"random": 9, "count": count}, "fill": {"fill": [1, 2, 3, 4], "count": count}}
    plan = runner.plan(scenario(*(buffer(uid, src=src) for uid, src in sources.items())))
    wholes = {"random": unit(9, count).astype("f4"), "fill": numpy.tile(numpy.float32([1, 2, 3, 4]), count // 4)}
    for uid, whole in wholes.items():
        source = plan.resources[uid].source
        piece = bytearray(300_001)
        for at in (0, 1, 262_143, 4 * count - len(piece)):
            source.read_into(memoryview(piece), at)
            assert piece == whole.view("u1")[at : at + len(piece)].tobytes(), (uid, at)
        tracemalloc.start()
        for at in range(0, 4 * count, 1 << 20):
            source.read_into(memoryview(bytearray(1 << 20)), at)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_images(runner: Runner) -> None:
    """Texels are items of the format: components, packed ones, and depths; nested values give the extent."""
    values = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]
    result = runner.run(scenario(image("R16G16_SFLOAT", src={"values": values}, mips=2)))
    assert result.level("b").shape == (2, 3, 2)
    assert (result.level("b") == numpy.array(values, "f2")).all()
    dims = {"dims": [1, 4, 2, 1]}
    for format, src, expected in (
        ("R8G8B8A8_UNORM", {"fill": [255, 128, 0, 1]}, numpy.tile(numpy.uint8([255, 128, 0, 1]), 8)),
        ("A2B10G10R10_UNORM_PACK32", {"random": 3}, split_mix(3, 8).astype("u4")),
        ("R32_UINT", {"series": [2**32 - 8, 1]}, numpy.arange(2**32 - 8, 2**32).astype("u4")),
        ("D32_SFLOAT", {"series": [0, 0.125]}, numpy.arange(8).astype("f4") / 8),
        ("R8_SNORM", {"values": [[-127, 0, 1, 2], [3, 4, 5, 6]]}, numpy.int8([-127, 0, 1, 2, 3, 4, 5, 6])),
    ):
        result = runner.run(scenario(image(format, src=src, **dims)))
        assert result.level("b").tobytes() == expected.tobytes(), format


def test_tensors(runner: Runner) -> None:
    """A tensor gets the type of its format, and takes a missing shape from its values."""
    for format, src, expected, keys in (
        ("R8_SINT", {"values": [[1, 2, 3], [4, 5, -6]]}, numpy.int8([[1, 2, 3], [4, 5, -6]]), {}),
        ("R32_SFLOAT", {"values": [1, 2, 3, 4]}, numpy.float32([[1, 2], [3, 4]]), {"dims": [2, 2]}),
        ("R16_SFLOAT", {"random": 1}, unit(1, 6).astype("f2").reshape(2, 3), {"dims": [2, 3]}),
        ("R8_BOOL_ARM", {"fill": True}, numpy.ones((3,), bool), {"dims": [3]}),
    ):
        got = runner.run(scenario(tensor(format, src=src, **keys)))["b"]
        assert got.shape == expected.shape
        assert (got == expected).all(), format


DATA = {"shader_access": "readonly", "uid": "b"}
TEXT = {"uid": "s", "src": {"text": "void main() {}"}}


@pytest.mark.parametrize(
    "resource, place, message",
    [
        (buffer(src={}, size=4), "", "needs one of the keys 'values', 'fill', 'series' and 'random'"),
        (buffer(src={"fill": 1, "random": 2}, size=4), "", "needs one of the keys"),
        (buffer(src={"fill": 1}), "..", "the required key 'size' is missing"),
        (buffer(src={"valeus": [1]}, size=4), "/valeus", "unknown key 'valeus' (did you mean 'values'?)"),
        (buffer(src=3, size=4), "", "expected a string, got 3"),
        (buffer(src={"values": [[1], [2, 3]]}, size=4), "/values", "expected arrays of the same length"),
        (buffer(src={"values": [[1], 2]}, size=4), "/values", "expected arrays of the same length"),
        (buffer(src={"values": [[], 1]}), "/values", "expected arrays of the same length"),
        (buffer(src={"fill": [[], 1]}, size=4), "/fill", "expected arrays of the same length"),
        (tensor("R8_SINT", src={"values": [[], "x"]}), "/values", "expected arrays of the same length"),
        (image("R8_UINT", src={"values": [["x"]]}), "/values", "expected numbers, 'nan', 'inf'"),
        (buffer(src={"values": ["one"]}), "/values", "expected numbers, 'nan', 'inf'"),
        (buffer(src={"count": 0, "fill": 1}), "/count", "expected an integer of at least 1, got 0"),
        (buffer(src={"values": []}, size=4), "/values", "expected at least one value"),
        (buffer(src={"values": ["one"]}, size=4), "/values", "expected numbers, 'nan', 'inf'"),
        (buffer(src={"values": [{}]}, size=4), "/values", "expected numbers, 'nan', 'inf'"),
        (buffer(src={"fill": "0xzz"}, size=4), "/fill", "expected numbers, 'nan', 'inf'"),
        (buffer(src={"values": [1, 2]}, size=4), "/values", "has 1 items of float32, got 2"),
        (buffer(src={"fill": 0, "count": 2}, size=4), "/count", "has 1 items of float32, got 2"),
        (buffer(src={"fill": [1, 2]}, size=12), "/fill", "has 3 items, not a multiple of the 2 repeated ones"),
        (buffer(src={"fill": 1}, size=6), "", "has 6 bytes: not a whole number of items of float32"),
        (buffer(src={"values": [300], "dtype": "uint8"}), "/values", "300 is not in the range of uint8, 0 to 255"),
        (buffer(src={"values": [0.5], "dtype": "int8"}), "/values", "0.5 is not an integer, so int8 cannot hold it"),
        (
            buffer(src={"values": ["nan"], "dtype": "int8"}),
            "/values",
            "'nan' is not an integer, so int8 cannot hold it",
        ),
        (buffer(src={"values": [1e39]}), "/values", "1e+39 is out of the range of float32"),
        (buffer(src={"values": [16777217]}), "/values", "the nearest float to 16777217 is 16777216"),
        (buffer(src={"values": ["0x1ffffffff"]}), "/values", "has more bits than float32"),
        (buffer(src={"values": [1], "dtype": "float"}, size=4), "/dtype", "expected one of 'bool', 'int8'"),
        (buffer(src={"fill": 1, "count": 2, "dtype": "float"}), "/dtype", "expected one of 'bool', 'int8'"),
        (buffer(src={"fill": 1, "count": 2, "dtype": [1]}), "/dtype", "expected one of 'bool', 'int8'"),
        (buffer(src={"random": -1}, size=4), "/random", "expected an integer of at least 0, got -1"),
        (buffer(src={"random": True}, size=4), "/random", "expected an integer, got true"),
        (buffer(src={"random": 1, "range": [2, 1]}, size=4), "", "'range' is for 'random', and has the lower"),
        (buffer(src={"fill": 1, "range": [1, 2]}, size=4), "", "'range' is for 'random', and has the lower"),
        (buffer(src={"random": 1, "range": [1]}, size=4), "/range", "expected at least 2 entries, got 1"),
        (buffer(src={"random": 1, "range": [0, 1e39]}, size=4), "/range", "is out of the range of float32"),
        (
            buffer(src={"random": 1, "range": [0, 300], "dtype": "int8"}, size=4),
            "/range",
            "300 is not in the range of int8",
        ),
        (buffer(src={"random": 1, "range": [-1e308, 1e308], "dtype": "float64"}, size=8), "/range", "as the range"),
        (buffer(src={"series": [0, 0.5], "dtype": "int8"}, size=1), "/series", "got the step 0.5"),
        (buffer(src={"series": [0, 100], "dtype": "int8"}, size=3), "/series", "200 is not in the range of int8"),
        (buffer(src={"series": [0, "a"]}, size=3), "/series/1", "expected a number, got 'a'"),
        ({"raw_data": {"uid": "b", "src": {"fill": 1}}}, "", "'src' does not give the number of items"),
        (tensor("R8_SINT", src={"values": [1, 2]}, dims=[3]), "/values", "has 3 items of int8, got 2"),
        (tensor("R8_SINT", src={"values": [[1], [2]]}, dims=[1, 2, 1, 1]), None, ""),
        (tensor("R8_SINT", src={"values": [[1, 2]] * 3}, dims=[2, 3]), "/values", "of the shape [2, 3], got [3, 2]"),
        (tensor("R8_SINT", src={"fill": 1, "dtype": "int16"}, dims=[3]), "/dtype", "has items of int8, not int16"),
        (tensor("R8_SINT", src={"fill": 1}), "..", "the required key 'dims' is missing"),
        (image("R8_UINT", src={"values": [1, 2]}), "..", "the required key 'dims' is missing"),
        (image("BC1_RGB_UNORM_BLOCK", src={"fill": 1}, dims=[1, 4, 4, 1]), "", "so numbers cannot fill it"),
        ({"shader": {**TEXT, "type": "SPIR-V"}}, "../type", "a text is 'GLSL' or 'HLSL', got 'SPIR-V'"),
        ({"shader": {**TEXT, "src": {"text": []}}}, "/text", "expected a string, or an array of strings"),
        ({"shader": {**TEXT, "src": {"text": [1]}}}, "/text", "expected a string, or an array of strings"),
        ({"shader": {**TEXT, "src": {}}}, "", "the required key 'text' is missing"),
        ({"graph": {"uid": "g", "src": {"fill": 1}}}, "", "expected a string, got an object"),
        (buffer(src={"fill": 1}, size=4, dst={"fill": 1}), "../dst", "expected a string, got an object"),
    ],
)
def test_mistakes(tmp_path: Path, resource: dict[str, Any], place: str | None, message: str) -> None:
    """Each mistake is one finding at its place, with the exit code of a wrong scenario."""
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(scenario(resource)))
    validation = validate_file(path)
    if place is None:
        assert validation.findings == ()
        return
    (finding,) = validation.findings
    expected = f"/resources/1/{next(iter(resource))}/src{place}".replace("/src..", "")
    assert (finding.pointer, validation.exit_code) == (expected, 3)
    assert message in finding.message
    assert finding.line == 1


def test_inputs_replace_it(runner: Runner) -> None:
    """Arrays that are given for a run replace an object in src."""
    given = scenario(buffer(src={"random": 1, "count": 2}))
    assert runner.run(given, {"b": numpy.float32([5, 6])}).array("b", "f4").tolist() == [5, 6]
    prepared = runner.prepare(given)
    assert prepared.run({"b": numpy.float32([7, 8])}).array("b", "f4").tolist() == [7, 8]
    assert (prepared.run().array("b", "f4") == unit(1, 2).astype("f4")).all()


def test_as_json_and_in_another_folder(tmp_path: Path, runner: Runner) -> None:
    """A scenario with objects is written as it was, also for another folder, where its includes are found."""
    (tmp_path / "value.glsl").write_text("#define VALUE 3.0\n")
    lines = ["layout(binding = 0) buffer B { float b[]; };", '#include "value.glsl"', "void main() { b[0] += VALUE; }"]
    adding = {"shader": {"uid": "s", "src": {"text": lines}}}
    bindings = [{"set": 0, "id": 0, "resource_ref": "b"}]
    run = {"dispatch_compute": {"shader_ref": "s", "rangeND": [1], "bindings": bindings}}
    tree = {"resources": [adding, buffer(src={"values": [4]}, size=4, dst="b.npy")], "commands": [run]}
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(tree))
    given: Scenario = load(path)
    adding["shader"]["type"] = "GLSL"
    assert json.loads(given.to_json()) == tree
    assert loads(given.to_json(), base_dir=str(tmp_path)).resources == given.resources
    assert from_dict(tree, base_dir=str(tmp_path)).resources == given.resources
    given.save(tmp_path / "other" / "folder" / "scenario.json")
    runner.run_to_files(tmp_path / "other" / "folder" / "scenario.json")
    assert numpy.load(tmp_path / "other" / "folder" / "b.npy").view("f4").tolist() == [7]


def test_compilers_errors_name_lines_of_the_scenario(tmp_path: Path, program: Program) -> None:
    """An error in a text of lines points to the line of the scenario, the further ones as well."""
    lines = ["#version 450", "// one\n// two", "void main() {", "  int a = nowhere;", "  int b = nothing;", "}"]
    tree = scenario()
    tree["resources"] = [{"shader": {"uid": "nothing", "src": {"text": lines}}}]
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(tree, indent=1))
    at = [number for number, line in enumerate(path.read_text().splitlines(), 1) if "int " in line]
    ended = program("validate", "scenario.json", exit_code=5)
    start = f"error: scenario.json:{at[0]}:7: /resources/0/shader/src/text/3: shader 'nothing': 'nowhere' : undeclared"
    assert start in ended.out + ended.err
    assert f"  scenario.json:{at[1]}: 'nothing' : undeclared" in ended.out + ended.err


def test_the_sandbox_holds_for_includes(tmp_path: Path) -> None:
    """A text must not include a file outside of the sandbox."""
    (tmp_path / "out.glsl").write_text("")
    tree = scenario()
    tree["resources"] = [{"shader": {"uid": "nothing", "src": {"text": '#include "../out.glsl"\nvoid main() {}'}}}]
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "scenario.json").write_text(json.dumps(tree))
    with Runner(sandbox=True) as runner, pytest.raises(ScenarioRunnerError, match="which the sandbox forbids"):
        runner.plan(folder / "scenario.json")


def test_a_kept_plan_needs_neither_models_nor_numpy(tmp_path: Path, program: Program) -> None:
    """A second run with small content imports no NumPy, and gives the same; a change of the text gives another."""
    path, env = (
        tmp_path / "scenario.json",
        {"SCENARIO_RUNNER_CACHE": str(tmp_path / "cache"), "PYTHONPROFILEIMPORTTIME": "1"},
    )
    for seed, starts in ((1, (True, False)), (2, (True,))):
        path.write_text(json.dumps(scenario(buffer(src={"random": seed, "count": 8}, dst="b.npy"))))
        for plans in starts:
            ended = program("scenario.json", env=env, launcher=("env",), exit_code=0)
            imported = {line.rpartition("|")[2].strip() for line in ended.err.splitlines()}
            assert ("pydantic" in imported, "numpy" in imported) == (plans, plans)
            assert (numpy.load(tmp_path / "b.npy").view("f4") == unit(seed, 8).astype("f4")).all()


def test_hashes_of_a_suite(tmp_path: Path) -> None:
    """A file that a text includes is an input of the item, as for a shader in a file."""
    (tmp_path / "value.glsl").write_text("#define VALUE 3.0\n")
    tree = scenario()
    tree["resources"] = [{"shader": {"uid": "nothing", "src": {"text": ['#include "value.glsl"', "void main() {}"]}}}]
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(tree))
    item = Item("i", str(path))
    assert [Path(file).name for file, _ in dependencies(item)] == ["scenario.json", "value.glsl"]
    before = item_hashes(item, "")
    (tmp_path / "value.glsl").write_text("#define VALUE 4.0\n")
    assert item_hashes(item, "").inputs != before.inputs
