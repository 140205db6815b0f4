"""``--each-device`` and ``--disable-extension``."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scenario_runner import Runner
from scenario_runner.errors import UsageError
from scenario_runner.suite.reports.pages import Column
from scenario_runner.suite.reports.summary import SuiteInfo
from scenario_runner.vulkan.physical_device import checked_names
from tests.cli.long_run import slow_scenario
from tests.devices import NARROW, WIDE
from tests.program import COMMAND, Program, wait_until
from tests.scenes import ADD, Scene, glsl

SIZE = glsl("a[gl_WorkGroupID.x] = gl_SubgroupSize;", "layout(binding = 0) buffer B { uint a[]; };\n").replace(
    "layout(local", "#extension GL_KHR_shader_subgroup_basic : require\nlayout(local", 1
)
PASSED, FAILED = "suite passed: {} items on 2 devices", "suite failed: {} of 4 items unexpected on 2 devices"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """An item that is right on both devices, and one that expects the subgroups of the wide one."""
    for name, shader, expected in (("same", ADD, 1), ("size", SIZE, 8)):
        scene = Scene(tmp_path / name).shader("s", shader).buffer("x", size=16).dispatch("s", ["x"], [4])
        scene.write(f"{name}.json")
        check = {"outputs": {"x": {"values": expected, "dtype": "uint32"}}}
        scene.file(f"{name}.check.json", json.dumps(check))
    return tmp_path


@pytest.fixture
def test(suite: Path, program: Program, two_devices: dict[str, str]) -> Program:
    """Run the suite on both devices, with further options."""
    return partial(program, "test", "same", "size", "--each-device", "--jobs", "1", "--retries", "0", env=two_devices)


def columns(suite: Path) -> dict[str, tuple[str, ...]]:
    """The lines of matrix.csv: first the names of the devices, by "test"."""
    with (suite / "results" / "matrix.csv").open() as file:
        return {name: tuple(verdicts) for name, *verdicts in csv.reader(file)}


def test_the_matrix(suite: Path, test: Program) -> None:
    """Items with differing verdicts come first in the table, the page and the CSV file. JUnit has a suite for each
    device, and the worst exit code counts."""
    ended = test("--results", "results", "--html", "r.html", "--junit", "r.xml", "--json", "r.json")
    assert (ended.code, ended.err) == (1, "")
    rows = columns(suite)
    names = rows["test"]
    narrow = next(number for number, name in enumerate(names) if NARROW in name)
    wide = 1 - narrow
    assert WIDE in names[wide]
    verdicts = tuple("Fail" if number == narrow else "Pass" for number in range(2))
    assert list(rows.items())[1:] == [("size/size.json", verdicts), ("same/same.json", ("Pass", "Pass"))]
    lines = ended.out.splitlines()
    assert ["size/size.json", *verdicts] in map(str.split, lines)
    assert lines[-2:] == ["1 of 2 items differs between 2 devices", FAILED.format(1)]
    assert f"{wide + 1}: {names[wide]}: 2 Pass" in lines

    suites = ElementTree.parse(suite / "r.xml").getroot().findall("testsuite")
    assert [(each.get("name"), each.get("failures")) for each in suites] == [
        (name, str(int(number == narrow))) for number, name in enumerate(names)
    ]
    tests = [(case.get("classname"), case.get("name")) for each in suites for case in each.findall("testcase")]
    assert len(set(tests)) == 4

    page = (suite / "r.html").read_text()
    places = [page.index(text) for text in ("1 different", "size/size.json<td", "1 alike", "same.json<td")]
    assert places == sorted(places)
    own = [path.name for path in suite.glob("r-*.html")]
    assert len(own) == 2
    assert all(f'href="{name}#size%2Fsize.json"' in page for name in own)
    failures = [json.loads(path.read_text())["results"]["summary"]["failed"] for path in suite.glob("r-*.json")]
    assert sorted(failures) == [0, 1]

    # each device has a journal of its own, and what it is known to fail is a baseline for it alone
    shutil.copytree(suite / "results", suite / "known")
    ended = test("--results", "results", "--resume", "--baseline", "known", "--quiet")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, PASSED.format(4))
    assert ended.out.count("2 results kept from the run before") == 2
    assert columns(suite)["size/size.json"][narrow] == "ExpectedFail"


def test_an_interrupt(suite: Path, two_devices: dict[str, str]) -> None:
    """After Ctrl-C on the first device, the page has the results so far and no link to a missing page."""
    slow_scenario(Scene(suite / "slow"))
    command = [*COMMAND, "test", "same", "slow", "--each-device", "--jobs", "1", "--html", "r.html", "--results", "r"]
    with subprocess.Popen(command, cwd=suite, env=os.environ | two_devices, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: any("Pass" in path.read_text() for path in suite.glob("r/*/journal.jsonl")), "a result")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    links = re.findall(r'href="([^"#]*)', (suite / "r.html").read_text())
    assert len(set(links)) == 1
    assert (suite / links[0]).exists()
    assert len((suite / "r" / "matrix.csv").read_text().splitlines()) == 2


@pytest.mark.heavy
def test_one_device(suite: Path, program: Program) -> None:
    """A machine with one device runs the suite on it, and says so."""
    ended = program("test", "same", "--each-device", "--devices", "0", "--jobs", "1", exit_code=0)
    assert ended.out.splitlines()[0].startswith("device 1 of 1: ")
    assert ended.out.splitlines()[-2:] == [
        "there is only one device, so nothing is compared",
        "suite passed: 1 item on 1 device",
    ]
    assert list(suite.glob("*.csv")) == []


@pytest.mark.parametrize(
    "options, message",
    [
        ("same --each-device --device 0", "--each-device and --device contradict each other"),
        ("same --each-device --cluster local:2", "--each-device and --cluster contradict each other"),
        ("same --each-device --update", "--each-device and --update contradict each other"),
        ("same - --each-device", "- can be read only once, expected a file"),
        ("same --each-device --skips /dev/stdin", "/dev/stdin can be read only once, expected a file"),
        ("same --each-device --resume", "--resume needs --results, the folder of the run before"),
        ("same --each-device=0", "argument --each-device: ignored explicit argument '0'"),
    ],
)
def test_options_that_contradict(suite: Path, program: Program, options: str, message: str) -> None:
    """Contradicting options are one error before anything runs."""
    ended = program("test", *options.split())
    assert (ended.code, ended.out, ended.err.splitlines()[0]) == (2, "", f"error: {message}")


def test_a_device_that_is_not_there(suite: Path, program: Program) -> None:
    """The error names the devices there are."""
    ended = program.fail(8, "test", "same", "--each-device", "--devices", "0,nothing")
    assert ended.err.startswith("error: no device has the index, name or UUID 'nothing'; devices: 0: ")


def test_a_reason_of_several_lines() -> None:
    """The line of a device has the first of them."""
    info = SuiteInfo("gpu", incomplete="1 item did not run: it lacks\n  6 | a line")
    assert Column("gpu", "gpu", {}, info).summary() == "1 item did not run: it lacks"


@pytest.mark.parametrize(
    "name, meant",
    [
        ("VK_KHR_maintenence5", "VK_KHR_maintenance5"),
        ("everything", None),
        ("VK_EXT_debug_utils", None),  # of the instance
    ],
)
def test_unknown_extension(program: Program, scene: Scene, name: str, meant: str | None) -> None:
    """An unknown device extension is a usage error with a close match."""
    ended = program(scene.write(), "--disable-extension", name, exit_code=2)
    assert f"error: --disable-extension: {name!r} is not a device extension of Vulkan" in ended.err
    assert meant is None or f"(did you mean '{meant}'?)" in ended.err
    with pytest.raises(UsageError):
        Runner(disabled_extensions=[name])


def test_names_of_extensions() -> None:
    """The spelling of the reference runner works. VK_KHR_portability_subset cannot be disabled where a device has
    it."""
    assert checked_names("VK_ARM_tensors") == {"VK_ARM_tensors"}
    names = ["VK_EXT_frame_boundary", "VK_KHR_maintenance_5"]
    assert checked_names(names) == {"VK_EXT_frame_boundary", "VK_KHR_maintenance5"}
    with pytest.raises(UsageError, match="must be enabled on a device that has it"):
        checked_names(["VK_KHR_portability_subset"])


def test_tensors_that_are_disabled(program: Program, scene: Scene) -> None:
    """A scenario with tensors says which option it cannot run with."""
    scene.resource("tensor", uid="t", dims=[4], format="VK_FORMAT_R32_SFLOAT", shader_access="readwrite")
    ended = program.fail(6, scene.write(), "--disable-extension", "VK_ARM_tensors")
    assert "help: run without --disable-extension VK_ARM_tensors" in ended.err
