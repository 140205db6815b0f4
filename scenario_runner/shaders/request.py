"""One shader to compile, and its ``build_options``."""

from __future__ import annotations

import os
import re
from typing import Literal, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError, error_of

_EXPECTED = "-DNAME, -DNAME=VALUE, -UNAME, -I DIR, -O, -O0 to -O3, -Os, -g or -g0"
_LEVELS = {"-O": "s", "-O0": "0", "-O1": "1", "-O2": "2", "-O3": "3", "-Os": "s"}


class BuildOptions(NamedTuple):
    """Parsed options. ``macros`` holds the last word on each name, in order: (name with parameters, value); a value of
    False stands for -U, and True for -DNAME alone. ``include_dirs`` are absolute unless the base folder was not.
    ``optimise`` is ``""`` (not asked), ``"0"`` to ``"3"`` or ``"s"``."""

    macros: tuple[tuple[str, str | bool], ...] = ()
    include_dirs: tuple[str, ...] = ()
    optimise: str = ""
    debug: bool = False


_NONE = BuildOptions()


def parse_build_options(text: str, base_dir: str = "") -> BuildOptions:
    """Parse one string of options, quoted as for a shell; relative ``-I`` folders count from ``base_dir``.

    Raises ScenarioError (no place; the caller knows it) with one problem per option that cannot be used.
    """
    if not text or text.isspace():
        return _NONE
    words = iter(_words(text))
    macros: dict[str, tuple[str, str | bool]] = {}
    include_dirs: list[str] = []
    optimise, debug = "", False
    problems: list[str] = []
    for word in words:
        if word[:2] in ("-D", "-U", "-I"):
            kind, value = word[:2], word[2:] or next(words, None)
            try:
                if value is None:
                    raise ValueError(f"{kind!r} at the end lacks its argument")
                if kind != "-I":
                    name, macro = _macro(kind, value)
                    macros.pop(name, None)
                    macros[name] = macro
                elif not value or "\0" in value:
                    raise ValueError(f"{value!r} is not a folder name (after '-I')")
                else:
                    include_dirs.append(os.path.join(base_dir, value))
            except ValueError as error:
                problems.append(str(error))
        elif word in _LEVELS:
            optimise = _LEVELS[word]
        elif word in ("-g", "-g0"):
            debug = word == "-g"
        else:
            problems.append(f"unknown option {word!r} (expected {_EXPECTED})")
    if problems:
        raise error_of(Diagnostic("SR-SHADER-014", "error", None, f"build_options: {each}") for each in problems)
    return BuildOptions(tuple(macros.values()), tuple(include_dirs), optimise, debug)


def _words(text: str) -> list[str]:
    if not any(quote in text for quote in "'\"\\"):
        return text.split()
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        message = f"build_options: {text!r} cannot be split into options: {str(error).lower()}"
        raise ScenarioError(
            message, help="close every quote; write \\\\ for a backslash", code="SR-SHADER-014"
        ) from None


def _macro(kind: str, text: str) -> tuple[str, tuple[str, str | bool]]:
    """The name alone, and (name with parameters, value). Raises ValueError with a whole message."""
    found = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\([A-Za-z0-9_ ,.]*\))?(=)?", text)
    rest = text[found.end() :] if found else text
    if found is None or (rest and not found[3]) or (kind == "-U" and text != found[1]):
        shape = "NAME" if kind == "-U" else "NAME or NAME=VALUE"
        raise ValueError(f"{kind + text!r} is not a macro (expected {kind}{shape}, NAME of letters, digits and _)")
    if kind == "-U":
        return found[1], (found[1], False)
    # The value becomes the rest of a #define line: nothing in it may reach the lines below.
    if any(mark in rest for mark in ("\n", "\r", "\0", "/*")) or rest.endswith("\\"):
        raise ValueError(f"the value in {kind + text!r} cannot hold a line break, '/*' or a final backslash")
    return found[1], (found[1] + (found[2] or ""), rest if found[3] else True)


Language = Literal["GLSL", "HLSL"]
Stage = Literal["compute", "vertex", "fragment"]
TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3", "vulkan1.4")


class CompileRequest(NamedTuple):
    """What the scenario's ``shader`` resource says about a source.

    Either ``path`` names the file, or ``source`` holds the text and ``name`` labels it in messages. ``build_options``
    is the scenario's string (see `parse_build_options`); a relative ``-I`` in it counts from ``base_dir`` (the
    scenario's folder). ``include_dirs`` are searched in order, after the folder of the file that includes. ``label`` is
    the shader's uid. ``target`` is the oldest Vulkan version that the module must run on; a source that needs a newer
    one (GL_ARM_tensors) gets it.
    """

    language: Language = "GLSL"
    path: str | None = None
    source: str | None = None
    name: str = "<source>"
    entry: str = "main"
    stage: Stage = "compute"
    build_options: str = ""
    include_dirs: tuple[str, ...] = ()
    base_dir: str = ""
    label: str = ""
    target: str = "vulkan1.2"

    @property
    def place(self) -> str:
        """What messages call the source: the path as it was given, or the name of a text."""
        return self.path if self.path is not None else self.name
