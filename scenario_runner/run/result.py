"""Run results as NumPy arrays, and prepared scenarios, planned once for many runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy

from scenario_runner.errors import UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import close_match, counted, listed
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.input import ArrayLike, is_model
from scenario_runner.files.npy import pack_depths
from scenario_runner.files.sandbox import allowing
from scenario_runner.files.vk_formats import ML_DTYPES, Format, ml_dtype
from scenario_runner.plan.accesses import Accesses
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.resolve import resolve, with_inputs
from scenario_runner.processes import progress
from scenario_runner.run.output_files import OutputFiles, Receive, Sink
from scenario_runner.run.timings import Timings
from scenario_runner.scenario.loader import as_scenario
from scenario_runner.vulkan.execute import RunOptions

if TYPE_CHECKING:
    from scenario_runner.vulkan.printf import Printed


# List titles → lines.
Notes: TypeAlias = "Mapping[str, Sequence[object]]"
StrPath = str | os.PathLike[str]
# Returns the number types that shaders give to buffers, by uid.
Types: TypeAlias = "Callable[[], Mapping[str, str]]"


class Arrays(Mapping[str, "numpy.ndarray[Any, Any]"]):
    """Arrays by uid.

    A buffer is 1-D and has the number type that all shaders give it, such as float32, or else int8. `array` returns the
    bytes, also as another type. An image is the first mip level as
    (height, width, items), with the same type as in a .npy file: an item for each component, or an unsigned integer for
    a packed format. `level` returns the other levels. A tensor keeps its shape and type; bfloat16 and float8 are types
    from the package ml_dtypes.

    An unknown uid raises KeyError, which lists all uids.
    """

    def __init__(self, data: dict[str, bytearray], plan: Plan, types: Types) -> None:
        self._data = data
        self._plan = plan
        self._types = types

    def __getitem__(self, uid: str) -> numpy.ndarray[Any, Any]:
        data = self._bytes(uid)
        plan = self._plan.resources[uid]
        if plan.npy is None:
            return self.level(uid)
        if plan.format is None:
            element = ELEMENTS.get(self._types().get(uid, ""))
            return self.array(uid, element.type if element and not len(data) % element.size_bytes else "int8")
        descr, shape = plan.npy
        return self.array(uid, _dtype(plan.format, descr), shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        """Return a headline, then each array's kind, type and shape."""
        rows = [(repr(uid), self._kind(uid), str(array.dtype), str(array.shape)) for uid, array in self.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        return "\n  ".join([self._headline(), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        """Show the arrays in a notebook."""
        from scenario_runner.run.result_html import arrays_html

        arrays = [(f"{label}, " if label else "", holder, uid) for label, holder in self._parts() for uid in holder]
        return arrays_html(self._headline(), arrays, self._plan, self._notes())

    def _parts(self) -> list[tuple[str, Arrays]]:
        """List the arrays for a notebook, with a label for each part."""
        return [("", self)]

    def _notes(self) -> Notes:
        """Return the texts above the arrays in a notebook."""
        return {}

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _headline(self) -> str:
        return f"{type(self).__name__} of {self._plan.name}: {counted(len(self), 'array')}"

    def _kind(self, uid: str) -> str:
        plan = self._plan.resources[uid]
        if plan.format is None:
            return str(plan.kind)
        return f"{plan.kind} {plan.format.name.removeprefix('VK_FORMAT_')}"

    def _bytes(self, uid: str) -> bytearray:
        data = self._data.get(uid)
        if data is not None:
            return data
        if not isinstance(uid, str) or not self._data:
            raise KeyError(f"{uid!r}: expected the uid of a resource that was read back; there are: {list(self)}")
        what = "was not read back (outputs=[...] does)" if uid in self._plan.resources else "does not exist"
        raise KeyError(f"{uid!r} {what}{close_match(uid, self._data)}; there are: {listed(self)}")

    def array(self, uid: str, dtype: Any = "int8", shape: tuple[int, ...] = (-1,)) -> numpy.ndarray[Any, Any]:
        """Return a resource's bytes as an array with ``dtype`` and ``shape``, without a copy.

        Raises KeyError for a resource not read back, and ValueError if its bytes do not fill ``dtype`` and ``shape``.
        """
        return numpy.frombuffer(self._bytes(uid), dtype=dtype).reshape(shape)

    def level(self, uid: str, level: int = 0, aspect: str | None = None) -> numpy.ndarray[Any, Any]:
        """Return an image's mip level as (height, width, items), without a copy.

        ``aspect`` chooses depth or stencil. A block-compressed level is (block rows, blocks in a row, bytes in a
        block). Raises KeyError for a level not read back, and TypeError for a resource other than an image.
        """
        data, plan = self._bytes(uid), self._plan.resources[uid]
        if not plan.is_image:
            raise TypeError(f"{uid!r} is not an image")
        part = plan.part(level, aspect)
        dtype, shape = plan.array_type(part)
        view = memoryview(data)[part.offset_bytes : part.end_bytes]
        if part.aspect == "depth" and dtype == "<u4":
            stencil = plan.part(level, "stencil") if "stencil" in plan.format.aspects else None
            stencils = None if stencil is None else memoryview(data)[stencil.offset_bytes : stencil.end_bytes]
            return numpy.frombuffer(pack_depths(view, stencils), dtype).reshape(shape)
        return numpy.frombuffer(view, dtype).reshape(shape)


def _dtype(format: Format | None, descr: str) -> object:
    """Return the NumPy type for items with the type ``descr`` in files."""
    return descr if format is None or format.numeric not in ML_DTYPES else ml_dtype(format.numeric)


class Frame(Arrays):
    """The captures at a frame boundary. ``iteration`` counts the repetitions from 0."""

    def __init__(self, data: dict[str, bytearray], plan: Plan, types: Types, frame_id: int, iteration: int) -> None:
        super().__init__(data, plan, types)
        self.frame_id = frame_id
        self.iteration = iteration

    def _headline(self) -> str:
        return f"Frame {self.frame_id} of iteration {self.iteration}: {counted(len(self), 'array')}"


class Result(Arrays):
    """A run's results: outputs by uid, ``frames`` in order, and warnings.

    If the caller asked for them, ``timings`` has the run's times, and ``printed`` the messages from shaders in command
    order.
    """

    def __init__(
        self,
        data: dict[str, bytearray],
        plan: Plan,
        types: Types,
        frames: list[Frame],
        timings: Timings | None = None,
        printed: tuple[Printed, ...] = (),
    ) -> None:
        super().__init__(data, plan, types)
        self.frames = frames
        self.warnings: tuple[Diagnostic, ...] = plan.warnings
        self.timings = timings
        self.printed = printed

    def _parts(self) -> list[tuple[str, Arrays]]:
        frames = [(f"frame {frame.frame_id} of iteration {frame.iteration}", frame) for frame in self.frames]
        return [("", self), *frames]

    def _notes(self) -> Notes:
        times = [] if self.timings is None else [self.timings.summary()]
        return {"times": times, "warnings": self.warnings, "printed by shaders": self.printed}

    def _headline(self) -> str:
        counts = {"frame": self.frames, "warning": self.warnings, "printed message": self.printed}
        extra = [counted(len(count), what) for what, count in counts.items()]
        return ", ".join([super()._headline(), *(text for text in extra if text[0] != "0")])


class Collector(Sink):
    """Keeps a run's outputs in ``data``, and the captures in ``frames``."""

    captures = True

    def __init__(self, plan: Plan, types: Types | None = None) -> None:
        self._plan = plan
        self._types = types or types_in(plan)
        self.data: dict[str, bytearray] = {}
        self.frames: list[Frame] = []

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        data: dict[str, bytearray] = {}
        self.frames.append(Frame(data, self._plan, self._types, frame.frame_id, iteration))
        return partial(_keep, data)

    def outputs(self) -> Receive:
        return partial(_keep, self.data)


def types_in(plan: Plan) -> Types:
    """Return a function that reads the number types of buffers from the shaders. Its first call does the work."""
    return cache(lambda: Accesses(plan).elements())


def _keep(data: dict[str, bytearray], uid: str, view: memoryview) -> None:
    data.setdefault(uid, bytearray()).extend(view)


# Arrays by name, or by position.
Inputs: TypeAlias = Mapping[Any, Any] | tuple[Any, ...]


# Carries out a plan and hands the results to sinks; returns messages from shaders.
Execute: TypeAlias = (
    "Callable[[Plan, tuple[Sink, ...], RunOptions, Timings | None, StrPath | None], tuple[Printed, ...]]"
)


def inputs_of_call(inputs: object, *more: object) -> Inputs:
    """Return a call's inputs: a mapping, a tuple of arrays, or arrays. Raise UsageError for a mixture."""
    if isinstance(inputs, tuple) and not more:
        return inputs
    if isinstance(inputs, Mapping):
        if more:
            raise UsageError("inputs are given both by name and by position, expected one mapping, or arrays")
        return inputs
    return () if inputs is None and not more else (inputs, *more)


def by_uid(inputs: Inputs) -> Mapping[str, object]:
    """Return a scenario's inputs. Raise UsageError for inputs by position."""
    if isinstance(inputs, Mapping):
        return inputs
    if inputs:
        raise UsageError(
            f"inputs[0] is a {type(inputs[0]).__name__}, expected a mapping: only the inputs of models have positions",
            help="give the inputs of a scenario by uid: {'x': array}",
        )
    return {}


class Prepared:
    """A scenario with its plan, from `Runner.prepare`, for use while the Runner is open.

    `Runner.prepare` compiles shaders, checks files and reads raw_data. Later changes on disk have no effect, except in
    the sources for initial content, which each run reads. Only the first run logs warnings. From the second run on, the
    Runner keeps small resources and recorded commands for the next run, until `close`.
    """

    def __init__(
        self,
        scenario: object,
        inputs: Inputs,
        outputs: Collection[str] | None,
        output_dir: StrPath | None,
        compiler: CompilerOptions,
        execute: Execute,
        forget: Callable[[object], None],
    ) -> None:
        """Read and plan a scenario, or a model's file. A scenario's inputs stay in the plan.

        ``execute`` carries out a plan. ``forget`` destroys the objects that the Runner keeps for this scenario.
        """
        self._by_uid: Callable[[Inputs], Mapping[str, ArrayLike]] = by_uid
        self._inputs: Mapping[str, ArrayLike] = {}
        if is_model(scenario):
            from scenario_runner.ml.model_scenario import BareModel

            model = BareModel(os.fspath(scenario))
            self._by_uid = model.by_uid
            self._scenario = model.scenario_with(model.by_uid(inputs), to_files=output_dir is not None)
        else:
            with progress.phase("parse", "scenario"):
                self._scenario, self._inputs = as_scenario(scenario), by_uid(inputs)
        if outputs is None:
            accessed = self._scenario.resources
            outputs = [entry.uid for entry in accessed if getattr(entry, "shader_access", "readonly") != "readonly"]
        self._outputs, self._output_dir = outputs, output_dir
        self._writes_files = self._scenario.path is not None or output_dir is not None
        self._compiler, self._execute, self._forget = compiler, execute, forget
        self._plan = self._plan_with({})
        self._types = types_in(self._plan)
        self._ran = False
        self._context = copy_context()  # with the Runner's sandbox, if any

    def _plan_with(self, inputs: Mapping[str, ArrayLike]) -> Plan:
        """Plan a run with other inputs."""
        with progress.phase("plan"):
            inputs = {**self._inputs, **inputs}
            return resolve(self._scenario, inputs, self._outputs, self._output_dir, self._compiler)

    @property
    def plan(self) -> Plan:
        """The plan for a run without inputs."""
        return self._plan

    def run(
        self,
        inputs: object = None,
        *more: object,
        capture_dir: StrPath | None = None,
        write_files: bool | None = None,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
        timings: bool | Timings = False,
    ) -> Result:
        """Run the scenario, with ``inputs`` for this run alone instead of the prepared inputs.

        ``inputs`` are buffers, tensors, images and raw_data (push constants) by uid. A model's inputs may also be given
        by position, name or binding number, as for `Runner.run`. ``timings`` may be the object for the
        measurements. The other arguments, the result and the errors are the same as for `Runner.run`.
        """
        measured = Timings() if timings is True else timings or None
        options = RunOptions(repeat, keep_state, dry_run)
        with self.placed_errors():
            arrays = self._by_uid(inputs_of_call(inputs, *more))
            context = self._context.copy()  # a second thread at the same time gets the Runner's error
            return context.run(self._run, arrays, capture_dir, write_files, options, measured)

    def execute(
        self,
        plan: Plan,
        options: RunOptions,
        timings: Timings | None,
        capture_dir: StrPath | None,
        write_files: bool | None,
    ) -> Result:
        """Carry out a plan, and keep outputs and captures in memory."""
        if write_files is None:
            write_files = self._writes_files
        collector = Collector(plan, self._types)
        sinks = (collector, OutputFiles(plan)) if write_files else (collector,)
        printed = self._execute(plan, sinks, options, timings, capture_dir)
        return Result(collector.data, plan, self._types, collector.frames, timings, printed)

    def placed_errors(self) -> AbstractContextManager[None]:
        """Give errors in a block their places in the scenario."""
        return self._scenario.placed_errors()

    def _run(
        self,
        inputs: Mapping[str, ArrayLike],
        capture_dir: StrPath | None,
        write_files: bool | None,
        options: RunOptions,
        timings: Timings | None,
    ) -> Result:
        with progress.measuring(timings.clock if timings else None), allowing(capture_dir):
            changed = with_inputs(self._plan, self._scenario, inputs)
            plan = changed or self._plan_with(inputs)
            if changed is not None and self._ran:
                options = options._replace(keep=self)
            if self._ran and plan.warnings:
                plan = plan._replace(warnings=())
            result = self.execute(plan, options, timings, capture_dir, write_files)
        self._ran = True
        return result

    def close(self) -> None:
        """Free the objects kept by the Runner for further runs; a later `run` makes new ones."""
        self._forget(self)

    def __repr__(self) -> str:
        outputs = ", ".join(repr(output.uid) for output in self._plan.outputs) or "none"
        return f"<Prepared {self._plan.name}, outputs: {outputs}>"
