"""Parameters: an item for each combination, values in scenarios and expectations, and mistakes."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import ScenarioError, UsageError
from scenario_runner.files.input import ParameterizedFile
from scenario_runner.files.parameters import replaced, uses
from scenario_runner.plan.plan import PlanCache
from scenario_runner.suite.combinations import variants
from scenario_runner.suite.discovery import Discovery, item_of
from scenario_runner.suite.evaluation import run_item
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.hashes import item_hashes
from scenario_runner.suite.outcomes import Item, Result
from scenario_runner.suite.reports.summary import Repeat
from scenario_runner.suite.worker_task import Runners
from tests.program import Program
from tests.scenes import error_of
from tests.suite.cluster.hosts import placed_elsewhere
from tests.suite.collected import Collected, found

CHECKOUT = Path(__file__).resolve().parents[2]
LINES = [
    "#version 450",
    "layout(local_size_x_id = 0) in;",
    "layout(binding = 0) buffer Data { TYPE data[]; };",
    "void main() { data[gl_GlobalInvocationID.x] *= ${factor}; }",
]
SHADER = {"build_options": "-DTYPE=${type}", "specialization_constants": [{"id": 0, "value": "${n}"}]}
BUFFER = {"shader_access": "readwrite", "dst": "out/${type}_${n}.npy"}
SOURCE = {"series": [1, 1], "count": "${n}", "dtype": "${type}32"}
DISPATCH = {"shader_ref": "s", "rangeND": [1], "bindings": [{"set": 0, "id": 0, "resource_ref": "data"}]}
SCENARIO: Any = {
    "resources": [
        {"shader": {"uid": "s", "src": {"text": LINES}, **SHADER}},
        {"buffer": {"uid": "data", "src": SOURCE, **BUFFER}},
    ],
    "commands": [{"dispatch_compute": DISPATCH}],
}
CHECK = {
    "parameters": {"type": ["float", "int"], "n": [4, 8], "factor": [3]},
    "exclude": [{"type": "int", "n": 8}],
    "outputs": {"data": {"file": "expected/${type}_${n}.npy", "dtype": "${type}32"}},
}
IDS = ["[float-4-3]", "[float-8-3]", "[int-4-3]"]
EMPTY: Any = {"resources": [], "commands": []}


def write(folder: Path, scenario: Any = SCENARIO, check: Any = CHECK, name: str = "a") -> Path:
    """Write a scenario, its expectations and NumPy's results for each combination."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(scenario, indent=1))
    if check is not None:
        (folder / f"{name}.check.json").write_text(check if isinstance(check, str) else json.dumps(check, indent=1))
    (folder / "expected").mkdir(exist_ok=True)
    for dtype, n in (("float", 4), ("float", 8), ("int", 4)):
        numpy.save(folder / "expected" / f"{dtype}_{n}.npy", (numpy.arange(1, n + 1) * 3).astype(f"{dtype}32"))
    return folder / f"{name}.json"


def used(**lists: Any) -> tuple[Any, Any]:
    """A scenario that uses parameters, and expectations with their values."""
    raw = [{"raw_data": {"uid": name, "src": f"${{{name}}}.npy"}} for name in lists]
    return {"resources": raw, "commands": []}, {"parameters": lists}


def test_a_suite(program: Program, tmp_path: Path) -> None:
    """Every combination that is not excluded runs, is compared with its own file and can be named, listed and kept."""
    write(tmp_path)
    assert program("test", ".", "--list").out.splitlines() == [f"a.json{id}" for id in IDS]
    assert program("test", ".", "--results", "r", "--quiet").out.endswith("suite passed: 3 items\n")
    rows = (tmp_path / "r" / "results.csv").read_text().splitlines()
    assert sorted(row.rpartition(",")[0] for row in rows) == [f"a.json{id},Pass" for id in IDS]
    resumed = program("test", ".", "--results", "r", "--resume", "--quiet").out
    assert "3 results kept from the run before" in resumed
    (tmp_path / "list.txt").write_text("a.json[int-4-3]\n")
    for path in ("a.json[int-4-3]", "@list.txt"):
        assert program("test", path, "--list").out == "a.json[int-4-3]\n"
    (tmp_path / "baseline.csv").write_text("a.json[int-4-3],Fail\n")
    numpy.save(tmp_path / "expected" / "int_4.npy", numpy.int32([3, 6, 9, 13]))
    (tmp_path / "skips.txt").write_text(r"a.json\[float-4" + "\n")
    ended = program("test", ".", "--results", "r", "--baseline", "baseline.csv", "--skips", "skips.txt", "--quiet")
    assert (ended.code, ended.out.splitlines()[0].partition(": ")[2]) == (0, "1 Pass, 1 ExpectedFail, 1 Skip")
    failed = program("test", "a.json[int-4-3]", "--results", "r")
    assert "scenario-runner test 'a.json[int-4-3]'" in failed.out + failed.err
    assert list((tmp_path / "r").glob("*/data.actual.npy"))


