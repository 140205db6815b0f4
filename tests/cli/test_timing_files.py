"""--profiling-dump-path, --perf-counters-dump-path and --trace: the content of the files, and refused uses."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.gpu.ml_scenes import MODELS, mixed_model
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program, files_in
from tests.scenes import ADD, Scene

PROFILE, COUNTERS, TRACE = (
    ("--profiling-dump-path", "p.json"),
    ("--perf-counters-dump-path", "c.json"),
    ("--trace", "t.json"),
)
ALL = (*PROFILE, *COUNTERS, *TRACE)
OPTIONS = [PROFILE, COUNTERS, TRACE]
TIMESTAMP = {
    "Command name": str,
    "Command type": str,
    "Cycle count after command": int,
    "Cycle count before command": int,
    "Cycle count for command": int,
    "Iteration": int,
    "Time for command [ms]": float,
    "Timestamp Period": float,
}


@pytest.fixture
def adding(scene: Scene) -> Scene:
    """Two dispatches around a boundary."""
    scene.shader("add", ADD).buffer("x", numpy.array([1, 2, 3, 4], numpy.uint32)).buffer("y", size=4096)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x"]).dispatch("add", ["x"], [4])
    scene.write()
    return scene


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def names(content: dict[str, Any], category: str) -> list[str]:
    return [counter["name"] for counter in content[category]["counters"]]


def test_profile(program: Program, adding: Scene) -> None:
    """The profile has the reference runner's keys, one item for each dispatch of each iteration, and the sum."""
    program.succeed("scenario.json", *PROFILE, "--repeat", "3")
    found = content(adding.folder, "p.json")
    assert list(found) == ["Timestamps", "Total execution time [ms]"]
    items = found["Timestamps"]
    assert [(item["Command name"], item["Command type"], item["Iteration"]) for item in items] == [
        ("add", "ComputeDispatch", iteration) for iteration in (1, 1, 2, 2, 3, 3)
    ]
    for item in items:
        assert {key: type(value) for key, value in item.items()} == TIMESTAMP
        assert list(item) == list(TIMESTAMP)
        ticks = item["Cycle count after command"] - item["Cycle count before command"]
        assert item["Cycle count for command"] == ticks >= 0
        assert item["Time for command [ms]"] == pytest.approx(ticks * item["Timestamp Period"] / 1e6)
    spans = zip(items[::2], items[1::2], strict=True)
    ticks = sum(last["Cycle count after command"] - first["Cycle count before command"] for first, last in spans)
    assert found["Total execution time [ms]"] == pytest.approx(ticks * items[0]["Timestamp Period"] / 1e6)


def test_counters(program: Program, adding: Scene) -> None:
    """The counters have the reference runner's categories, names and units, and its two totals."""
    program.succeed("scenario.json", *COUNTERS, "--repeat", "2")
    found = content(adding.folder, "c.json")
    assert list(found) == [
        "Pipeline Setup",
        "Run Scenario",
        "Save Results",
        "Scenario Setup",
        "Time to Inference",
        "Total Scenario Time",
        "unit",
    ]
    assert names(found, "Scenario Setup") == ["Load Resource: x", "Load Resource: y"]
    assert names(found, "Pipeline Setup") == ["Create Pipeline: add"]
    steps = ["Reset Query Pool", "Creating Command Buffer", "Submit Commands", "Wait for Fence"]
    assert names(found, "Run Scenario") == [f"{step}. Iteration: {iteration}" for iteration in (1, 2) for step in steps]
    assert names(found, "Save Results") == ["Save Resources"]
    categories = {name: each for name, each in found.items() if isinstance(each, dict)}
    for each in categories.values():
        assert each["unit"] == "microseconds"
        assert all(set(counter) == {"name", "unit", "value"} for counter in each["counters"])
        assert all(type(counter["value"]) is int and counter["value"] >= 0 for counter in each["counters"])
        assert each["total time"] == sum(counter["value"] for counter in each["counters"])
    setup = categories["Scenario Setup"]["total time"] + categories["Pipeline Setup"]["total time"]
    assert found["Time to Inference"] == setup
    assert found["Total Scenario Time"] == sum(each["total time"] for each in categories.values())
    assert found["unit"] == "microseconds"


