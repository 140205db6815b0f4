"""The commands of docs/capture.md that need RenderDoc or gfxreconstruct, where these are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_docs import CHECKOUT, page, pattern_of

__all__ = ["page"]  # the fixture: a folder like a checkout, and the program in it

PAGE = CHECKOUT / "docs" / "capture.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(heading: str) -> list[tuple[str, list[str]]]:
    """The commands below a heading, each with the lines that it prints."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(section):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("page", [PAGE], ids=["capture.md"], indirect=True)
@pytest.mark.parametrize("heading, needed", [("RenderDoc", "renderdoccmd"), ("gfxreconstruct", "gfxrecon-info")])
def test_commands_of_tools(page: tuple[Path, Path, dict[str, str]], heading: str, needed: str) -> None:
    """Each command prints what the page shows."""
    if shutil.which(needed) is None:
        pytest.skip(f"{heading} is not installed")
    _, folder, environment = page
    steps = commands(heading)
    assert len(steps) >= 5
    for command, expected in steps:
        done = subprocess.run(
            ["sh", "-c", f"{{ {command}\n}} 2>&1"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        shown = f"{command}\nprinted:\n{done.stdout}\nexpected:\n" + "\n".join(expected)
        assert pattern_of(expected).fullmatch(done.stdout), shown
