"""The Runner: one device, many scenarios.

A scenario becomes a plan (or the plan of an earlier run serves again), the device carries it out, and results go where
they are wanted: into arrays, into files, or both. When the device is opened and closed is `opened_device`'s matter.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner import log, progress
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.opened_device import DeviceOptions, OpenedDevice
from scenario_runner.output_files import FileWriter
from scenario_runner.plan.model import CompilerOptions
from scenario_runner.result import Collector, Result

if TYPE_CHECKING:
    from scenario_runner.instrumentation_file import InstrumentationFile
    from scenario_runner.plan.model import Plan
    from scenario_runner.scenario import Scenario
    from scenario_runner.start import InstanceStart
    from scenario_runner.vulkan.ml_emulation import Mode
    from scenario_runner.vulkan.physical_device import PhysicalDevice

StrPath = str | os.PathLike[str]


class Runner:
    """Runs scenarios on one device; use it in a ``with`` block, from one thread at a time.

    ``device`` is an index, UUID or name; ``timeout_s`` bounds the wait for submitted work; ``compiler`` is the path of
    a GLSL compiler; ``shader_instrumentation`` is a JSON file that gets what the device measures in shaders
    (VK_ARM_shader_instrumentation); the others are those of `DeviceOptions`. Nothing is opened before it is needed
    (``starting``: a driver that is being started already); `run` raises NoDeviceError when there is no device.
    """

    def __init__(
        self,
        device: str | int | None = None,
        *,
        robustness: bool = False,
        disabled_extensions: Collection[str] = (),
        validation: bool = False,
        timeout_s: float | None = None,
        compiler: str | None = None,
        cache_dir: str | None = None,
        use_cache: bool = True,
        ml_emulation: Mode = "auto",
        staging: bool = False,
        shader_instrumentation: StrPath | InstrumentationFile | None = None,
        starting: InstanceStart | None = None,
    ) -> None:
        if ml_emulation not in ("auto", "on", "off"):
            raise UsageError(f"ml_emulation is {ml_emulation!r}, expected 'auto', 'on' or 'off'")
        options = DeviceOptions(
            None if device is None else str(device),
            robustness,
            frozenset(disabled_extensions),
            validation,
            ml_emulation,
            staging,
            shader_instrumentation is not None,
        )
        if isinstance(shader_instrumentation, str | os.PathLike):
            from scenario_runner.instrumentation_file import InstrumentationFile

            shader_instrumentation = InstrumentationFile(os.fspath(shader_instrumentation))
        self._measured = shader_instrumentation
        self._opened = OpenedDevice(options, starting)
        self.timeout_s = timeout_s
        self.compiler = CompilerOptions(compiler, cache_dir, use_cache)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plan(
        self,
        scenario: StrPath | Scenario,
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Collection[str] | None = None,
        output_dir: StrPath | None = None,
    ) -> Plan:
        """What a run would do; see `plan.resolve.resolve`. No device is touched."""
        from scenario_runner.plan.resolve import resolve

        return resolve(
            _loaded(scenario), inputs=inputs, outputs=outputs, output_dir=_text(output_dir), compiler=self.compiler
        )

    def run(
        self,
        scenario: StrPath | Scenario,
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Collection[str] | None = None,
        output_dir: StrPath | None = None,
        capture_dir: StrPath | None = None,
        write_files: bool = True,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
    ) -> Result:
        """Run a scenario (a path, or one built in code) and return what it wrote, as NumPy arrays by uid.

        ``inputs`` replaces the initial content of buffers and raw_data. ``outputs`` names what is returned; by default
        whatever has a ``dst`` or is not readonly. Files named by ``dst`` are written unless ``write_files`` is false,
        relative to ``output_dir`` (default: the scenario's folder). ``repeat`` runs all commands that often, with the
        inputs restored before each iteration unless ``keep_state``.

        Raises a subclass of ScenarioRunnerError; nothing is written then.
        """
        loaded = _loaded(scenario)
        if outputs is None:
            outputs = _written(loaded)
        plan = self.plan(loaded, inputs, outputs=outputs, output_dir=output_dir)
        collector = Collector(plan)
        with FileWriter(plan, outputs=write_files, capture_dir=_text(capture_dir), repeat=repeat) as writer:
            self._execute(loaded, plan, (collector, writer), repeat=repeat, keep_state=keep_state, dry_run=dry_run)
        return collector.result()

    def run_to_files(
        self,
        scenario: StrPath | Scenario,
        *,
        output_dir: StrPath | None = None,
        capture_dir: StrPath | None = None,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
    ) -> Plan:
        """Run a scenario for its files alone: results go straight from the device to disk. Returns what was planned."""
        progress.doing("reading it")
        plan = self._plan_for_files(scenario, _text(output_dir))
        if capture_dir is None:  # without a folder nobody sees what frames capture
            plan = plan._replace(frames=tuple(frame._replace(captures=()) for frame in plan.frames))
        with FileWriter(plan, capture_dir=_text(capture_dir), repeat=repeat) as writer:
            self._execute(scenario, plan, (writer,), repeat=repeat, keep_state=keep_state, dry_run=dry_run)
        return plan

    def _plan_for_files(self, scenario: StrPath | Scenario, output_dir: str | None) -> Plan:
        """The plan of a scenario file, from the plan cache where nothing changed since."""
        if not (isinstance(scenario, (str, os.PathLike)) and self.compiler.use_cache):
            return self.plan(scenario, output_dir=output_dir)
        from scenario_runner.plan.cache import PlanCache, Settings

        compiler = self.compiler
        cache = PlanCache(Settings(os.fspath(scenario), output_dir, compiler.compiler, compiler.cache_dir))
        plan = cache.load()
        if plan is None:
            from scenario_runner.plan.facts import facts_of

            loaded = _loaded(scenario)
            plan = self.plan(loaded, output_dir=output_dir)
            facts = facts_of(loaded)
            if facts is not None:
                cache.store(plan, facts)
        return plan

    def _execute(
        self,
        scenario: StrPath | Scenario,
        plan: Plan,
        sinks: tuple[Collector | FileWriter, ...],
        *,
        repeat: int,
        keep_state: bool,
        dry_run: bool,
    ) -> None:
        from scenario_runner.vulkan.execution import RunOptions, execute

        if repeat < 1:
            raise UsageError(f"repeat is {repeat}, expected 1 or more")
        for warning in plan.warnings:
            log.warning(__name__, "%s", warning)
        measured = self._measured
        try:
            device = self._opened.device_for(plan)
            execute(
                device,
                plan,
                RunOptions(repeat, keep_state, dry_run, self.timeout_s, measured is not None),
                on_frame=lambda iteration, frame, pieces: _share(
                    pieces, [sink.frame(iteration, frame) for sink in sinks]
                ),
                on_outputs=lambda pieces: _share(pieces, [sink.outputs() for sink in sinks]),
                on_measured=None
                if measured is None
                else lambda found: measured.add(plan.name, device.physical.name, found),
            )
        except ScenarioRunnerError as error:
            if any(problem.path is None and problem.pointer is not None for problem in error.problems):
                _give_places(error, _loaded(scenario))
            raise

    @property
    def physical_device(self) -> PhysicalDevice:
        """The chosen physical device. Raises NoDeviceError."""
        return self._opened.physical_device

    @property
    def validation_messages(self) -> list[str]:
        """What the validation layer said so far (empty without ``validation``)."""
        return self._opened.messages

    @property
    def live_objects(self) -> dict[str, int]:
        """How many device objects of each kind exist now; all zero after `close`.

        What the device keeps for the next run has kinds of its own: pipelines, samplers, 'staging buffer', 'staging
        memory'.
        """
        return self._opened.live_objects

    def close(self) -> None:
        """Destroy the device and the instance; calling it again does nothing, and a later `run` opens both anew."""
        self._opened.close()


def _written(scenario: Scenario) -> list[str]:
    """The resources that shaders may have written."""
    return [each.uid for each in scenario.resources if getattr(each, "shader_access", "readonly") != "readonly"]


def _text(path: StrPath | None) -> str | None:
    return None if path is None else os.fspath(path)


def _loaded(scenario: StrPath | Scenario) -> Scenario:
    from scenario_runner.scenario import Scenario, load

    return scenario if isinstance(scenario, Scenario) else load(os.fspath(scenario))


def _share(pieces: Any, receivers: list[Any]) -> None:
    """Hand every piece to every receiver, then tell them that all is there."""
    for uid, view in pieces:
        for receiver in receivers:
            receiver.receive(uid, view)
    for receiver in receivers:
        receiver.finish()


def _give_places(error: ScenarioRunnerError, scenario: Scenario) -> None:
    """Turn the JSON pointers that the device's errors carry into file, line and column."""
    error.problems = tuple(
        scenario.problem(problem.pointer, problem.message, problem.help)
        if problem.path is None and problem.pointer is not None
        else problem
        for problem in error.problems
    )
