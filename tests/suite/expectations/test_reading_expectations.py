"""Texts of expectations: the meaning of each key, and all errors at once with their places."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from scenario_runner import Runner
from scenario_runner.errors import ExpectationError, FileError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.suite.discovery import expectations_file, expected_folder, is_expectations_file
from scenario_runner.suite.evaluation import lacking
from scenario_runner.suite.expectations.format import Condition, Needs
from scenario_runner.suite.expectations.reading import Expectations, driver_version, load, matches, of_text
from scenario_runner.suite.outcomes import Item
from tests.scenes import error_of
from tests.tables import cases


def read(given: Any) -> Expectations:
    return of_text(given if isinstance(given, str) else json.dumps(given), "c.json", ".", "expected")


def problems(given: Any) -> list[tuple[str, str]]:
    """Return the code and the whole text of each problem."""
    error = error_of(ExpectationError, read, given)
    assert error.exit_code == 3
    return [(each.code, str(each)) for each in error.problems]


def test_files_are_found_by_the_name_of_the_scenario(tmp_path: Path) -> None:
    """check.json belongs to scenario.json, NAME.check.json to NAME.json; so do the folders."""
    for name in ("scenario.json", "other.json", "check.json", "other.check.json", "third.json"):
        (tmp_path / name).write_text("{}")
    paths = {name: str(tmp_path / name) for name in ("scenario.json", "other.json", "third.json")}
    assert expectations_file(paths["scenario.json"]) == str(tmp_path / "check.json")
    assert expectations_file(paths["other.json"]) == str(tmp_path / "other.check.json")
    assert expectations_file(paths["third.json"]) is None
    assert expected_folder(paths["scenario.json"]) == str(tmp_path / "expected")
    assert expected_folder(paths["other.json"]) == str(tmp_path / "other.expected")
    assert [is_expectations_file(name) for name in ("check.json", "a/b.check.json", "recheck.json")] == [
        True,
        True,
        False,
    ]


def test_defaults() -> None:
    """An empty object means the same as a missing file."""
    check = read({}).check
    assert (check.repeat, check.keep_state, check.robustness, check.needs, check.outputs) == (1, False, False, None, {})
    assert load(Item("i", "/nowhere/scenario.json")).check == check
    assert not read({}).expects_failure
    assert read({"$schema": "../expectations.schema.json", "version": 1}).check == check


def test_short_forms() -> None:
    """One name stands for a list of one, and a list of names for capabilities."""
    assert read({"needs": "Int64"}).check.needs == read({"needs": {"capabilities": ["Int64"]}}).check.needs
    assert read({"needs": ["Int64"]}).check.needs == read({"needs": {"capabilities": "Int64"}}).check.needs
    assert read({"codes": "SR-REF-001"}).check.codes == ("SR-REF-001",)
    digest = "AB" * 32
    assert read({"outputs": {"x": {"sha256": digest}}}).check.outputs["x"].sha256 == (digest.lower(),)


# Texts, keys of one output, and items: the contradictions and the wrong conditions.
WRONG = cases(__file__, "wrong.txt", "TEXTS") + cases(__file__, "wrong.txt", "ITEMS")
for keys, code, message in cases(__file__, "wrong.txt", "OUTPUTS"):
    WRONG.append([f'{{"outputs": {{"x/y": {keys}}}}}', code, f"/outputs/x~1y{message}"])


@pytest.mark.parametrize("text, code, message", WRONG)
def test_wrong_expectations(text: str, code: str, message: str) -> None:
    """Each has one error with its place; nulls, unknown versions and unknown codes too, as the JSON Schema says."""
    ((found, whole),) = problems(text)
    assert found == code
    assert message in whole


def test_everything_wrong_is_said_at_once() -> None:
    """In the order of the text."""
    text = '{\n "repeat": "3",\n "outputs": { "x": { "atol": -1, "ulps": 2 },\n  "y": { "rtol": -2 } }\n}'
    assert [(code, whole.split(": ")[0]) for code, whole in problems(text)] == [
        ("SR-EXPECT-003", "c.json:2:12"),
        ("SR-EXPECT-003", "c.json:3:30"),
        ("SR-EXPECT-002", "c.json:3:34"),
        ("SR-EXPECT-003", "c.json:4:18"),
    ]
    given = {"outputs": {"x": {"unchecked": True, "atol": 1}, "y": {"file": "a", "values": 1}}, "codes": ["SR-REF-001"]}
    assert [code for code, _ in problems(given)] == ["SR-EXPECT-006", "SR-EXPECT-006", "SR-EXPECT-006"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, another encoding, a file that is too large."""
    path = tmp_path / "check.json"
    item = Item("i", str(tmp_path / "scenario.json"), str(path))
    with pytest.raises(FileError, match="no such file"):
        load(item)
    path.write_bytes('{ "needs": "é" }'.encode("latin-1"))
    with pytest.raises(ExpectationError, match="is not UTF-8: byte 12 is 0xe9"):
        load(item)
    with path.open("wb") as file:
        file.truncate((32 << 20) + 1)
    with pytest.raises(ExpectationError, match="is larger than 32 MiB"):
        load(item)
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert load(item).check.repeat == 1


