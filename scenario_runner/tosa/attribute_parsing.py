"""Parsing of attributes from JSON, which gives every problem a line and column.

A file holds an object or a list of objects. Each object is either the attributes themselves, or an operation with
``domain_name``, ``operator_name`` and ``implementation_attrs``, as in the description of the conversion.
"""

import json
from pathlib import PurePath
from typing import NamedTuple

from scenario_runner.errors import error_of
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.files.json_text import Places, scan
from scenario_runner.scenario.json_model import shown
from scenario_runner.tosa.attribute_models import Reader
from scenario_runner.tosa.model import DOMAIN, Attributes, Origin, Types

Counts = tuple[int | None, int | None]
"""The numbers of operands and results; None if unknown."""


def parse_attributes(
    text: str, *, operation: str, operands: int | None = None, results: int | None = None, path: str | None = None
) -> Attributes:
    """Parse the attributes of the custom operation ``operation``.

    ``operands`` and ``results`` are the operation's numbers of operands and results, if known. Messages begin with
    ``path``, a file with exactly this text, or else with the name of the operation. Raises `ScenarioError` with all
    errors and their lines and columns.
    """
    attributes, findings = examine_attributes(text, operation, (operands, results), path)
    if attributes is None:
        raise error_of(finding for finding in findings if finding.severity == "error")
    return attributes


def examine_attributes(
    text: str, operation: str, counts: Counts = (None, None), path: str | None = None
) -> tuple[Attributes | None, list[Diagnostic]]:
    """Parse attributes as `parse_attributes` does. Return them, or None after an error, and all findings."""
    path = path or _place_of(operation)
    tree, problems = _load(text, path)
    if problems:
        return None, problems
    return _examine_tree(tree, Origin(text, path), operation, counts)


def _examine_tree(
    tree: object, origin: Origin, operation: str, counts: Counts = (None, None)
) -> tuple[Attributes | None, list[Diagnostic]]:
    """Read attributes from parsed JSON."""
    reader = Reader(operation)
    attributes = reader.read(tree, *counts)
    findings = with_places(reader.findings, origin)
    return attributes and attributes._replace(warnings=tuple(findings), origin=origin), findings


def _place_of(operation: str) -> str:
    """Name the attributes of an operation for messages."""
    return f"<attributes of {operation!r:.200}>"


def with_places(findings: list[Diagnostic], origin: Origin) -> list[Diagnostic]:
    """Add file, line and column to findings, and sort them by place.

    Findings with a file, such as a compiler's errors about the code, stay unchanged.
    """
    if all(finding.path for finding in findings):
        return findings
    places = Places(origin.text)
    placed = [each if each.path else places.placed(each, origin.path, origin.pointer) for each in findings]
    return sorted(placed, key=lambda finding: (finding.path != origin.path, finding.line or 0, finding.column or 0))


def _load(text: str, path: str) -> tuple[object, list[Diagnostic]]:
    """Parse JSON without repeated keys. Return the data, and the problems of the text."""
    if not text.strip():
        return None, [Diagnostic("SR-JSON-001", "error", None, "the text is empty, expected a JSON object", path=path)]
    problems, _ = scan(text, path, with_null=True)
    return (None if problems else json.loads(text)), problems


_ATTRIBUTES, _NAME, _DOMAIN = "implementation_attrs", "operator_name", "domain_name"


class Examined(NamedTuple):
    """An operation in a file: the attributes, None after an error, and the findings about them.

    An operation of another domain is no shader and is not examined. ``types`` are known if the file is a model.
    """

    operation: str
    attributes: Attributes | None
    findings: list[Diagnostic]
    is_shader: bool = True
    types: Types | None = None


def examine_document(text: str, path: str) -> list[Examined]:
    """Examine the operations of a file, at least one. Messages begin with ``path``."""
    name = PurePath(path).stem or path
    tree, problems = _load(text, path)
    if problems:
        return [Examined(name, None, problems)]
    if not isinstance(tree, list):
        return [_entry(tree, Origin(text, path), name)]
    if not tree:
        message = "the list is empty, expected the attributes of at least one operation"
        return [Examined(name, None, with_places([error("SR-JSON-005", "", message)], Origin(text, path)))]
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
        return Examined(name, None, with_places(problems, origin), is_shader=False)
    attributes = tree[_ATTRIBUTES]
    if isinstance(attributes, str):  # JSON within a string, as in models
        read, findings = examine_attributes(attributes, name, path=f"{origin.path}: {_place_of(name)}")
    else:
        inner = origin._replace(pointer=f"{origin.pointer}/{_ATTRIBUTES}")
        read, findings = _examine_tree(attributes, inner, name)
    return Examined(name, None if problems else read, with_places(problems, origin) + findings)