def test_the_example(program: Program) -> None:
    """Shader options, constants, sizes and names of files: five combinations."""
    assert program("test", CHECKOUT / "scenarios" / "parameters").out.endswith("suite passed: 5 items\n")


@pytest.mark.parametrize(
    "lists, exclude, ids",
    [
        ({"a": ["x", 1, 0.5, True], "b": [2]}, [], ["x-2", "1-2", "0.5-2", "true-2"]),
        ({"a": [[1, 2], "y" * 101, "\n", "p/q[0]"]}, [], ["a0", "a1", "a2", "p/q[0]"]),
        ({"a": ["4", 4, "x", "x"]}, [], ["4_0", "4_1", "x0", "x1"]),
        ({"a": ["x", "x", "x0"]}, [], ["x1", "x2", "x0"]),
        ({"a": [1, True], "b": [3, 4]}, [{"a": True}, {"b": 4}], ["1-3"]),
        ({"a": [""]}, [], [""]),
    ],
)
def test_ids(tmp_path: Path, lists: Any, exclude: Any, ids: list[str]) -> None:
    """Ids are values as text, or name and index for lists and unprintable values; equal ids are numbered."""
    scenario, expectations = used(**lists)
    write(tmp_path, scenario, {**expectations, "exclude": exclude})
    assert found(tmp_path, "a.json") == [f"a.json[{id}]" for id in ids]
    for item in variants(item_of(str(tmp_path / "a.json"), "a.json")):
        assert found(tmp_path, item.id) == [item.id]
        assert f"a.json{item.variant}" == item.id


def test_a_suite_json(tmp_path: Path) -> None:
    """Parameters of a suite.json belong to the scenarios that use them, after those of a check file."""
    one, two = used(n=[1, 2], m=[3])[0], used(n=[5])[1]
    (tmp_path / "suite.json").write_text(json.dumps({"parameters": {"n": [1, 2], "m": [3]}, "exclude": [{"n": 2}]}))
    write(tmp_path, one, None, "both")
    write(tmp_path, one, two, "own")
    write(tmp_path, used(m=[])[0], None, "m")
    write(tmp_path, EMPTY, None, "plain")
    assert found(tmp_path, ".") == ["both.json[1-3]", "m.json[3]", "own.json[5]", "plain.json"]


@pytest.mark.parametrize(
    "text, parameters, expected",
    [
        ('{"a": "${n}"}', {"n": 4}, {"a": 4}),
        ('{"a": ["${n}", "${m}"]}', {"n": [1, 2], "m": 'é\n"${n}'}, {"a": [[1, 2], 'é\n"${n}']}),
        ('{"a": "x${n}${m}\\n"}', {"n": True, "m": 'a"\\'}, {"a": 'xtruea"\\\n'}),
        ('{"a": "${n}${k}", "${n}": "${n"}', {"n": 0.5}, {"a": "0.5${k}", "${n}": "${n"}),
        ('{"a": "$${n}", "b": "$$${n}", "c": "$${k}"}', {"n": 1}, {"a": "${n}", "b": "$${n}", "c": "${k}"}),
        ('{"a": "\\\\${n}"}', {"n": "x"}, {"a": "\\x"}),
    ],
)
def test_values_in_a_text(text: str, parameters: Any, expected: Any) -> None:
    """Only known names in strings that are not keys are replaced, and a string with a name alone becomes the value."""
    assert json.loads(replaced(text, parameters)) == expected


def test_names_in_a_text() -> None:
    """Names that stand for a value are found with the place of their string."""
    assert uses('{"${k}": "$${e} ${n}", "b": "${m}${n}"}') == {"n": 9, "m": 28}


