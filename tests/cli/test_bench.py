"""``scenario-runner bench``: output, files, the comparison of two measurements, and the statistics of samples."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.cli.bench.changes import Change, chances, changes
from scenario_runner.cli.bench.samples import Row, ScenarioSamples, summary
from tests.program import Program, on_terminal
from tests.scenes import ADD, Scene, glsl

TIME = r"\d+(\.\d{3} (us|ms|s)| ns)"


@pytest.fixture
def adding(scene: Scene) -> Scene:
    """Two dispatches."""
    scene.shader("add", ADD).shader("twice", glsl("a[0] *= 2u;", "layout(binding = 0) buffer B { uint a[]; };\n"))
    scene.buffer("x", numpy.array([1, 2, 3, 4], numpy.uint32))
    scene.dispatch("add", ["x"], [4]).dispatch("twice", ["x"]).write()
    return scene


def content(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_table_and_samples(program: Program, adding: Scene) -> None:
    """Each dispatch and each phase has a line with a plot, and the file has one sample for each measured run."""
    ended = program.succeed("bench", "scenario.json", "--warmup", "1", "--repeat", "4", "--json", "b.json")
    lines = ended.out.splitlines()
    assert re.fullmatch(r"scenario\.json: 4 runs on .+", lines[0])
    times = rf"\s+{TIME}\s+{TIME}\s+{TIME}\s+\d+\.\d %\s+-*\*-*"
    for name in ("0 add", "1 twice", "all dispatches", "submit", "wait", "readback", "whole run"):
        assert [line for line in lines if re.fullmatch(rf"  {name}{times}", line)], (name, lines)
    assert lines[-1].startswith("once: parse ")
    assert not (adding.folder / "x.out.npy").exists()
    (found,) = content(adding.folder / "b.json")["scenarios"]
    assert found["scenario"] == "scenario.json"
    assert found["runs"] == 4
    assert all(len(row["samples"]) == 4 for row in found["rows"])
    device = {row["name"]: row["samples"] for row in found["rows"] if row["kind"] == "device"}
    assert list(device) == ["add", "twice", "all dispatches"]
    assert device["all dispatches"] == pytest.approx(numpy.add(device["add"], device["twice"]))
    host = {row["name"]: row["samples"] for row in found["rows"] if row["kind"] == "host"}
    assert {"upload", "record", "submit", "wait", "readback"} <= host.keys()
    assert host.pop("whole run") == pytest.approx(numpy.sum(list(host.values()), axis=0))


def test_forms_for_other_tools(program: Program, adding: Scene) -> None:
    """--json-format writes the medians as Bencher and github-action-benchmark read them, each row by a name of its
    own."""
    adding.dispatch("twice", ["x"]).write()
    assert program("bench", "scenario.json", "--json-format", "bencher").code == 2
    options = ("bench", "scenario.json", "--repeat", "3", "--json", "b.json", "--json-format")
    assert program(*options, "bencher").code == 0
    bencher = content(adding.folder / "b.json")
    names = [f"scenario.json: device: {name}" for name in ("0 add", "1 twice", "2 twice", "all dispatches")]
    assert list(bencher)[:4] == names
    for measures in bencher.values():
        (latency,) = measures.values()
        assert 0 <= latency["lower_value"] <= latency["value"] <= latency["upper_value"]
    assert program(*options, "github").code == 0
    rows = content(adding.folder / "b.json")
    assert [row["name"] for row in rows] == list(bencher)
    assert {row["unit"] for row in rows} == {"ns"}
    assert all(isinstance(row["value"], float) and re.fullmatch(r"± \d+", row["range"]) for row in rows)
    ended = program("bench", "--compare", "b.json", "b.json")
    assert (ended.code, ended.err.splitlines()[0]) == (4, "error: b.json: is not a measurement of bench")


def test_several_scenarios(program: Program, adding: Scene) -> None:
    """Several files are measured in turn. A failing file stops no other, and the output has the measured ones; with
    none the output stays."""
    adding.write("other.json")
    program("bench", "scenario.json", "other.json", "--repeat", "1", "--json", "b.json", exit_code=0)
    assert [each["scenario"] for each in content(adding.folder / "b.json")["scenarios"]] == [
        "scenario.json",
        "other.json",
    ]
    (adding.folder / "b.json").write_text("old")
    program.fail(4, "bench", "missing.json", "--json", "b.json")
    assert (adding.folder / "b.json").read_text() == "old"
    ended = program("bench", "missing.json", "scenario.json", "--repeat", "1", "--json", "b.json")
    assert (ended.code, ended.err.count("error: ")) == (4, 1)
    assert [each["scenario"] for each in content(adding.folder / "b.json")["scenarios"]] == ["scenario.json"]


@pytest.mark.parametrize("name", ["x.npy", "x.out.npy"])
def test_a_file_of_the_scenario(program: Program, adding: Scene, name: str) -> None:
    """The samples never replace a file that the scenario reads or writes."""
    (adding.folder / name).touch()
    before = (adding.folder / name).read_bytes()
    ended = program.fail(2, "bench", "scenario.json", "--repeat", "1", "--json", name)
    assert f"--json: {name} is a file of the scenario scenario.json" in ended.err
    assert (adding.folder / name).read_bytes() == before


def test_warnings_come_once(program: Program, adding: Scene) -> None:
    """A warning about a scenario is printed once for all its runs."""
    for _ in range(2):
        adding.command("mark_boundary", resources=[], frame_id=1)
    adding.write()
    for options in (["--repeat", "3"], ["--time", "0.01", "--warmup", "0"]):
        ended = program("bench", "scenario.json", *options)
        assert (ended.code, ended.err.count("warning: ")) == (0, 1)
    assert adding.leftovers() == []


def test_without_timestamps(program: Program, adding: Scene, fault_layer: dict[str, str]) -> None:
    """On a queue without timestamps the phases of the host are measured, and the reason is said."""
    ended = program.succeed("bench", "scenario.json", "--repeat", "2", env={**fault_layer, "FAULT_TIMESTAMP_BITS": "0"})
    assert "  the queue of " in ended.out
    assert "on the device" not in ended.out.replace("times on the device cannot", "")
    assert "on the host" in ended.out


def test_many_dispatches(program: Program, adding: Scene) -> None:
    """The table shows the slowest of many dispatches, and the file has all."""
    for _ in range(40):
        adding.dispatch("add", ["x"], [4])
    adding.write()
    ended = program("bench", "scenario.json", "--repeat", "2", "--json", "b.json")
    assert "on the device, the slowest 20 of 42" in ended.out
    assert len(re.findall(r"^  \d+ (?:add|twice) ", ended.out, re.M)) == 20
    rows = content(adding.folder / "b.json")["scenarios"][0]["rows"]
    assert [row["command"] for row in rows if row["kind"] == "device"] == [*range(42), None]


def samples(scale: float = 1.0, name: str = "scenario.json", **rows: float) -> dict[str, Any]:
    """A file of 30 processes around 1 ms, each row times ``scale`` or its own factor."""
    generator = numpy.random.default_rng(3)
    described = [
        {
            "kind": "device",
            "name": each,
            "command": at,
            "samples": (generator.normal(1e6, 1e4, 30) * rows.get(each, scale)).tolist(),
        }
        for at, each in enumerate(("add", "twice", "blur"))
    ]
    scenario = {"scenario": name, "device": "d", "timestamp_period_ns": 1.0, "runs": 30, "once": {}, "rows": described}
    return {"schema": 1, "unit": "nanoseconds", "scenarios": [{**scenario, "processes": [1] * 30}]}


def compared(program: Program, folder: Path, before: Any, after: Any, *options: str) -> tuple[int, str, str]:
    (folder / "a.json").write_text(json.dumps(before))
    (folder / "b.json").write_text(json.dumps(after))
    return program("bench", "--compare", "a.json", "b.json", *options)  # type: ignore[no-any-return]


def test_a_slower_dispatch_is_found(program: Program, tmp_path: Path) -> None:
    """A dispatch that takes a tenth longer is named, the others are not, and the exit code is 1."""
    code, out, err = compared(program, tmp_path, samples(), samples(twice=1.1))
    assert (code, err) == (1, "")
    assert re.search(rf"^  device: 1 twice\s+{TIME}\s+{TIME}\s+\+10\.0 %\s+0\.\d\d %\s+slower$", out, re.M)
    assert "add" not in out
    assert out.splitlines()[-2] == "  1 slower, 0 faster, 2 unchanged"
    assert out.endswith("compare in turns, with --interleave or --against\n")


def test_faster_and_equal_runs(program: Program, tmp_path: Path) -> None:
    """A faster row and equal rows give the exit code 0."""
    code, out, _ = compared(program, tmp_path, samples(), samples(blur=0.8))
    assert code == 0
    assert re.search(r"^  device: 2 blur .* -20\.0 % .* faster$", out, re.M)
    code, out, _ = compared(program, tmp_path, samples(), samples())
    assert (code, out.splitlines()[-1]) == (0, "  0 slower, 0 faster, 3 unchanged")
    code, _, _ = compared(program, tmp_path, samples(), samples(1.1), "--threshold", "15")
    assert code == 0


def test_processes_differ_by_chance(program: Program, tmp_path: Path) -> None:
    """Many equal samples of a process are no proof: processes differ by more than their samples do."""
    generator = numpy.random.default_rng(5)
    files = [samples(), samples(twice=1.05)]
    for file in files:
        (scenario,) = file["scenarios"]
        scenario |= {"runs": 200, "processes": [20] * 10}
        for row in scenario["rows"]:
            middles = numpy.repeat(row["samples"][:10] * generator.normal(1, 0.1, 10), 20)
            row["samples"] = (middles * generator.normal(1, 0.001, 200)).tolist()
    code, out, _ = compared(program, tmp_path, *files)
    assert (code, out.splitlines()) == (
        0,
        [
            "scenario.json: 200 runs in 10 processes before, 200 runs in 10 processes after",
            "  0 slower, 0 faster, 3 unchanged",
        ],
    )


@pytest.mark.parametrize("processes", [None, [30], [3] * 9])
def test_few_processes_say_nothing(program: Program, tmp_path: Path, processes: list[int] | None) -> None:
    """Fewer than ten processes for three rows, and files of earlier versions, which name none, show no change."""
    after = samples(3.0)
    (scenario,) = after["scenarios"]
    del scenario["processes"]
    if processes is not None:
        scenario["processes"] = processes
    for row in scenario["rows"]:
        row["samples"] = row["samples"][: sum(processes or [30])]
    code, out, _ = compared(program, tmp_path, samples(), after)
    assert code == 0
    assert out.endswith("  0 slower, 0 faster, 0 unchanged, 3 with fewer than 10 processes\n")


def test_scenarios_in_one_file_alone(program: Program, tmp_path: Path) -> None:
    """Scenarios belong together by name; those in one file alone are named. Single ones belong together anyway."""
    before, after = samples(), samples()
    before["scenarios"] += samples(name="gone.json")["scenarios"]
    code, out, _ = compared(program, tmp_path, before, after)
    assert code == 0
    assert "gone.json: only on one side" in out
    code, out, _ = compared(program, tmp_path, samples(), samples(name="other.json"))
    assert (code, out.splitlines()[0]) == (
        0,
        "other.json: 30 runs in 30 processes before, 30 runs in 30 processes after",
    )


def test_two_scenarios_in_turns(program: Program, adding: Scene) -> None:
    """--interleave measures each of two scenarios in processes of its own, and the file has both."""
    adding.dispatch("blur", ["x"]).shader("blur", ADD).write("other.json")
    options = ("--interleave", "--processes", "2", "--repeat", "3", "--warmup", "0", "--json", "b.json")
    ended = program.succeed("bench", "scenario.json", "other.json", *options)
    assert ended.out.splitlines()[0] == "other.json: 6 runs in 2 processes before, 6 runs in 2 processes after"
    assert ended.out.endswith(" with fewer than 12 processes, 1 on one side alone\n")
    found = content(adding.folder / "b.json")["scenarios"]
    assert [(each["scenario"], each["runs"], each["processes"]) for each in found] == [
        ("scenario.json", 6, [3, 3]),
        ("other.json", 6, [3, 3]),
    ]
    assert {len(row["samples"]) for each in found for row in each["rows"]} == {6}
    assert adding.leftovers() == []
    ended = program("bench", "scenario.json", "missing.json", *options)
    assert (ended.code, ended.err.count("error: "), ended.out) == (4, 1, "")
    ended = program.fail(2, "bench", "scenario.json", "other.json", *options[:-1], "x.npy")
    assert "--json: x.npy is a file of the scenario scenario.json" in ended.err


@pytest.fixture
def looping(scene: Scene) -> Scene:
    """100 loops of ${n} rounds."""
    loop = "for (uint i = 0u; i < N; i++) a[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] * 5u + i;"
    text = glsl(loop, "layout(binding = 0) buffer B { uint a[]; };\n")
    scene.shader("loop", text, build_options="-DN=${n}u").buffer("x", numpy.ones(100, numpy.uint32))
    scene.dispatch("loop", ["x"], [100]).write()
    return scene


FEW = ("--warmup", "1", "--repeat", "1")


def test_against_an_earlier_measurement(program: Program, looping: Scene) -> None:
    """--against measures the earlier side again, and refuses a file with changed scenarios."""
    ended = program.succeed("bench", "scenario.json", "--set", "n=1", "--json", "a.json", "--processes", "2", *FEW)
    assert ended.out.startswith("scenario.json: 2 runs in 2 processes on ")
    again = ("--against", "a.json", "--json", "b.json", "--processes", "2", *FEW)
    ended = program.succeed("bench", "scenario.json", "--set", "n=2", *again)
    assert ended.out.startswith("scenario.json: 2 runs in 2 processes before, 2 runs in 2 processes after\n")
    earlier, found = (content(looping.folder / name) for name in ("a.json", "b.json"))
    assert [earlier["side"]["options"], found["side"]["options"]] == [["--set=n=1"], ["--set=n=2"]]
    assert [(each["runs"], each["processes"]) for each in found["scenarios"]] == [(2, [1, 1])]
    looping.file("loop.comp", "changed")
    ended = program.fail(4, "bench", "scenario.json", "--set", "n=1", *again)
    assert re.match(r"error: a\.json: .*loop\.comp has changed since the measurement\n  help: ", ended.err)


@pytest.mark.heavy
def test_more_work_is_found(program: Program, looping: Scene) -> None:
    """A dispatch with 20,000 times the work is slower than the earlier one."""
    assert program("bench", "scenario.json", "--set", "n=1", "--json", "a.json", *FEW).code == 0
    ended = program("bench", "scenario.json", "--set", "n=20000", "--against", "a.json", "--processes", "13", *FEW)
    assert (ended.code, ended.err) == (1, "")
    for row in ("device: 0 loop", "device: all dispatches", "host: whole run", "processor: whole run"):
        assert re.search(rf"^  {row} .* slower$", ended.out, re.M), (row, ended.out)


@pytest.mark.parametrize(
    "words",
    [
        ["a.json", "--interleave"],
        ["a.json", "b.json", "--interleave", "--against", "c.json"],
        ["--compare", "a.json", "b.json", "--interleave"],
        ["a.json", "--threshold", "3"],
        ["--against", "a.json"],
    ],
)
def test_options_that_do_not_belong_together(program: Program, words: list[str]) -> None:
    """Contradictions end before anything is measured."""
    ended = program("bench", *words)
    assert (ended.code, ended.out, ended.err.count("error: ")) == (2, "", 1)


def test_a_file_that_cannot_be_measured_again(program: Program, adding: Scene) -> None:
    """A file of an earlier version does not say how it was measured."""
    (adding.folder / "a.json").write_text(json.dumps(samples()))
    ended = program.fail(4, "bench", "scenario.json", "--against", "a.json")
    assert ended.err.startswith("error: a.json: has no options to measure again\n  help: ")


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "{}", '{"schema": 2, "scenarios": []}', '{"schema": 1}', '{"schema": 1, "scenarios": [{}]}', "\xff",
     "[" * 100_000, '{"schema": 1, "scenarios": 3}', json.dumps(samples()).replace("1.0", '"x"', 1)],
)  # fmt: skip
def test_files_that_are_not_samples(program: Program, tmp_path: Path, text: str) -> None:
    """A file that --json did not write is one clear error."""
    (tmp_path / "a.json").write_text(text, encoding="latin-1")
    (tmp_path / "b.json").write_text(json.dumps(samples()))
    for pair in (("a.json", "b.json"), ("b.json", "a.json")):
        ended = program("bench", "--compare", *pair, exit_code=4)
        assert ended.err.startswith("error: a.json: ")


def test_on_a_terminal(adding: Scene, shader_cache: Path) -> None:
    """On a terminal of 80 columns each line with its plot fits, and names are not cut off."""
    code, shown = on_terminal(adding.folder, "bench", "scenario.json", "--repeat", "2", "--warmup", "0")
    assert code == 0, shown
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines() if "●" in line]
    assert all(len(line) <= 80 for line in lines)
    names = [line.strip().split("  ")[0] for line in lines]
    assert {"0 add", "1 twice", "all dispatches", "submit", "wait", "whole run"} <= set(names)


GENERATOR = numpy.random.default_rng(7)
MOST_CHANCE = 0.01


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_summary(count: int) -> None:
    """Minimum, median, 95th percentile and MAD equal NumPy's."""
    samples = GENERATOR.gamma(2.0, 1e5, count)
    found = summary(samples.tolist())
    median = numpy.median(samples)
    assert found.min == samples.min()
    assert found.median == pytest.approx(median)
    assert found.p95 == pytest.approx(numpy.percentile(samples, 95))
    assert found.mad == pytest.approx(numpy.median(numpy.abs(samples - median)))


