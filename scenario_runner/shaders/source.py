"""One shader to compile, its ``build_options``, and the text that the compiler gets.

That is the source with its includes, macros and version put in place.

Expanding ``#include`` here makes every compiler search alike, needs no extension, and makes the cache sound: its key is
the text that is compiled, so that a new file earlier in the search path is a new text. ``#line`` directives keep every
line's number and file; files go by number, because only that form needs no extension.

A compiler follows the other includes itself (``#include MACRO``, a directive split by a backslash): then the module
comes from more than the text and is not cached. The sandbox refuses them.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from typing import Literal, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError, SandboxError, ScenarioError, error_of
from scenario_runner.files.source import CODE, SourceFile, check_path, file_error, is_confined

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
        raise error_of(Diagnostic("SR-SHADER-014", "error", None, f"build_options: {problem}") for problem in problems)
    return BuildOptions(tuple(macros.values()), tuple(include_dirs), optimise, debug)


def _words(text: str) -> list[str]:
    if not any(quote in text for quote in "'\"\\"):
        return text.split()
    try:
        return shlex.split(text)
    except ValueError as error:
        message = f"build_options: {text!r} cannot be split into options: {str(error).lower()}"
        raise ScenarioError(
            message, help="close every quote; write \\\\ for a backslash", code="SR-SHADER-014"
        ) from None


def _macro(kind: str, text: str) -> tuple[str, tuple[str, str | bool]]:
    """The name alone, and (name with parameters, value). Raises ValueError with a whole message."""
    match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\([A-Za-z0-9_ ,.]*\))?(=)?", text)
    rest = text[match.end() :] if match else text
    if match is None or (rest and not match[3]) or (kind == "-U" and text != match[1]):
        shape = "NAME" if kind == "-U" else "NAME or NAME=VALUE"
        raise ValueError(f"{kind + text!r} is not a macro (expected {kind}{shape}, NAME of letters, digits and _)")
    if kind == "-U":
        return match[1], (match[1], False)
    # The value becomes the rest of a #define line: nothing in it may reach the lines below.
    if any(mark in rest for mark in ("\n", "\r", "\0", "/*")) or rest.endswith("\\"):
        raise ValueError(f"the value in {kind + text!r} cannot hold a line break, '/*' or a final backslash")
    return match[1], (match[1] + (match[2] or ""), rest if match[3] else True)


Language = Literal["GLSL", "HLSL"]
Stage = Literal["compute", "vertex", "fragment"]
TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3", "vulkan1.4")


class CompileRequest(NamedTuple):
    """A source as the scenario's ``shader`` resource describes it.

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
        """The name of the source in messages: the path as it was given, or the name of a text."""
        return self.path if self.path is not None else self.name


# Compiled when they are needed, which few shaders make them.
_COMMENT_OR_STRING = rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\\n])*+\")"
_SPLICE = rb"\\[ \t\f\v]*(?:\r\n?|\n)"
# `#` has two more spellings; `import` and `embed` are those of some compilers.
_WORDS = (b"include", b"import", b"embed")
_OPENS_FILE = rb"(?:#|%:|\?\?=)\s*(include|import|embed)"


def own_include(text: bytes) -> str:
    """The name of the first directive that makes a compiler open a file; empty where there is none."""
    text = re.sub(_SPLICE, b"", text) if b"\\" in text else text
    if not any(word in text for word in _WORDS):
        return ""
    match = re.search(_OPENS_FILE, without_comments(text))
    return match[1].decode() if match else ""


def without_comments(text: bytes) -> bytes:
    """``text`` with a space for each comment; its lines stay where they are.

    Compilers disagree about where comments end. What is not there, none of them can take for a directive.
    """

    def replaced(match: re.Match[bytes]) -> bytes:
        return match[1] or b" " + b"\n" * match[0].count(b"\n")

    return re.sub(_COMMENT_OR_STRING, replaced, text, flags=re.S)


MAX_BYTES = 16 << 20
MAX_DEPTH = 64
OPTIONS_FILE = 70000  # the number of the lines that hold build_options
FIRST_FILE = 70001  # far from the numbers that sources use in #line directives of their own

