"""Files of JSON with the attributes of one or more operations.

A file holds one object, or a list of them. Each is either the attributes themselves, or an operation as the description
of the conversion writes it: ``domain_name``, ``operator_name`` and ``implementation_attrs``.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, NamedTuple

from scenario_runner.custom_shader.attributes import Attributes, Origin
from scenario_runner.custom_shader.domain import DOMAIN
from scenario_runner.custom_shader.parsing import examine_attributes, examine_tree, load, place_of, placed
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.scenario.wording import shown

_ATTRIBUTES, _NAME, _DOMAIN = "implementation_attrs", "operator_name", "domain_name"


class Examined(NamedTuple):
    """One operation of a file: its attributes, None where they are wrong, and what was found in them.

    ``is_shader`` is False for an operation of another domain, which is not looked at.
    """

    operation: str
    attributes: Attributes | None
    findings: tuple[Diagnostic, ...]
    is_shader: bool = True


def examine_document(text: str, path: str) -> list[Examined]:
    """The operations of a file, at least one; ``path`` is what messages call it."""
    name = PurePath(path).stem or path
    tree, problems = load(text, path)
    if problems:
        return [Examined(name, None, tuple(problems))]
    if not isinstance(tree, list):
        return [_entry(tree, Origin(text, path), name)]
    if not tree:
        message = "the list is empty, expected the attributes of at least one operation"
        return [Examined(name, None, tuple(placed([error("SR-JSON-005", "", message)], Origin(text, path))))]
    return [_entry(entry, Origin(text, path, f"/{index}"), f"{name}[{index}]") for index, entry in enumerate(tree)]


def _entry(tree: Any, origin: Origin, name: str) -> Examined:
    if not isinstance(tree, dict) or _ATTRIBUTES not in tree:
        return Examined(name, *_found(examine_tree(tree, origin, operation=name)))
    given = tree.get(_NAME)
    wrong: list[Diagnostic] = []
    if _NAME in tree and not isinstance(given, str):
        wrong.append(error("SR-JSON-005", f"/{_NAME}", f"expected a string, got {shown(given)}"))
    elif given:
        name = given
    if tree.get(_DOMAIN, DOMAIN) != DOMAIN:
        message = f"the domain is {shown(tree[_DOMAIN])}, not {DOMAIN!r}: the operation is not a Vulkan shader"
        wrong.append(warning("SR-CUSTOM-035", f"/{_DOMAIN}", message))
        return Examined(name, None, tuple(placed(wrong, origin)), is_shader=False)
    attributes = tree[_ATTRIBUTES]
    if isinstance(attributes, str):  # as in the model, where it is text
        examined = examine_attributes(attributes, operation=name, path=f"{origin.path}: {place_of(name)}")
    else:
        examined = examine_tree(attributes, origin._replace(pointer=f"{origin.pointer}/{_ATTRIBUTES}"), operation=name)
    read, found = _found(examined)
    return Examined(name, None if wrong else read, (*placed(wrong, origin), *found))


def _found(examined: tuple[Attributes | None, list[Diagnostic]]) -> tuple[Attributes | None, tuple[Diagnostic, ...]]:
    return examined[0], tuple(examined[1])
