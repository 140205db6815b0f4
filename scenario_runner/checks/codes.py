"""Every code of a diagnostic, with its meaning, how to fix it, and where the rule is specified.

Codes are stable: a rule that goes away leaves its number unused. docs/codes.md is generated from this table.
"""

from typing import Final, NamedTuple

from scenario_runner.checks import (
    code_table,
    code_table_cluster,
    code_table_conversion,
    code_table_custom,
    code_table_expect,
    code_table_flow,
    code_table_frames,
    code_table_modules,
    code_table_rules,
    code_table_suite,
    hazard_code_table,
)
from scenario_runner.errors import error_class


class Code(NamedTuple):
    """One kind of diagnostic. ``severity`` is the usual one; ``source`` names the section of a specification."""

    code: str
    severity: str
    title: str
    meaning: str
    fix: str
    source: str

    @property
    def exit_code(self) -> int:
        """The exit code of a run that an error of this code ends; 0 where it is not an error."""
        return error_class(self.code).exit_code if self.severity == "error" else 0

    @property
    def anchor(self) -> str:
        """The heading's anchor in docs/codes.md."""
        return self.code.lower()


FAMILIES: Final = {
    "JSON": "The text of the scenario",
    "REF": "References to resources",
    "CONFLICT": "Parts of a scenario that contradict each other",
    "MEMORY": "Memory that resources share",
    "FILE": "Files that the scenario names",
    "SANDBOX": "The sandbox",
    "SHADER": "Shaders and their entry points",
    "BIND": "Bindings",
    "ACCESS": "Reading and writing",
    "IMAGE": "Images",
    "STAGE": "From the vertex shader to the fragment shader",
    "ATTACH": "Colour attachments",
    "TENSOR": "Tensors",
    "GRAPH": "Graphs",
    "FLOW": "Optical flows",
    "FRAME": "Frames",
    "LAYOUT": "Layouts of blocks",
    "PUSH": "Push constants",
    "DISPATCH": "Workgroup counts",
    "SPEC": "Specialization constants",
    "LIMIT": "Limits of the device",
    "FEATURE": "Features of the device",
    "HAZARD": "Missing barriers",
    "SUITE": "Suites of scenarios",
    "CLUSTER": "Suites on several hosts",
    "CUSTOM": "Custom operations of models that are shaders",
    "EXPECT": "Expectations of a suite",
    "USAGE": "Command lines and calls",
    "DEVICE": "Devices, drivers and the system",
    "RUN": "Limits of this program",
}
"""The middle part of a code → what its family is about, in the order of the documentation."""


def _parsed(text: str) -> dict[str, Code]:
    found = {}
    for entry in text.strip().split("\n\n"):
        head, meaning, fix, source = entry.split("\n")
        code, severity, title = head.split(" ", 2)
        found[code] = Code(code, severity, title, meaning, fix, source)
    return found


CODES: Final = _parsed(
    code_table.TABLE
    + code_table_modules.TABLE
    + code_table_rules.TABLE
    + code_table_flow.TABLE
    + code_table_frames.TABLE
    + hazard_code_table.TABLE
    + code_table_suite.TABLE
    + code_table_cluster.TABLE
    + code_table_custom.TABLE
    + code_table_conversion.TABLE
    + code_table_expect.TABLE
)
"""Every code."""


def markdown() -> str:
    """docs/codes.md."""
    lines = [
        "# Codes of findings",
        "",
        "`scenario-runner validate` names each finding by a code, and `scenario-runner explain CODE` prints what",
        "stands here. This page is generated from the tables in `scenario_runner/checks/`.",
    ]
    for family, about in FAMILIES.items():
        lines += ["", f"## {about}", ""]
        lines += ["| code | severity | exit code | finding |", "|---|---|---|---|"]
        members = [code for name, code in CODES.items() if name.split("-")[1] == family]
        lines += [
            f"| [{code.code}](#{code.anchor}) | {code.severity} | {code.exit_code or ''} | {code.title} |"
            for code in members
        ]
        for code in members:
            lines += ["", f"### {code.code}", "", f"{code.title[:1].upper()}{code.title[1:]} ({code.severity})."]
            lines += [code.meaning, "", f"**Fix:** {code.fix}", "", f"Source: {code.source}"]
    return "\n".join(lines) + "\n"
