"""Push constants of the dispatches: their data against what the shader declares and the scenario says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.push_constants import check_data, check_missing_data, check_size
from scenario_runner.errors import ScenarioRunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.model.records import Source
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import DispatchCompute, Scenario


class PushConstants:
    """Reads each raw_data once, and only when a dispatch uses it; what is wrong goes into ``problems``.

    ``read`` are the bytes of those that were read, by uid.
    """

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self._sources = sources
        self._problems = problems
        self.read: dict[str, bytes] = {}
        self._sizes: dict[str, int | None] = {}

    def of(self, command: DispatchCompute, shader: LoadedShader, pointer: str) -> bytes:
        """The push constants of one dispatch, empty where something is wrong with them."""
        if shader.uid not in self._sizes:
            self._sizes[shader.uid] = self._size(shader)
        size = self._sizes[shader.uid]
        uid = command.push_data_ref
        if size is None:
            return b""
        if uid is None:
            self._problems.report(check_missing_data(shader.uid, shader.interface, pointer))
            return bytes(size)
        source = self._sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = f"shader {shader.uid!r}"
        if not self._problems.report(check_data(label, size, uid, source.size_bytes, pointer)):
            return b""
        return self.data(uid) or b""

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

    def _size(self, shader: LoadedShader) -> int | None:
        """The push_constants_size of a shader, None where it cannot be."""
        resource = self._scenario.resource(shader.uid)
        size: int = getattr(resource, "push_constants_size", 0)
        good = self._problems.report(check_size(shader.uid, shader.interface, size, shader.pointer))
        return size if good else None
