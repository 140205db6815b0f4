"""Packages that pyproject.toml leaves out where they have no wheels: a test that needs one is skipped with its name.

Where pyproject.toml asks for a package, a test without the package fails.
"""

import tomllib
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[1]
_EXTRAS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
REQUIREMENTS = {each.name: each for each in map(Requirement, chain(*_EXTRAS.values()))}
DXC_LIBRARY, FLIP_EVALUATOR, TOSA_TOOLS, VGF_LIBRARY = (
    "compushady-lrtu", "flip-evaluator", "tosa-tools", "ai_ml_sdk_vgf_library"
)  # fmt: skip


def left_out(package: str) -> bool:
    """Tell whether a package has no wheel for this Python or processor."""
    marker = REQUIREMENTS[package].marker
    return marker is not None and not marker.evaluate()


def needs(package: str, *cases: str) -> pytest.MarkDecorator:
    """Mark a test or a module that needs a package, or only the cases whose names contain one of the texts."""
    return pytest.mark.needs(package, *cases)


def reason(package: str) -> str:
    """Return why a test is skipped."""
    return f"{package} has no wheel for this Python or processor"


def skip_without_packages(item: pytest.Item) -> None:
    """Skip a test that needs a package which is left out."""
    for marker in item.iter_markers("needs"):
        package, *cases = marker.args
        if left_out(package) and (not cases or any(case in item.name for case in cases)):
            item.add_marker(pytest.mark.skip(reason(package)))


def module_of(package: str, name: str) -> Any:
    """Return a module, or skip the test file that imports it."""
    if left_out(package):
        pytest.skip(reason(package), allow_module_level=True)
    return import_module(name)


def examples_with(text: str) -> list[str]:
    """List the examples whose scenarios contain a text."""
    paths = sorted(CHECKOUT.glob("scenarios/*/*/scenario.json"))
    return [path.parent.relative_to(CHECKOUT / "scenarios").as_posix() for path in paths if text in path.read_text()]
