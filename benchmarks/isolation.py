"""``python -m benchmarks.isolation``: the cost of isolated workers, of a crash, a hang and a long list.

It also runs the same scenarios with ``scenario-runner test``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy

from scenario_runner.processes.jobs import WorkerOptions
from scenario_runner.processes.system_limits import processors
from scenario_runner.suite.evaluation import run_item
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWork, SuiteWorkers, suite_options
from scenario_runner.suite.verdicts_and_retries import RetryRules
from scenario_runner.suite.worker_task import Runners

_DATA = "layout(binding = 0) buffer B { uint a[]; };\n"
_SHADERS = {
    "add": "a[gl_WorkGroupID.x] += 1u;",
    # crashes llvmpipe, which checks no index of shared memory; another driver may check, and work for days
    "crash": "s[a[0] * 400000000u] = 7u; barrier(); a[1] = s[a[2] * 300000000u];",
    "hang": "for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i;",
}
_CRASH_EVERY = 100
_HANG_S = 3.0
_LONG_LIST = 100_000


class Measured(NamedTuple):
    """A single run of a list; NaN for missing figures.

    CPU time is the sum over all processes, in milliseconds for each item. ``steady_rate`` leaves out the first fifth
    and the last twentieth of the results, so that all workers are running.
    """

    seconds: float
    first_s: float
    cpu_ms: float
    supervisor_ms: float
    statuses: Counter[str]
    steady_rate: float = math.nan

    @property
    def rate(self) -> float:
        return self.statuses.total() / self.seconds


def make(folder: Path, count: int) -> list[Item]:
    """Make items with one dispatch; each has a separate scenario, input and expected output."""
    for name, body in _SHADERS.items():
        shared = "shared uint s[4];\n" if name == "crash" else ""
        text = f"#version 450\nlayout(local_size_x = 1) in;\n{_DATA}{shared}void main() {{ {body} }}\n"
        (folder / f"{name}.comp").write_text(text)
    items = [_item(folder, f"{number:06}", "add", number) for number in range(count)]
    # a folder search skips names with a leading dot
    return [*items, _item(folder, ".crash", "crash", 1), _item(folder, ".hang", "hang", 1, (65535, 65535, 64))]


def _item(folder: Path, name: str, shader: str, value: int, groups: tuple[int, ...] = (4,)) -> Item:
    here = folder / name
    here.mkdir()
    numpy.save(here / "in.npy", numpy.full(4, value, numpy.uint32))
    numpy.save(here / "expected.npy", numpy.full(4, value + 1, numpy.uint32))
    (here / "check.json").write_text(json.dumps({"version": 1, "outputs": {"a": {"file": "expected.npy"}}}))
    buffer = {"uid": "a", "size": 16, "shader_access": "readwrite", "src": "in.npy", "dst": "out.npy"}
    dispatch = {"shader_ref": "x", "rangeND": groups, "bindings": [{"set": 0, "id": 0, "resource_ref": "a"}]}
    scenario = {
        "resources": [{"shader": {"uid": "x", "src": f"../{shader}.comp", "type": "GLSL"}}, {"buffer": buffer}],
        "commands": [{"dispatch_compute": dispatch}],
    }
    (here / "scenario.json").write_text(json.dumps(scenario))
    return Item(f"{name}/scenario.json", str(here / "scenario.json"))


def require(what: str, statuses: Counter[str], expected: Counter[str], reason: str = "") -> None:
    """End the benchmark after unexpected results, since the rate would mean nothing."""
    if statuses != expected:
        raise SystemExit(f"error: {what}: {_counts(statuses)}, expected {_counts(expected)}{reason and f': {reason}'}")


def _counts(statuses: Counter[str]) -> str:
    return ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))


def in_one_process(items: list[Item]) -> float:
    """Measure the CPU milliseconds for each item, after a first pass that fills the caches."""
    read, write = os.pipe()
    if not os.fork():
        runners = Runners({}, 60.0)
        for each in items:
            run_item(each, runners)
        before = time.process_time()
        statuses = [run_item(each, runners).status for each in items]
        os.write(write, json.dumps([time.process_time() - before, Counter(statuses)]).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        seconds, counts = json.load(pipe)
    require("one process", Counter(counts), Counter({"Pass": len(items)}))
    return float(seconds) * 1e3 / len(items)


def do_nothing(item: Item, runners: Runners, options: None) -> Outcome:
    """Return at once: the pool and the supervisor are then the limit."""
    return Outcome("Pass", 0.001)


def in_workers(
    items: Iterable[Item],
    options: WorkerOptions,
    most: int | None = None,
    *,
    crashes: int = 0,
    hangs: int = 0,
) -> Measured:
    """Run items, or only the first ``most``. A crashed item runs once more; all others must pass."""
    statuses: Counter[str] = Counter()
    children = _cpu(resource.RUSAGE_CHILDREN)
    own, started = time.process_time(), time.perf_counter()
    times: list[float] = []
    reason = ""
    with SuiteWorkers(options) as workers:
        for finished in workers.run(items):
            times.append(time.perf_counter() - started)
            last = finished.attempts[-1]
            statuses[last.status] += 1
            if last.status not in ("Pass", "Crash", "Timeout"):
                reason = reason or last.reason
            if len(times) == most:
                break
        own = time.process_time() - own
    count = len(times)
    expected = Counter({"Pass": count - crashes - hangs, "Crash": crashes, "Timeout": hangs})
    require("workers", statuses, +expected, reason)
    begin, end = count // 5, count - 1 - count // 20
    steady = (end - begin) / (times[end] - times[begin]) if end > begin else math.nan
    cpu = own + _cpu(resource.RUSAGE_CHILDREN) - children
    return Measured(times[-1], times[0], cpu * 1e3 / count, own * 1e3 / count, statuses, steady)


def by_command(folder: Path, jobs: int, *options: str) -> Measured:
    """Run the items with ``scenario-runner test``, and measure the whole process."""
    command = [sys.executable, "-m", "scenario_runner", "test", str(folder), "--jobs", str(jobs), *options]
    children, started = _cpu(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    seconds, cpu = time.perf_counter() - started, _cpu(resource.RUSAGE_CHILDREN) - children
    passed = re.search(r"^\d+ items? in .*: (\d+) Pass$.*^suite passed: \1 items?$", done.stdout, re.M | re.S)
    if done.returncode or passed is None:
        raise SystemExit(
            f"error: {' '.join(command[2:])}: exit code {done.returncode}: {done.stderr}{done.stdout[-400:]}"
        )
    count = int(passed[1])
    return Measured(seconds, math.nan, cpu * 1e3 / count, math.nan, Counter({"Pass": count}))


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def main(argv: list[str] | None = None) -> int:
    """Return 0. A missed bound is reported, but is no failure. Wrong results end the benchmark with an error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isolation", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, metavar="N", help="how many scenarios (default 10,000)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="workers for each device (default 2)")
    parser.add_argument("--devices", nargs="+", default=[], metavar="D", help="compare the first of these with more")
    parser.add_argument("--quick", action="store_true", help="200 scenarios: shows that the benchmark works")
    options = parser.parse_args(argv)
    count = 200 if options.quick else options.count
    one = suite_options(rules=RetryRules(retries=1), jobs=options.jobs)
    with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder:
        os.environ["SCENARIO_RUNNER_CACHE"] = os.path.join(folder, "cache")
        suite = Path(folder, "suite")
        suite.mkdir()
        *items, crash, hang = make(suite, count)
        print(f"{processors()} processors, {options.jobs} workers, {count} scenarios")
        cold = in_workers(items, one)
        _show("first run, nothing in the caches", cold)
        alone = in_one_process(items[:2000])
        print(f"one process without isolation: {alone:.3f} ms CPU each")
        plain = in_workers(items, one)
        _show("workers", plain)
        _bound("rate with 2 workers on 2 cores", plain.rate, ">=", 900, " / s")
        _bound("CPU, workers / one process", plain.cpu_ms / alone, "<=", 1.25)
        idle = suite_options(SuiteWork("benchmarks.isolation:do_nothing"), jobs=options.jobs)
        empty = in_workers(_long_list(items), idle, most=10 * count)
        _show("items that do nothing", empty)
        _bound("rate of pool and supervisor", empty.steady_rate, ">=", 8000, " / s")
        _bound("memory of the supervisor", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "<=", 150, " MiB")
        command = by_command(suite, options.jobs)
        _show("scenario-runner test FOLDER", command)
        _bound("its rate with 2 workers on 2 cores", command.rate, ">=", 900, " / s")
        results = os.path.join(folder, "results")
        _show("scenario-runner test FOLDER --results DIR", by_command(suite, options.jobs, "--results", results))
        os.environ["SCENARIO_RUNNER_CACHE"] = os.path.join(folder, "empty")
        _show("scenario-runner test FOLDER, nothing in the caches", by_command(suite, options.jobs))
        os.environ["SCENARIO_RUNNER_CACHE"] = os.path.join(folder, "cache")
        crashes = [crash if number % _CRASH_EVERY == _CRASH_EVERY - 1 else each for number, each in enumerate(items)]
        crashing = in_workers(crashes, one, crashes=count // _CRASH_EVERY)
        _show(f"1 crash in {_CRASH_EVERY}, each run twice", crashing)
        _bound("rate with crashes / without", crashing.rate / plain.rate, ">=", 0.75)
        hanging = in_workers([hang, *items], one._replace(timeout_s=_HANG_S), hangs=1)
        _show(f"a hang, with a limit of {_HANG_S:g} s, run twice", hanging)
        _bound("added time", hanging.seconds - plain.seconds, "<=", 2 * _HANG_S + 1, " s")
        long = in_workers(_long_list(items), one, most=options.jobs)
        _bound(f"first of {_LONG_LIST} items", long.first_s, "<=", 2, " s")
        if options.devices:
            _several_devices(items, one, options.devices)
    return 0


def _several_devices(items: list[Item], options: WorkerOptions, devices: list[str]) -> None:
    single = in_workers(items, options._replace(devices=(devices[0],)))
    _show("one device", single)
    for number in range(2, len(devices) + 1, 2):
        several = in_workers(items, options._replace(devices=tuple(devices[:number])))
        _show(f"{number} devices", several)
        bound = {2: 1.8, 4: 3.4}.get(number, 0.85 * number)
        _bound("throughput / throughput of one device, with the start", several.rate / single.rate, ">=", bound)
        _bound("the same once all have started", several.steady_rate / single.steady_rate, ">=", bound)


def _long_list(items: list[Item]) -> Iterator[Item]:
    for number in range(_LONG_LIST):
        item = items[number % len(items)]
        yield item._replace(id=f"{number}/{item.id}")


def _show(what: str, measured: Measured) -> None:
    statuses = ", ".join(f"{number} {status}" for status, number in measured.statuses.items())
    supervisor = f", {measured.supervisor_ms:.3f} of it the supervisor's"
    print(
        f"{what}: {measured.seconds:.2f} s, {measured.rate:.0f} / s, {measured.cpu_ms:.3f} ms CPU each"
        f"{'' if math.isnan(measured.supervisor_ms) else supervisor} ({statuses})"
    )


def _bound(what: str, value: float, relation: str, bound: float, unit: str = "") -> None:
    kept = value >= bound if relation == ">=" else value <= bound
    print(f"  {what}: {value:.2f}{unit}, must {relation} {bound:g}{unit}: {'reached' if kept else 'missed'}")


if __name__ == "__main__":
    sys.exit(main())