def change(before: list[float], after: list[float], threshold_percent: float = 2.0, period_ns: float = 0) -> Change:
    """Compare one row with one sample for each process."""
    sides = [
        ScenarioSamples("s", "d", period_ns, len(times), [1] * len(times), rows=[Row("device", "x", 0, times)])
        for times in (before, after)
    ]
    (found,) = changes(*sides, threshold_percent=threshold_percent, most_chance=MOST_CHANCE)
    return found


def test_all_signs_are_counted() -> None:
    """The chance of a single row is the share of sign patterns with an equal or larger sum of signed ranks."""
    row = GENERATOR.normal(0.5, 1, 9)
    ranks = numpy.abs(row).argsort().argsort() + 1
    total = abs(sum(numpy.sign(row) * ranks))
    sums = [
        abs(sum(rank * sign for rank, sign in zip(ranks, signs, strict=True))) for signs in product((1, -1), repeat=9)
    ]
    assert chances([row.tolist()]) == [sum(each >= total for each in sums) / 2**9]
    assert chances([[1.0] * 9, [0.0] * 9]) == [2 / 2**9, 1]


@pytest.mark.parametrize("pairs", [8, 20])
def test_chance_alone(pairs: int) -> None:
    """Rows of unchanged code that rise and fall together are called changed in one of 100 comparisons."""
    found = 0
    for _ in range(300):
        load = GENERATOR.standard_exponential(pairs) - GENERATOR.standard_exponential(pairs)
        rows = load + 0.3 * GENERATOR.standard_normal((10, pairs))
        found += min(chances(rows.tolist())) <= MOST_CHANCE
    assert found <= 11  # more by chance alone in one of 10,000 runs


