"""Results of an earlier run that still hold, for --resume."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from scenario_runner.visible import counted

if TYPE_CHECKING:
    from scenario_runner.suite.journal import Header
    from scenario_runner.suite.merging import Entry, MergedJournals
    from scenario_runner.suite.records import Hashes, Result

_NEVER_KEPT = ("Skip", "Missing", "MissingTool")


class EarlierResults:
    """Life cycle: made of what an earlier run has written; `compare` says which results do not hold any more; `result`
    gives those that do."""

    def __init__(self, journals: MergedJournals) -> None:
        self._journals = journals
        self._void: dict[str, str] = {}  # the ids of results that do not hold, and what they were made with

    def compare(self, now: Header, devices: Container[tuple[str, str]] | None) -> list[str]:
        """Compare what decided the results with what would decide them now; a sentence for each difference.

        ``devices`` are those in use, each with its UUID and driver; None where they are not known."""
        for id, entry in self._journals.entries.items():
            difference = entry.verdict not in _NEVER_KEPT and self._difference(entry, now, devices)
            if difference:
                self._void[id] = difference
        counts = Counter(self._void.values())
        return [
            f"{counted(count, 'result')} of the run before {'is' if count == 1 else 'are'} of {difference}, and"
            f" {'runs' if count == 1 else 'run'} again"
            for difference, count in counts.items()
        ]

    def _difference(self, entry: Entry, now: Header, devices: Container[tuple[str, str]] | None) -> str:
        before = self._journals.runs[entry.run].header
        if before.program_hash != now.program_hash:
            if before.program != now.program:
                return f"version {before.program} of this program"
            names = {*before.runner, *now.runner}
            changed = sorted(name for name in names if _text(before.runner.get(name)) != _text(now.runner.get(name)))
            return f"other options ({', '.join(changed)})" if changed else "another source of this program"
        if devices is not None and (entry.device, entry.driver) not in devices:
            return f"the device {entry.device} with the driver {entry.driver!r}"
        if before.timeout_s < now.timeout_s if entry.timed_out else now.timeout_s < entry.longest_s < before.timeout_s:
            return f"the time limit {before.timeout_s:g} s"
        return ""

    def result(self, id: str, hashes: Hashes) -> Result | None:
        """The result of an item with these hashes; None where there is none that holds."""
        if id not in self._journals.entries or id in self._void:
            return None
        before = self._journals.result(id)
        is_same = before.hashes == hashes._replace(program=before.hashes.program)
        return before if is_same and before.last is not None and before.last.status not in _NEVER_KEPT else None


def _text(option: Any) -> str:
    return json.dumps(option, default=str)
