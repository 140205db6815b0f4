"""Expectations of a script as rules of a check.json.

An expectation is about the content of a buffer at that time. If a later command writes the buffer, a frame ends before
the command, and the rules are about the captured frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.importers.item_folders import file_error
from scenario_runner.importers.memory_layouts import as_json
from scenario_runner.importers.shader_script import SameContent, Script, Texels, Tolerance, Values

JsonObject = dict[str, Json]
_EXACT_RTOL: Final = 1e-8
"""Amber's tolerance for equal floats, 1e-6 percent."""
_TEXEL_TOLERANCE: Final = Tolerance(0.002, is_percent=False)
_ROUNDING: Final = 1e-6


@dataclass
class _Snapshot:
    """The content of a buffer at some time. ``output`` is the name in check.json, once it is known."""

    output: str
    rules: list[JsonObject] = field(default_factory=list)
    others: list[tuple[_Snapshot, JsonObject]] = field(default_factory=list)
    """Rules about the same content as another snapshot."""


class Expectations:
    """The expectations of a script. ``buffers`` are all buffers with an expectation."""

    def __init__(self, script: Script, images: Set[str]) -> None:
        self.buffers: set[str] = set()
        self._script, self._images = script, images
        self._snapshots: list[_Snapshot] = []
        self._current: dict[str, _Snapshot] = {}
        self._frames = 0

    @property
    def final(self) -> Set[str]:
        """The names of buffers with an expectation since the last write."""
        return self._current.keys()

    def end_frame(self, names: Iterable[str]) -> int:
        """Bind expectations about some buffers to a frame, and return the number of the frame."""
        for name in names:
            self._current.pop(name).output = f"frame_{self._frames}/{name}"
        self._frames += 1
        return self._frames - 1

    def outputs(self) -> JsonObject:
        """Return the rules by output."""
        outputs: JsonObject = {}
        for snapshot in self._snapshots:
            rules = [*snapshot.rules, *({"equals": other.output} | keys for other, keys in snapshot.others)]
            outputs[snapshot.output] = list[Json](rules) if len(rules) > 1 else next(iter(rules), {"unchecked": True})
        return outputs

    def add(self, row: Values | Texels | SameContent) -> None:
        """Add an expectation. Raises FileError and UnsupportedError."""
        snapshot = self._snapshot(row.buffer)
        if isinstance(row, SameContent):
            keys: JsonObject = {"metrics": {row.metric[0]: {"max": row.metric[1]}}} if row.metric else {}
            if row.metric and row.buffer not in self._images:
                keys["dtype"] = self._script.buffers[row.buffer].element.dtype or "uint8"
            snapshot.others.append((self._snapshot(row.other), keys))
        elif isinstance(row, Texels):
            snapshot.rules += self._texel_rules(row)
        elif row.buffer in self._images:
            snapshot.rules += self._row_rules(row)
        else:
            snapshot.rules += self._value_rules(row)

    def _snapshot(self, name: str) -> _Snapshot:
        if name not in self._current:
            self._current[name] = _Snapshot(name)
            self._snapshots.append(self._current[name])
            self.buffers.add(name)
        return self._current[name]

    def _value_rules(self, row: Values) -> list[JsonObject]:
        """Return a rule for each run of numbers with one type."""
        buffer = self._script.buffers[row.buffer]
        last = row.offset + (len(row.values) - 1) // len(row.element.numbers) * row.element.size_bytes
        if last >= buffer.count * buffer.element.size_bytes:
            raise file_error(self._script.path, f"{buffer.name!r} ends before the values", line=row.line)
        return [
            {"at": at, "values": as_json(values, dtype), "dtype": dtype} | _limits(row.tolerance, dtype)
            for at, dtype, values in row.element.runs(row.offset, row.values)
        ]

    def _row_rules(self, row: Values) -> list[JsonObject]:
        """Return a rule for each row of texels with values."""
        buffer = self._script.buffers[row.buffer]
        width, count = buffer.size[0], len(row.element.numbers)
        if width == 0:
            raise file_error(self._script.path, f"the image {buffer.name!r} has no size", line=row.line)
        keys = _limits(row.tolerance, row.element.numbers[0][1])
        if buffer.format is not None and "D" in buffer.format.channels:
            keys["channels"] = "D"
        first = row.offset // row.element.size_bytes
        dtype = row.element.numbers[0][1]
        texels = [as_json(row.values[start : start + count], dtype) for start in range(0, len(row.values), count)]
        rules: list[JsonObject] = []
        while texels:
            x, y = first % width, first // width
            part = texels[: width - x]
            rules.append({"rect": [x, y, len(part), 1], "values": [part]} | keys)
            first, texels = first + len(part), texels[len(part) :]
        return rules

    def _texel_rules(self, row: Texels) -> list[JsonObject]:
        """Return a rule for each group of channels with the same tolerance."""
        buffer = self._script.buffers[row.buffer]
        x, y, width, height = row.rect
        if row.buffer not in self._images or buffer.format is None:
            raise UnsupportedError("rectangles in buffers")
        if x + width > buffer.size[0] or y + height > buffer.size[1]:
            size = " x ".join(map(str, buffer.size))
            raise file_error(self._script.path, f"the rectangle ends outside of the {size} texels", line=row.line)
        tolerances = row.tolerances or [_TEXEL_TOLERANCE]
        tolerances = tolerances if len(tolerances) == len("RGBA") else tolerances[:1] * len("RGBA")
        groups: dict[Tolerance, str] = {}
        for channel, tolerance, _ in zip("RGBA", tolerances, row.color, strict=False):
            if channel in buffer.format.channels:
                groups[tolerance] = groups.get(tolerance, "") + channel
        rules = []
        for tolerance, channels in groups.items():
            values: list[float] = [row.color["RGBA".index(channel)] for channel in channels]
            rule: JsonObject = {"rect": list(row.rect), "channels": channels}
            if buffer.format.is_normalized:
                rule["normalized"] = True
            elif buffer.format.is_integer:
                if any(tolerance.of(value) < abs(value - round(value)) for value in values):
                    raise UnsupportedError("fractions of integers in an image")
                values = [round(value) for value in values]
            rule["values"] = list[Json](values)
            if row.tolerances and row.scale != 1 and not tolerance.is_percent:
                tolerance = Tolerance(tolerance.value * row.scale + _ROUNDING, is_percent=False)
            rules.append(rule | _limits(tolerance, ""))
        return rules


def _limits(tolerance: Tolerance | None, dtype: str) -> JsonObject:
    """Return the tolerance of numbers as keys of a rule."""
    if tolerance is None:
        return {"rtol": _EXACT_RTOL} if dtype.startswith("float") else {}
    return {"rtol": tolerance.value / 100} if tolerance.is_percent else {"atol": tolerance.value}