@needs(VGF_LIBRARY)
def test_a_model(program: Program, scene: Scene, tmp_path: Path) -> None:
    """The profile of a model has its segments and the memory of its sessions, with iterations from 0."""
    ended = program(
        MODELS / "mixed" / "scenario.json", "--output", "out", "--repeat", "2", "--no-cache", *PROFILE, *COUNTERS
    )
    assert (ended.code, ended.err) == (0, "")
    found = content(tmp_path, "p.json")
    assert list(found) == ["Memory Usage", "Timestamps", "Total execution time [ms]"]
    graphs = [item for item in found["Timestamps"] if item["Command type"] == "DataGraphDispatch"]
    assert len(found["Timestamps"]) > len(graphs) > 2
    assert [(item["Command name"], item["Iteration"] - 1) for item in graphs] == [
        (item["Command name"], item["Iteration"]) for item in found["Memory Usage"]
    ]
    for item in found["Memory Usage"]:
        assert list(item) == ["Command name", "Command type", "Iteration", "Session memory [bytes]"]
        assert item["Command type"] == "DataGraphDispatch"
    assert any(item["Session memory [bytes]"] for item in found["Memory Usage"])
    setup = names(content(tmp_path, "c.json"), "Scenario Setup")
    assert [name.split(":")[0] for name in setup] == ["Parse VGF"] + ["Load Resource"] * (len(setup) - 1)
    mixed_model(scene).write()
    setups = []
    for options in (("--no-cache",), (), ()):  # the last one has a kept plan
        assert program("scenario.json", *options, *COUNTERS).code == 0
        setups.append(names(content(tmp_path, "c.json"), "Scenario Setup"))
        assert [name.split(":")[0] for name in setups[-1]] == ["Parse VGF", *["Load Resource"] * 3]
    assert setups == setups[:1] * 3


def test_counters_of_the_pipeline_cache(program: Program, adding: Scene) -> None:
    """With --pipeline-caching, loading the cache and storing it twice are counted as in the reference runner."""
    program("scenario.json", *COUNTERS, "--pipeline-caching", "--cache-path", ".", "--quiet", exit_code=0)
    found = content(adding.folder, "c.json")
    assert names(found, "Load Pipeline Cache") == ["Load Pipeline Cache."]
    assert names(found, "Save Pipeline Cache") == ["Save Pipeline Cache (setup)", "Save Pipeline Cache"]
    before = ("Scenario Setup", "Pipeline Setup", "Load Pipeline Cache")
    assert found["Time to Inference"] == sum(found[category]["total time"] for category in before)


@needs(VGF_LIBRARY)
def test_dry_run(program: Program, adding: Scene, tmp_path: Path) -> None:
    """A dry run's profile has no timestamps, only the memory of sessions, and its counters only the setup."""
    assert program("scenario.json", "--dry-run", *ALL).code == 0
    assert content(tmp_path, "p.json") == {}
    assert set(content(tmp_path, "c.json")) == {
        "Pipeline Setup", "Scenario Setup", "Time to Inference", "Total Scenario Time", "unit",
    }  # fmt: skip
    mixed_model(Scene(tmp_path)).write("model.json")
    assert program("model.json", "--dry-run", *PROFILE).code == 0
    assert list(content(tmp_path, "p.json")) == ["Memory Usage"]
    assert not list(tmp_path.glob("*.out.npy"))


def test_no_dispatches(program: Program, scene: Scene) -> None:
    """A scenario without dispatches has an empty list of timestamps."""
    scene.buffer("x", size=4).write()
    assert program("scenario.json", *PROFILE).code == 0
    assert content(scene.folder, "p.json") == {"Timestamps": [], "Total execution time [ms]": 0.0}


def span(event: dict[str, Any]) -> tuple[int, int]:
    """The begin and the end of an event in nanoseconds, to which times are exact."""
    return round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)


def are_nested(events: Sequence[dict[str, Any]]) -> bool:
    """Return whether any two events of a track lie in each other or apart."""
    spans = [span(event) for event in events]
    return not any(begin < other < end < last for begin, end in spans for other, last in spans)


