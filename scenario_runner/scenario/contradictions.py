"""Parts of a scenario that are right alone and wrong together, as far as the JSON alone can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.byte_data import Span, collisions
from scenario_runner.diagnostics import Diagnostic, error

if TYPE_CHECKING:
    from scenario_runner.scenario.entry import Command, Resource


def check_contradictions(
    resources: Sequence[Resource | None],
    commands: Sequence[Command | None],
    resource_keys: Sequence[str] | None = None,
    command_keys: Sequence[str] | None = None,
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Errors and warnings, each as a problem with its pointer. References that lead nowhere are passed over here.

    Entries that could not be parsed are ``None``, as in `check_references`.
    """
    errors: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    by_uid = {resource.uid: resource for resource in resources if resource is not None}
    for name, entries, keys in (("resources", resources, resource_keys), ("commands", commands, command_keys)):
        for index, entry in enumerate(entries):
            if entry is None:
                continue
            for found in entry.contradictions(by_uid):
                here = f"/{name}/{index}/{keys[index] if keys else entry.kind}{found.pointer}"
                (errors if found.severity == "error" else warnings).append(found._replace(pointer=here))
    for index, kind, message in _memory_groups(resources):
        here = f"/resources/{index}/{resource_keys[index] if resource_keys else kind}"
        errors.append(error("SR-MEMORY-001", f"{here}/memory_group", message))
    return errors, warnings


def _memory_groups(resources: Sequence[Any]) -> Iterator[tuple[int, str, str]]:
    """Members of a memory group whose initial contents overlap: which one would win is anyone's guess."""
    groups: dict[str, list[tuple[Span, tuple[int, Any]]]] = {}
    for index, resource in enumerate(resources):
        group = getattr(resource, "memory_group", None)
        if group is not None and (resource.src is not None or resource.data is not None):
            size = resource.size if resource.kind == "buffer" else 1  # what is not a buffer has at least one byte
            span = (group.offset, group.offset + size)
            groups.setdefault(group.id, []).append((span, (index, resource)))
    for name, members in groups.items():
        for (index, resource), (_, other) in collisions(members):
            is_same = resource.src == other.src and resource.memory_group.offset == other.memory_group.offset
            if resource.src is None or not is_same:
                what = f"overlaps that of {other.uid!r:.100} in the memory group {name!r:.100}"
                yield index, resource.kind, f"the initial content of {resource.uid!r:.100} {what}"
