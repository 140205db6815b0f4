"""The text for the compiler, places in its messages, checked with the real compiler, and build_options."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.errors import FileError, ScenarioError
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import MAX_BYTES, BuildOptions, CompileRequest, assemble, parse_build_options
from tests.scenes import error_of
from tests.shaders.modules import holds, problem_of

HEAD = "layout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Out { float v[]; };\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name + ".glsl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def shader(folder: Path, text: str) -> CompileRequest:
    """A shader in a file, below its #version line."""
    path = folder / "main.comp"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#version 450\n{text}")
    return CompileRequest(path=str(path))


def place_of(request: CompileRequest) -> tuple[str | None, int | None]:
    problem = problem_of(request)
    return problem.path, problem.line


@pytest.mark.parametrize(
    "source, line",
    [
        ("#version 450\nfoo;\nvoid main() {}\n", 2),
        ("layout(local_size_x = 1) in;\nfoo;\nvoid main() {}\n", 2),
        ("// one\n/* two\n three */ #version 450 core // more\n\nfoo;\nvoid main() {}\n", 5),
        ("#version 450 /* a\n b */ \nfoo;\nvoid main() {}\n", 3),
        ("#version 310 es\n\nfoo;\nvoid main() {}\n", 3),
        ("#version 450\r\n\r\nfoo;\r\nvoid main() {}\r\n", 3),
        ("\ufeff#version 450\nfoo;\nvoid main() {}\n", 2),
        ("\n\n\nvoid main() { foo = A; }\n", 4),
    ],
)
@pytest.mark.parametrize("build_options", ["", "-g -DA=1 -UB"])
def test_line_numbers(source: str, line: int, build_options: str) -> None:
    """Errors keep the line of the source, with or without #version and macros."""
    request = CompileRequest(source=source, name="a.comp", build_options=build_options)
    assert place_of(request) == ("a.comp", line)


@pytest.mark.parametrize("version", ["140", "330"])
def test_line_numbers_of_old_versions(version: str) -> None:
    """Lines are counted right also where #line has its older meaning."""
    request = CompileRequest(source=f"#version {version}\nfoo;\n", name="a", stage="vertex", build_options="-DA")
    assert place_of(request) == ("a", 2)


def test_default_version(compile_text: Callable[..., bytes]) -> None:
    """Without a #version line the source is GLSL 4.60."""
    assert holds(compile_text(HEAD + "void main() { v[0] = float(__VERSION__); }"), 460.0)


def test_error_inside_an_include(tmp_path: Path) -> None:
    """An error inside an included file shows that file and its line, and one after it the including file's line."""
    write(tmp_path, inc__deep="// fine\n", inc__bad='#include "deep.glsl"\n\nfloat f() { return zzz; }\n')
    wrong_inside = shader(tmp_path, '#include "inc/bad.glsl"\nvoid main() {}\n')
    assert place_of(wrong_inside) == (str(tmp_path / "inc/bad.glsl"), 3)
    wrong_after = shader(tmp_path, '#include "inc/deep.glsl" // why\n/* x */ yyy;\nvoid main() {}\n')
    assert place_of(wrong_after) == (wrong_after.path, 3)


@pytest.mark.parametrize("directive", ["", "#extension GL_GOOGLE_include_directive : require\n"])
@pytest.mark.parametrize("form", ['"k.glsl"', "<k.glsl>"])
def test_include_search_order(tmp_path: Path, directive: str, form: str) -> None:
    """The file's own folder comes first, then include_dirs in order, then -I of build_options."""
    write(
        tmp_path, a__k="#define K 11.5\n", b__k="#define K 12.5\n", c__k="#define K 13.5\n", own__k="#define K 14.5\n"
    )
    request = shader(tmp_path / "own", f"{directive}#include {form}\n{HEAD}void main() {{ v[0] = K; }}\n")
    dirs = (str(tmp_path / "none"), str(tmp_path / "a"), str(tmp_path / "b"))
    request = request._replace(include_dirs=dirs, build_options="-Ic", base_dir=str(tmp_path))
    for value, file in ((14.5, "own"), (11.5, "a"), (12.5, "b"), (13.5, "c")):
        assert holds(compile_all([request])[0], value)
        (tmp_path / file / "k.glsl").unlink()
    problem = problem_of(request)
    assert (problem.path, problem.line) == (request.path, 3 if directive else 2)
    assert "cannot find the include file" in problem.message
    assert problem.help is not None
    assert str(tmp_path / "a") in problem.help


