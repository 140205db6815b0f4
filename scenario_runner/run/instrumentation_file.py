"""The file of ``--shader-instrumentation``: metrics, and their values for each basic block of each command, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner import progress
from scenario_runner.streams import read_file

if TYPE_CHECKING:
    from scenario_runner.vulkan.pipelines.instrumentation import Block, Instrumentation

SCHEMA = 1
"""Version of the JSON; a key that changes its meaning raises it."""


class InstrumentationFile:
    """Gathers what runs measured; the file is complete after each of them."""

    def __init__(self, path: str, keep: int = 0) -> None:
        """``keep`` is how many runs of an existing file stay in it, those of a process that crashed later.

        Raises FileError for a path that no file can be written to.
        """
        from scenario_runner.files.output import check_destination

        check_destination(path)
        self.path = path
        self._runs: list[dict[str, Any]] = _runs_in(path)[:keep] if keep else []

    def add(self, scenario: str, device: str, measured: Instrumentation) -> None:
        """Take in what one run of ``scenario`` measured, and write the file anew. Raises FileError."""
        names = [metric.name for metric in measured.capability.metrics]
        self._runs.append({"scenario": scenario, "results": [_block(block, names) for block in measured.blocks]})
        content = {
            "schema": SCHEMA,
            "device": device,
            "per_basic_block": measured.capability.per_basic_block,
            "metrics": [metric._asdict() for metric in measured.capability.metrics],
            "runs": self._runs,
        }
        import json

        from scenario_runner.files.output import OutputFile

        with OutputFile(self.path) as file:
            file.write(json.dumps(content, indent=1).encode() + b"\n")
        progress.measured(len(self._runs))


def _runs_in(path: str) -> list[dict[str, Any]]:
    import json

    try:
        return list(json.loads(read_file(path))["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return []  # somebody else has changed it


def _block(block: Block, names: list[str]) -> dict[str, Any]:
    described = block._asdict()
    described["stages"] = list(block.stages)
    described["values"] = dict(zip(names, block.values, strict=True))
    return described
