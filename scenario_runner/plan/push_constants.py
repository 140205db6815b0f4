"""Push constants of the dispatches: their data against what the shader declares and the scenario says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.checks.push_constants import check_data, check_missing_data, check_size, layout_size, padded
from scenario_runner.errors import ScenarioRunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_runner.plan.model.records import Source
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario


class PushConstants:
    """Reads each raw_data once, and only when a dispatch uses it; what is wrong goes into ``problems``.

    ``read`` are the bytes of those that were read, by uid.
    """

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self._sources = sources
        self._problems = problems
        self.read: dict[str, bytes] = {}
        self._fits: dict[tuple[str, int], bool] = {}

    def of(self, command: Any, shaders: Sequence[LoadedShader], pointer: str) -> bytes:
        """The push constants that the shaders of a dispatch see, empty where something is wrong with them.

        ``command`` is a dispatch_compute or a dispatch_fragment.
        """
        size = self._given_size(shaders)
        uid: str | None = command.push_data_ref
        fits = [self._check(shader, size) for shader in shaders]
        if not all(fits):
            return b""
        if uid is None:
            for shader in shaders:
                self._problems.report(check_missing_data(shader.uid, shader.interface, pointer))
            return bytes(self.size(shaders))
        source = self._sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(each.uid) for each in shaders)
        interfaces = [shader.interface for shader in shaders]
        found = check_data(label, interfaces, size, uid, source.size_bytes, f"{pointer}/push_data_ref")
        return padded(self.data(uid) or b"") if self._problems.report(found) else b""

    def data(self, uid: str) -> bytes | None:
        """The bytes of a raw_data; None where something is wrong with it, which is reported there."""
        source = self._sources.get(uid)
        if source is None:
            return None
        if uid not in self.read:
            data = bytearray(source.size_bytes)
            try:
                source.read_into(memoryview(data))
            except ScenarioRunnerError as error:
                self._problems.add_error(error, f"{self._scenario.resource_pointer(uid)}/src")
            self.read[uid] = bytes(data)
        return self.read[uid]

    def size(self, shaders: Sequence[LoadedShader]) -> int:
        """Bytes of the range in the pipeline layout of shaders that run together."""
        size = self._given_size(shaders)
        return max(layout_size(size, shader.interface) for shader in shaders)

    def _given_size(self, shaders: Sequence[LoadedShader]) -> int:
        """The largest push_constants_size of the shaders; 0 where all leave it out."""
        given = {
            shader.uid: getattr(self._scenario.resource(shader.uid), "push_constants_size", 0) for shader in shaders
        }
        if not any(given.values()):
            return 0
        return max(given[shader.uid] or layout_size(0, shader.interface) for shader in shaders)

    def _check(self, shader: LoadedShader, size: int) -> bool:
        """Whether a shader can have push constants of this size; what is wrong is noted once."""
        key = (shader.uid, size)
        if key not in self._fits:
            findings = check_size(shader.uid, shader.interface, size, shader.pointer)
            self._fits[key] = self._problems.report(findings)
        return self._fits[key]