def test_a_tenth_more() -> None:
    """A tenth more is found among 10 unchanged rows where pairs spread by 6 percent, and not where they spread much."""
    found = []
    for _ in range(100):
        rows = 0.06 * GENERATOR.standard_normal((11, 20))
        rows[3] += numpy.log(1.1)
        found.append(chances(rows.tolist())[3] <= MOST_CHANCE)
    assert sum(found) >= 90
    wide = GENERATOR.lognormal(0, 0.5, (2, 20)) * 1000
    assert change(wide[0].tolist(), (wide[1] * 1.1).tolist()).verdict == "same"


def test_what_both_sides_share_decides_nothing() -> None:
    """A load that comes and goes for both processes of a pair hides no change, nor does a disturbed process."""
    load = GENERATOR.uniform(1000, 5000, 20)
    before, after = (load * GENERATOR.normal(factor, 0.01, 20) for factor in (1.0, 1.1))
    assert change(before.tolist(), after.tolist()).verdict == "slower"
    assert change(after.tolist(), before.tolist()).verdict == "faster"
    after[0] /= 100
    assert change(before.tolist(), after.tolist()).verdict == "slower"
    before[2:4] /= 100
    assert change(before.tolist(), before.tolist()) == (
        Row("device", "x", 0, before.tolist()),
        *[numpy.median(before)] * 2,
        1,
        1,
        "same",
    )


def test_bounds_of_a_change() -> None:
    """A change is more than the threshold and two ticks of the clock; eight processes show one, seven none."""
    few = [1000.0] * 8
    assert change(few, [1019.0] * 8).verdict == "same"
    assert change(few, [1021.0] * 8).verdict == "slower"
    assert change(few, [1021.0] * 8, period_ns=25).verdict == "same"
    assert change(few, [9000.0] * 7).verdict == "unknown"
    assert change([0.0] * 8, [0.0] * 8).verdict == "same"
