"""The scenario as the user wrote it: the models of every resource and command, the loader and the reference checks. No
GPU.

``load`` and ``loads`` give a frozen `Scenario`; ``Scenario(resources=..., commands=...)`` builds one in code from the
models. Names are imported when they are first used, because pydantic is the costliest import of a plain run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.scenario.commands import *  # noqa: F403
    from scenario_runner.scenario.entries import *  # noqa: F403
    from scenario_runner.scenario.loader import *  # noqa: F403
    from scenario_runner.scenario.resources import *  # noqa: F403
    from scenario_runner.scenario.scenario import *  # noqa: F403
    from scenario_runner.scenario.schema import *  # noqa: F403
    from scenario_runner.scenario.shaders import *  # noqa: F403

_NAMES = {
    "scenario": ("Scenario",),
    "loader": ("from_dict", "load", "loads"),
    "entries": ("Command", "Model", "Resource"),
    "resources": (
        *("Buffer", "Image", "MemoryGroup", "RawData", "Tensor"),
        *("BufferBarrier", "ImageBarrier", "MemoryBarrier", "TensorBarrier", "SubresourceRange"),
    ),
    "shaders": (
        *("Graph", "GraphConstant", "Shader"),
        *("ShaderSubstitution", "SpecializationConstant", "SpecializationConstantMap"),
    ),
    "commands": (
        *("DispatchCompute", "DispatchFragment", "DispatchGraph", "DispatchOpticalFlow", "DispatchSpirvGraph"),
        *("DispatchBarrier", "MarkBoundary", "Binding", "ColorAttachment", "OpticalFlowBindings", "PushConstantMap"),
    ),
    "schema": ("json_schema",),
}

_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
