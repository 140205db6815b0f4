"""Every uid that names another resource: it exists, is unique, and has the kind that is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic

if TYPE_CHECKING:
    from scenario_runner.scenario.entry import Command, Entry, Resource

MAX_CANDIDATES = 200
"""Uids that are compared with an unknown one."""

MAX_HINTS = 50
"""Unknown uids for which a close match is looked for."""


def check_references(
    resources: Sequence[Resource | None],
    commands: Sequence[Command | None],
    resource_keys: Sequence[str] | None = None,
    command_keys: Sequence[str] | None = None,
    broken: Mapping[str, tuple[int, str]] | None = None,
) -> list[Diagnostic]:
    """Unknown, duplicate and wrong-kind uids, each as a problem with its pointer.

    ``resource_keys`` and ``command_keys`` are the kinds as the file spells them. Entries that could not be parsed are
    ``None``; ``broken`` maps the uids of such resources to their index and kind: they count as defined, of any kind.
    """
    problems: list[Diagnostic] = []
    messages: dict[tuple[str, frozenset[str]], str] = {}
    kinds: dict[str, str] = {}
    places: dict[str, str] = {}
    anything = frozenset(uid for uid in broken or ())

    def pointer(name: str, index: int, entry: Entry, keys: Sequence[str] | None) -> str:
        return f"/{name}/{index}/{keys[index] if keys else entry.kind}"

    for index, resource in enumerate(resources):
        if resource is None:
            continue
        here = pointer("resources", index, resource, resource_keys)
        first = places.setdefault(resource.uid, here)
        if first is not here:
            message = f"the uid {resource.uid!r:.100} is already that of {first}"
            problems.append(
                Diagnostic("SR-REF-003", "error", f"{here}/uid", message, "uids are unique over all kinds of resources")
            )
        kinds.setdefault(resource.uid, resource.kind)
    for uid, (index, key) in (broken or {}).items():
        if uid in places:
            message = f"the uid {uid!r:.100} is already that of {places[uid]}"
            problems.append(Diagnostic("SR-REF-003", "error", f"/resources/{index}/{key}/uid", message))

    for name, entries, keys in (("resources", resources, resource_keys), ("commands", commands, command_keys)):
        for index, entry in enumerate(entries):
            if entry is None:
                continue
            for inside, uid, expected in entry.references():
                if kinds.get(uid) not in expected and uid not in anything:
                    here = pointer(name, index, entry, keys) + inside
                    if (uid, expected) not in messages:
                        close = len(messages) < MAX_HINTS
                        messages[uid, expected] = _wrong_use(uid, expected, kinds, anything, close=close)
                    code = "SR-REF-002" if uid in kinds else "SR-REF-001"
                    problems.append(Diagnostic(code, "error", here, messages[uid, expected]))
    return problems


def _wrong_use(
    uid: str, expected: frozenset[str], kinds: dict[str, str], others: frozenset[str], *, close: bool
) -> str:
    wanted = " or ".join(with_article(kind) for kind in sorted(expected))
    if uid in kinds:
        return f"expected the uid of {wanted}, got {uid!r:.100}, which is {with_article(kinds[uid])}"
    if not close:
        return f"no resource has the uid {uid!r:.100}"
    from scenario_runner.scenario.wording import close_match

    # A resource of the right kind is the likelier one. Comparing in earnest with very many would take long.
    alike = [known for known in (*kinds, *others) if abs(len(known) - len(uid)) < 4 and {*known[:2]} & {*uid[:2]}]
    fitting = [known for known in alike if kinds.get(known, "") in expected or known in others]
    hint = close_match(uid, fitting[:MAX_CANDIDATES]) or close_match(uid, alike[:MAX_CANDIDATES])
    return f"no resource has the uid {uid!r:.100}{hint}"


def with_article(kind: str) -> str:
    """A kind in a sentence: ``a buffer``, ``an image``."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
