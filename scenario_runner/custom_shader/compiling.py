"""The modules of embedded shaders: sources compiled side by side and through the cache, SPIR-V checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.shaders import Compiled, CompileRequest, compile_each

if TYPE_CHECKING:
    from scenario_runner.custom_shader.attributes import Attributes


def compile_shaders(
    shaders: Sequence[Attributes],
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
) -> list[bytes | ScenarioRunnerError | None]:
    """The SPIR-V module of each shader, None for a placeholder, or the error that there is in place of one.

    ``compiler`` names the GLSL compiler. Raises UsageError where the environment names a compiler or validator that is
    not there.
    """
    made: list[bytes | ScenarioRunnerError | None] = [None] * len(shaders)
    sources = [index for index, shader in enumerate(shaders) if isinstance(shader.code, str)]
    requests = [_request(shaders[index]) for index in sources]
    compiled = compile_each(requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache) if requests else []
    for index, outcome in zip(sources, compiled, strict=True):
        made[index] = outcome.module if isinstance(outcome, Compiled) else outcome
    given = {
        str(index): (_label(shader), shader.code)
        for index, shader in enumerate(shaders)
        if isinstance(shader.code, bytes)
    }
    if given:
        from scenario_runner.shaders.module_check import check_modules

        checked = check_modules(given, cache_dir=cache_dir, use_cache=use_cache)
        for key, (_, code) in given.items():
            made[int(key)] = checked.errors.get(key) or checked.complaints.get(key) or code
    return made


def _request(shader: Attributes) -> CompileRequest:
    assert isinstance(shader.code, str)
    return CompileRequest(
        language="HLSL" if shader.language == "HLSL" else "GLSL",
        source=shader.code,
        name=_label(shader),
        entry=shader.module_entry_point,
    )


def _label(shader: Attributes) -> str:
    return f"<shader_code of {shader.operation!r:.200}>"
