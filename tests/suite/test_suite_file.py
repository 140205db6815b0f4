"""suite.json: defaults for the items in its folder and below."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.suite.discovery import Discovery, item_of
from scenario_runner.suite.evaluation import run_item
from scenario_runner.suite.expectations.reading import load
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.hashes import item_hashes
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.worker_task import Runners
from tests.left_out import TOSA_TOOLS, needs
from tests.program import Program
from tests.scenes import Scene, glsl
from tests.suite.cluster.hosts import placed_elsewhere
from tests.suite.collected import Collected
from tests.tables import cases

VALUES = numpy.float32([1, 2, 3, 4])
NEAR = {"values": [2.01, 4, 6, 8], "dtype": "float32"}
DOUBLE = glsl("x[gl_GlobalInvocationID.x] *= 2.0;", "layout(set=0,binding=0) buffer X { float x[]; };", local_size=4)
Write = Callable[..., Item]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A scenario in the folder 'a/b' with the output x of 2, 4, 6, 8."""
    return Scene(tmp_path / "a" / "b").shader("double", DOUBLE).buffer("x", VALUES).dispatch("double", ["x"])


@pytest.fixture
def write(scene: Scene, tmp_path: Path) -> Write:
    """Write the defaults of the folders 'a' and 'a/b' and the expectations; returns the item."""

    def write(outer: Any = None, inner: Any = None, **keys: Any) -> Item:
        for name, value in (("suite.json", outer), ("b/suite.json", inner), ("b/check.json", keys or None)):
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value)
                (tmp_path / "a" / name).write_text(text)
        return item_of(str(scene.write()), "i")

    return write


def run(item: Item, runners: Runners) -> Outcome:
    assert check(item) == []
    return run_item(item, runners)


TOLERANT = {"tolerances": {"atol": 0.1}}


@pytest.mark.parametrize(
    "outer, inner, output, status",
    [
        ({}, None, NEAR, "Fail"),
        (TOLERANT, None, NEAR, "Pass"),
        ({}, TOLERANT, NEAR, "Pass"),
        (TOLERANT, {"tolerances": {"atol": 0.001}}, NEAR, "Fail"),
        (TOLERANT, {"tolerances": {"ulp": 1}}, NEAR, "Fail"),  # the nearest file has all of the tolerances
        (TOLERANT, {"timeout": 9}, NEAR, "Pass"),
        (TOLERANT, None, {**NEAR, "atol": 0}, "Fail"),
        (TOLERANT, None, {**NEAR, "nan": "any"}, "Fail"),
        (TOLERANT, None, {**NEAR, "border": 0}, "Pass"),
        (TOLERANT, None, {"file": "near.npy"}, "Pass"),
        (TOLERANT, None, {"sha256": "0" * 64}, "Fail"),
        (TOLERANT, None, {"unchecked": True}, "Pass"),
        pytest.param(
            TOLERANT,
            None,
            {"tosa": {"mode": "EXACT", "expected": "near.npy", "data_type": "FP32"}},
            "Fail",
            marks=needs(TOSA_TOOLS),
        ),
        ({"tolerances": {"metrics": {"rmse": {"max": 1}}}}, None, NEAR, "Pass"),
        ({"tolerances": {"metrics": {"ssim": {"min": 0.1}}}}, None, NEAR, "Fail"),  # the output is no image
        ({"tolerances": {"allowed_count": 1}}, None, NEAR, "Pass"),
        (TOLERANT, None, {"file": "bytes.npy"}, "Fail"),  # single bytes: nothing says what they are
    ],
)
def test_tolerances(
    scene: Scene, write: Write, runners: Runners, outer: Any, inner: Any, output: dict[str, Any], status: str
) -> None:
    """Tolerances of the nearest file hold for numeric outputs without their own."""
    near = numpy.float32(NEAR["values"])
    scene.npy("near.npy", near.astype("f8") if "tosa" in output else near)
    scene.npy("bytes.npy", near.view("i1"))
    assert run(write(outer, inner, outputs={"x": output}), runners).status == status


def test_expected_files_in_the_folder(scene: Scene, write: Write, runners: Runners) -> None:
    """Expected files in the folder need no entry, and the message names the origin of the tolerance."""
    scene.npy("expected/x.npy", numpy.float32([2.01, 4, 6, 9]))
    assert run(write(TOLERANT), runners).reason == (
        "x: 1 of 4 elements (25 %) is wrong, the greatest error is 1 at [3]: 8.0 (0x41000000), expected 9.0"
        " (0x41100000); allowed: atol 0.1 (suite.json)"
    )


def test_an_entry_of_when_has_its_own_tolerances(write: Write, runners: Runners) -> None:
    """Tolerances of an entry of `when` hold on matching devices, and the suite's tolerances elsewhere."""
    kind = runners.runner().physical_device.type
    for device, status in ((kind, "Fail"), ("other" if kind != "other" else "cpu", "Pass")):
        when = [{"type": device, "outputs": {"x": {"atol": 0.001}}}]
        assert run(write(TOLERANT, outputs={"x": NEAR}, when=when), runners).status == status


