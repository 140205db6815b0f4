"""Push constants of the dispatches: their data against what the shader declares and the scenario says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioError, ScenarioRunnerError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.model import Source
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import DispatchCompute, Scenario

# Far above the maxPushConstantsSize of any device; keeps a wrong size or file from being taken into memory.
_MOST_BYTES = 1 << 16


class PushConstants:
    """Reads each raw_data once, and only when a dispatch uses it; what is wrong goes into ``problems``."""

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self._sources = sources
        self._problems = problems
        self._read: dict[str, bytes] = {}
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
            if shader.interface.push_constants is not None:
                self._problems.warn(
                    pointer,
                    f"shader {shader.uid!r} reads push constants, but the command has no push_data_ref; zeros are used",
                )
            return bytes(size)
        source = self._sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        if source.size_bytes != size:
            self._problems.error(
                ScenarioError,
                f"{pointer}/push_data_ref",
                f"raw_data {uid!r} holds {source.size_bytes} bytes, but the push_constants_size of shader"
                f" {shader.uid!r} is {size}",
                "both must be equal",
            )
            return b""
        if uid not in self._read:
            data = bytearray(size)
            try:
                source.read_into(memoryview(data))
            except ScenarioRunnerError as error:
                self._problems.add_error(error, f"{self._scenario.resource_pointer(uid)}/src")
            self._read[uid] = bytes(data)
        return self._read[uid]

    def _size(self, shader: LoadedShader) -> int | None:
        """The push_constants_size of a shader, None where it cannot be."""
        resource = self._scenario.resource(shader.uid)
        size: int = getattr(resource, "push_constants_size", 0)
        block = shader.interface.push_constants
        declared = 0 if block is None else block.size_bytes
        place = f"{shader.pointer}/push_constants_size"
        if size > _MOST_BYTES:
            self._problems.error(
                UnsupportedError, place, f"push_constants_size is {size}; no device takes more than {_MOST_BYTES}"
            )
            return None
        if declared > size:
            self._problems.error(
                ScenarioError,
                place,
                f"shader {shader.uid!r} declares {declared} bytes of push constants, but push_constants_size is {size}",
            )
            return None
        return size