def refusals(text: str) -> tuple[Diagnostic, ...]:
    """The problems of a text, none where it is right."""
    try:
        read(text)
    except ExpectationError as error:
        return error.problems
    return ()


names = st.sampled_from(["outputs", "x", "atol", "values", "when", "metrics", "rmse", "max", "needs", "sha256", "type"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40)
@given(trees)
def test_any_tree_is_read_or_refused(tree: Any) -> None:
    """Any tree is read or refused with places, and no other exception is raised."""
    assert all(each.line and each.column for each in refusals(json.dumps(tree)))


def test_files_that_cannot_be_read_are_not_overlooked(tmp_path: Path) -> None:
    """A folder, or a link to nothing, in the place of check.json is an error and no lack of expectations."""
    scenario = tmp_path / "scenario.json"
    scenario.write_text("{}")
    (tmp_path / "check.json").symlink_to("nowhere")
    with pytest.raises(FileError):
        load(Item("i", str(scenario), expectations_file(str(scenario))))
    (tmp_path / "check.json").unlink()
    (tmp_path / "check.json").mkdir()
    with pytest.raises(FileError):
        load(Item("i", str(scenario), expectations_file(str(scenario))))


def device(type: str = "discrete", vendor_id: int = 0x10DE) -> Any:
    """A device as conditions see it."""
    properties = SimpleNamespace(vendorID=vendor_id, driverVersion=0)
    return SimpleNamespace(name="NVIDIA H100 80GB HBM3", type=type, driver="NVIDIA 550.54.14", properties=properties)


@pytest.mark.parametrize("keys, expected", cases(__file__, "wrong.txt", "CONDITIONS"))
def test_conditions(keys: str, expected: str) -> None:
    """All keys of a condition must match."""
    assert matches(Condition.model_validate(json.loads(keys)), device()) == json.loads(expected)


@pytest.mark.parametrize("text", ["", "25", ">=a", "24.1-25", ">=1,<2", "=>1"])
def test_texts_that_are_no_comparisons(text: str) -> None:
    """A text that is no comparison is refused as a whole."""
    with pytest.raises(ValidationError, match="expected comparisons such as"):
        Condition.model_validate({"driver_version": text})


def test_the_first_match_counts() -> None:
    """Keys of the first match replace outer keys one by one, and a source replaces the outer source."""
    given = {
        "timeout": 3,
        "outputs": {"x": {"file": "x.npy", "atol": 1.0, "allowed_count": 3}, "y": {"values": 1}},
        "when": [
            {"type": "cpu", "outputs": {"x": {"atol": 9.0}}},
            {"type": "discrete", "timeout": 5, "outputs": {"x": {"rtol": 0.5, "allowed_share": 0.1}, "z": {}}},
            {"vendor": "nvidia", "outputs": {"x": {"sha256": "0" * 64}}},
        ],
    }
    expectations = of_text(json.dumps(given), "c.json", ".", "expected")
    found = expectations.for_device(device()).check
    x = found.outputs["x"]
    assert (found.timeout, x.file, x.atol, x.rtol, x.allowed_count, x.allowed_share) == (5, "x.npy", 1, 0.5, None, 0.1)
    assert set(found.outputs) == {"x", "y", "z"}
    cpu = expectations.for_device(device("cpu", 0)).check
    assert (cpu.timeout, cpu.outputs["x"].atol, cpu.outputs["x"].allowed_count) == (3, 9, 3)
    digest = expectations.for_device(device("other")).check.outputs["x"]
    assert (digest.sha256, digest.file, digest.atol) == (("0" * 64,), None, None)
    assert expectations.for_device(device("other", 1)) == expectations


def test_the_device_of_this_machine() -> None:
    """The driver gives a version, and a missing capability is named with its feature or extension."""
    with Runner() as runner:
        physical = runner.physical_device
        assert driver_version(physical) > (0, 0)
        has = Needs(capabilities=("Shader", "Int64"), features=("shaderInt64",), extensions=())
        assert list(lacking(has, physical)) == []
        lacks = Needs.model_construct(
            capabilities=("NoSuchThing",), features=("noSuchFeature",), extensions=("VK_NO_such",)
        )
        assert list(lacking(lacks, physical)) == [
            "the capability NoSuchThing: no Vulkan version knows it",
            "the feature noSuchFeature",
            "the extension VK_NO_such",
        ]