def test_python(tmp_path: Path) -> None:
    """`load` takes the values; a run by path and one of the scenario give the same."""
    path = write(tmp_path)
    values = {"type": "int", "n": 3, "factor": 2}
    with Runner() as runner:
        assert runner.run(load(path, values)).array("data", "int32").tolist() == [2, 4, 6]
        for n in (3, 5, 3):  # a kept plan is one of its values
            runner.run_to_files(ParameterizedFile(str(path), {**values, "n": n}), output_dir=tmp_path)
            expected = numpy.arange(1, n + 1, dtype="int32") * 2
            assert numpy.load(tmp_path / "out" / f"int_{n}.npy").tobytes() == expected.tobytes()
    keys = {PlanCache(ParameterizedFile(str(path), {"n": n}))._made_key() for n in (1, True, "1", 2)}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n": 4, "type": "int"}, "a.json:11:7: the parameter 'factor' is not set"),
        ({"n": 4, "type": "int", "factor": 1, "typ": 1}, "a.json: the scenario has no parameter 'typ' (did you mean"),
        ({"n": 0, "type": "int", "factor": 1}, "got 0 (with n = 0, type = int, factor = 1)"),
    ],
)
def test_wrong_values(tmp_path: Path, parameters: Any, message: str) -> None:
    """A wrong value is an error at the place of its name, with the values."""
    error = error_of(ScenarioError, load, write(tmp_path), parameters)
    assert message in str(error)
    assert {problem.code for problem in error.problems} <= {"SR-JSON-011", "SR-JSON-005"}


def test_without_values(tmp_path: Path) -> None:
    """Each name is one error; that its text is no number is not another one."""
    buffer = {"uid": "b", "size": "${n}", "shader_access": "read${m}", "dst": "${n}.npy"}
    error = error_of(ScenarioError, load, write(tmp_path, {"resources": [{"buffer": buffer}], "commands": []}, None))
    messages = [problem.message for problem in error.problems]
    assert messages == [f"the parameter {name!r} is not set" for name in "nm"]


@pytest.mark.parametrize("value", [None, {"a": 1}, float("nan"), [None], b"x"])
def test_values_that_json_cannot_hold(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UsageError, match="expected a number, a boolean, a string or a list"):
        load(write(tmp_path), {"n": value})


def test_an_error_of_the_plan_names_the_values(program: Program, tmp_path: Path) -> None:
    """A later error, such as one from the compiler, also has the values."""
    write(tmp_path)
    ended = program("a.json", "--set", "type=nonsense32", "--set", "n=4", "--set", "factor=1", exit_code=3)
    assert "(with type = nonsense32, n = 4, factor = 1)" in ended.err


def test_a_text_that_only_looks_like_a_parameter(program: Program, tmp_path: Path) -> None:
    """A scenario without a value for a name runs unchanged."""
    numpy.save(tmp_path / "${n}.npy", numpy.zeros(1, "u1"))
    write(tmp_path, used(n=[])[0], None)
    assert program("a.json").code == 0
    (tmp_path / "a.check.json").write_text('{"parameters": {"m": [1]}}')
    assert program("a.json").code == 0


