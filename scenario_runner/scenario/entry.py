"""The bases of every resource and every command: what an entry tells about itself beyond its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.scenario.model import Model

Use = tuple[str, str, frozenset[str]]
"""Where in the entry a uid stands (a JSON pointer), the uid, and the kinds that it may have."""

STORAGE = frozenset({"buffer", "tensor", "image"})
"""Kinds that a binding can show to a shader."""


class Entry(Model):
    """What resources and commands have in common.

    The methods are called when all entries of a scenario are there; ``resources`` are those by uid, without any that is
    wrong. What a reference that leads nowhere would say is left out: `references.check_references` reports it.
    """

    def references(self) -> Iterable[Use]:
        """Every uid of another resource that the entry names."""
        return ()

    def contradictions(self, resources: Resources) -> Iterable[Diagnostic]:
        """What does not fit together, and warnings of what has no effect; each pointer starts from the entry."""
        return ()


class Resource(Entry):
    """Any resource; its class has a ``kind``, and each one has a ``uid``."""

    uid: str


class Command(Entry):
    """Any command; its class has a ``kind``."""

    @property
    def work(self) -> str:
        """What messages call the work of the command."""
        return self.kind

    def shaders(self) -> tuple[str, ...]:
        """uids of the shaders that the command runs; they are compiled or read before the command is resolved."""
        return ()

    def shown(self) -> tuple[str, ...]:
        """uids of the resources that are read back after the command."""
        return ()


Resources = Mapping[str, Resource]


def found(resources: Resources, uid: str | None, kind: str) -> Any:
    """The resource with a uid, where there is one of the kind, else None."""
    resource = resources.get(uid or "")
    return resource if resource is not None and resource.kind == kind else None


def repeated(values: Iterable[Any]) -> Iterable[tuple[int, int]]:
    """The position of each value that was there before, with the first position of it."""
    seen: dict[Any, int] = {}
    for index, value in enumerate(values):
        first = seen.setdefault(value, index)
        if first != index:
            yield index, first


def each_of(name: str, uids: Iterable[str], kinds: frozenset[str]) -> Iterable[Use]:
    """The uses of a list of uids."""
    return ((f"/{name}/{index}", uid, kinds) for index, uid in enumerate(uids))