def test_other_keys(write: Write) -> None:
    """Each key comes from the nearest file, and keys of the item come first."""
    outer = {"timeout": 7, "repeat": 3, "robustness": True, "needs": "Int64"}
    expectations = load(write(outer, {"repeat": 2}, robustness=False))
    counts = expectations.check
    assert (counts.timeout, counts.repeat, counts.robustness) == (7, 2, False)
    assert counts.needs is not None
    assert counts.needs.capabilities == ("Int64",)
    assert expectations.timeout == (7, "'timeout' in suite.json")
    when = [{"type": "cpu", "timeout": 1}, {"type": "other"}]
    expectations = load(write(outer, when=[*when[:1], {**when[1], "outputs": {}}]))
    assert expectations.with_condition(0).timeout == (1, "'timeout' in when[0] of check.json")
    assert expectations.with_condition(1).timeout == (7, "'timeout' in suite.json")
    assert load(write(outer, timeout=5)).timeout == (5, "'timeout' in check.json")


@pytest.mark.parametrize(
    "needs, status",
    [
        ({"capabilities": "Float64", "features": "shaderFloat64"}, "Pass"),  # which the shader does not declare
        ({"extensions": "VK_no_such"}, "NotSupported"),
    ],
)
def test_needs_of_a_suite(write: Write, runners: Runners, needs: Any, status: str) -> None:
    """Needs of a suite are a minimum for the device, and shaders need not use them."""
    assert run(write({"needs": needs}), runners).status == status


@pytest.mark.parametrize("text, code, message", cases(__file__, "suite_files.txt", "WRONG"))
def test_a_wrong_file(write: Write, runners: Runners, text: str, code: str, message: str) -> None:
    """A wrong suite.json is one error with a place, and the items below it are Missing."""
    item = write(text)
    problem = check(item)[0]
    assert (problem.code, f"{problem}") == (code, f"{item.defaults[0]}:{message}")
    assert run_item(item, runners).status == "Missing"


def test_a_file_that_cannot_be_read(write: Write, runners: Runners, tmp_path: Path) -> None:
    """A folder in its place, or a link to nothing, is an error as well."""
    (tmp_path / "a" / "b" / "suite.json").symlink_to("nowhere")
    item = write()
    assert [problem.path for problem in check(item)] == [item.defaults[0]]
    assert run_item(item, runners).status == "Missing"


def test_one_error_for_all_items(program: Program, tmp_path: Path) -> None:
    """A suite shows it once, and goes on with the items of other folders."""
    for name in ("bad/one.json", "bad/two.json", "good/three.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"resources": [], "commands": []}')
    (tmp_path / "bad" / "suite.json").write_text('{"outputs": {}}')
    assert program("test", ".", "--list").out == "bad/one.json\nbad/two.json\ngood/three.json\n"
    ended = program("test", ".", "--quiet", exit_code=1)
    assert ended.err.count("unknown key 'outputs'") == 1
    assert ended.out.splitlines()[-1] == "suite failed: 2 of 3 items unexpected"


def test_a_result_depends_on_all_of_them(write: Write) -> None:
    """A change of any suite.json, or a new one, changes the item's hash."""
    hashes = [
        item_hashes(write(*texts), "") for texts in ((), ({},), ({}, {}), ({}, {"repeat": 1}), ({"repeat": 1}, {}))
    ]
    assert len({each.expectations for each in hashes}) == len(hashes)
    assert len({each._replace(expectations="") for each in hashes}) == 1


def test_they_are_sent_to_other_hosts(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files suite.json are laid out above the item, and other files do not count on the host."""
    item = write(TOLERANT, {"repeat": 2})
    (tmp_path / "suite.json").write_text("not JSON")
    placed = placed_elsewhere(item, tmp_path / "a", tmp_path / "scratch", monkeypatch)
    assert placed.defaults == tuple(f"{tmp_path}/scratch{path}" for path in item.defaults)
    assert load(placed).check.repeat == 2


def test_the_folders_that_count(write: Write, tmp_path: Path) -> None:
    """Files from the item up to the root count, however the item is named; for an item outside of the root all do."""
    path, (inner, outer) = write({}, {}).path, (f"{tmp_path}/a/b/suite.json", f"{tmp_path}/a/suite.json")
    (tmp_path / "other").mkdir()
    for root, defaults in ((".", (inner, outer)), ("a", (inner, outer)), ("a/b", (inner,)), ("other", (inner, outer))):
        for named in (tmp_path / "a", tmp_path / "a" / "b", path):
            (item,) = Discovery(str(tmp_path / root), Collected()).items([str(named)])
            assert item.defaults == defaults


def test_a_scenario_of_this_name(program: Program, tmp_path: Path) -> None:
    """A scenario named suite.json stays a scenario, without defaults."""
    for name in ("suite.json", "other.json"):
        (tmp_path / name).write_text('{"resources": [], "commands": []}')
    assert program("test", ".", "--list").out == "other.json\nsuite.json\n"
    assert program("test", ".", "--quiet").out.splitlines()[-1] == "suite passed: 2 items"
