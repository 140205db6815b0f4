"""The shaders of a model, examined: their attributes are read, their code is compiled, and the two are compared.

What was right is kept in the user's cache folder: reading attributes and modules takes most of the time of a
conversion, and models are converted again and again while other parts of them change.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import NamedTuple

from scenario_runner.content_cache import ContentCache, program_version
from scenario_runner.conversion.model import CustomOperation, Value
from scenario_runner.custom_shader import Attributes, ValueType
from scenario_runner.diagnostics import Diagnostic

# What decides which compilers are found.
_VARIABLES = ("PATH", "SCENARIO_RUNNER_GLSLANG", "SCENARIO_RUNNER_DXC", "SCENARIO_RUNNER_SPIRV_VAL")


class CheckOptions(NamedTuple):
    """Whether shaders are compiled and compared with their attributes; the GLSL compiler; whether caches are used."""

    check: bool = True
    compiler: str | None = None
    use_cache: bool = True


class Examined(NamedTuple):
    """Attributes and local sizes of the shaders, in their order; nothing where something is wrong with one of them."""

    attributes: tuple[Attributes, ...]
    local_sizes: tuple[tuple[int, int, int], ...]
    findings: tuple[Diagnostic, ...]


def examine(shaders: Sequence[tuple[str, CustomOperation]], options: CheckOptions) -> Examined:
    """Examine shaders, each with what messages call it.

    The local size is that of the code, or of the attributes where code is not looked at or not there. Nothing is raised
    for what is wrong with a shader.
    """
    if not shaders:
        return Examined((), (), ())
    described = [
        (label, shader.attributes, _texts(shader.operands), _texts(shader.results)) for label, shader in shaders
    ]
    variables = [os.environ.get(name) for name in _VARIABLES]
    settings = (sys.version, program_version(), options.check, options.compiler, variables)
    key = repr((settings, described)).encode()
    cache = ContentCache(None, "checked", max_entries=4096, max_total_bytes=256 << 20)
    found = _kept(cache, key) if options.use_cache else None
    if found is None:
        found = _examined(shaders, options)
        if options.use_cache and not any(finding.severity == "error" for finding in found.findings):
            cache.store(key, pickle.dumps(found))
            cache.evict()
    return found


def _kept(cache: ContentCache, key: bytes) -> Examined | None:
    kept = cache.load(key)
    if kept is None:
        return None

    try:
        found = pickle.loads(kept)
    except Exception:
        return None  # an entry that is not ours
    return found if isinstance(found, Examined) else None


def _texts(values: Sequence[Value]) -> list[str]:
    return [value.type.text for value in values]


def _examined(shaders: Sequence[tuple[str, CustomOperation]], options: CheckOptions) -> Examined:
    # imports pydantic, which a conversion whose shaders are in the cache does not need
    from scenario_runner.custom_shader import check_shaders, examine_attributes

    all_attributes: list[Attributes] = []
    findings: list[Diagnostic] = []
    for label, operation in shaders:
        attributes, found = examine_attributes(
            operation.attributes,
            operation=label,
            operands=len(operation.operands),
            results=len(operation.results),
        )
        findings += found
        if attributes is not None:
            all_attributes.append(attributes)
    if len(all_attributes) < len(shaders):
        return Examined((), (), tuple(findings))
    local_sizes = [attributes.workgroup_sizes for attributes in all_attributes]
    if options.check:
        types = [(_types(operation.operands), _types(operation.results)) for _, operation in shaders]
        checked = check_shaders(all_attributes, types, compiler=options.compiler, use_cache=options.use_cache)
        for number, each in enumerate(checked):
            findings += each.findings
            size = None if each.interface is None else each.interface.local_size()
            if size is not None:
                local_sizes[number] = size
    return Examined(tuple(all_attributes), tuple(local_sizes), tuple(findings))


def _types(values: Sequence[Value]) -> list[ValueType]:

    return [ValueType(value.type.shape, value.type.element) for value in values]