def test_a_value_with_a_slash(program: Program, tmp_path: Path) -> None:
    """A value with a slash adds no folder to a report, and files stay in the folder of results."""
    numpy.save(tmp_path / "x.npy", numpy.zeros(4, "u1"))
    buffer = {"uid": "b", "size": 4, "shader_access": "readonly", "src": "${n}.npy", "dst": "out.npy"}
    check = {"parameters": {"n": ["../x"]}, "outputs": {"b": {"values": 1, "dtype": "uint8"}}}
    write(tmp_path / "in", {"resources": [{"buffer": buffer}], "commands": []}, check)
    ended = program("test", "in", "--results", "r", "--junit", "j.xml", "--quiet")
    assert (ended.code, "Fail in/a.json[../x]: b: 4 of 4 elements" in ended.out + ended.err) == (1, True)
    assert 'classname="in" name="in/a.json[../x]"' in (tmp_path / "j.xml").read_text()
    assert len(list((tmp_path / "r").rglob("b.actual.npy"))) == 1


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"parameters": {"n": []}}, "1:22: /parameters/n: expected at least 1 entry, got 0"),
        ({"parameters": {"n": 4}}, "1:22: /parameters/n: expected an array, got 4"),
        ({"parameters": [4]}, "1:16: /parameters: expected an object, got an array"),
        ({"parameters": {"n": [{}]}}, "/parameters/n/0: expected a number, true, false, a string or an array of these"),
        ({"parameters": {"a b": [1]}}, "expected a string that matches"),
        ({"parameters": {"n": [1]}, "exclude": [{"m": 1}]}, "1:46: /exclude/0/m: 'm' is not a parameter"),
        ({"parameters": {"n": [1]}, "exclude": [{"n": 2}]}, "/exclude/0/n: 2 is not a value of 'n'"),
        ({"parameters": {"n": [1]}, "exclude": [{"n": True}]}, "/exclude/0/n: true is not a value of 'n'"),
        ({"parameters": {"n": [1]}, "exclude": [{"n": "1"}]}, "/exclude/0/n: \"1\" is not a value of 'n'"),
        ({"parameters": {"n": [1]}, "exclude": [{}]}, "/exclude: leaves no combination"),
        ({"exclude": [{"n": 1}]}, "/exclude/0/n: 'n' is not a parameter"),
        (
            {"parameters": {"n": list(range(101)), "m": list(range(100))}},
            "/parameters: have 10,100 combinations, expected at most 10,000",
        ),
    ],
)
def test_wrong_parameters(tmp_path: Path, runners: Runners, keys: Any, message: str) -> None:
    """Wrong parameters are one error at their place, in a check file or a suite.json, and the item is Missing."""
    scenario = used(n=[], m=[])[0]
    for file in ("a.check.json", "suite.json"):
        path = write(tmp_path / file, scenario, None)
        (path.parent / file).write_text(json.dumps(keys))
        (item,) = Discovery(str(path.parent), Collected()).items([str(path)])
        assert message in str(check(item)[0])
        assert check(item)[0].code in ("SR-EXPECT-003", "SR-EXPECT-006")
        assert run_item(item, runners).status == "Missing"


def test_a_misspelt_name(tmp_path: Path, program: Program) -> None:
    """A misspelt name in expectations is an error with a close match, and two dollar signs stand for one. A message
    about the scenario names it once."""
    check = {"parameters": {"n": [4], "type": ["int"], "factor": [3]}}
    write(tmp_path, SCENARIO, check | {"outputs": {"data": {"file": "expected/${tpye}_${n}.npy", "dtype": "$${n}"}}})
    broken = {"resources": [{"raw_data": {"uid": "r"}}], "commands": []}
    write(tmp_path, broken, {"outputs": {}}, "b")
    ended = program("test", "a.json", "b.json")
    assert "the parameter 'tpye' is not set (did you mean 'type'?) [SR-JSON-011]" in ended.err
    assert ended.err.count("SR-JSON-011") == 1
    assert "'n' is not set" not in ended.err
    assert "help: use " in ended.err
    assert f"b.json: {tmp_path}" not in ended.out
    assert "Fail b.json:4:" in ended.out


def test_parameters_of_a_scenario_itself(tmp_path: Path) -> None:
    """The key `expect` cannot have them: a search for items reads no scenarios."""
    path = write(tmp_path, {**EMPTY, "expect": {"parameters": {"n": [1]}}}, None)
    (problem,) = check(item_of(str(path), "a"))
    assert "/expect/parameters: are not possible in a scenario" in str(problem)


def test_a_parameter_that_nothing_uses(program: Program, tmp_path: Path) -> None:
    """An unused parameter is one warning, and makes no items."""
    write(tmp_path, used(n=[])[0], {"parameters": {"m": [1, 2], "n": ["x", "y"]}})
    for name in "xy":
        numpy.save(tmp_path / f"{name}.npy", numpy.zeros(1, "u1"))
    items = list(Discovery(str(tmp_path), Collected()).items([str(tmp_path / "a.json")]))
    assert [(problem.code, problem.severity) for problem in check(items[0])] == [("SR-EXPECT-014", "warning")]
    ended = program("test", ".")
    assert ended.out.endswith("suite passed: 2 items\n")
    assert ended.err.count("a.check.json:3:8: /parameters/m: the parameter 'm' is used nowhere [SR-EXPECT-014]") == 1


def test_an_unknown_combination(tmp_path: Path) -> None:
    """An unknown combination is one problem with the known ones, and a missing file is one item."""
    path = write(tmp_path)
    for variant in ("[float]", "[float"):
        problems = Collected()
        assert list(Discovery(str(tmp_path), problems).items([f"{path}{variant}"])) == []
        (shown,) = problems.shown
        assert f"no combination of parameters is called {variant}" in shown
        assert shown.startswith("SR-SUITE-017")
        assert problems.diagnostics[0].help == f"combinations: {', '.join(IDS)}"
    path.unlink()
    assert found(tmp_path, "a.json") == ["a.json"]


