"""From JSON text to `Attributes`, with every problem at its place; files with the attributes of several operations.

A file holds one object, or a list of them. Each is either the attributes themselves, or an operation as the description
of the conversion writes it: ``domain_name``, ``operator_name`` and ``implementation_attrs``.
"""

import json
from pathlib import PurePath
from typing import NamedTuple

from scenario_runner.errors import error_of
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.scenario.json_model import shown
from scenario_runner.scenario.syntax import Places, scan
from scenario_runner.tosa.attribute_models import Reader
from scenario_runner.tosa.attributes import DOMAIN, Attributes, Origin, Types

_ABOUT_KEYS = frozenset({"SR-JSON-002", "SR-CUSTOM-002", "SR-CUSTOM-007"})
"""Codes whose place is a key, not its value."""
Counts = tuple[int | None, int | None]
"""The numbers of operands and of results, None where they are not known."""


def parse_attributes(
    text: str, *, operation: str, operands: int | None = None, results: int | None = None, path: str | None = None
) -> Attributes:
    """The attributes of the custom operation ``operation``.

    ``operands`` and ``results`` count what the operation has, None where that is not known. Messages begin with
    ``path``, the file that holds nothing but the text, else with the name of the operation; their lines and columns
    count in the text. Raises `ScenarioError` with everything that is wrong.
    """
    attributes, findings = examine_attributes(text, operation, (operands, results), path)
    if attributes is None:
        raise error_of(finding for finding in findings if finding.severity == "error")
    return attributes


def examine_attributes(
    text: str, operation: str, counts: Counts = (None, None), path: str | None = None
) -> tuple[Attributes | None, list[Diagnostic]]:
    """Read attributes as `parse_attributes` does: they are None where something is wrong. Gives all findings too."""
    path = path or _place_of(operation)
    tree, problems = _load(text, path)
    if problems:
        return None, problems
    return _examine_tree(tree, Origin(text, path), operation, counts)


def _examine_tree(
    tree: object, origin: Origin, operation: str, counts: Counts = (None, None)
) -> tuple[Attributes | None, list[Diagnostic]]:
    """Examine attributes that stand in a part of a text, which is parsed already."""
    reader = Reader(operation)
    attributes = reader.read(tree, *counts)
    findings = placed(reader.findings, origin)
    return attributes and attributes._replace(warnings=tuple(findings), origin=origin), findings


def _place_of(operation: str) -> str:
    """Name the text of the attributes of an operation in messages."""
    return f"<attributes of {operation!r:.200}>"


def placed(findings: list[Diagnostic], origin: Origin) -> list[Diagnostic]:
    """Findings with their file, line and column, in the order of the text. Those that have a file already, such as
    what a compiler says of the code, stay as they are."""
    if all(finding.path for finding in findings):
        return findings
    places = Places(origin.text)
    result = []
    for finding in findings:
        if finding.path:
            result.append(finding)
            continue
        pointer = f"{origin.pointer}{finding.pointer or ''}"
        line, column = places.find(pointer, key=finding.code in _ABOUT_KEYS)
        result.append(finding._replace(path=origin.path, pointer=pointer or None, line=line, column=column))
    return sorted(result, key=lambda finding: (finding.path != origin.path, finding.line or 0, finding.column or 0))


def _load(text: str, path: str) -> tuple[object, list[Diagnostic]]:
    """JSON as data, or what is wrong with the text; each key of an object occurs once."""
    if not text.strip():
        return None, [Diagnostic("SR-JSON-001", "error", None, "the text is empty, expected a JSON object", path=path)]
    problems, _ = scan(text, path, with_null=True)
    return (None if problems else json.loads(text)), problems


_ATTRIBUTES, _NAME, _DOMAIN = "implementation_attrs", "operator_name", "domain_name"


class Examined(NamedTuple):
    """One operation of a file: its attributes, None where they are wrong, and what was found in them.

    ``is_shader`` is False for an operation of another domain, which is not looked at. ``types`` are those of its
    operands and results, where the file is a model.
    """

    operation: str
    attributes: Attributes | None
    findings: list[Diagnostic]
    is_shader: bool = True
    types: Types | None = None


def examine_document(text: str, path: str) -> list[Examined]:
    """The operations of a file, at least one; ``path`` is what messages call it."""
    name = PurePath(path).stem or path
    tree, problems = _load(text, path)
    if problems:
        return [Examined(name, None, problems)]
    if not isinstance(tree, list):
        return [_entry(tree, Origin(text, path), name)]
    if not tree:
        message = "the list is empty, expected the attributes of at least one operation"
        return [Examined(name, None, placed([error("SR-JSON-005", "", message)], Origin(text, path)))]
    return [_entry(entry, Origin(text, path, f"/{index}"), f"{name}[{index}]") for index, entry in enumerate(tree)]


def _entry(tree: object, origin: Origin, name: str) -> Examined:
    if not isinstance(tree, dict) or _ATTRIBUTES not in tree:
        return Examined(name, *_examine_tree(tree, origin, name))
    entry_name = tree.get(_NAME)
    problems: list[Diagnostic] = []
    if _NAME in tree and not isinstance(entry_name, str):
        problems.append(error("SR-JSON-005", f"/{_NAME}", f"expected a string, got {shown(entry_name)}"))
    elif entry_name:
        name = entry_name
    if tree.get(_DOMAIN, DOMAIN) != DOMAIN:
        message = f"the domain is {shown(tree[_DOMAIN])}, not {DOMAIN!r}: the operation is not a Vulkan shader"
        problems.append(warning("SR-CUSTOM-035", f"/{_DOMAIN}", message))
        return Examined(name, None, placed(problems, origin), is_shader=False)
    attributes = tree[_ATTRIBUTES]
    if isinstance(attributes, str):  # as in the model, where it is text
        read, findings = examine_attributes(attributes, name, path=f"{origin.path}: {_place_of(name)}")
    else:
        inner = origin._replace(pointer=f"{origin.pointer}/{_ATTRIBUTES}")
        read, findings = _examine_tree(attributes, inner, name)
    return Examined(name, None if problems else read, placed(problems, origin) + findings)
