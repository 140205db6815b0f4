"""The file of ``--profiling-dump-path``, as the reference runner writes it: every dispatch on the device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.run.timings import Timings


def profile(timings: Timings) -> str:
    """The text of the file; a dry run has no timestamps in it.

    Keys, their order and the units are the reference runner's: iterations of timestamps count from 1, those of memory
    from 0. A scenario without dispatches has an empty list, where the reference runner fails.
    """
    parts = []
    memory = list(_memory(timings))
    if memory:
        parts.append(_list("Memory Usage", memory))
    if not timings.dry_run:
        parts.append(_list("Timestamps", list(_timestamps(timings))))
        parts.append(f'    "Total execution time [ms]": {_total_ms(timings)!r}')
    return "{\n" + ",\n".join(parts) + "\n}\n" if parts else "{}\n"


def _list(key: str, items: list[str]) -> str:
    return f'    "{key}": [\n' + ",\n".join(items) + "\n    ]" if items else f'    "{key}": []'


def _timestamps(timings: Timings) -> Iterator[str]:
    """The items as text: written one by one, ten thousand take a tenth of the time that the module json needs."""
    names: dict[str, str] = {}
    for each in timings.dispatches:
        name = names.get(each.name)
        if name is None:
            name = names[each.name] = json.dumps(each.name)
        yield f"""\
        {{
            "Command name": {name},
            "Command type": "{each.type}",
            "Cycle count after command": {each.end_ticks},
            "Cycle count before command": {each.begin_ticks},
            "Cycle count for command": {each.ticks},
            "Iteration": {each.iteration + 1},
            "Time for command [ms]": {each.time_ns / 1e6!r},
            "Timestamp Period": {timings.period_ns!r}
        }}"""


def _total_ms(timings: Timings) -> float:
    """The time from the first to the last timestamp of each iteration, added up."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for times in timings.frames:
        first.setdefault(times.iteration, times.ticks[0])
        last[times.iteration] = times.ticks[-1]
    ticks = sum(timings.ticks_between(begin, last[iteration]) for iteration, begin in first.items())
    return ticks * timings.period_ns / 1e6


def _memory(timings: Timings) -> Iterator[str]:
    for iteration in range(timings.repeat):
        for name, size_bytes in timings.session_memory:
            yield f"""\
        {{
            "Command name": {json.dumps(name)},
            "Command type": "DataGraphDispatch",
            "Iteration": {iteration},
            "Session memory [bytes]": {size_bytes}
        }}"""
