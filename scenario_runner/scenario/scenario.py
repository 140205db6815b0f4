"""A scenario: what the user wrote, frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError

if TYPE_CHECKING:
    import os

    from scenario_runner.scenario.entry import Command, Resource
    from scenario_runner.scenario.places import Places

MAX_PROBLEMS = 100
"""Problems reported for one file."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Resources and the commands that use them, in the order of the file.

    From a file by `load` or `loads`; in code as ``Scenario(resources=[...], commands=[...])``, with the same checks of
    references and contradictions: raises `ScenarioError` with everything that is wrong. ``base_dir`` is the folder that
    relative paths in it start from. The fields after ``warnings`` are the loader's: the kinds as the file spells them,
    and its text.
    """

    resources: Sequence[Resource] = ()
    commands: Sequence[Command] = ()
    path: str | None = None
    base_dir: str = "."
    warnings: tuple[Diagnostic, ...] = ()
    resource_keys: Sequence[str] | None = field(default=None, repr=False, compare=False)
    command_keys: Sequence[str] | None = field(default=None, repr=False, compare=False)
    text: str | None = field(default=None, repr=False, compare=False)
    _index: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _places: list[Places] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        from scenario_runner.scenario.contradictions import check_contradictions
        from scenario_runner.scenario.references import check_references

        object.__setattr__(self, "resources", tuple(self.resources))
        object.__setattr__(self, "commands", tuple(self.commands))
        for name in ("resources", "commands"):
            _check_kinds(name, getattr(self, name))
        self._index.update({resource.uid: index for index, resource in reversed(list(enumerate(self.resources)))})
        problems = check_references(self.resources, self.commands, self.resource_keys, self.command_keys)
        errors, warnings = check_contradictions(self.resources, self.commands, self.resource_keys, self.command_keys)
        problems += errors
        if problems:
            placed = [self.placed(problem) for problem in problems[: MAX_PROBLEMS + 1]]
            raise ScenarioError(limited(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))))
        warnings = [*self.warnings, *warnings]
        object.__setattr__(self, "warnings", tuple(self.placed(warning) for warning in warnings[:MAX_PROBLEMS]))

    def to_json(self) -> str:
        """The text of a file that says the same in the folder ``base_dir``.

        Raises `ScenarioError` for content that JSON cannot hold (``data``, ``source``); `save` writes it to files.
        """
        from scenario_runner.scenario.writing import to_json

        return to_json(self.resources, self.commands)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a scenario file, and each ``data`` and ``source`` to a file beside it: ``<file>_<uid>.npy`` and such.

        Relative paths of files that are read are adapted to the folder; a relative ``dst`` stays, so that outputs go
        beside the new file. Files of these names are replaced, the scenario last. Raises `FileError`, and
        `ScenarioError` for data that no file can hold.
        """
        from scenario_runner.scenario.writing import save

        save(self.resources, self.commands, self.base_dir, path)

    def resource(self, uid: str) -> Resource:
        """The resource with this uid. Raises `ScenarioError` when there is none."""
        return self.resources[self._position(uid)]

    def resource_pointer(self, resource: str | int) -> str:
        """JSON pointer of a resource, given by uid or index, with its kind as the file spells it."""
        index = self._position(resource) if isinstance(resource, str) else resource
        key = self.resource_keys[index] if self.resource_keys else self.resources[index].kind
        return f"/resources/{index}/{key}"

    def command_pointer(self, index: int) -> str:
        """JSON pointer of a command, with its kind as the file spells it: ``/commands/3/dispatch_vgf``."""
        key = self.command_keys[index] if self.command_keys else self.commands[index].kind
        return f"/commands/{index}/{key}"

    def placed(self, problem: Diagnostic) -> Diagnostic:
        """A diagnostic of this scenario with the file, and the line and column that its pointer leads to."""
        if self.text is None or problem.pointer is None:  # built in code
            return problem._replace(path=self.path)
        from scenario_runner.scenario.places import NO_FILE, Places  # only wrong scenarios need them

        if not self._places:
            self._places.append(Places(self.text))
        line, column = self._places[0].find(problem.pointer)
        return problem._replace(path=self.path or NO_FILE, line=line, column=column)

    def _position(self, uid: str) -> int:
        index = self._index.get(uid)
        if index is None:
            from scenario_runner.scenario.wording import close_match

            raise ScenarioError(
                f"no resource has the uid {uid!r:.100}{close_match(uid, self._index)}", code="SR-REF-001"
            ).at(path=self.path)
        return index


def limited(problems: list[Diagnostic]) -> list[Diagnostic]:
    """At most `MAX_PROBLEMS` of the problems, and a last one that there are more."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    return [
        *problems[:MAX_PROBLEMS],
        Diagnostic(
            "SR-RUN-004", "note", None, f"only the first {MAX_PROBLEMS} problems are shown", path=problems[0].path
        ),
    ]


def _check_kinds(name: str, entries: Sequence[object]) -> None:
    from scenario_runner.kinds import COMMANDS, RESOURCES

    known = RESOURCES if name == "resources" else COMMANDS
    for index, entry in enumerate(entries):
        if getattr(type(entry), "kind", None) not in known:
            raise ScenarioError(
                f"Scenario.{name}[{index}]: expected a {name[:-1]} model, got {type(entry).__name__}",
                code="SR-JSON-006",
            )
