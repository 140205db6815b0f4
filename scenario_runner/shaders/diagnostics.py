"""What a compiler said, as a problem with a place in the user's files."""

from __future__ import annotations

import re

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.shaders.command import SOURCE_NAME
from scenario_runner.shaders.request import CompileRequest
from scenario_runner.shaders.source import FIRST_FILE, OPTIONS_FILE, Assembled
from scenario_runner.shaders.source_lines import SourceLines

_MAX_ERRORS = 1000
_MAX_LINE = 500
# glslang: "ERROR: file:3: text", or "file:3:7:" on request; dxc: "file:3:7: error: text"; shaderc: "file:3: error:
# text".
_GLSLANG = re.compile(r"(ERROR|WARNING): (.*?):(-?\d+):(?:(\d+):)? (.*)")
_CLANG = re.compile(r"(.+?):(\d+):(?:(\d+):)? ((?:fatal )?error|warning): (.*)")
_NOISE = re.compile(
    r"ERROR: \d+ compilation errors\..*|\d+ (?:errors?|warnings?)(?: and \d+ errors?)? generated\.|"
    r".*'' : compilation terminated.*|"
    r"SPIR-V is not generated for failed compile or link|Failed to compiled GLSL input to SPIR-V:|"
    r"ERROR: Linking \w+ stage: Missing entry point: Each stage requires one entry point|"
    r"\S*\(\d+\): error at column \d+, HLSL parsing failed\."
)


def compile_problem(request: CompileRequest, assembled: Assembled, output: str) -> Diagnostic:
    """The first error's place, text and source line; the further ones follow, with theirs."""
    names = {SOURCE_NAME: request.place, "0": request.place, str(OPTIONS_FILE): "build_options"}
    names.update({str(FIRST_FILE + index): name for index, name in enumerate(assembled.files)})
    said: list[tuple[str | None, int | None, int | None, str]] = []
    noise: list[str] = []
    for line in output.splitlines():
        line = line.strip()[:_MAX_LINE]
        if line == SOURCE_NAME or not line.strip("^~ "):  # glslang's echo of the file name; dxc's pointing marks
            continue
        glslang = _GLSLANG.fullmatch(line)
        clang = None if glslang else _CLANG.fullmatch(line)
        # Only glslang's noise is noise: the same words may be a clang note's.
        if _NOISE.fullmatch(line):
            noise.append(line)
        elif glslang:
            if glslang[1] == "ERROR":
                column = int(glslang[4][:9]) if glslang[4] else None
                said.append((names.get(glslang[2], glslang[2]), int(glslang[3][:9]), column, glslang[5].strip()))
        elif clang:
            if clang[4] != "warning":
                column = int(clang[3][:9]) if clang[3] else None
                said.append((names.get(clang[1], clang[1]), int(clang[2][:9]), column, clang[5].strip()))
        elif said and not line.startswith(("ERROR:", "WARNING:")):
            path, number, column, text = said[-1]  # a continuation, such as the name a linker message is about
            said[-1] = (path, number, column, f"{text}\n  {line}")
        elif not line.startswith("WARNING:"):
            said.append((None, None, None, line.removeprefix("ERROR:").removeprefix("error:").strip()))
    if not said:
        reasons = [line.removeprefix("ERROR:").strip() for line in noise if line.startswith("ERROR: Linking")]
        text = next(iter(reasons), "the compiler gave no reason")
        said.append((None, None, None, text))
    said = list(dict.fromkeys(said))
    path, number, column, text = said[0]
    number = number if number is None or number > 0 else None
    source = SourceLines(request)
    shown: list[str] = []
    if path == "build_options":
        path, number, text = request.place, None, f"in build_options: {text}"
    elif path is not None and number is not None:
        shown, column = source.shown(path, number, column, text)
    who = f"shader {request.label!r}: " if request.label else ""
    lines = [f"{who}{text}", *shown]
    for other, at, col, more in said[1:_MAX_ERRORS]:
        quoted: list[str] = []
        if other is not None and at is not None:
            quoted, col = source.shown(other, at, col, more)
        place = "" if other is None else f"{other}:{at}: " if col is None else f"{other}:{at}:{col}: "
        lines += [f"  {place}{more}", *quoted]
    if len(said) > _MAX_ERRORS:
        lines.append(f"  and {len(said) - _MAX_ERRORS} more")
    return Diagnostic(
        "SR-SHADER-010",
        "error",
        None,
        "\n".join(lines),
        _help(request, assembled, output),
        path=path or request.place,
        line=number,
        column=column,
    )


def _help(request: CompileRequest, assembled: Assembled, output: str) -> str | None:
    if "cannot find the include file" in output and assembled.missing:
        dirs = ", ".join(repr(folder) for folder in request.include_dirs) or "none"
        return f"searched: the folder of the including file, then include_dirs ({dirs}), then -I of build_options"
    return None
