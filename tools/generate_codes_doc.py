"""Write docs/codes.md from scenario_runner/errors/codes.toml: ``python tools/generate_codes_doc.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before a package that is installed

from scenario_runner.errors.codes import CODES, FAMILIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "codes.md"


def page() -> str:
    """Return the text of docs/codes.md."""
    lines = [
        "# Codes of findings",
        "",
        "Each entry has the title, the severity, the exit code of an error and the meaning, then what to do.",
        "`scenario-runner explain CODE` prints it with the section of the specification that has the rule.",
        "This page is generated from `scenario_runner/errors/codes.toml` by `python tools/generate_codes_doc.py`.",
    ]
    for family, about in FAMILIES.items():
        lines += ["", f"## {about}"]
        for code in CODES.values():
            if code.code.split("-")[1] == family:
                severity = f"error {code.exit_code}" if code.exit_code else code.severity
                title = f"{code.title[:1].upper()}{code.title[1:]}"
                lines += ["", f"### {code.code}", "", f"**{title}** ({severity}). {code.meaning}", "", code.fix]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
