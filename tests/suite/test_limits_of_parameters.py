"""Limits of parameters: results have bounds, and the work grows only with the number of combinations."""

import json
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import load
from scenario_runner.cli import main
from scenario_runner.errors import ScenarioError, UsageError
from scenario_runner.files.parameters import uses
from scenario_runner.suite.combinations import values_of_scenario, variants
from scenario_runner.suite.discovery import Discovery, item_of, looks_like_scenario
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.hashes import item_hashes
from tests.effort import calls_of
from tests.program import Program
from tests.suite.collected import Collected
from tests.suite.test_parameters import EMPTY, used, write

MIB = 1 << 20


def deep(count: int) -> Any:
    """Return a number in arrays of one entry."""
    value: Any = 1
    for _ in range(count):
        value = [value]
    return value


def repeated(uses: int) -> Any:
    """Return a scenario with a parameter in many places, alone and within longer strings."""
    text = ["${n}", "x${n}y" * uses] if uses else ["${n}"]
    return {"resources": [{"shader": {"uid": "s", "type": "GLSL", "src": {"text": text}}}], "commands": []}


@pytest.mark.parametrize(
    "scenario, value, limit",
    [
        (repeated(40), "z" * MIB, "32 MiB"),
        (repeated(16), "\N{SNOWMAN}" * (MIB // 2), "32 MiB"),  # six characters of JSON each
        (used(n=[])[0] | {"commands": ["${n}"] * 300}, [0] * 10_000, "2,000,000 values"),
    ],
)
def test_values_are_counted_as_they_are_put_in(
    program: Program, tmp_path: Path, scenario: Any, value: Any, limit: str
) -> None:
    """A small scenario stays below the limits of a large one, in memory too."""
    path = write(tmp_path, scenario, {"parameters": {"n": [value]}})
    ended = program("validate", "a.json")
    assert (ended.code, f"a.json: a scenario of more than {limit}" in ended.err) == (3, True), ended.err
    tracemalloc.start()
    try:
        with pytest.raises(ScenarioError, match=f"more than {limit}"):
            load(path, {"n": value})
        assert tracemalloc.get_traced_memory()[1] < 128 * MIB
    finally:
        tracemalloc.stop()
    if limit == "32 MiB":
        write(
            tmp_path,
            repeated(0),
            {"parameters": {"n": [value]}, "outputs": {"${n}" * 40: {}, "x": {"file": "${n}" * 40}}},
        )
        (item,) = variants(item_of(str(path), "a"))
        (problem,) = check(item)
        assert (problem.code, f"more than {limit}" in problem.message) == ("SR-EXPECT-001", True)


def test_values_that_just_fit(tmp_path: Path) -> None:
    """The text with its values may have the size that a scenario may have."""
    scenario = load(write(tmp_path, repeated(0), None), {"n": "z" * (31 * MIB)})
    assert len(scenario.resources[0].text) > 31 * MIB  # type: ignore[attr-defined]


def test_deep_values(program: Program, tmp_path: Path) -> None:
    """A deep value is an error like a deep file, and ends no other item of the suite."""
    text = "[" * 30_000 + "1" + "]" * 30_000
    raw = {"raw_data": {"uid": "r", "src": {"values": ["${n}"]}}}
    write(tmp_path, {"resources": [raw], "commands": []}, None)
    for value in ("[" * 65 + "1" + "]" * 65, text):
        ended = program("validate", "a.json", "--set", f"n={value}")
        message = "error: argument --set: n: the value has more than 64 arrays and objects nested in one another"
        assert (ended.code, ended.err.splitlines()[0]) == (2, message)
    with pytest.raises(UsageError, match="expected a number, a boolean, a string or a list"):
        load(tmp_path / "a.json", {"n": deep(5000)})
    with pytest.raises(ScenarioError, match="more than 64 arrays and objects nested in one another"):
        load(tmp_path / "a.json", {"n": deep(62)})
    (tmp_path / "a.check.json").write_text(f'{{"parameters": {{"n": [{text}]}}}}')
    write(
        tmp_path / "b", used(n=[])[0], {"parameters": {"n": [deep(60)]}, "outputs": {"x": {"values": [["${n}"] * 5]}}}
    )
    write(tmp_path / "c", EMPTY, {})
    write(tmp_path / "d", EMPTY, None)
    (tmp_path / "d" / "suite.json").write_text(text)
    ended = program("test", ".", "--quiet", "--jobs", "1", exit_code=1)
    assert "Missing a.json: " in ended.out
    assert "Missing b/a.json[n0]: " in ended.out
    assert "Missing d/a.json: " in ended.out
    assert "1 Pass, 3 Missing" in ended.out, ended.out


def ids_of(lists: Any, exclude: Any, folder: Path) -> list[str]:
    scenario, offered = used(**lists)
    path = write(folder, scenario, offered | {"exclude": exclude})
    return [item.variant for item in variants(item_of(str(path), "a"))]


def growth(work: Callable[[int], object], count: int) -> float:
    """Return how many times as many calls four times as much work takes."""
    few, many = (calls_of(partial(work, number))[1] for number in (count, 4 * count))
    return many / few


def test_many_excluded_combinations(tmp_path: Path) -> None:
    """Excluded combinations equal NumPy's comparison, and twice as many take twice the work."""
    lists = {"a": [*range(30)], "b": [*range(20)], "c": [True, 1]}
    entries = [{"a": a, "b": b} for a in range(25) for b in range(15)] + [{"c": True, "a": 29}, {"b": 19}]

    def is_left(a: int, b: int, c: Any) -> bool:
        return not ((a < 25 and b < 15) or (c is True and a == 29) or b == 19)

    expected = [f"[{a}-{b}-{json.dumps(c)}]" for a, b, c in product(*lists.values()) if is_left(a, b, c)]
    assert ids_of(lists, entries, tmp_path) == expected
    names = [f"n{number}" for number in range(10)]
    many = [{name: 1 for at, name in enumerate(names) if bits >> at & 1} for bits in range(1, 1024)]
    excluding = {name: [0, 1] for name in names}
    assert growth(lambda count: ids_of(excluding, [*many[-count:], many[-1]], tmp_path / str(count)), 250) < 6


def test_many_equal_names(tmp_path: Path) -> None:
    """Equal names get the numbers of pytest, in work that grows with their count."""
    assert ids_of({"a": [5] * 3 + ["x"] * 2 + ["x0"]}, [], tmp_path) == [
        "[5_0]",
        "[5_1]",
        "[5_2]",
        "[x1]",
        "[x2]",
        "[x0]",
    ]
    assert growth(lambda count: ids_of({"a": [1] * count}, [], tmp_path / str(count)), 500) < 6


def test_a_list_of_many_combinations(tmp_path: Path) -> None:
    """Each line finds its item without looking at all others again."""

    def listed(count: int) -> None:
        folder = tmp_path / str(count)
        scenario, offered = used(n=[*range(count)])
        write(folder, scenario, offered)
        (folder / "list.txt").write_text("".join(f"a.json[{number}]\n" for number in range(count)))
        items = list(Discovery(str(folder), Collected()).items([f"@{folder}/list.txt"]))
        assert len(items) == count

    assert growth(listed, 100) < 6


def test_validate_of_many_combinations(tmp_path: Path) -> None:
    """The values of one do not take work for all others; a name with half of a surrogate pair is hashed."""

    def values(count: int) -> None:
        scenario, offered = used(n=[*range(count)])
        path = write(tmp_path / str(count), scenario, offered | {"outputs": {"x": {"file": "\ud800.npy"}}})
        for item in variants(item_of(str(path), "a")):
            assert values_of_scenario(item, item.parameters) == item.parameters
        assert len(item_hashes(item, "").expectations) == 64

    assert growth(values, 100) < 6


def test_many_problems_of_expectations(tmp_path: Path) -> None:
    """The text is read once for the places of all."""

    def problems(count: int) -> None:
        outputs = {f"o{number}": {"file": "x.npy"} for number in range(count)}
        path = write(tmp_path / str(count), EMPTY, {"outputs": outputs})
        assert len(check(item_of(str(path), "a"))) == count

    assert growth(problems, 20) < 8


def test_many_conditions(tmp_path: Path) -> None:
    """The files that keys name are collected once for all devices."""

    def conditions(count: int) -> None:
        when = [{"device": f"{number}", "outputs": {"o": {"file": f"{number}.npy"}}} for number in range(count)]
        path = write(tmp_path / str(count), EMPTY, {"outputs": {"o": {"file": "x.npy"}}, "when": when})
        assert len(check(item_of(str(path), "a"))) == 1

    assert growth(conditions, 50) < 6


def test_many_outputs_and_conditions(tmp_path: Path) -> None:
    """An entry of ``when`` takes no work for outputs that it does not change; each wrong one is reported."""

    def conditions(count: int) -> None:
        buffers = [
            {"uid": f"o{at}", "size": 4, "shader_access": "readwrite", "dst": f"{at}.npy"} for at in range(count)
        ]
        outputs = {f"o{at}": {"values": [0], "dtype": "float32"} for at in range(count)}
        when = [{"device": "x", "outputs": {f"o{at}": {"values": [0] * (at + 2)}}} for at in range(count)]
        scenario = {"resources": [{"buffer": buffer} for buffer in buffers], "commands": []}
        path = write(tmp_path / str(count), scenario, {"outputs": outputs, "when": when})
        pointers = [problem.pointer for problem in check(item_of(str(path), "a"))]
        assert pointers == [f"/when/{at}/outputs/o{at}/values" for at in range(count)]

    assert growth(conditions, 20) < 8


def test_many_wrong_combinations(tmp_path: Path) -> None:
    """All combinations share the texts of files and the search for places and close names."""

    def validated(count: int) -> None:
        scenario, offered = used(n=[*range(count)])
        scenario["commands"] += [{"dispatch_fragment": {"pipeline_ref": "${n}", "values": [0] * 500}}]
        path = write(tmp_path / str(count), scenario, offered)
        assert main(["validate", str(path)]) == ScenarioError.exit_code

    _, few, many = (calls_of(partial(validated, count))[1] for count in (10, 20, 40))  # the first one imports
    assert many - few < 20 * 2000


def test_too_many_parameters(tmp_path: Path) -> None:
    """Each is in every combination: a limit of their number bounds the memory."""
    lists = {f"n{number}": [1] for number in range(101)}
    scenario, offered = used(**lists)
    path = write(tmp_path, scenario, offered)
    (problem,) = check(item_of(str(path), "a"))
    assert problem.message == "has 101 parameters, expected at most 100"


@pytest.mark.parametrize("read", [uses, lambda text: looks_like_scenario(text.encode())])
def test_a_string_without_an_end(read: Callable[[str], object]) -> None:
    """Each quote is looked at once: 16 times as much takes not nearly 256 times as long."""

    def seconds(count: int) -> float:
        text = '{"${n}":"' + '\\"' * count
        starts = [(time.process_time(), read(text))[0] for _ in range(6)]
        return min(after - before for before, after in pairwise(starts))

    assert seconds(64_000) < 80 * max(seconds(4_000), 1e-4)
