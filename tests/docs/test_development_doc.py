"""docs/development.md names the files and the parts of the package that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scenario_runner"
PAGE = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")


def test_named_files_exist() -> None:
    """Every path in the text, of the checkout or of the package, leads to a file or a folder."""
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]*)+|\w+\.py)`", re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)))
    assert len(named) > 60
    assert {path for path in named if not (ROOT / path).exists() and not (PACKAGE / path).exists()} == set()


def test_named_commands_exist() -> None:
    """Every path of the checkout in the commands leads to something."""
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S))
    named = set(re.findall(r"(?<!\S)((?:tools|tests|scenarios|\.ci)/[\w./*-]+)", commands))
    assert len(named) >= 7
    assert {path for path in named if not list(ROOT.glob(path))} == set()


def test_every_package_is_described() -> None:
    """The tree has a line for each package and each of its rooms."""
    folders = {path.parent for path in PACKAGE.glob("*/**/__init__.py")}
    wanted = {f"{folder.relative_to(PACKAGE).as_posix()}/" for folder in folders if folder.name != "_generated"}
    assert wanted - set(re.findall(r"^\| `([\w/]+/)` \|", PAGE, re.M)) == set()
