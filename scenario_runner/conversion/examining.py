"""The shaders of a model, examined: their attributes are read, their code is compiled, and the two are compared.

What was right is kept in the user's cache folder: reading attributes and modules takes most of the time of a
conversion, and models are converted again and again while other parts of them change.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from scenario_runner.content_cache import ContentCache, program_version
from scenario_runner.conversion.model import CustomOperation, Shader
from scenario_runner.custom_shader.attributes import Attributes, View
from scenario_runner.diagnostics import Diagnostic

_FEW_WORKGROUPS = "SR-CUSTOM-014"
# What decides which compilers are found.
_VARIABLES = ("PATH", "SCENARIO_RUNNER_GLSLANG", "SCENARIO_RUNNER_DXC", "SCENARIO_RUNNER_SPIRV_VAL")
_Labelled = Sequence[tuple[str, CustomOperation]]
"""Shaders, each with what messages call it."""


class _Examined(NamedTuple):
    """Attributes and local sizes of the shaders, in their order; nothing where something is wrong with one of them.

    The local size is that of the code, or of the attributes where code is not looked at or not there.
    """

    attributes: tuple[Attributes, ...]
    local_sizes: tuple[tuple[int, int, int], ...]
    findings: tuple[Diagnostic, ...]


def examine(
    shaders: _Labelled, dispatch: str, *, check: bool, compiler: str | None, use_cache: bool
) -> tuple[list[Shader], list[Diagnostic]]:
    """The shaders with attributes and workgroups, and what is wrong with them. The options are those of `convert`."""
    if not shaders:
        return [], []
    examined = _kept(shaders, check, compiler) if use_cache else _examined(shaders, check, compiler, use_cache=False)
    by_attributes = dispatch == "attributes"
    result = []
    for (_, operation), attributes, local_size in zip(shaders, examined.attributes, examined.local_sizes, strict=False):
        workgroups = attributes.workgroup_sizes
        if not by_attributes:
            shape = operation.results[0].type.static_shape
            assert shape is not None, "that is checked before"
            workgroups = covering_workgroups(shape, attributes.outputs[0], local_size)
        result.append(Shader(operation, attributes, workgroups))
    return result, [finding for finding in examined.findings if by_attributes or finding.code != _FEW_WORKGROUPS]


def covering_workgroups(shape: Sequence[int], view: View, local_size: Sequence[int]) -> tuple[int, int, int]:
    """The workgroups of ``local_size`` that have one invocation for each element of a value of this shape.

    x, y and z are width and height of an image; else the last dimension, the one before it, and all others. A buffer
    that is written by workgroups of one dimension is counted by its elements, in x. The components of a format count
    as one element where they are the last dimension.
    """
    sizes = list(shape)
    if view.format.components > 1 and sizes and sizes[-1] == view.format.components:
        sizes.pop()
    if view.kind == "buffer" and tuple(local_size[1:]) == (1, 1):
        sizes = [prod(sizes)]
    y, x = [1, 1, *sizes][-2:]
    extent = (x, y, prod(sizes[:-2]))
    return tuple(-(-size // local) for size, local in zip(extent, local_size, strict=True))  # type: ignore[return-value]


def _kept(shaders: _Labelled, check: bool, compiler: str | None) -> _Examined:
    """Load what was found about the same shaders before, or find and keep it."""
    described = [(label, shader.attributes, shader.types) for label, shader in shaders]
    variables = [os.environ.get(name) for name in _VARIABLES]
    key = repr(((sys.version, program_version(), check, compiler, variables), described)).encode()
    cache = ContentCache(None, "checked")
    kept = cache.load(key)
    if kept is not None:
        examined: _Examined = pickle.loads(kept)
        return examined
    examined = _examined(shaders, check, compiler, use_cache=True)
    if not any(finding.severity == "error" for finding in examined.findings):
        cache.store(key, pickle.dumps(examined))
        cache.evict()
    return examined


def _examined(shaders: _Labelled, check: bool, compiler: str | None, *, use_cache: bool) -> _Examined:
    # imports pydantic, which a conversion whose shaders are in the cache does not need
    from scenario_runner.custom_shader.agreement import check_shaders
    from scenario_runner.custom_shader.parsing import examine_attributes

    all_attributes: list[Attributes] = []
    findings: list[Diagnostic] = []
    for label, shader in shaders:
        operands, results = shader.types
        attributes, problems = examine_attributes(
            shader.attributes, operation=label, operands=len(operands), results=len(results)
        )
        findings += problems
        if attributes is not None:
            all_attributes.append(attributes)
    if len(all_attributes) < len(shaders):
        return _Examined((), (), tuple(findings))
    local_sizes = [attributes.workgroup_sizes for attributes in all_attributes]
    if check:
        types = [shader.types for _, shader in shaders]
        checked = check_shaders(all_attributes, types, compiler=compiler, use_cache=use_cache)
        findings += [finding for shader in checked for finding in shader.findings]
        local_sizes = [shader.local_size or shader.attributes.workgroup_sizes for shader in checked]
    return _Examined(tuple(all_attributes), tuple(local_sizes), tuple(findings))
