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
from scenario_runner.importers.item_folders import JsonObject, file_error
from scenario_runner.importers.memory_layouts import as_json
from scenario_runner.importers.script import Buffer, SameContent, Script, Texels, Values
from scenario_runner.importers.statements import Tolerance

_EXACT_RTOL: Final = 1e-8
"""Amber's tolerance for equal floats, 1e-6 percent."""
_TEXEL_TOLERANCE: Final = Tolerance(0.002, is_percent=False)
_ROUNDING: Final = 1e-6
_NOTE: Final = "Amber does not divide TOLERANCE by 255, and accepts larger errors"
"""The note of rules with such a tolerance."""


@dataclass
class _Snapshot:
    """The content of a buffer at some time. ``output`` is the name in check.json, once it is known."""

    output: str
    rules: list[tuple[_Snapshot | None, JsonObject]] = field(default_factory=list)
    """Rules, some about the same content as another snapshot."""


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

    def outputs(self) -> dict[str, list[JsonObject]]:
        """Return the rules by output."""
        outputs: dict[str, list[JsonObject]] = {}
        for snapshot in self._snapshots:
            rules = [({"equals": other.output} if other else {}) | keys for other, keys in snapshot.rules]
            outputs[snapshot.output] = rules or [{"unchecked": True}]
        return outputs

    def add(self, row: Values | Texels | SameContent) -> None:
        """Add an expectation. Raises FileError and UnsupportedError."""
        snapshot, buffer = self._snapshot(row.buffer), self._script.buffers[row.buffer]
        is_image = row.buffer in self._images
        if isinstance(row, SameContent):
            keys: JsonObject = {"metrics": {row.metric[0]: {"max": row.metric[1]}}} if row.metric else {}
            if row.metric and not is_image:
                keys["dtype"] = buffer.element.dtype or "uint8"
            snapshot.rules.append((self._snapshot(row.other), keys))
            return
        if isinstance(row, Texels):
            rules = self._texel_rules(row, buffer, is_image)
        else:
            rules = self._row_rules(row, buffer) if is_image else self._value_rules(row, buffer)
        snapshot.rules += [(None, rule) for rule in rules]

    def _snapshot(self, name: str) -> _Snapshot:
        if name not in self._current:
            self._current[name] = _Snapshot(name)
            self._snapshots.append(self._current[name])
            self.buffers.add(name)
        return self._current[name]

    def _value_rules(self, row: Values, buffer: Buffer) -> list[JsonObject]:
        """Return a rule for each run of numbers with one type."""
        last = row.offset + (len(row.values) - 1) // len(row.element.numbers) * row.element.size_bytes
        if last >= buffer.count * buffer.element.size_bytes:
            raise file_error(self._script.path, f"{buffer.name!r} ends before the values", line=row.line)
        return [
            {"at": at, "values": as_json(values, dtype), "dtype": dtype} | _limits(row.tolerance, dtype)
            for at, dtype, values in row.element.runs(row.offset, row.values)
        ]

    def _row_rules(self, row: Values, buffer: Buffer) -> list[JsonObject]:
        """Return a rule for each row of texels with values."""
        width, count, dtype = buffer.size[0], len(row.element.numbers), row.element.numbers[0][1]
        if width == 0:
            raise file_error(self._script.path, f"the image {buffer.name!r} has no size", line=row.line)
        keys = _limits(row.tolerance, dtype)
        if buffer.element.format is not None and "D" in buffer.element.format.channels:
            keys["channels"] = "D"
        first = row.offset // row.element.size_bytes
        texels = [as_json(row.values[start : start + count], dtype) for start in range(0, len(row.values), count)]
        if first + len(texels) > width * buffer.size[1]:
            raise file_error(self._script.path, f"{buffer.name!r} ends before the values", line=row.line)
        rules: list[JsonObject] = []
        while texels:
            x, y = first % width, first // width
            part = texels[: width - x]
            rules.append({"rect": [x, y, len(part), 1], "values": [part]} | keys)
            first, texels = first + len(part), texels[len(part) :]
        return rules

    def _texel_rules(self, row: Texels, buffer: Buffer, is_image: bool) -> list[JsonObject]:
        """Return a rule for each group of channels with the same tolerance."""
        x, y, width, height = row.rect
        format = buffer.element.format
        if not is_image or format is None:
            raise UnsupportedError("rectangles in buffers")
        if x + width > buffer.size[0] or y + height > buffer.size[1]:
            size = " x ".join(map(str, buffer.size))
            raise file_error(self._script.path, f"the rectangle ends outside of the {size} texels", line=row.line)
        tolerances = row.tolerances or [_TEXEL_TOLERANCE]
        tolerances = tolerances if len(tolerances) == len("RGBA") else tolerances[:1] * len("RGBA")
        groups: dict[Tolerance, dict[str, float]] = {}
        for channel, tolerance, value in zip("RGBA", tolerances, row.color, strict=False):
            if channel in format.channels:
                groups.setdefault(tolerance, {})[channel] = value
        rules: list[JsonObject] = []
        for tolerance, color in groups.items():
            values: list[Json] = [*color.values()]
            if format.is_integer:
                if any(tolerance.of(value) < abs(value - round(value)) for value in color.values()):
                    raise UnsupportedError("fractions of integers in an image")
                values = [round(value) for value in color.values()]
            is_scaled = row.scale != 1 and not tolerance.is_percent and bool(row.tolerances)
            note = {"note": _NOTE} if is_scaled and tolerance.value else {}
            if is_scaled:
                tolerance = Tolerance(tolerance.value * row.scale + _ROUNDING, is_percent=False)
            rule: JsonObject = {"rect": list(row.rect), "channels": "".join(color)}
            rule |= {"normalized": True} if format.is_normalized else {}
            rule |= {"values": values} | _limits(tolerance, "")
            rules.append(rule | note)
        return rules


def _limits(tolerance: Tolerance | None, dtype: str) -> JsonObject:
    """Return the tolerance of numbers as keys of a rule."""
    if tolerance is None:
        return {"rtol": _EXACT_RTOL} if dtype.startswith("float") else {}
    return {"rtol": tolerance.value / 100} if tolerance.is_percent else {"atol": tolerance.value}
