"""The models, ready to validate what a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.kinds import CommandKind, ResourceKind

if TYPE_CHECKING:
    from scenario_runner.scenario.model import Model


def model_of(kind: ResourceKind | CommandKind) -> type[Model]:
    """The model class of a kind, ready to validate."""
    model: type[Model] = kind.model
    if not model.__pydantic_complete__:
        build(model)
    return model


def build(model: type[Model]) -> None:
    """Build the validator of a model.

    Before its first build pydantic imports what reads the metadata of installed distributions, in search of plugins.
    That costs 20 ms, with PYDANTIC_DISABLE_PLUGINS as well; the build costs half of one. Nothing here wants a plugin,
    so for the time of the build an empty finder stands in for its own.
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