def test_new_file_earlier_in_the_path(tmp_path: Path) -> None:
    """A file that appears earlier in the search path is noticed, although the shader was in the cache."""
    write(tmp_path, late__k="#define K 1.25\n")
    (tmp_path / "early").mkdir()
    request = shader(tmp_path, f'#include "k.glsl"\n{HEAD}void main() {{ v[0] = K; }}\n')
    request = request._replace(include_dirs=(str(tmp_path / "early"), str(tmp_path / "late")))
    assert holds(compile_all([request])[0], 1.25)
    write(tmp_path, early__k="#define K 2.25\n")
    assert holds(compile_all([request])[0], 2.25)


def test_nested_include_sees_the_includers_folder(tmp_path: Path) -> None:
    """An include inside an include is searched beside that file first, then beside its includers."""
    write(tmp_path, sub__mid='#include "leaf.glsl"\n#include "top.glsl"\n', sub__leaf="#define A 3.5\n")
    write(tmp_path, leaf="#define A 9.5\n", top="#define B 4.5\n")
    request = shader(tmp_path, f'#include "sub/mid.glsl"\n{HEAD}void main() {{ v[0] = A; v[1] = B; }}\n')
    (module,) = compile_all([request])
    assert [value for value in (3.5, 4.5, 9.5) if holds(module, value)] == [3.5, 4.5]


def test_includes_that_do_not_count(compile_text: Callable[..., bytes]) -> None:
    """Includes in comments and in branches that are not compiled may name files that do not exist."""
    text = '// #include "no1"\n/*\n#include "no2"\n*/\n#if 0\n#include "no3"\n#endif\n'
    assert compile_text(f"#version 450\n{text}{HEAD}void main() {{}}\n")


def test_once_and_guards(tmp_path: Path) -> None:
    """A file with #pragma once or with guards may be included twice, and the lines in it stay right."""
    write(tmp_path, once="// c\n#pragma once\nfloat f() { return 1.0; }\n")
    write(tmp_path, guarded='#ifndef G\n#define G\nfloat g() { return 1.0; }\n#include "guarded.glsl"\n#endif\n')
    twice = '#include "once.glsl"\n#include "guarded.glsl"\n' * 2
    request = shader(tmp_path, f"{twice}{HEAD}void main() {{ v[0] = f() + g(); }}\n")
    assert compile_all([request])[0]
    write(tmp_path, once="// c\n#pragma once\nfloat f() { return bad; }\n")
    assert place_of(request) == (str(tmp_path / "once.glsl"), 3)


def test_include_cycle(tmp_path: Path) -> None:
    """A file that includes itself without end is an error at the line that does."""
    write(tmp_path, a='\n#include "b.glsl"\n', b='#include "a.glsl"\n')
    assert place_of(shader(tmp_path, '#include "a.glsl"\nvoid main() {}\n')) == (str(tmp_path / "b.glsl"), 1)


