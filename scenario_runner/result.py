"""Results: what a run wrote, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    from scenario_runner.errors import Problem
    from scenario_runner.plan.model import FramePlan


class Arrays(Mapping[str, "numpy.ndarray[Any, Any]"]):
    """Arrays by uid. A buffer is 1-D int8, as the file of its ``dst`` is; `array` gives it another type."""

    def __init__(self, data: dict[str, bytearray]) -> None:
        self._data = data

    def __getitem__(self, uid: str) -> numpy.ndarray[Any, Any]:
        return self.array(uid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def array(self, uid: str, dtype: Any = "int8", shape: tuple[int, ...] = (-1,)) -> numpy.ndarray[Any, Any]:
        """The bytes of a resource as an array of ``dtype`` and ``shape``, without a copy.

        Raises KeyError for a resource that was not read back, ValueError where the size does not fit.
        """
        import numpy

        return numpy.frombuffer(self._data[uid], dtype=dtype).reshape(shape)


class Frame(Arrays):
    """What one frame boundary captured. ``iteration`` counts from 0 and is above 0 only with ``repeat``."""

    def __init__(self, data: dict[str, bytearray], frame_id: int, iteration: int) -> None:
        super().__init__(data)
        self.frame_id = frame_id
        self.iteration = iteration


class Result(Arrays):
    """What a run left behind: the outputs by uid, ``frames`` in the order in which they ended, and warnings."""

    def __init__(self, data: dict[str, bytearray], frames: list[Frame], warnings: tuple[Problem, ...]) -> None:
        super().__init__(data)
        self.frames = frames
        self.warnings = warnings


class _Receiver:
    """Takes pieces of resources and keeps them."""

    def __init__(self) -> None:
        self.data: dict[str, bytearray] = {}

    def receive(self, uid: str, view: memoryview) -> None:
        self.data.setdefault(uid, bytearray()).extend(view)

    def finish(self) -> None:
        """All is there; nothing to do."""


class Collector:
    """Gathers what a run hands back."""

    def __init__(self) -> None:
        self._outputs = _Receiver()
        self._frames: list[Frame] = []

    def frame(self, iteration: int, frame: FramePlan) -> _Receiver:
        receiver = _Receiver()
        self._frames.append(Frame(receiver.data, frame.frame_id, iteration))
        return receiver

    def outputs(self) -> _Receiver:
        return self._outputs

    def result(self, warnings: tuple[Problem, ...]) -> Result:
        return Result(self._outputs.data, self._frames, warnings)
