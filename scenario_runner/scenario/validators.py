"""The models, ready to validate what a file says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.scenario.model import Model


def model_of(home: tuple[str, str]) -> type[Model]:
    """The model class that a table of `dialects` names, ready to validate."""
    model: type[Model] = getattr(import_module(f"scenario_runner.scenario.{home[0]}"), home[1])
    if not model.__pydantic_complete__:
        build(model)
    return model


def build(model: type[Model]) -> None:
    """Build the validator of a model.

    Before its first build pydantic reads the metadata of every installed distribution in search of plugins, which costs
    more than all else here. Nothing here wants one, so for the time of the build an empty finder stands in for its own.
    """
    import sys
    from types import ModuleType

    name = "pydantic.plugin._loader"
    if name in sys.modules:
        model.model_rebuild()
        return
    finder = ModuleType(name)
    finder.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules[name] = finder
    try:
        model.model_rebuild()
    finally:
        del sys.modules[name]