def test_trace(program: Program, adding: Scene) -> None:
    """The trace has a track of the host and one of the device, both nested, on one clock."""
    program.succeed("scenario.json", *TRACE, "--repeat", "2")
    found = content(adding.folder, "t.json")
    events = found["traceEvents"]
    tracks = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert tracks[1] == "host"
    host = [event for event in events if event["ph"] == "X" and event["pid"] == 1]
    device = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
    assert len(host) + len(device) + 4 == len(events)
    assert min(event["ts"] for event in host) == 0
    assert all(event["dur"] >= 0 for event in (*host, *device))
    assert are_nested(host)
    assert are_nested(device)
    assert {"plan", "device", "create", "upload", "record", "submit", "wait", "readback", "store"} <= {
        event["name"] for event in host
    }
    frames = [event for event in device if event["name"] != "add"]
    dispatches = [event for event in device if event["name"] == "add"]
    assert len(frames) == len(dispatches) == 4
    about = found["otherData"]
    slack = 1 + about.get("greatest deviation [ns]", 0) / 1000
    for frame, dispatch in zip(frames, dispatches, strict=True):
        (begin, end), (first, last) = span(frame), span(dispatch)
        assert begin <= first <= last <= end
        assert dispatch["args"]["type"] == "ComputeDispatch"
        submit, wait = (
            next(
                event
                for event in host
                if event["name"] == phase
                and event["args"]["of"] == frame["name"]
                and event["args"]["iteration"] == str(frame["args"]["iteration"])
            )
            for phase in ("submit", "wait")
        )
        assert submit["ts"] - slack <= frame["ts"]
        assert frame["ts"] + frame["dur"] <= wait["ts"] + wait["dur"] + slack
    assert "on the host's clock by VK_" in about["clock"]


def test_a_trace_without_a_common_clock(program: Program, adding: Scene) -> None:
    """Without a common clock, the trace says how it places device times among host times."""
    extensions = ("VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps")
    assert program("scenario.json", *TRACE, "--disable-extension", *extensions).code == 0
    found = content(adding.folder, "t.json")
    assert "wait for its fence returned" in found["otherData"]["clock"]
    device = [event for event in found["traceEvents"] if event["ph"] == "X" and event["pid"] == 2]
    waits = [event for event in found["traceEvents"] if event["name"] == "wait"]
    ends = [event["ts"] + event["dur"] for event in device if event["name"] != "add"]
    assert all(end >= wait["ts"] + wait["dur"] for end, wait in zip(ends, waits, strict=True))
    assert are_nested(device)


def test_a_queue_without_timestamps(program: Program, adding: Scene, fault_layer: dict[str, str]) -> None:
    """A profile of a device without timestamps is an error that says so; other files are written, with a warning."""
    env = {**fault_layer, "FAULT_TIMESTAMP_BITS": "0"}
    ended = program("scenario.json", *PROFILE, env=env, exit_code=6)
    assert "has no timestamps (timestampValidBits is 0)" in ended.err
    assert sorted(path.name for path in adding.folder.glob("*.json")) == ["scenario.json"]
    assert not (adding.folder / "x.out.npy").exists()
    ended = program("scenario.json", *COUNTERS, *TRACE, env=env, exit_code=0)
    assert ended.err.startswith("warning: the queue of ")
    found = content(adding.folder, "t.json")
    assert "timestampValidBits is 0" in found["otherData"]["clock"]
    assert [event for event in found["traceEvents"] if event["ph"] == "X" and event["pid"] == 2] == []


PATHS = [
    ("folder", 4),
    ("scenario.json/below", 4),
    ("/proc/nowhere/x.json", 4),
    ("scenario.json", 2),
    *((name, 4) for name in ("x.npy", "x.out.npy", "add.comp")),
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option[0]))
@pytest.mark.parametrize("path, code", PATHS)
def test_paths_that_no_file_is_written_to(
    program: Program, adding: Scene, option: tuple[str, str], path: str, code: int
) -> None:
    """A path that cannot be written, or names a file of the scenario, is refused before anything is written."""
    (adding.folder / "folder").mkdir()
    before = files_in(adding.folder)
    ended = program("scenario.json", option[0], path, exit_code=code)
    assert ended.err.startswith(f"error: {path}: ") or option[0] in ended.err
    assert files_in(adding.folder) == before


def test_contradictions(program: Program, adding: Scene) -> None:
    """Two options with one file are an error."""
    ended = program.fail(2, "scenario.json", PROFILE[0], "same.json", TRACE[0], "./same.json")
    assert ended.err.startswith("error: --trace: ./same.json is also the file of --profiling-dump-path")


def test_a_failed_run_writes_none(program: Program, adding: Scene) -> None:
    """When the run fails, files of earlier runs stay as they are."""
    (adding.folder / "p.json").write_text("old")
    adding.dispatch("add", ["missing"]).write()
    assert program("scenario.json", *ALL).code == 3
    assert (adding.folder / "p.json").read_text() == "old"
    assert not (adding.folder / "c.json").exists()
    assert adding.leftovers() == []