def test_a_file_with_brackets(tmp_path: Path) -> None:
    """A file of the name comes before a combination."""
    write(tmp_path, EMPTY, None, "a.json[1]")
    write(tmp_path, EMPTY, None, "b[1]")
    assert found(tmp_path, "a.json[1].json", "b[1].json") == ["a.json[1].json", "b[1].json"]


def test_values_in_expectations(tmp_path: Path, runners: Runners) -> None:
    """Values in expectations are numbers, and errors show them."""
    expected = {"outputs": {"data": {"values": "${value}", "dtype": "${type}32", "atol": "${atol}"}}}
    lists = {"type": ["int"], "n": [1], "factor": [3], "value": [[3], 4], "atol": [0.5]}
    item, other = variants(item_of(str(write(tmp_path, check={**expected, "parameters": lists})), "a.json"))
    assert (item.id, other.id) == ("a.json[int-1-3-value0-0.5]", "a.json[int-1-3-4-0.5]")
    assert [run_item(each, runners).status for each in (item, other)] == ["Pass", "Fail"]
    wrong = other._replace(parameters={**other.parameters, "atol": -1})
    assert "(with type = int, n = 1, factor = 3, value = 4, atol = -1)" in str(check(wrong)[0])


def test_what_a_result_depends_on(tmp_path: Path) -> None:
    """The values, the files that they name, and nothing of other combinations' files."""
    items = variants(item_of(str(write(tmp_path, {**SCENARIO, "x": 1}, None)), "a.json"))
    assert len(items) == 1
    write(tmp_path)
    items = variants(item_of(items[0].path, "a.json"))
    hashes = [item_hashes(item, "") for item in items]
    assert len({each.scenario for each in hashes}) == 3
    assert item_hashes(items[0]._replace(parameters={**items[0].parameters, "n": "4"}), "") != hashes[0]


def test_they_are_sent_to_other_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runners: Runners) -> None:
    """With the files that a combination names."""
    item = variants(item_of(str(write(tmp_path / "in")), "a.json"))[2]
    placed = placed_elsewhere(item, tmp_path / "in", tmp_path / "scratch", monkeypatch)
    assert (placed.id, placed.variant, placed.parameters) == (item.id, "[int-4-3]", item.parameters)
    assert run_item(placed, runners).status == "Pass"


def test_commands_that_repeat_an_item() -> None:
    """The item by its name; in a debugger the scenario with the values that it uses."""
    path = str(CHECKOUT / "scenarios" / "parameters" / "squares" / "squares.json")
    item = next(item for item in variants(item_of(path, path)) if item.variant == "[uint-128-1]")
    result = Result(item, "Crash")
    assert Repeat().command(result, str(CHECKOUT)) == (
        "scenario-runner test 'scenarios/parameters/squares/squares.json[uint-128-1]'"
    )
    values = """'--set=type="uint"' --set=width=128 --set=rows=1"""
    assert Repeat().debug_command(result, str(CHECKOUT)).endswith(f"{values} scenarios/parameters/squares/squares.json")


@pytest.mark.heavy
def test_update(program: Program, tmp_path: Path) -> None:
    """Files of a combination are written; a value that others share is not, and nothing changes then."""
    write(tmp_path)
    (tmp_path / "expected" / "int_4.npy").unlink()
    assert program("test", ".", "--update").code == 0
    assert numpy.load(tmp_path / "expected" / "int_4.npy").tobytes() == numpy.int32([3, 6, 9, 12]).tobytes()
    keys = {
        "outputs": {"data": {"values": 0, "dtype": "int32"}},
        "parameters": {"type": ["int"], "n": [1], "factor": [2]},
    }
    write(tmp_path, check=keys)
    before = (tmp_path / "a.check.json").read_text()
    ended = program("test", ".", "--update")
    assert (ended.code, (tmp_path / "a.check.json").read_text()) == (1, before)
    assert "an update does not change values that other combinations of parameters share" in ended.out


def test_items_of_old_journals() -> None:
    """Items of old journals have no parameters."""
    assert Item("a", "/a").parameters == {}