_SKIP = rb"(?>\s+|//[^\n]*+|/\*(?>.*?\*/))*+"
_VERSION = re.compile(_SKIP + rb"#[ \t]*version[ \t]+(\d{1,9})(?:[ \t]+(core|compatibility|es)\b)?", re.S)
# Comments and strings are matched only to be stepped over.
_DIRECTIVE = (
    rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"|"
    rb"^[ \t]*#[ \t]*(?:include[ \t]*(?:\"([^\"\n]+)\"|<([^>\n]+)>)|(pragma[ \t]+once\b))"
)


class Assembled:
    """``text`` is what the compiler gets. ``files`` are the names of its parts: index i is number ``FIRST_FILE + i``,
    the source itself first. ``missing`` are the includes not found. ``opaque`` is set when an include is left to the
    compiler (see `own_includes`): then the text is not all that the module comes from, and no cache may keep it."""

    __slots__ = ("files", "missing", "opaque", "text")

    def __init__(self, place: str) -> None:
        self.text = b""
        self.files = [place]
        self.missing: list[str] = []
        self.opaque = False


def assemble(request: CompileRequest, options: BuildOptions) -> Assembled:
    """Read the source and everything it includes. Raises FileError: missing, no regular file, or too large;
    SandboxError for what the sandbox forbids."""
    if request.path is not None:
        data = read_source(request.path)
        folder = os.path.dirname(request.path)
    else:
        data = (request.source or "").encode("utf-8", "surrogatepass")
        folder = request.base_dir
    assembled = _Assembly(request, options).whole(data.removeprefix(b"\xef\xbb\xbf"), folder)
    if is_confined():
        assembled.text = without_comments(assembled.text)
    own = own_include(assembled.text)
    if own and is_confined():
        message = f"has an #{own} that the compiler would follow by itself, which the sandbox forbids"
        raise SandboxError(
            Diagnostic(
                CODE, "error", None, message, 'write #include "file" on one line, without a macro', path=request.place
            )
        )
    assembled.opaque = bool(own)
    return assembled


def read_source(path: str) -> bytes:
    """The bytes of a source file of at most ``MAX_BYTES``. Raises FileError."""
    with SourceFile(path) as file:
        if file.size_bytes > MAX_BYTES:
            raise file_error(path, f"a shader source of more than {MAX_BYTES >> 20} MiB is not read")
        return file.read(file.size_bytes)


