"""The file of ``--perf-counters-dump-path``, as the reference runner writes it: what the host did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.run.timings import Timings

_UNIT = "microseconds"
_PIPELINES = {
    "compute pipeline": "Create Pipeline",
    "graph pipeline": "Create Pipeline",
    "graphics pipeline": "Create Graphics Pipeline",
    "optical flow pipeline": "Create Optical Flow Pipeline",
}
_CACHE = {
    "load": ("Load Pipeline Cache", "Load Pipeline Cache."),
    "store after setup": ("Save Pipeline Cache", "Save Pipeline Cache (setup)"),
    "store": ("Save Pipeline Cache", "Save Pipeline Cache"),
}
# Of these the reference runner's "Time to Inference" consists.
_BEFORE_INFERENCE = ("Scenario Setup", "Pipeline Setup", "Load Pipeline Cache")

Counter = tuple[str, str, int]
"""Category, name, nanoseconds."""


def counters(timings: Timings) -> str:
    """The text of the file. Keys, names and units are the reference runner's.

    What it has no names for, such as reading the scenario or opening the device, is not in the file.
    """
    content: dict[str, Any] = {}
    for category, name, nanoseconds in _counters(timings):
        found = content.setdefault(category, {"counters": [], "total time": 0, "unit": _UNIT})
        value = nanoseconds // 1000
        found["counters"].append({"name": name, "unit": _UNIT, "value": value})
        found["total time"] += value
    totals = {category: found["total time"] for category, found in content.items()}
    content["Time to Inference"] = sum(totals.get(category, 0) for category in _BEFORE_INFERENCE)
    content["Total Scenario Time"] = sum(totals.values())
    content["unit"] = _UNIT
    return json.dumps(content, indent=4, sort_keys=True) + "\n"


def _counters(timings: Timings) -> Iterator[Counter]:
    spans = timings.clock.spans
    yield from _models(timings)
    yield from _loads(timings)
    inside = _modules(timings)
    for span in spans:
        if span.phase == "pipelines" and span.what in _PIPELINES:
            name = inside.get(span.subject, span.subject)
            yield "Pipeline Setup", f"{_PIPELINES[span.what]}: {name}", span.own_ns
        elif span.phase == "pipelines" and span.what in _CACHE:
            category, name = _CACHE[span.what]
            yield category, name, span.own_ns
    if timings.dry_run:
        return
    steps = {("record", "reset query pool"): 0, ("record", "frame"): 0, ("submit", "frame"): 0, ("wait", "frame"): 0}
    took = [dict(steps) for _ in range(timings.repeat)]
    for span in spans:
        if span.iteration is not None and (span.phase, span.what) in steps:
            took[span.iteration][span.phase, span.what] += span.own_ns
    names = ("Reset Query Pool", "Creating Command Buffer", "Submit Commands", "Wait for Fence")
    for iteration, each in enumerate(took):
        for name, nanoseconds in zip(names, each.values(), strict=True):
            yield "Run Scenario", f"{name}. Iteration: {iteration + 1}", nanoseconds
    after = [span for span in spans if span.iteration is None and span.phase in ("readback", "store")]
    yield "Save Results", "Save Resources", sum(span.own_ns for span in after)


def _models(timings: Timings) -> Iterator[Counter]:
    """One counter for each model; no time where a kept plan made reading it unnecessary."""
    assert timings.plan is not None, "written after a run"
    parsed = {span.subject: span.own_ns for span in timings.clock.spans if (span.phase, span.what) == ("parse", "VGF")}
    run = {name.partition("/")[0]: 0 for names in timings.plan.names.values() for name in names}
    for uid, nanoseconds in (parsed or run).items():
        yield "Scenario Setup", f"Parse VGF: {uid}", nanoseconds


def _modules(timings: Timings) -> dict[str, str]:
    """The labels of pipelines whose shaders are parts of models, with the names of the modules."""
    assert timings.plan is not None, "written after a run"
    pipelines = timings.plan.pipelines
    return {each.label: each.label.partition("/")[2] for each in pipelines if each.pointer.endswith("/graph")}


def _loads(timings: Timings) -> Iterator[Counter]:
    """One counter for each resource of the scenario.

    All are filled together, partly side by side, so that the time is divided among them by their sizes.
    """
    assert timings.plan is not None, "written after a run"
    filled = sum(span.own_ns for span in timings.clock.spans if span.phase == "upload" and span.iteration is None)
    resources = timings.plan.resources.values()
    total_bytes = sum(resource.size_bytes for resource in resources)
    for resource in resources:
        if resource.pointer.startswith("/resources/"):  # the others lie inside of models
            yield "Scenario Setup", f"Load Resource: {resource.uid}", filled * resource.size_bytes // (total_bytes or 1)
