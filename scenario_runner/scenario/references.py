"""Every uid that names another resource: it exists, is unique, and has the kind that is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.diagnostics import Diagnostic

if TYPE_CHECKING:
    from scenario_runner.scenario.bindings import Binding

STORAGE = frozenset({"buffer", "tensor", "image"})
"""Kinds that a binding can show to a shader."""

MAX_CANDIDATES = 200
"""Uids that are compared with an unknown one."""

MAX_HINTS = 50
"""Unknown uids for which a close match is looked for."""

_RAW_DATA = frozenset({"raw_data"})
_SHADER = frozenset({"shader"})
_GRAPH = frozenset({"graph"})
_GRAPH_CONSTANT = frozenset({"graph_constant"})
_IMAGE = frozenset({"image"})
_TENSOR = frozenset({"tensor"})
_BUFFER = frozenset({"buffer"})
_GRAPH_STORAGE = frozenset({"tensor", "image"})

Use = tuple[str, str, frozenset[str]]
"""Where in the entry a uid stands (a JSON pointer), the uid, and the kinds that it may have."""


def check_references(
    resources: Sequence[Any],
    commands: Sequence[Any],
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

    def pointer(name: str, index: int, entry: Any, keys: Sequence[str] | None) -> str:
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
            uses = _USES.get(entry.kind) if entry is not None else None
            if uses is None:
                continue
            for inside, uid, expected in uses(entry):
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


def _bindings(bindings: Sequence[Binding], kinds: frozenset[str] = STORAGE) -> Iterator[Use]:
    for index, binding in enumerate(bindings):
        yield f"/bindings/{index}/resource_ref", binding.resource_ref, kinds


def _list(name: str, uids: Sequence[str], kinds: frozenset[str]) -> Iterator[Use]:
    for index, uid in enumerate(uids):
        yield f"/{name}/{index}", uid, kinds


def _compute(command: Any) -> Iterator[Use]:
    yield "/shader_ref", command.shader_ref, _SHADER
    if command.push_data_ref is not None:
        yield "/push_data_ref", command.push_data_ref, _RAW_DATA
    yield from _bindings(command.bindings)


def _substitutions(entry: Any) -> Iterator[Use]:
    for index, substitution in enumerate(entry.shader_substitutions):
        yield f"/shader_substitutions/{index}/shader_ref", substitution.shader_ref, _SHADER


def _dispatch_graph(command: Any) -> Iterator[Use]:
    yield "/graph_ref", command.graph_ref, _GRAPH
    yield from _bindings(command.bindings)
    for index, constants in enumerate(command.push_constants):
        yield f"/push_constants/{index}/push_data_ref", constants.push_data_ref, _RAW_DATA
    yield from _substitutions(command)


def _spirv_graph(command: Any) -> Iterator[Use]:
    yield "/graph_ref", command.graph_ref, _SHADER
    yield from _bindings(command.bindings, _GRAPH_STORAGE)
    yield from _list("graph_constants", command.graph_constants, _GRAPH_CONSTANT)


def _fragment(command: Any) -> Iterator[Use]:
    yield "/vertex_shader_ref", command.vertex_shader_ref, _SHADER
    yield "/fragment_shader_ref", command.fragment_shader_ref, _SHADER
    yield from _bindings(command.bindings)
    for index, attachment in enumerate(command.color_attachment_refs):
        yield f"/color_attachment_refs/{index}", attachment.resource_ref, _IMAGE
    if command.push_data_ref is not None:
        yield "/push_data_ref", command.push_data_ref, _RAW_DATA


def _optical_flow(command: Any) -> Iterator[Use]:
    for name in ("search_image", "template_image", "output_image", "hint_motion_vectors", "output_cost"):
        binding = getattr(command.bindings, name)
        if binding is not None:
            yield f"/bindings/{name}/resource_ref", binding.resource_ref, _IMAGE


def _barrier(command: Any) -> Iterator[Use]:
    for kind in ("image", "tensor", "memory", "buffer"):
        name = f"{kind}_barrier_refs"
        yield from _list(name, getattr(command, name), frozenset({f"{kind}_barrier"}))


_USES: Mapping[str, Any] = {
    "graph": _substitutions,
    "buffer_barrier": lambda barrier: [("/buffer_resource", barrier.buffer_resource, _BUFFER)],
    "image_barrier": lambda barrier: [("/image_resource", barrier.image_resource, _IMAGE)],
    "tensor_barrier": lambda barrier: [("/tensor_resource", barrier.tensor_resource, _TENSOR)],
    "dispatch_compute": _compute,
    "dispatch_graph": _dispatch_graph,
    "dispatch_spirv_graph": _spirv_graph,
    "dispatch_fragment": _fragment,
    "dispatch_optical_flow": _optical_flow,
    "dispatch_barrier": _barrier,
    "mark_boundary": lambda command: _list("resources", command.resources, STORAGE),
}
