"""Rules for files: length, names, and texts that no file may contain."""

import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "benchmarks", "docs", "scenario_runner", "scenarios", "tests", "tools")
NOT_OURS = {"__pycache__", "out", "results", ".hypothesis"}

LINES_MAX = 450
# Absolute paths of one developer's or one container's machine, and hosts that users replace by their own mirrors.
MACHINE_PATH = re.compile(rb"(?<![\w.*}>)-])/(?:work(?!group)|root|opt/(?!homebrew)|tmp/\w)[/\w]")
REGISTRY_HOST = re.compile(
    rb"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|(?:deb|archive)\.(?:debian|ubuntu)\.)"
)
# A relative path that is no part of a longer one.
PARENT_PATH = re.compile(rb"(?<![\w/.])(?:\.\./)+[\w-][\w./-]*")


def project_files() -> Iterator[Path]:
    for path in sorted(CHECKOUT.iterdir()):
        # in a worktree `.git` is a file with the path of its repository
        if path.is_file() and path.suffix in (".md", ".toml", "") and path.name != ".git":
            yield path
    for folder in FOLDERS:
        for path in sorted((CHECKOUT / folder).rglob("*")):
            if path.is_file() and not NOT_OURS & set(path.relative_to(CHECKOUT).parts):
                yield path


def test_python_files_stay_short() -> None:
    """No Python file that a person wrote has more than 450 lines."""
    lengths = {
        str(path.relative_to(CHECKOUT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in project_files()
        if path.suffix == ".py" and "_generated" not in path.parts
    }
    assert len(lengths) > 1
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}


def test_modules_are_named_after_what_they_hold() -> None:
    """No module has a vague name such as utils, helpers or manager."""
    vague = re.compile(r"^(utils?|helpers?|managers?|common|misc|tools?)$")
    modules = [path for path in project_files() if path.suffix == ".py"]
    assert [path for path in modules if vague.match(path.stem)] == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    """No file of the project mentions an absolute path of a developer's machine or the host of a package registry."""
    found = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for pattern in (MACHINE_PATH, REGISTRY_HOST):
            found += [f"{path.relative_to(CHECKOUT)}: {match[0].decode()}" for match in pattern.finditer(content)]
    assert found == []


def test_no_file_names_one_outside_of_the_checkout() -> None:
    """Each relative path upwards leads to a file of the checkout. Paths in tests/ are data, and do not count."""
    assert PARENT_PATH.fullmatch(b"../" + b"shared/tools/x.sh")
    outside = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" in content or "tests" in path.relative_to(CHECKOUT).parts:
            continue
        for match in PARENT_PATH.finditer(content):
            target = (path.parent / match[0].decode().rstrip(".")).resolve()
            if not (target.is_relative_to(CHECKOUT) and target.exists()):
                outside.append(f"{path.relative_to(CHECKOUT)}: {match[0].decode()}")
    assert outside == []
