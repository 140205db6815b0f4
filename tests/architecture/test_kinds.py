"""The registry of kinds: what it names exists and fits, and nothing else lists the kinds."""

import ast
from pathlib import Path

from scenario_runner.scenario.kinds import COMMANDS, RESOURCES

PACKAGE = Path(__file__).resolve().parents[2] / "scenario_runner"

# Some words are used for other things as well, such as the parts of a VGF file.
MOST_KINDS_IN_A_COLLECTION = 4


def kinds_together(tree: ast.Module) -> int:
    """The most kinds that stand together in one collection of a module."""
    most = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.List | ast.Set | ast.Tuple):
            parts = list(node.elts)
        else:
            continue
        values = {part.value for part in parts if isinstance(part, ast.Constant)}
        most = max(most, len(values & {*RESOURCES, *COMMANDS}))
    return most


def test_no_other_list_of_kinds() -> None:
    """No file but the registry lists kinds: what depends on them asks the model, the record or the registry."""
    most = {path: kinds_together(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")}
    assert len(most) > 200
    assert {path: count for path, count in most.items() if count > MOST_KINDS_IN_A_COLLECTION} == {}
