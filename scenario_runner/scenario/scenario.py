"""`Scenario`: frozen resources and commands, and the checks of references between them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from scenario_runner.errors import ScenarioError, ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import Json, close_match, with_article
from scenario_runner.files.json_text import places_of
from scenario_runner.files.parameters import with_parameters
from scenario_runner.scenario import writing
from scenario_runner.scenario.entries import Command, Resource
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES

# Most uids to compare with an unknown uid.
MAX_CANDIDATES = 200

# Most unknown uids that get a suggestion.
MAX_HINTS = 50


def check_entries(
    resources: Sequence[Resource | None],
    commands: Sequence[Command | None],
    resource_keys: Sequence[str] | None = None,
    command_keys: Sequence[str] | None = None,
    broken: Mapping[str, tuple[int, str]] | None = None,
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Check entries against each other, and return errors and warnings with pointers.

    The checks find unknown and duplicate uids, uids of the wrong kind, and contradictions.

    ``resource_keys`` and ``command_keys`` are the kinds in the file's spelling. Wrong entries are ``None``. ``broken``
    maps the uids of wrong resources to their index and kind. References to these are right for any kind.
    """
    errors: list[Diagnostic] = []
    contradictions: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    messages: dict[tuple[str, frozenset[str]], str] = {}
    entries: list[tuple[str, Resource | Command]] = []
    places: dict[str, str] = {}
    by_uid: dict[str, Resource] = {}
    anything = frozenset(broken or ())
    for index, resource in enumerate(resources):
        if resource is not None:
            here = f"/resources/{index}/{resource_keys[index] if resource_keys else resource.kind}"
            entries.append((here, resource))
            if resource.uid in places:
                message = f"{places[resource.uid]} already has the uid {resource.uid!r:.100}"
                help = "uids are unique over all kinds of resources"
                errors.append(error("SR-REF-003", f"{here}/uid", message, help))
            places.setdefault(resource.uid, here)
            by_uid.setdefault(resource.uid, resource)
    for uid, (index, key) in (broken or {}).items():
        if uid in places:
            message = f"{places[uid]} already has the uid {uid!r:.100}"
            errors.append(error("SR-REF-003", f"/resources/{index}/{key}/uid", message))
    for index, command in enumerate(commands):
        if command is not None:
            entries.append((f"/commands/{index}/{command_keys[index] if command_keys else command.kind}", command))
    for here, entry in entries:
        for inside, uid, expected in entry.references():
            first = by_uid.get(uid)
            if (first is None or first.kind not in expected) and uid not in anything:
                if (uid, expected) not in messages:
                    close = len(messages) < MAX_HINTS
                    messages[uid, expected] = _wrong_use(uid, expected, by_uid, anything, close=close)
                code = "SR-REF-002" if first is not None else "SR-REF-001"
                errors.append(error(code, here + inside, messages[uid, expected]))
        for problem in entry.contradictions(by_uid):
            where = contradictions if problem.severity == "error" else warnings
            where.append(problem._replace(pointer=f"{here}{problem.pointer}"))
    return errors + contradictions, warnings


def _wrong_use(
    uid: str, expected: frozenset[str], known: Mapping[str, Resource], others: frozenset[str], *, close: bool
) -> str:
    expected_kinds = " or ".join(with_article(kind) for kind in sorted(expected))
    if uid in known:
        return f"expected the uid of {expected_kinds}, got {uid!r:.100}, which is {with_article(known[uid].kind)}"
    if not close:
        return f"no resource has the uid {uid!r:.100}"
    # Resources of the right kind come first. A full comparison with thousands of uids would take long.
    alike = [name for name in (*known, *others) if abs(len(name) - len(uid)) < 4 and {*name[:2]} & {*uid[:2]}]
    fitting = [name for name in alike if name in others or known[name].kind in expected]
    hint = close_match(uid, fitting[:MAX_CANDIDATES]) or close_match(uid, alike[:MAX_CANDIDATES])
    return f"no resource has the uid {uid!r:.100}{hint}"


# Most problems reported for a file.
MAX_PROBLEMS = 100

