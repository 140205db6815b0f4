"""The file of ``--trace``: host and device on one clock, in the trace event format that Perfetto and Chrome read.

Source: "Trace Event Format" of the Chromium project. Times are microseconds from the first event on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.run.timings import Timings
    from scenario_runner.vulkan.execution.timestamps import FrameTimes

_HOST, _DEVICE = 1, 2
_THREAD = 1


def trace(timings: Timings) -> str:
    """The text of the file: one track of the host's phases, one of the device's frames and dispatches."""
    origin_ns = min((span.begin_ns for span in timings.clock.spans), default=0)
    events = [
        _named("process_name", _HOST, "host"),
        _named("thread_name", _HOST, "phases"),
        _named("process_name", _DEVICE, timings.device or "device"),
        _named("thread_name", _DEVICE, "queue"),
        *_host_events(timings, origin_ns),
        *_device_events(timings, origin_ns),
    ]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": _about(timings)}) + "\n"


def _about(timings: Timings) -> dict[str, Any]:
    """What somebody who reads the trace has to know."""
    about: dict[str, Any] = {
        "scenario": timings.plan.name if timings.plan is not None else "",
        "device": timings.device,
        "timestamp period [ns]": timings.period_ns,
        "timestamp valid bits": timings.valid_bits,
    }
    deviations = [each.calibration.deviation_ns for each in timings.frames if each.calibration is not None]
    if timings.why_none is not None:
        about["clock"] = timings.why_none
    elif timings.calibrated_by is not None:
        about["clock"] = f"the device's times are on the host's clock by {timings.calibrated_by}"
        about["greatest deviation [ns]"] = max(deviations, default=0)
    else:
        about["clock"] = (
            "the device does not tell how its clock and the host's relate: the end of each frame on the device is put"
            " where the host's wait for its fence returned"
        )
    return about


def _named(what: str, process: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": _THREAD, "args": {"name": name}}


def _event(name: str, process: int, begin_ns: float, end_ns: float, **about: Any) -> dict[str, Any]:
    return {
        "name": name,
        "ph": "X",
        "pid": process,
        "tid": _THREAD,
        "ts": round(begin_ns) / 1e3,
        "dur": (round(end_ns) - round(begin_ns)) / 1e3,
        "args": about,
    }


def _host_events(timings: Timings, origin_ns: int) -> Iterator[dict[str, Any]]:
    titles = _titles(timings)
    for span in timings.clock.spans:
        about = {"of": f"{span.what} {span.subject}".strip()} if span.what else {}
        if span.what == "frame" and span.subject:
            about["of"] = titles[int(span.subject)]
        if span.iteration is not None:
            about["iteration"] = str(span.iteration)
        yield _event(span.phase, _HOST, span.begin_ns - origin_ns, span.end_ns - origin_ns, **about)


def _device_events(timings: Timings, origin_ns: int) -> Iterator[dict[str, Any]]:
    titles = _titles(timings)
    for times in timings.frames:

        def on_host(ticks: int, times: FrameTimes = times) -> float:
            return host_ns(timings, times, ticks) - origin_ns

        first, last = times.ticks[0], times.ticks[-1]
        numbers = {"iteration": times.iteration, "frame": times.frame}
        yield _event(titles[times.frame], _DEVICE, on_host(first), on_host(last), **numbers)
        for work, begin, end in timings.measured(times):
            yield _event(work.name, _DEVICE, on_host(begin), on_host(end), type=work.type, command=work.command)


def _titles(timings: Timings) -> list[str]:
    """What the frames are called, by their number in the plan."""
    return [frame.title for frame in timings.plan.frames] if timings.plan is not None else []


def host_ns(timings: Timings, times: FrameTimes, ticks: int) -> float:
    """The moment on the host's clock at which the device's counter was at ``ticks``, in a frame that has finished."""
    if times.calibration is None:
        return times.finished_ns - timings.ticks_between(ticks, times.ticks[-1]) * timings.period_ns
    return times.calibration.host_ns - timings.ticks_between(ticks, times.calibration.ticks) * timings.period_ns
