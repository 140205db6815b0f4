"""A shader to compile, the ``build_options``, and the assembled text for the compiler.

The assembled text is the source with includes, macros and version inserted.

Because ``#include`` is expanded here, every compiler searches alike and needs no extension. The cache is sound, too:
the compiled text is the key, and a new file earlier in the search path changes that text. ``#line`` directives keep
each line's number and file. Files have numbers, because names in directives need an extension.

A compiler resolves other includes itself (``#include MACRO``, a directive split by a backslash). Such a module depends
on more than the text and is not cached. The sandbox rejects these includes.
"""

import os
import re
import shlex
from itertools import islice
from typing import Final, Literal, NamedTuple

from scenario_runner.errors import FileError, SandboxError, ScenarioError, ShaderError, error_of, file_error
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import SPIRV_SIGNATURES, SourceFile, recognized
from scenario_runner.files.sandbox import CODE, check_path, is_confined

Language = Literal["GLSL", "HLSL"]
Stage = Literal["compute", "vertex", "fragment"]
TARGETS = tuple(f"vulkan1.{minor}" for minor in range(5)) + tuple(f"spv1.{minor}" for minor in range(7))
PROFILES: Final = {"compute": "cs", "vertex": "vs", "fragment": "ps"}

_EXPECTED = "-DNAME, -DNAME=VALUE, -UNAME, -I DIR, -O, -O0 to -O3, -Os, -g, -g0"
_LEVELS = {"-O": "s", "-O0": "0", "-O1": "1", "-O2": "2", "-O3": "3", "-Os": "s", "-Od": "0"}
# Options of dxc that change the module or the warnings, and name no file. Compiled on use; most take no value.
_DXC_WORD = (
    r"-(Zp[rc]|G(is|fa|fp|es|ec)|HV|enable-16bit-types|ffinite-math-only|denorm|all-resources-bound|res-may-alias|"
    r"pack-optimized|fvk-[\w=-]+|fspv-(?!entrypoint-name|print-all)[\w=.-]+|W[\w=-]+)"
)
_DXC_VALUES = {
    **dict.fromkeys(("-HV", "-denorm", "-fspv-max-id"), 1),
    **{f"-fvk-{letter}-shift": 2 for letter in "bstu"},
    **{f"-fvk-bind-{what}": 2 for what in ("globals", "counter-heap", "resource-heap", "sampler-heap")},
    "-fvk-bind-register": 4,
}


class BuildOptions(NamedTuple):
    """Parsed options.

    ``macros`` has the last definition of each name, in order: (name with parameters, value). False stands for -U, True
    for -DNAME alone. ``include_dirs`` are absolute unless the base folder was not. ``optimise`` is ``""`` (not asked),
    ``"0"`` to ``"3"`` or ``"s"``. ``profile`` and ``dxc_words`` are only for HLSL, ``target`` only for GLSL.
    """

    macros: tuple[tuple[str, str | bool], ...] = ()
    include_dirs: tuple[str, ...] = ()
    optimise: str = ""
    debug: bool = False
    profile: str = ""
    dxc_words: tuple[str, ...] = ()
    target: str = ""


_NONE = BuildOptions()


def parse_build_options(text: str, base_dir: str = "", language: Language = "GLSL") -> BuildOptions:
    """Parse a string of options, quoted as for a shell. Relative ``-I`` folders start at ``base_dir``.

    Raises ScenarioError with a problem for each wrong option. The caller adds the JSON pointer.
    """
    if not text or text.isspace():
        return _NONE
    words = iter(_words(text))
    macros: dict[str, tuple[str, str | bool]] = {}
    include_dirs: list[str] = []
    dxc_words: list[str] = []
    optimise, debug, profile, target = "", False, "", ""
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
        elif word in _LEVELS and (word != "-Od" or language == "HLSL"):
            optimise = _LEVELS[word]
        elif word in ("-g", "-g0"):
            debug = word == "-g"
        elif language == "HLSL" and word.startswith("-T"):
            profile = word[2:] or next(words, "")
            if not re.fullmatch(r"[a-z]{2}_\d_\w", profile):
                problems.append(f"{profile!r} is not a profile (after '-T'; expected one such as cs_6_6)")
        elif language == "HLSL" and re.fullmatch(_DXC_WORD, word):
            values = list(islice(words, _DXC_VALUES.get(word, 0)))
            dxc_words += [word, *values]
            if len(values) < _DXC_VALUES.get(word, 0) or any(value.startswith(("-", "/", "@")) for value in values):
                problems.append(f"{word!r} needs {_DXC_VALUES[word]} values, got {' '.join(values) or 'none'}")
        elif language == "GLSL" and word.startswith("--target-env"):
            target = word.removeprefix("--target-env").removeprefix("=") or next(words, "")
            if target not in TARGETS:
                problems.append(f"unknown target {target!r} (expected one of {', '.join(TARGETS)})")
        else:
            more = "an option of dxc that names no file" if language == "HLSL" else "--target-env TARGET"
            problems.append(f"unknown option {word!r} (expected {_EXPECTED} or {more})")
    if problems:
        raise error_of(Diagnostic("SR-SHADER-014", "error", None, f"build_options: {problem}") for problem in problems)
    return BuildOptions(tuple(macros.values()), tuple(include_dirs), optimise, debug, profile, tuple(dxc_words), target)


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
    """Parse -D or -U: return the macro's name, and the pair (name with parameters, value).

    The value is True for -DNAME without a value, and False for -U. Raises ValueError with a whole message.
    """
    match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\([A-Za-z0-9_ ,.]*\))?(=)?", text)
    rest = text[match.end() :] if match else text
    if match is None or (rest and not match[3]) or (kind == "-U" and text != match[1]):
        shape = "NAME" if kind == "-U" else "NAME or NAME=VALUE"
        raise ValueError(f"{kind + text!r} is not a macro (expected {kind}{shape}, NAME of letters, digits and _)")
    if kind == "-U":
        return match[1], (match[1], False)
    # The value becomes the rest of a #define line, and must not reach the lines below.
    if any(mark in rest for mark in ("\n", "\r", "\0", "/*")) or rest.endswith("\\"):
        raise ValueError(f"the value in {kind + text!r} must not contain a line break, '/*' or a final backslash")
    return match[1], (match[1] + (match[2] or ""), rest if match[3] else True)


