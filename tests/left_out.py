"""Skip tests for want of packages that have no wheels for this Python or processor.

pyproject.toml leaves these packages out here. Where it asks for a package, a test without the package fails.
"""

import tomllib
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pytest
from packaging.requirements import Requirement

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# Words by which a failure says that a package is missing.
_WORDS = {
    "ai_ml_sdk_vgf_library": ("ai_ml_sdk_vgf_library", "No module named 'vgfpy'"),
    "compushady-lrtu": ("dxc may compile it",),
    "flip-evaluator": ("flip-evaluator", "No module named 'flip_evaluator'"),
    "tosa-tools": ("tosa-tools",),
}


def _left_out() -> set[str]:
    """Return the names of the requirements of all extras whose markers do not hold here."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"].values()
    requirements = map(Requirement, chain(*extras))
    return {each.name for each in requirements if each.marker and not each.marker.evaluate()}


_LEFT_OUT = _left_out()


def skipped_without_package(report: Report) -> Report:
    """Turn a failure for want of a package that was left out into a skip with its name."""
    for name in _LEFT_OUT if report.failed else ():
        if any(word in report.longreprtext for word in _WORDS[name]):
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, f"Skipped: {name} has no wheel for this Python or processor")
            break
    return report
