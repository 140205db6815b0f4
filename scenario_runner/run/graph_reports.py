"""Files about a run's data graphs, with names and contents as in the reference runner.

``n`` is the graph pipeline's index in the plan:

- ``Graph_Pipeline_<n>_Debug_Database.bin``: a neural accelerator's debug database
- ``Graph_Pipeline_<n>_Statistics_<mode>.bin``: a neural accelerator's statistics
- ``EmulationLayerPipeline_<n>.json``: measurements by the emulation layers
- ``Graph_Pipeline_<k>_Session_RAM_<i>.txt``: a session's memory number ``i``; ``k`` counts all such files

The file for ``--shader-instrumentation`` has metrics, and values for each basic block in each command, as JSON.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from scenario_runner.errors import UsageError, log
from scenario_runner.errors.text import Json
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.sandbox import check_existing_folder
from scenario_runner.ml.graph_module import GraphOperator, operators_of
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.graph_pipelines import (
    DEBUG_DATABASE,
    EMULATION_PROFILE,
    MODES,
    GraphPipeline,
    GraphReports,
    property_of,
)
from scenario_runner.vulkan.measurements import Instrumentation, instrumentation_required

# Makes the emulation layers measure.
PROFILING_VARIABLE = "VMEL_GRAPH_PROFILING"
_ROW_BYTES = 16
_ROWS_AT_ONCE = 1 << 14


class OperatorTime(NamedTuple):
    """The operator with this number in ``graph``, and the total time for all runs."""

    graph: str
    number: int
    operator: GraphOperator
    time_ms: float


def operator_times(graph: str, code: bytes, profile: bytes) -> list[OperatorTime]:
    """Read operator times from a profile by the emulation layers.

    The layers measure operators in the module's order. If they name other operators, shapes are unknown.
    """
    times: dict[tuple[int, str], float] = defaultdict(float)
    for sample in json.loads(profile)["samples"]:
        times[sample["pipeline_index"], sample["operator_name"]] += sample["time_ms"]
    rows = sorted(times)
    operators = operators_of(code, graph)
    if [name for _, name in rows] != [operator.name for operator in operators]:
        operators = [GraphOperator(name, "", ()) for _, name in rows]
    return [
        OperatorTime(graph, number, operator, times[number, name])
        for (number, name), operator in zip(rows, operators, strict=True)
    ]


class GraphReportFiles:
    """Writes reports about graphs to existing folders. A report without a folder is not written.

    Emulation profiles need VMEL_GRAPH_PROFILING=1 in the environment; the object sets it unless you have set it. With
    ``operators``, ``operator_times`` has each operator's time in the latest run.
    """

    def __init__(
        self,
        *,
        session_memory_dir: str | None = None,
        emulation_profiling_dir: str | None = None,
        neural_debug_database_dir: str | None = None,
        neural_statistics_dir: str | None = None,
        neural_statistics_mode: int = 1,
        operators: bool = False,
    ) -> None:
        """Raise MissingFileError or FileError for a folder, UsageError for a mode other than 0 and 1."""
        if neural_statistics_mode not in range(len(MODES)):
            raise UsageError(f"the mode of neural statistics is {neural_statistics_mode}, expected 0 or 1")
        folders = (session_memory_dir, emulation_profiling_dir, neural_debug_database_dir, neural_statistics_dir)
        self.folders = [folder for folder in folders if folder is not None]
        for folder in self.folders:
            check_existing_folder(folder)
        self._memory, self._profiles, self._databases, self._statistics = folders
        self._mode = neural_statistics_mode
        self.operator_times: list[OperatorTime] = []
        self._has_operators = operators
        if operators or emulation_profiling_dir is not None:
            os.environ.setdefault(PROFILING_VARIABLE, "1")
        self.reports = GraphReports(
            session_memory=session_memory_dir is not None,
            statistics_mode=None if neural_statistics_dir is None else neural_statistics_mode,
            debug_database=neural_debug_database_dir is not None,
        )

    def announce(self, plan: Plan) -> None:
        """Warn if the reports slow the run down."""
        if self._memory is not None and plan.graph_pipelines:
            reason = "to report their session memory, they use memory that the host can read"
            log.warning(__name__, "graphs may run slower: %s", reason)

    def write(self, device: Device, plan: Plan, graphs: Sequence[GraphPipeline]) -> None:
        """Write the files after a run with these graph pipelines. Raise FileError and DeviceError."""
        progress.set_work("writing what its graphs report")
        count = 0
        self.operator_times = []
        for number, graph in enumerate(graphs):
            label, name = plan.graph_pipelines[number].label, f"Graph_Pipeline_{number}"
            if self._databases is not None:
                content = property_of(device, graph.handle, DEBUG_DATABASE, label)
                reason = f"{label} has no debug database"
                _write_or_warn(self._databases, f"{name}_Debug_Database.bin", [content], reason)
            if self._statistics is not None:
                parts = [memory.content for memory in graph.memories if memory.is_statistics]
                name = f"{name}_Statistics_{self._mode}.bin"
                _write_or_warn(self._statistics, name, parts, f"{label} has no neural statistics")
            if self._profiles is not None or self._has_operators:
                content = property_of(device, graph.handle, EMULATION_PROFILE, label)
                if content is None:
                    reason = f"run with --ml-emulation on and {PROFILING_VARIABLE}=1 to get one"
                    log.warning(__name__, "%s has no profile: %s", label, reason)
                elif self._profiles is not None:
                    _write(self._profiles, f"EmulationLayerPipeline_{number}.json", [content])
                pipeline = plan.graph_pipelines[number]
                if content is not None and self._has_operators and not pipeline.is_optical_flow:
                    self.operator_times += operator_times(label, pipeline.code, content)
            if self._memory is not None:
                for index, memory in enumerate(graph.memories):
                    _write(self._memory, f"Graph_Pipeline_{count}_Session_RAM_{index}.txt", _rows(memory.content))
                    count += 1


def _write_or_warn(folder: str, name: str, parts: Sequence[bytes | memoryview | None], reason: str) -> None:
    """Write existing parts, or warn with ``reason``."""
    there = [part for part in parts if part is not None]
    if there:
        _write(folder, name, there)
    else:
        log.warning(__name__, "%s", reason)


def _write(folder: str, name: str, parts: Iterable[bytes | memoryview]) -> None:
    with OutputFile(os.path.join(folder, name)) as file:
        for part in parts:
            file.write(part)


def _rows(content: memoryview) -> Iterator[bytes]:
    """Yield a hexadecimal dump in 16-byte rows, after a newline and the offset: ``00000000:   00 01 …``."""
    step = _ROW_BYTES * _ROWS_AT_ONCE
    for start in range(0, len(content), step):
        digits = content[start : start + step].hex(" ").upper() + " "
        rows = range(0, len(digits), 3 * _ROW_BYTES)
        yield "".join(f"\n{start + at // 3:08X}:   {digits[at : at + 3 * _ROW_BYTES]}" for at in rows).encode()


# The JSON version. Raise it when a key's meaning changes.
SCHEMA = 1


FileVersion = tuple[int, int]


def file_version(path: str) -> FileVersion:
    """Return numbers to tell a file from a replacement; zeros for a missing file."""
    with suppress(OSError):
        status = os.stat(path)
        return status.st_ino, status.st_mtime_ns
    return 0, 0


class InstrumentationFile:
    """Collects measurements in a file, which is complete after each run."""

    required = staticmethod(instrumentation_required)

    def __init__(self, path: str, replaced: FileVersion | None = None) -> None:
        """Start a file. Raise FileError if no file can be written to ``path``.

        ``replaced`` is the file version to replace. If the file has another version, a process that crashed later wrote
        it, and the runs there stay.
        """
        check_destination(path)
        self.path = path
        is_ours = replaced is not None and file_version(path) != replaced
        self._runs: list[dict[str, Json]] = _runs_in(path) if is_ours else []

    def add(self, scenario: str, device: str, measured: Instrumentation) -> None:
        """Add measurements from a run of ``scenario``, and write the file. Raise FileError."""
        self._runs.append({"scenario": scenario, "results": measured.blocks})
        content = {
            "schema": SCHEMA,
            "device": device,
            "per_basic_block": measured.capability.per_basic_block,
            "metrics": [metric._asdict() for metric in measured.capability.metrics],
            "runs": self._runs,
        }
        with OutputFile(self.path) as file:
            file.write(json.dumps(content, indent=1).encode() + b"\n")


def _runs_in(path: str) -> list[dict[str, object]]:
    """Read the runs in a file; none from a file by another program."""
    try:
        return list(json.loads(read_file(path))["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return []  # another program has changed the file