class CompileRequest(NamedTuple):
    """A source as the scenario's ``shader`` resource describes it.

    ``path`` names the file, unless ``source`` is a text, which messages call ``name``. A caller that has read the file
    gives both, with the bytes as ``source``. ``build_options`` is the scenario's string (see `parse_build_options`); a
    relative ``-I`` in it starts at ``base_dir``, the scenario's folder. ``include_dirs`` are searched in order, after
    the folder of the including file. ``label`` is the shader's uid. ``target`` is the oldest Vulkan version that the
    module must run on. A source that needs a newer version (GL_ARM_tensors) gets it.
    """

    language: Language = "GLSL"
    path: str | None = None
    source: str | bytes | None = None
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
        """The name of the source in messages: the path as given, or the name of a text."""
        return self.path if self.path is not None else self.name

    @property
    def who(self) -> str:
        """The start of a sentence about the shader; empty without a label."""
        return f"shader {self.label!r}: " if self.label else ""


def options_of(request: CompileRequest) -> BuildOptions:
    """Parse the build options of a request. Raises ScenarioError; the caller adds the JSON pointer."""
    options = parse_build_options(request.build_options, request.base_dir, request.language)
    letters = PROFILES[request.stage]
    if options.profile and not options.profile.startswith(letters):
        message = f"build_options: the profile {options.profile!r} is for another stage than {request.stage!r}"
        raise ScenarioError(message, help=f"name a profile such as {letters}_6_0", code="SR-SHADER-014")
    return options


# Compiled on use, because few shaders need them.
_COMMENT_OR_STRING = rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\\n])*+\")"
_SPLICE = rb"\\[ \t\f\v]*(?:\r\n?|\n)"
# `#` has two more spellings. Some compilers know `import` and `embed`.
_WORDS = (b"include", b"import", b"embed")
_OPENS_FILE = rb"(?:#|%:|\?\?=)\s*(include|import|embed)|\b(__has_(?:include|embed))"


def own_include(text: bytes) -> str:
    """Return the first directive or operator that makes a compiler look for a file; empty if there is none."""
    text = re.sub(_SPLICE, b"", text) if b"\\" in text else text
    if not any(word in text for word in _WORDS):
        return ""
    match = re.search(_OPENS_FILE, without_comments(text))
    return "" if match is None else f"#{match[1].decode()}" if match[1] else match[2].decode()


def without_comments(text: bytes) -> bytes:
    """Replace each comment by a space. Lines keep their numbers.

    Compilers disagree about the ends of comments. No compiler can mistake a removed comment for a directive.
    """

    def replaced(match: re.Match[bytes]) -> bytes:
        return match[1] or b" " + b"\n" * match[0].count(b"\n")

    return re.sub(_COMMENT_OR_STRING, replaced, text, flags=re.S)


_TENSORS = b"GL_ARM_tensors"
MAX_BYTES = 16 << 20
MAX_DEPTH = 64
OPTIONS_FILE = 70000  # the file number of build_options
FIRST_FILE = 70001  # far from the numbers in #line directives of sources

_HLSL_ENTRY = rb"\[numthreads\b[^]]*\]\s*(?:\[[^]]*\]\s*)*\w+\s+(\w+)\s*\("

