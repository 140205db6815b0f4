"""Write the pages of codes from scenario_runner/errors/codes.toml: ``python tools/generate_codes_doc.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before a package that is installed

from scenario_runner.errors.codes import CODES, FAMILIES

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCENARIO_INTRODUCTION = """\
# Codes of scenarios

To read about one code on the command line, run `scenario-runner explain SR-BIND-003`. It also names the section of the
specification with the rule. `scenario-runner validate FILE` shows the codes of all findings in a file.

Each entry has the severity, for an error the exit code, the meaning, and what you can do. For example, "error 3" ends
a run with exit code 3. There are two more pages: [model_codes.md](model_codes.md) for tensors, graphs and shaders in
models, and [suite_codes.md](suite_codes.md) for suites and expectations.
"""
MODEL_INTRODUCTION = """\
# Codes of models

Look up the code of a message about tensors, graphs, optical flows or shaders in TOSA models here. On the command line,
run `scenario-runner explain SR-GRAPH-016`. "Error 3" means that the error ends a run with exit code 3.
"""
SUITE_INTRODUCTION = """\
# Codes of suites

Look up the code of a message about suites, expectations, clusters or TOSA's tests here. On the command line, run
`scenario-runner explain SR-EXPECT-012`. "Error 3" means that the error ends a run with exit code 3.
"""
MODEL_FAMILIES = ("TENSOR", "GRAPH", "FLOW", "CUSTOM")
SUITE_FAMILIES = ("SUITE", "ITEM", "EXPECT", "CLUSTER", "IMPORT", "TOSA")
SCENARIO_FAMILIES = tuple(family for family in FAMILIES if family not in MODEL_FAMILIES + SUITE_FAMILIES)


def pages() -> dict[str, str]:
    """Return each page's text by file name in docs/."""
    return {
        "codes.md": _page(SCENARIO_INTRODUCTION, SCENARIO_FAMILIES),
        "model_codes.md": _page(MODEL_INTRODUCTION, MODEL_FAMILIES),
        "suite_codes.md": _page(SUITE_INTRODUCTION, SUITE_FAMILIES),
    }


def _page(introduction: str, families: tuple[str, ...]) -> str:
    parts = [introduction]
    for family in families:
        parts.append(f"\n## {FAMILIES[family]}\n")
        for code in CODES.values():
            if code.code.split("-")[1] == family:
                severity = f"Error {code.exit_code}" if code.exit_code else code.severity.capitalize()
                parts.append(f"\n### {code.code}: {code.title}\n\n{severity}. {code.meaning}\n\n{code.fix}\n")
    return "".join(parts)


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
