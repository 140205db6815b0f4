"""Every code that a finding may have, with what it means, how to mend it, and where the rule stands.

Codes are stable: a rule that goes away leaves its number unused. docs/codes.md is generated from this table.
"""

from typing import Final, NamedTuple

from scenario_runner.checks import code_table, code_table_flow, code_table_modules, code_table_rules, hazard_code_table


class Code(NamedTuple):
    """One kind of finding. ``severity`` is what it usually is; ``source`` names the specification's section."""

    code: str
    severity: str
    title: str
    meaning: str
    mend: str
    source: str

    @property
    def anchor(self) -> str:
        """The heading's anchor in docs/codes.md."""
        return self.code.lower()


FAMILIES: Final = {
    "JSON": "The text of the scenario",
    "REF": "Names of resources",
    "CONFLICT": "Parts of a scenario that contradict each other",
    "MEMORY": "Memory that resources share",
    "FILE": "Files that the scenario names",
    "SANDBOX": "What scenarios from others may not do",
    "SHADER": "Shaders and their entry points",
    "BIND": "Bindings",
    "ACCESS": "Reading and writing",
    "IMAGE": "Images",
    "STAGE": "From the vertex shader to the fragment shader",
    "ATTACH": "Colour attachments",
    "TENSOR": "Tensors",
    "GRAPH": "Graphs",
    "FLOW": "Optical flows",
    "LAYOUT": "Layouts of blocks",
    "PUSH": "Push constants",
    "DISPATCH": "Numbers of workgroups",
    "SPEC": "Specialization constants",
    "LIMIT": "Limits of the device",
    "FEATURE": "Features of the device",
    "HAZARD": "Missing barriers",
    "USAGE": "Command lines and calls",
    "DEVICE": "Drivers and the system",
    "RUN": "What this program runs",
}
"""The middle part of a code → what its family is about, in the order of the documentation."""


def _parsed(text: str) -> dict[str, Code]:
    found = {}
    for entry in text.strip().split("\n\n"):
        head, meaning, mend, source = entry.split("\n")
        code, severity, title = head.split(" ", 2)
        found[code] = Code(code, severity, title, meaning, mend, source)
    return found


CODES: Final = _parsed(
    code_table.TABLE
    + code_table_modules.TABLE
    + code_table_rules.TABLE
    + code_table_flow.TABLE
    + hazard_code_table.TABLE
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
        lines += ["| code | severity | finding |", "|---|---|---|"]
        members = [code for name, code in CODES.items() if name.split("-")[1] == family]
        lines += [f"| [{code.code}](#{code.anchor}) | {code.severity} | {code.title} |" for code in members]
        for code in members:
            lines += ["", f"### {code.code}", "", f"{code.title[:1].upper()}{code.title[1:]} ({code.severity})."]
            lines += [code.meaning, "", f"**Mend it:** {code.mend}", "", f"Source: {code.source}"]
    return "\n".join(lines) + "\n"