_SKIP = rb"(?>\s+|//[^\n]*+|/\*(?>.*?\*/))*+"
_VERSION = re.compile(_SKIP + rb"#[ \t]*version[ \t]+(\d{1,9})(?:[ \t]+(core|compatibility|es)\b)?", re.S)
# Comments and strings are matched only to skip them.
_DIRECTIVE = (
    rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"|"
    rb"^[ \t]*#[ \t]*(?:include[ \t]*(?:\"([^\"\n]+)\"|<([^>\n]+)>)|(pragma[ \t]+once\b))"
)


class ShaderSource:
    """The source of a request with includes, macros and version inserted: ``text`` is for the compiler.

    ``files`` names the parts: index i has the number ``FIRST_FILE + i``, and the source itself is first. ``contents``
    has the files' bytes, ``missing`` the includes not found. ``opaque`` means that the compiler resolves an include
    itself (see `own_include`). The module then depends on more than the text, and no cache may keep it.
    """

    def __init__(
        self, request: CompileRequest, options: BuildOptions, data: bytes, folder: str, *, marks_lines: bool = True
    ) -> None:
        self._marks_lines = marks_lines
        self.request = request
        self.options = options
        self.files = [request.place]
        self.contents = [data]
        self.missing: list[str] = []
        self.opaque = False
        self._is_hlsl = request.language == "HLSL"
        # Debug information should name files, and HLSL has no file numbers.
        self._names_files = self._is_hlsl or options.debug
        self._dirs = (*request.include_dirs, *options.include_dirs)
        self._numbers: dict[str, int] = {}
        self._line_offset = 0
        self._size_bytes = 0
        self.text = self._assemble(data, folder)

    @property
    def follows_from_file(self) -> bool:
        """True if the text follows from the bytes of one file, whatever the path of the file."""
        return len(self.files) == 1 and not (self.missing or self.opaque or self._names_files)

    @property
    def has_tensors(self) -> bool:
        """True if the text names GL_ARM_tensors."""
        return _TENSORS in self.text

    def other_entry_points(self) -> list[str]:
        """List the entry points of compute shaders in HLSL, if none has the name that the request gives."""
        is_hlsl_compute = self._is_hlsl and self.request.stage == "compute"
        entries = [name.decode() for name in re.findall(_HLSL_ENTRY, self.text)] if is_hlsl_compute else []
        return [] if self.request.entry in entries else entries

    def _assemble(self, data: bytes, folder: str) -> bytes:
        head, at = b"", 1
        preamble = self._macros()
        if not self._is_hlsl:
            head = b"#version 460\n"
            version = _VERSION.match(data) if b"version" in data else None
            if version:
                head, at = data[: version.end()] + b"\n", data.count(b"\n", 0, version.end()) + 1
                data = data[version.end() :]
                # Before GLSL 3.30, "#line 5" numbers its own line instead of the next.
                number = int(version[1])
                self._line_offset = -1 if (version[2] != b"es" and number < 330) or number == 100 else 0
            if self._names_files:
                head += b"#extension GL_GOOGLE_cpp_style_line_directive : enable\n"
        itself = () if self.request.path is None else (os.path.normpath(self.request.path),)
        body = self._expand(data, at, 0, (folder,), itself)
        if preamble:
            preamble = self._line(1, OPTIONS_FILE) + preamble
        if head or preamble or self.options.debug:
            body = head + preamble + self._line(at, FIRST_FILE) + body
        return body

    def _macros(self) -> bytes:
        lines = []
        for name, value in self.options.macros:
            if value is True:
                # A bare -DNAME means an empty macro in GLSL, and 1 in languages of the C family.
                value = "1" if self._is_hlsl else ""
            lines.append(f"#undef {name}\n" if value is False else f"#define {name} {value}\n")
        return "".join(lines).encode("utf-8", "surrogatepass")

    def _line(self, line: int, number: int) -> bytes:
        """Return the directive before line ``line`` (from 1) of file ``number``; empty in a text for readers."""
        if not self._marks_lines:
            return b""
        file = b"%d" % number
        if self._names_files:
            name = "build_options" if number == OPTIONS_FILE else self.files[number - FIRST_FILE]
            file = b'"%s"' % re.sub(r'["\\\r\n]', "/", name).encode("utf-8", "surrogateescape")
        return b"#line %d %s\n" % (line + self._line_offset, file)

    def _expand(
        self, text: bytes, first: int, index: int, folders: tuple[str, ...], open_files: tuple[str, ...]
    ) -> bytes:
        """Return ``text``, which begins at line ``first`` of file ``index``, with includes inserted."""
        self._size_bytes += len(text)
        if self._size_bytes > MAX_BYTES:
            message = f"with its includes the shader has more than {MAX_BYTES >> 20} MiB"
            advice = "each inclusion of a file counts, even if guards make it empty"
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
            elif name:
                at += text.count(b"\n", counted, match.start())
                counted = match.start()
                inner = self._include(name, folders, open_files)
                parts += (text[done : match.start()], inner, self._line(at, FIRST_FILE + index))
                done = match.end()
        body = b"".join((*parts, text[done:]))
        if once:
            guard = b"SCENARIO_RUNNER_ONCE_%d" % index
            start = b"#ifndef %s\n#define %s\n" % (guard, guard) + self._line(first, FIRST_FILE + index)
            body = start + body + b"\n\n#endif\n"
        return body

    def _include(self, raw: bytes, folders: tuple[str, ...], open_files: tuple[str, ...]) -> bytes:
        """Return the text of an included file, or an #error, which only counts if the compiler reaches it."""
        name, shown = os.fsdecode(raw).replace("\\", "/"), re.sub(rb"[^A-Za-z0-9_./ -]", b"?", raw)
        # Search the including file's folder, the includers' folders, then the include folders.
        for folder in (*reversed(folders), *self._dirs):
            path = os.path.normpath(os.path.join(folder, name))
            check_path(path)
            if not os.path.isfile(path):
                continue
            # A second inclusion is allowed: guards make it empty. A deeper inclusion has no guards.
            if open_files.count(path) > 1 or len(open_files) >= MAX_DEPTH:
                return b'#error the include file "%s" includes itself, or is nested too deep\n' % shown
            data = read_source(path).removeprefix(b"\xef\xbb\xbf")
            if path not in self._numbers:
                self._numbers[path] = len(self.files)
                self.files.append(path)
                self.contents.append(data)
            index = self._numbers[path]
            inner = self._expand(data, 1, index, (*folders, os.path.dirname(path)), (*open_files, path))
            # Two line ends: a final backslash may take the first.
            return self._line(1, FIRST_FILE + index) + inner + b"\n\n"
        self.missing.append(name)
        return b'#error cannot find the include file "%s"\n' % shown


