"""The Runner runs many scenarios on a device.

It plans each scenario, or takes an earlier run's plan from the plan cache, and lets the device execute the plan.
Results become arrays, files or both. `run.device_session` opens and closes the device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.files.input import ArrayLike, ParameterizedFile
from scenario_runner.files.sandbox import allowing, confined
from scenario_runner.plan.plan import Plan, PlanCache
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.processes import progress
from scenario_runner.run.device_session import DeviceOptions, DeviceSession, RunTools, Validation
from scenario_runner.run.output_files import OutputFiles, Sink
from scenario_runner.vulkan.execute import RunOptions
from scenario_runner.vulkan.instance import InstanceStart, Mode
from scenario_runner.vulkan.physical_device import checked_names

if TYPE_CHECKING:
    from scenario_runner.run.dump_files import DumpRequest
    from scenario_runner.run.graph_reports import GraphReportFiles, InstrumentationFile
    from scenario_runner.run.pipeline_caching import PipelineCaching
    from scenario_runner.run.result import Prepared, Result
    from scenario_runner.run.timings import Timings
    from scenario_runner.scenario import Scenario
    from scenario_runner.vulkan.capture_tools import RenderDocCaptures
    from scenario_runner.vulkan.printf import Printed, Printer

StrPath = str | os.PathLike[str]
AnyScenario: TypeAlias = "StrPath | Scenario | Mapping[str, Any]"


def _instrumentation(file: StrPath | InstrumentationFile | None) -> InstrumentationFile | None:
    """Return the file for shader measurements. Raise FileError."""
    if not isinstance(file, str | os.PathLike):
        return file
    from scenario_runner.run.graph_reports import InstrumentationFile

    return InstrumentationFile(os.fspath(file))


def _renderdoc(captured: str | None, folder: StrPath) -> RenderDocCaptures | None:
    """Return RenderDoc's captures. Raise UsageError and UnsupportedError."""
    if captured is None:
        return None
    from scenario_runner.vulkan.capture_tools import RenderDocCaptures

    return RenderDocCaptures(captured, os.fspath(folder))


def _printer(printf: bool | int) -> Printer | None:
    """Return the collector for shaders' messages. Raise UsageError."""
    if printf is False:
        return None
    from scenario_runner.vulkan.printf import Printer

    return Printer(None if printf is True else printf)


def _pipeline_caching(cache: bool | StrPath | PipelineCaching, cache_dir: str | None) -> PipelineCaching | None:
    """Return the pipeline cache, in the user's cache folder where ``cache`` is True. Raise FileError."""
    if not isinstance(cache, bool | str | os.PathLike):
        return cache or None
    if cache is False:
        return None
    from scenario_runner.run.pipeline_caching import PipelineCaching

    return PipelineCaching(None if cache is True else cache, cache_dir=cache_dir)


def _load(scenario: AnyScenario) -> Scenario:
    """Load a scenario from a path or data. Raise FileError and ScenarioError."""
    from scenario_runner.scenario.loader import as_scenario

    return as_scenario(scenario)


def _path_of(scenario: AnyScenario) -> str | None:
    """Return a scenario's file for messages; None for data and scenarios without a file."""
    return os.fspath(scenario) if isinstance(scenario, str | os.PathLike) else getattr(scenario, "path", None)


