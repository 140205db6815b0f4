"""Write docs/codes.md from scenario_runner/codes.toml: ``python tools/generate_codes_doc.py``."""

from __future__ import annotations

from pathlib import Path

from scenario_runner.codes import CODES, FAMILIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "codes.md"


def page() -> str:
    """Return the text of docs/codes.md."""
    lines = [
        "# Codes of findings",
        "",
        "`scenario-runner validate` names each finding by a code, and `scenario-runner explain CODE` prints",
        "the same text. This page is generated from `scenario_runner/codes.toml`",
        "by `python tools/generate_codes_doc.py`.",
    ]
    for family, about in FAMILIES.items():
        members = [code for name, code in CODES.items() if name.split("-")[1] == family]
        lines += ["", f"## {about}", ""]
        lines += ["| code | severity | exit code | finding |", "|---|---|---|---|"]
        lines += [
            f"| [{code.code}](#{code.anchor}) | {code.severity} | {code.exit_code or ''} | {code.title} |"
            for code in members
        ]
        for code in members:
            lines += ["", f"### {code.code}", "", f"{code.title[:1].upper()}{code.title[1:]} ({code.severity})."]
            lines += [code.meaning, "", f"**Fix:** {code.fix}", "", f"Source: {code.source}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