def test_includes_that_double(tmp_path: Path) -> None:
    """Includes that double at every level end in an error, not in all the memory."""
    for level in range(40):
        write(tmp_path, **{f"n{level}": f'#include "n{level + 1}.glsl"\n' * 2})
    write(tmp_path, n40="float x;\n" * 100)
    request = shader(tmp_path, '#include "n0.glsl"\nvoid main() {}\n')
    with pytest.raises(FileError, match="with its includes the shader has more than 16 MiB"):
        compile_all([request])


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing source, a folder, a NUL in the name and an endless file are file errors, all reported together."""
    big = tmp_path / "big.comp"
    with big.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    paths = [str(tmp_path / "no.comp"), str(tmp_path), "a\0b", "/dev/zero", str(big)]
    error = error_of(FileError, compile_all, [CompileRequest(path=path, label="s") for path in paths])
    assert [problem.path for problem in error.problems] == paths
    assert str(error).splitlines()[0] == (f"{paths[0]}: shader 's': cannot be opened: no such file or directory")


OPTIONS: dict[str, BuildOptions] = {
    "": BuildOptions(),
    "  \t ": BuildOptions(),
    "-DA": BuildOptions(macros=(("A", True),)),
    "-DA=1": BuildOptions(macros=(("A", "1"),)),
    "-DA=": BuildOptions(macros=(("A", ""),)),
    "-D A=1": BuildOptions(macros=(("A", "1"),)),
    "-DA=1  -DB=2": BuildOptions(macros=(("A", "1"), ("B", "2"))),
    "-DA=a=b": BuildOptions(macros=(("A", "a=b"),)),
    '-DA="1 + 2"': BuildOptions(macros=(("A", "1 + 2"),)),
    "'-DA=1 + 2'": BuildOptions(macros=(("A", "1 + 2"),)),
    '-D "A=1 + 2" -DB': BuildOptions(macros=(("A", "1 + 2"), ("B", True))),
    '-DA=\\"x\\"': BuildOptions(macros=(("A", '"x"'),)),
    "-DF(x,y)=x*y": BuildOptions(macros=(("F(x,y)", "x*y"),)),
    "-DA=1 -DA=2": BuildOptions(macros=(("A", "2"),)),
    "-DA=1 -UA": BuildOptions(macros=(("A", False),)),
    "-UA -DA=1": BuildOptions(macros=(("A", "1"),)),
    "-U A": BuildOptions(macros=(("A", False),)),
    "-DA=-O9": BuildOptions(macros=(("A", "-O9"),)),
    "-Iinc": BuildOptions(include_dirs=("/base/inc",)),
    "-I inc -I/abs": BuildOptions(include_dirs=("/base/inc", "/abs")),
    "-I'a b'": BuildOptions(include_dirs=("/base/a b",)),
    '-I "a b"': BuildOptions(include_dirs=("/base/a b",)),
    "-O": BuildOptions(optimise="s"),
    "-O0": BuildOptions(optimise="0"),
    "-O3 -g": BuildOptions(optimise="3", debug=True),
    "-Os": BuildOptions(optimise="s"),
    "-g -g0": BuildOptions(),
}


@pytest.mark.parametrize("text", OPTIONS)
def test_options(text: str) -> None:
    """-D and -U are taken joined or apart, quoted or not, and the last word on a name counts, as for -O and -g.

    -I folders keep their order and count from the base folder.
    """
    assert parse_build_options(text, "/base") == OPTIONS[text]


UNKNOWN = (
    "build_options: unknown option '{}' "
    "(expected -DNAME, -DNAME=VALUE, -UNAME, -I DIR, -O, -O0 to -O3, -Os, -g, -g0 or --target-env TARGET)"
)


@pytest.mark.parametrize(
    "text, message",
    [
        ("-foo", UNKNOWN.format("-foo")),
        ("-x -DOK -y", f"{UNKNOWN.format('-x')}\n{UNKNOWN.format('-y')}"),
        ("-D", "build_options: '-D' at the end lacks its argument"),
        ("-DA -I", "build_options: '-I' at the end lacks its argument"),
        ("-D2=3",
         "build_options: '-D2=3' is not a macro (expected -DNAME or NAME=VALUE, NAME of letters, digits and _)"),
        ("-UA=1", "build_options: '-UA=1' is not a macro (expected -UNAME, NAME of letters, digits and _)"),
        ("-DA='", 'build_options: "-DA=\'" cannot be split into options: no closing quotation'),
        ("'-DA=1\n#error x'",
         "build_options: the value in '-DA=1\\n#error x' must not contain a line break, '/*' or a final backslash"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    """The error names each option that cannot be used."""
    assert str(error_of(ScenarioError, parse_build_options, text)) == message


@given(st.text(alphabet=st.sampled_from("-DUIOg=AB 1'\"\\\n/*()\t\0é"), max_size=30))
def test_any_text(text: str) -> None:
    """Any text is parsed or refused with an error of ours, and no macro reaches past its own line."""
    try:
        options = parse_build_options(text)
    except ScenarioError:
        return
    assembled = assemble(CompileRequest(source="marker\n"), options).text.decode("utf-8", "surrogatepass")
    lines = assembled.split("\n")
    assert [line.split(" ")[0] for line in lines[:-2]] == [
        "#version",
        *(["#extension"] if options.debug else []),
        *(["#line"] if options.macros else []),
        *("#undef" if value is False else "#define" for _, value in options.macros),
        "#line",
    ]
    assert lines[-2:] == ["marker", ""]
