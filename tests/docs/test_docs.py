"""Every command in the documentation runs and prints what the page says.

A fenced block marked ``console`` holds commands after ``$ `` and what they print; ``…`` stands for anything, on a line
of its own for any number of lines. A ``python`` block is a program; lines after ``# prints:`` say what it prints. Any
other block is a file where the paragraph before it begins with a name in backticks, and is ignored elsewhere. The
blocks of one page are taken in order, in one folder that starts as a copy of the scenarios.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.left_out import VGF_LIBRARY, needs
from tests.program import FORKS

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?:^|\n)`([\w./-]+\.\w+)`[^\n]*\n\n$")
# A call of the program, or of Python, of which a shell would only split the words, and what becomes of its output.
PLAIN = r"""(?:'[^'\n]*'|"[^"$`\\\n]*"|[^'"|&;<>$`*?~#(){}\[\]\\\n])*?"""
CALL = re.compile(rf"(scenario-runner|tools/run|python -c) ({PLAIN})( 2>&1)?((?: ?[|>;].*)?)")
PROGRESS = re.compile(r"^\d+ of \d+ done .*\n", re.MULTILINE)  # of a machine that is slow
TIMEOUT_S = 120


class Step(NamedTuple):
    """One command or program of a page, and what it prints."""

    line: int
    kind: str
    command: str
    expected: list[str]


def steps_of(page: Path) -> Iterator[Step]:
    """The commands and programs of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        kind, body = match.groups()
        if kind == "python":
            program, _, expected = body.partition("# prints:\n")
            yield Step(line, kind, program, [each.removeprefix("# ") for each in expected.splitlines()])
        elif kind != "console":
            named = NAMED.search(text[: match.start()])
            if named is not None:
                yield Step(line, "file", named[1], body.splitlines())
        else:
            current: Step | None = None
            for offset, each in enumerate(body.splitlines()):
                if each.startswith("$ "):
                    if current is not None:
                        yield current
                    current = Step(line + offset, kind, each[2:], [])
                elif current is not None:
                    current.expected.append(each)
            if current is not None:
                yield current


def pattern_of(expected: list[str]) -> re.Pattern[str]:
    """What the output must look like."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ \t]*\n")
    return re.compile("".join(parts))


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.name)
def page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shader_cache: Path
) -> tuple[Path, Path, dict[str, str]]:
    """A page, a folder to run it in, and the environment to run it with."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(CHECKOUT / "scenarios", folder / "scenarios", ignore=shutil.ignore_patterns("out", "__pycache__"))
    programs = folder / ".bin"
    programs.mkdir()
    for name in ("scenario-runner", "tools/run"):
        program = programs / name if "/" not in name else folder / name
        program.parent.mkdir(exist_ok=True)
        module = "from scenario_runner.__main__ import console; console()"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c "{module}" "$@"\n')
        program.chmod(0o755)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    environment = os.environ | {
        "PATH": os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"]))),
        # What is in the cache is shown by one page alone.
        "SCENARIO_RUNNER_CACHE": str(folder / ".cache" if request.param.name == "caches.md" else shader_cache),
        "COLUMNS": "100",
    }
    return request.param, folder, environment


def output_of(step: Step, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    """Run a command or a program; return its output and its exit code."""
    command, given, printed = step.command, "", ""
    call = CALL.fullmatch(command)
    if step.kind == "python" or call:
        name, words, both, rest = call.groups() if call else ("python -c", shlex.quote(command), None, "")
        is_merged = bool(both) or (step.kind != "python" and not rest.lstrip().startswith(("|", ">")))
        code, out, err = FORKS.run(
            shlex.split(words), folder, environment, "", TIMEOUT_S, merged=is_merged, python=name == "python -c"
        )
        given, printed = out.decode(), err.decode()
        if not rest:
            return given + printed, code
        command = f"{{ cat; (exit {code}); }}{rest}"
    done = subprocess.run(
        ["sh", "-c", f"{{ {command}\n}} 2>&1"],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return printed + done.stdout, done.returncode


@needs(VGF_LIBRARY, "custom_shaders.md", "debugging.md")
def test_page_says_what_happens(page: tuple[Path, Path, dict[str, str]]) -> None:
    """Each command and program of a page prints what the page shows."""
    path, folder, environment = page
    for step in steps_of(path):
        if step.kind == "file":
            (folder / step.command).write_text("\n".join(step.expected) + "\n", encoding="utf-8")
            continue
        output, code = output_of(step, folder, environment)
        assert pattern_of(step.expected).fullmatch(PROGRESS.sub("", output)), (
            f"{path.name}:{step.line}: {step.command}\nprinted:\n{output}\nexpected:\n" + "\n".join(step.expected)
        )
        if step.kind == "python":
            assert code == 0, f"{path.name}:{step.line} ended with {code}:\n{output}"