# The name in messages for a text without a file.
NO_FILE = "<text>"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Resources and the commands that use them, in the order of the file.

    `load` and `loads` read a scenario from a file or text. In code, use ``Scenario(resources=[...], commands=[...])``.
    Both check references and contradictions, and raise `ScenarioError` with every problem. Relative paths start from
    ``base_dir``. Only the loader sets the fields after ``warnings``: the kinds in the file's spelling, the text before
    parameters are replaced, and the parameter values.
    """

    resources: Sequence[Resource] = ()
    commands: Sequence[Command] = ()
    path: str | None = None
    base_dir: str = "."
    warnings: tuple[Diagnostic, ...] = ()
    resource_keys: Sequence[str] | None = field(default=None, repr=False, compare=False)
    command_keys: Sequence[str] | None = field(default=None, repr=False, compare=False)
    text: str | None = field(default=None, repr=False, compare=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, compare=False)
    _index: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", tuple(self.resources))
        object.__setattr__(self, "commands", tuple(self.commands))
        for name in ("resources", "commands"):
            _check_kinds(name, getattr(self, name))
        self._index.update({resource.uid: index for index, resource in reversed(list(enumerate(self.resources)))})
        problems, warnings = check_entries(self.resources, self.commands, self.resource_keys, self.command_keys)
        if problems:
            placed = [self.placed(problem) for problem in problems[: MAX_PROBLEMS + 1]]
            raise ScenarioError(limited(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))))
        warnings = [*self.warnings, *warnings]
        object.__setattr__(self, "warnings", tuple(map(self.placed, warnings[:MAX_PROBLEMS])))

    def _repr_html_(self) -> str:
        """Show the entries in a notebook."""
        from scenario_runner.scenario.scenario_html import scenario_html

        return scenario_html(self.path, self.warnings, {"resource": self.resources, "command": self.commands})

    def to_json(self) -> str:
        """Return the JSON text of the scenario, for a file in the folder ``base_dir``.

        Raises `ScenarioError` for content that JSON cannot hold (``data``, ``source``). `save` writes it to files.
        """
        return writing.to_json(self.resources, self.commands)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a scenario file, and each ``data`` and ``source`` to a file beside it: ``<file>_<uid>.npy`` and such.

        Relative paths of inputs are adapted to the new folder. A relative ``dst`` stays, so that outputs go beside the
        new file. Existing files are replaced, the scenario last. Raises `FileError`, and `ScenarioError` for data that
        no file can hold.
        """
        writing.save(self.resources, self.commands, self.base_dir, path)

    def resource(self, uid: str) -> Resource:
        """Return the resource with this uid. Raises `ScenarioError` if there is none."""
        index = self._index.get(uid)
        if index is None:
            message = f"no resource has the uid {uid!r:.100}{close_match(uid, self._index)}"
            raise ScenarioError(message, code="SR-REF-001").at(path=self.path)
        return self.resources[index]

    def resource_pointer(self, resource: str | int) -> str:
        """Return the JSON pointer of a resource, given by uid or index. The kind has the file's spelling."""
        index = self._index[resource] if isinstance(resource, str) else resource
        key = self.resource_keys[index] if self.resource_keys else self.resources[index].kind
        return f"/resources/{index}/{key}"

    def command_pointer(self, index: int) -> str:
        """Return the JSON pointer of a command with the kind in the file's spelling: ``/commands/3/dispatch_vgf``."""
        key = self.command_keys[index] if self.command_keys else self.commands[index].kind
        return f"/commands/{index}/{key}"

    def placed(self, problem: Diagnostic) -> Diagnostic:
        """Add the file, line and column to a diagnostic with a pointer into this scenario."""
        if self.text is None or problem.pointer is None:  # built in code
            return problem._replace(path=self.path)
        return places_of(self.text).placed(with_parameters(problem, self.parameters), self.path or NO_FILE)

    def place_problems(self, error: ScenarioRunnerError) -> None:
        """Add file, line and column to the JSON pointers in an error from a device or a file."""
        error.problems = tuple(
            self.placed(problem) if problem.path is None and problem.pointer is not None else problem
            for problem in error.problems
        )

    @contextmanager
    def placed_errors(self) -> Iterator[None]:
        """Add the file and places in it to errors of a block."""
        try:
            yield
        except ScenarioRunnerError as error:
            self.place_problems(error)
            error.at(path=self.path)
            raise


def limited(problems: list[Diagnostic]) -> list[Diagnostic]:
    """Return the first `MAX_PROBLEMS` problems, and a note if there are more."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    message = f"only the first {MAX_PROBLEMS} problems are shown"
    return [*problems[:MAX_PROBLEMS], Diagnostic("SR-RUN-004", "note", None, message, path=problems[0].path)]


def _check_kinds(name: str, entries: Sequence[object]) -> None:
    known = RESOURCES if name == "resources" else COMMANDS
    for index, entry in enumerate(entries):
        if getattr(type(entry), "kind", None) not in known:
            raise ScenarioError(
                f"Scenario.{name}[{index}]: expected a {name[:-1]} model, got {type(entry).__name__}",
                code="SR-JSON-006",
            )


class Problems:
    """A collector of a scenario's errors and warnings, each with a place in the file."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        # Errors of other programs, such as compilers. They count only without any other error.
        self.fallback_errors: list[Diagnostic] = []

    def error(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        """Add an error. The scenario cannot run."""
        self.errors.append(self._scenario.placed(error(code, pointer, message, help)))

    def warn(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        """Add a warning about a probable mistake."""
        self.warnings.append(self._scenario.placed(warning(code, pointer, message, help)))

    def report(self, findings: Iterable[Diagnostic]) -> bool:
        """Add the errors and warnings among findings. Return whether there was no error."""
        before = len(self.errors)
        for finding in findings:
            if finding.severity != "note":
                note = self.error if finding.severity == "error" else self.warn  # which subclasses change
                note(finding.code, finding.pointer or "", finding.message, finding.help)
        return len(self.errors) == before

    def add_fallback(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Add an error that counts only without any other error."""
        self.fallback_errors += [self._scenario.placed(problem._replace(pointer=pointer)) for problem in error.problems]

    def add_error(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Add an error from a file or a device. ``pointer`` is the place in the scenario that named it."""
        for problem in error.problems:
            if problem.path is None:
                self.error(problem.code, problem.pointer or pointer, problem.message, problem.help)
            else:  # the problem has a place in another file
                self.error(problem.code, pointer, str(problem), problem.help)

    def raise_if_any(self) -> None:
        """Raise an error with all errors so far, without repeats. The first decides the class and the exit code."""
        errors = list(dict.fromkeys(self.errors or self.fallback_errors))
        if errors:
            raise error_of(errors)
