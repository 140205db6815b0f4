"""Codes for problems that were found without one: by the words of the loader, else by the class of the error."""

from __future__ import annotations

import re

from scenario_runner.checks.finding import Severity
from scenario_runner.errors import (
    CompileError,
    CompilerNotFoundError,
    FileError,
    Problem,
    ScenarioRunnerError,
    ShaderError,
    SpirvError,
    UnsupportedError,
)

# The first pattern that is found in the message decides.
_PATTERNS = (
    ("SR-JSON-003", r"^unknown key |is no longer supported$"),
    ("SR-JSON-004", r"^the required key "),
    ("SR-JSON-006", r"^unknown kind of |^expected one key, the kind|^the object is empty|it belongs under "),
    ("SR-JSON-001", r"is not a number of JSON$"),
    ("SR-JSON-002", r"appears twice in one object"),
    ("SR-JSON-007", r"is no UTF-8|is UTF-16|^a scenario of more than "),
    ("SR-REF-001", r"^no resource has the uid "),
    ("SR-REF-002", r"^expected the uid of "),
    ("SR-REF-003", r"^the uid .* is already that of "),
    ("SR-CONFLICT-001", r"^expected a shader of the |^the last mip level of |^expected less than the larger "),
    ("SR-JSON-005", r"^expected .*, got |^a NUL character|null is not used|^one of 'src'"),
    ("SR-JSON-005", r"^a number of .* is too long|surrogate pair|^no format that this program knows"),
)
_JSON = re.compile(
    r"^expected |^the text is no JSON|^the file ends|^unexpected |^a comma |^a comment|nested|^the string|trailing"
)
# What graphs declare against what they are given: the words say more than the class of the error.
_GRAPHS = tuple(
    (code, re.compile(pattern))
    for code, pattern in (
        ("SR-GRAPH-001", r"has no graph entry point "),
        ("SR-GRAPH-002", r"the graph constant \d+, .* is missing"),
        ("SR-GRAPH-003", r"the graph constant \d+ is .* what is given for it "),
        ("SR-GRAPH-004", r"the graph has no constant \d"),
        ("SR-GRAPH-005", r"^graph .* has nothing at set "),
        ("SR-GRAPH-005", r"^graph .* has no input or output \d"),
        ("SR-BIND-001", r"nothing is bound to the graph's |^nothing is bound to the (in|out)put .* of graph "),
        ("SR-BIND-003", r"^(in|out)put .* of graph .* is a .* of the shape .*; .* is an? (tensor|buffer|image)$"),
        ("SR-TENSOR-002", r"^(in|out)put .* of graph .* has the format .*; tensor "),
        ("SR-TENSOR-003", r"^(in|out)put .* of graph .* has the shape .*; tensor "),
        ("SR-BIND-003", r"is no tensor; graphs take nothing else"),
        ("SR-TENSOR-001", r"the graph's .*; .* has \d+ dimensions"),
        ("SR-TENSOR-002", r"the graph's .*; .* has the format "),
        ("SR-TENSOR-003", r"the graph's .*; .* has the shape "),
    )
)
_COMPILED = tuple((code, re.compile(pattern)) for code, pattern in _PATTERNS)
_CLASSES: tuple[tuple[type[ScenarioRunnerError], str], ...] = (
    (CompileError, "SR-SHADER-010"),
    (CompilerNotFoundError, "SR-SHADER-011"),
    (SpirvError, "SR-SHADER-012"),
    (ShaderError, "SR-SHADER-012"),
    (FileError, "SR-FILE-001"),
    (UnsupportedError, "SR-FEATURE-002"),
)


def code_of(kind: type[ScenarioRunnerError], problem: Problem, severity: Severity) -> str:
    """The code of a problem of an error of this class."""
    message = problem.message
    if severity != "error":
        return "SR-JSON-008" if "deprecated" in message else "SR-CONFLICT-002"
    for code, pattern in _GRAPHS:
        if pattern.search(message):
            return code
    for error_class, code in _CLASSES:
        if issubclass(kind, error_class):
            return code
    for code, pattern in _COMPILED:
        if pattern.search(message):
            return code
    if problem.pointer is None and _JSON.search(message):
        return "SR-JSON-001"
    if problem.pointer is not None:
        return "SR-CONFLICT-001"
    return "SR-JSON-001" if problem.line is not None else "SR-RUN-002"