class _Assembly:
    def __init__(self, request: CompileRequest, options: BuildOptions) -> None:
        self.request = request
        self.options = options
        self.result = Assembled(request.place)
        self.hlsl = request.language == "HLSL"
        # Debug information should name files, and HLSL knows no numbers.
        self.named = self.hlsl or options.debug
        self.dirs = (*request.include_dirs, *options.include_dirs)
        self.numbers: dict[str, int] = {}
        self.line_offset = 0
        self.size = 0

    def whole(self, data: bytes, folder: str) -> Assembled:
        head, rest, at = b"", data, 1
        preamble = self.macros()
        if not self.hlsl:
            match = None
            if b"version" in data:
                match = _VERSION.match(data)
            if match:
                head, rest = data[: match.end()] + b"\n", data[match.end() :]
                at = data.count(b"\n", 0, match.end()) + 1
                # Before GLSL 3.30, "#line 5" numbers its own line, not the next.
                version = int(match[1])
                self.line_offset = -1 if (match[2] != b"es" and version < 330) or version == 100 else 0
            else:
                head = b"#version 460\n"
            if self.named:
                head += b"#extension GL_GOOGLE_cpp_style_line_directive : enable\n"
        itself = () if self.request.path is None else (os.path.normpath(self.request.path),)
        body = self.expand(rest, at, 0, (folder,), itself)
        if preamble:
            preamble = self.line(1, OPTIONS_FILE) + preamble
        if head or preamble or self.options.debug:
            body = head + preamble + self.line(at, FIRST_FILE) + body
        self.result.text = body
        return self.result

    def macros(self) -> bytes:
        lines = []
        for name, value in self.options.macros:
            if value is False:
                lines.append(f"#undef {name}\n")
            elif value is True:
                # A bare -DNAME is empty in GLSL compilers and 1 in those of the C family.
                lines.append(f"#define {name} {'1' if self.hlsl else ''}\n")
            else:
                lines.append(f"#define {name} {value}\n")
        return "".join(lines).encode("utf-8", "surrogatepass")

    def line(self, line: int, number: int) -> bytes:
        """The directive after which comes line ``line`` (from 1) of file ``number``."""
        if not self.named:
            return b"#line %d %d\n" % (line + self.line_offset, number)
        file = "build_options" if number == OPTIONS_FILE else self.result.files[number - FIRST_FILE]
        name = re.sub(r'["\\\r\n]', "/", file).encode("utf-8", "surrogateescape")
        return b'#line %d "%s"\n' % (line + self.line_offset, name)

    def expand(
        self, text: bytes, first: int, index: int, folders: tuple[str, ...], open_files: tuple[str, ...]
    ) -> bytes:
        """``text``, which begins at line ``first`` of file ``index``, with its includes put in place."""
        self.size += len(text)
        if self.size > MAX_BYTES:
            message = f"with its includes the shader has more than {MAX_BYTES >> 20} MiB"
            advice = "a file that is included again and again counts each time, also when guards make it empty"
            raise FileError(Diagnostic("SR-FILE-001", "error", None, message, advice, path=self.request.place))
        if b"include" not in text and b"once" not in text:
            return text
        parts: list[bytes] = []
        done = counted = 0
        at = first
        once = False
        for match in re.compile(_DIRECTIVE, re.S | re.M).finditer(text):
            name: bytes | None = match[1] or match[2]
            if match[3]:
                once = once or index > 0
                parts.append(text[done : match.start()])
                done = match.end()
                continue
            if not name:
                continue
            at += text.count(b"\n", counted, match.start())
            counted = match.start()
            inner = self.include(name, folders, open_files)
            parts += (text[done : match.start()], inner, self.line(at, FIRST_FILE + index))
            done = match.end()
        parts.append(text[done:])
        body = b"".join(parts)
        if once:
            guard = b"SCENARIO_RUNNER_ONCE_%d" % index
            start = b"#ifndef %s\n#define %s\n" % (guard, guard) + self.line(first, FIRST_FILE + index)
            body = start + body + b"\n\n#endif\n"
        return body

    def include(self, raw: bytes, folders: tuple[str, ...], open_files: tuple[str, ...]) -> bytes:
        """Give the text for one include: the file's text, or an #error, which matters only where it is reached."""
        name = os.fsdecode(raw).replace("\\", "/")
        # The folder of the file that includes, those of its includers, then the include folders.
        for folder in (*reversed(folders), *self.dirs):
            path = os.path.normpath(os.path.join(folder, name))
            check_path(path)
            try:
                regular = stat.S_ISREG(os.stat(path).st_mode)
            except (OSError, ValueError):
                continue
            if not regular:
                continue
            # Once more is allowed: guards make the inner one empty. What is deeper counts only where there are none.
            if open_files.count(path) > 1 or len(open_files) >= MAX_DEPTH:
                return b'#error the include file "%s" includes itself, or is nested too deep\n' % _printable(raw)
            data = read_source(path).removeprefix(b"\xef\xbb\xbf")
            if path not in self.numbers:
                self.numbers[path] = len(self.result.files)
                self.result.files.append(path)
            index = self.numbers[path]
            inner = self.expand(data, 1, index, (*folders, os.path.dirname(path)), (*open_files, path))
            # Two line ends: the first may be taken by a final backslash.
            return self.line(1, FIRST_FILE + index) + inner + b"\n\n"
        self.result.missing.append(name)
        return b'#error cannot find the include file "%s"\n' % _printable(raw)


def _printable(raw: bytes) -> bytes:
    return re.sub(rb"[^A-Za-z0-9_./ -]", b"?", raw)