def assemble(request: CompileRequest, options: BuildOptions, *, marks_lines: bool = True) -> ShaderSource:
    """Read the source and all includes.

    Raises FileError for a file that is missing, irregular or too large, ShaderError for a file of another kind, and
    SandboxError for a forbidden file.
    """
    if isinstance(request.source, str):
        data = request.source.encode("utf-8", "surrogatepass")
    else:
        data = read_source(request.path or "") if request.source is None else request.source
    folder = request.base_dir
    if request.path is not None:
        _check_kind(data, request.path, request.language)
        folder = os.path.dirname(request.path)
    source = ShaderSource(request, options, data.removeprefix(b"\xef\xbb\xbf"), folder, marks_lines=marks_lines)
    if is_confined():
        source.text = without_comments(source.text)
    own = own_include(source.text)
    if own and is_confined():
        message = f"has an {own} that the compiler would resolve itself, which the sandbox forbids"
        help = 'write #include "file" on one line, without a macro'
        raise SandboxError(Diagnostic(CODE, "error", None, message, help, path=request.place))
    source.opaque = bool(own)
    return source


def _check_kind(data: bytes, path: str, language: Language) -> None:
    """Raise ShaderError for a SPIR-V module, for GLSL with the type HLSL, and for a file of data."""
    kind, _ = recognized(data, path) or ("", "")
    if data.startswith(SPIRV_SIGNATURES):
        code, other = "SR-SHADER-012", "SPIR-V"
    elif language == "HLSL" and data.startswith(b"#version "):
        code, other = "SR-SHADER-010", "GLSL"
    elif kind and not kind.endswith("shader"):
        raise ShaderError(
            Diagnostic("SR-SHADER-010", "error", None, f"the file is {kind}, expected a shader", path=path)
        )
    else:
        return
    message, help = f'the file is {kind}, but "type" is "{language}"', f'write "type": "{other}"'
    raise ShaderError(Diagnostic(code, "error", None, message, help, path=path))


def inlined(request: CompileRequest) -> bytes | None:
    """Return a request's source with includes inserted, for other programs; None without includes.

    Macros stay in the build options. Raises FileError, also for an include that the compiler would resolve.
    """
    options = options_of(request)._replace(macros=(), debug=False)
    source = assemble(request, options, marks_lines=False)
    if source.opaque:
        message = "includes a file through a macro: its text cannot be inserted"
        raise file_error(request.place, message, help='write #include "file" on one line, without a macro')
    return source.text if len(source.files) > 1 else None


def read_source(path: str) -> bytes:
    """Read a source file of at most ``MAX_BYTES``. Raises FileError."""
    with SourceFile(path) as file:
        if file.size_bytes > MAX_BYTES:
            raise file_error(path, f"a shader source of more than {MAX_BYTES >> 20} MiB is not read")
        return file.read(file.size_bytes)