class Runner(DeviceSession):
    """Runs scenarios on a device; use it in a ``with`` block, from one thread at a time.

    - ``device``: an index, a UUID or part of a name. The default is the fastest kind of device.
    - ``robustness``: robust buffer and image access where the device has it.
    - ``disabled_extensions``: Vulkan extensions to leave disabled.
    - ``validation``: load the Khronos validation layer. Its errors fail a run, except with ``"report"``.
    - ``sync_validation``: let the layer look for hazards as well.
    - ``timeout_s``: the longest wait for submitted work.
    - ``compiler``: the path to a GLSL compiler.
    - ``cache_dir``, ``use_cache``: the caches' folder, and whether the Runner uses the caches.
    - ``ml_emulation``: run tensors and graphs through emulation layers: ``"auto"`` (where the device lacks them),
      ``"on"`` or ``"off"``.
    - ``staging``: copy all bytes on the device, even where the host could write resources in place.
    - ``shader_instrumentation``: a JSON file for the device's measurements of shaders (VK_ARM_shader_instrumentation).
    - ``sandbox``: raise `SandboxError` for scenarios reading or writing outside their own folder, the folders given
      for results and ``sandbox_files``.
    - ``pipeline_cache``: keep pipelines for other processes: True in the user's cache folder, a path in that folder, or
      a `PipelineCaching`.
    - ``graph_reports``: folders for files about graphs, a `GraphReportFiles`.
    - ``strict``: make warnings about a scenario errors, before anything runs.
    - ``debug_labels``: give tools names and labels even where no layer is loaded.
    - ``capture_frame``: let RenderDoc capture frames (``"0,2"``), single commands (``"command:5"``) or the whole
      ``"run"`` into .rdc files in ``capture_frame_dir``.
    - ``printf``: log and collect shaders' messages (`Result.printed`): True, or the bytes for one command.

    The first run opens the device, or raises NoDeviceError. ``starting`` is a Vulkan instance which another
    thread is creating: the command line starts sooner with it.
    """

    def __init__(
        self,
        device: str | int | None = None,
        *,
        robustness: bool = False,
        disabled_extensions: Collection[str] = (),
        validation: Validation = False,
        timeout_s: float | None = None,
        compiler: str | None = None,
        cache_dir: str | None = None,
        use_cache: bool = True,
        ml_emulation: Mode = "auto",
        staging: bool = False,
        shader_instrumentation: StrPath | InstrumentationFile | None = None,
        sandbox: bool = False,
        sandbox_files: Collection[StrPath] = (),
        pipeline_cache: bool | StrPath | PipelineCaching = False,
        graph_reports: GraphReportFiles | None = None,
        strict: bool = False,
        sync_validation: bool = False,
        debug_labels: bool = False,
        capture_frame: str | None = None,
        capture_frame_dir: StrPath = ".",
        printf: bool | int = False,
        starting: InstanceStart | None = None,
    ) -> None:
        if ml_emulation not in ("auto", "on", "off"):
            raise UsageError(f"ml_emulation is {ml_emulation!r}, expected 'auto', 'on' or 'off'")
        options = DeviceOptions(
            device=None if device is None else str(device),
            robustness=robustness,
            disabled_extensions=checked_names(disabled_extensions or ()),
            validation=validation,
            ml_emulation=ml_emulation,
            staging=staging,
            synchronization=sync_validation,
            labels=debug_labels,
        )
        tools = RunTools(
            instrumentation=_instrumentation(shader_instrumentation),
            renderdoc=_renderdoc(capture_frame, capture_frame_dir),
            printer=_printer(printf),
            graph_reports=graph_reports,
            pipeline_caching=_pipeline_caching(pipeline_cache, cache_dir),
        )
        super().__init__(options, tools, timeout_s, strict, starting)
        self.renderdoc = tools.renderdoc
        self.compiler = CompilerOptions(compiler, cache_dir, use_cache)
        self.sandbox = sandbox
        self._sandbox_files = sandbox_files
        folders = () if graph_reports is None else graph_reports.folders
        self._result_paths = (*folders, None if tools.instrumentation is None else tools.instrumentation.path)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # the block's own error matters more
            self._destroy()

    def __repr__(self) -> str:
        name = self.device_name
        return "<Runner, no device opened>" if name is None else f"<Runner on {name!r}>"

    def plan(
        self,
        scenario: AnyScenario,
        inputs: Mapping[str, ArrayLike] | None = None,
        *,
        outputs: Collection[str] | None = None,
        output_dir: StrPath | None = None,
    ) -> Plan:
        """Plan a run without a device; see `plan.resolve.resolve`."""
        from scenario_runner.plan.resolve import resolve

        with self._reading(scenario, output_dir):
            return resolve(_load(scenario), inputs, outputs, output_dir, self.compiler)

    def prepare(
        self,
        scenario: AnyScenario,
        inputs: object = None,
        *more: object,
        outputs: Collection[str] | None = None,
        output_dir: StrPath | None = None,
    ) -> Prepared:
        """Plan a scenario once, for many runs with other inputs or push constants, without a device.

        It takes the arguments of `run` and raises the same errors."""
        with self._reading(scenario, output_dir):
            return self._prepare(scenario, (inputs, *more), outputs, output_dir)

    def _prepare(
        self,
        scenario: AnyScenario,
        inputs: tuple[object, ...],
        outputs: Collection[str] | None,
        output_dir: StrPath | None,
    ) -> Prepared:
        """Read and plan a scenario or a model, with the inputs from a call."""
        from scenario_runner.run.result import Prepared, inputs_of_call

        arguments = inputs_of_call(*inputs)
        return Prepared(scenario, arguments, outputs, output_dir, self.compiler, self._execute, self._forget)

    def run(
        self,
        scenario: AnyScenario,
        inputs: object = None,
        *more: object,
        outputs: Collection[str] | None = None,
        output_dir: StrPath | None = None,
        capture_dir: StrPath | None = None,
        write_files: bool | None = None,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
        timings: bool = False,
    ) -> Result:
        """Run a scenario and return its outputs as NumPy arrays by uid.

        ``scenario`` is a path, a `Scenario`, a dict with the JSON's content, or a model's path. A model takes
        ``inputs`` by position (``run(model, x, h)``), name or binding number (``run(model, {"x": x})``), and writes
        files only with ``output_dir``. An array is a NumPy array, bytes or an object with ``__array__`` or
        ``__dlpack__``.

        ``inputs`` replaces resources' initial content. ``outputs`` names the resources to return (a uid, or
        several); the default is every resource with a ``dst`` or writable by shaders. The run writes the files named by
        ``dst``, relative to ``output_dir`` (default: the scenario's folder). ``write_files`` decides about files; the
        default is true, but for a scenario given in code only with ``output_dir``. ``repeat`` counts iterations. Each
        iteration starts with the inputs again, unless ``keep_state``. ``timings`` measures the run: see
        `Result.timings`.

        Raises a subclass of ScenarioRunnerError. A failed run writes no outputs; earlier frames' captures stay.
        """
        from scenario_runner.run.timings import Timings

        measured = Timings() if timings else None
        options = RunOptions(repeat, keep_state, dry_run)
        with (
            self._reading(scenario, output_dir, capture_dir),
            progress.measuring(measured.clock if measured else None),
        ):
            prepared = self._prepare(scenario, (inputs, *more), outputs, output_dir)
            with prepared.placed_errors():
                return prepared.execute(prepared.plan, options, measured, capture_dir, write_files)

    def run_to_files(
        self,
        scenario: AnyScenario,
        *,
        output_dir: StrPath | None = None,
        capture_dir: StrPath | None = None,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
        timings: Timings | None = None,
        dump: DumpRequest | None = None,
        write_files: bool = True,
    ) -> Plan:
        """Run a scenario and write the results from the device straight to disk. Return the plan.

        ``timings`` takes the measurements. ``dump`` writes resources' content after commands as well, or alone
        without ``write_files``."""
        progress.set_work("reading it")
        options = RunOptions(repeat, keep_state, dry_run)
        with (
            self._reading(scenario, output_dir, capture_dir, None if dump is None else dump.folder),
            progress.measuring(timings.clock if timings else None),
        ):
            with progress.phase("plan"):
                plan = self._plan_for_files(scenario, output_dir)
            if dump is None:
                self._execute(plan, (OutputFiles(plan),), options, timings, capture_dir)
                return plan
            from scenario_runner.run.dump_files import DumpFiles

            files = DumpFiles(_load(scenario), plan, dump, options, lambda: self.device_name)
            sinks: tuple[Sink, ...] = (OutputFiles(files.whole), files) if write_files else (files,)
            self._execute(files.plan, sinks, options, timings, capture_dir)
        return plan

    def run_into(
        self, scenario: AnyScenario, receive: Callable[[Plan], Sink], *, repeat: int = 1, keep_state: bool = False
    ) -> Plan:
        """Run a scenario and hand the results, piece by piece, to the sink ``receive`` makes from the plan.

        No file is written. Small resources stay for the next scenario with equal shaders and sizes. The other
        arguments, the returned plan and the errors are the same as for `run_to_files`."""
        with self._reading(scenario):
            plan = self._plan_for_files(scenario, None)
            self._execute(plan, (receive(plan),), RunOptions(repeat, keep_state, keep=self))
            return plan

    def _plan_for_files(self, scenario: AnyScenario, output_dir: StrPath | None) -> Plan:
        """Return a scenario's plan, from the plan cache where no file has changed."""
        if not (isinstance(scenario, (str, os.PathLike)) and self.compiler.use_cache):
            return self.plan(scenario, output_dir=output_dir)
        folder = None if output_dir is None else os.fspath(output_dir)
        file = scenario if isinstance(scenario, ParameterizedFile) else os.fspath(scenario)
        cache = PlanCache(file, folder, self.compiler, sandbox=self.sandbox)
        plan = cache.load()
        if plan is not None:
            return plan
        from scenario_runner.plan.resolve import resolve_to_keep
        from scenario_runner.scenario.loader import load, loads

        with progress.phase("parse", "scenario"):
            parameters = file.parameters if isinstance(file, ParameterizedFile) else None
            text, path = cache.text, os.fspath(file)
            loaded = load(file) if text is None else loads(text, path, parameters=parameters)
        plan, facts = resolve_to_keep(loaded, output_dir=folder, compiler=self.compiler)
        if facts is not None:
            cache.store(plan, facts)
        return plan

    def _confined(self, scenario: AnyScenario) -> AbstractContextManager[None]:
        """Return a scenario's sandbox, if the Runner confines scenarios."""
        if not self.sandbox:
            return nullcontext()
        path = _path_of(scenario)
        files = self._sandbox_files if path is None else [*self._sandbox_files, path]  # a model may be a link
        folder = getattr(scenario, "base_dir", ".")
        if isinstance(scenario, str | os.PathLike):
            folder = os.path.dirname(os.path.abspath(scenario))
        return confined([folder], files)

    @contextmanager
    def _reading(self, scenario: AnyScenario, *chosen: StrPath | None) -> Iterator[None]:
        """Confine a block to the scenario's sandbox (if any) and the ``chosen`` paths.

        The block's errors get places in the scenario's file.
        """
        try:
            with self._confined(scenario), allowing(*chosen, *self._result_paths):
                yield
        except ScenarioRunnerError as error:
            unplaced = any(problem.path is None and problem.pointer is not None for problem in error.problems)
            if unplaced and not isinstance(scenario, Mapping):
                _load(scenario).place_problems(error)
            error.at(path=_path_of(scenario))
            raise

    @property
    def frame_captures(self) -> list[str]:
        """RenderDoc's capture files so far (none without ``capture_frame``)."""
        return [] if self.renderdoc is None else list(self.renderdoc.files)

    @property
    def printed(self) -> list[Printed]:
        """Messages printed by shaders in the latest run, which may have failed (none without ``printf``)."""
        return [] if self._tools.printer is None else self._tools.printer.messages

    def close(self) -> None:
        """Destroy the device and the instance. A second call does nothing; a later `run` opens both again.

        Raises ValidationLayerError if the validation layer reports errors about their end.
        """
        self._destroy()
        self._raise_validation_errors()
