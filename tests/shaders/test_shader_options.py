"""build_options as a compiler would take them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.errors import ScenarioError
from scenario_runner.shaders import CompileRequest
from scenario_runner.shaders.source import BuildOptions, assemble, parse_build_options


@pytest.mark.parametrize(
    "text, macros",
    [
        ("", ()),
        ("  \t ", ()),
        ("-DA", (("A", True),)),
        ("-DA=1", (("A", "1"),)),
        ("-DA=", (("A", ""),)),
        ("-D A=1", (("A", "1"),)),
        ("-DA=1  -DB=2", (("A", "1"), ("B", "2"))),
        ("-DA=a=b", (("A", "a=b"),)),
        ('-DA="1 + 2"', (("A", "1 + 2"),)),
        ("'-DA=1 + 2'", (("A", "1 + 2"),)),
        ('-D "A=1 + 2" -DB', (("A", "1 + 2"), ("B", True))),
        ('-DA=\\"x\\"', (("A", '"x"'),)),
        ("-DF(x,y)=x*y", (("F(x,y)", "x*y"),)),
        ("-DA=1 -DA=2", (("A", "2"),)),
        ("-DA=1 -UA", (("A", False),)),
        ("-UA -DA=1", (("A", "1"),)),
        ("-U A", (("A", False),)),
        ("-DA=-O9", (("A", "-O9"),)),
    ],
)
def test_macros(text: str, macros: tuple[tuple[str, str | bool], ...]) -> None:
    """-D and -U are taken joined or apart, quoted or not, and the last word on a name counts."""
    assert parse_build_options(text) == BuildOptions(macros=macros)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("-Iinc", BuildOptions(include_dirs=("/base/inc",))),
        ("-I inc -I/abs", BuildOptions(include_dirs=("/base/inc", "/abs"))),
        ("-I'a b'", BuildOptions(include_dirs=("/base/a b",))),
        ('-I "a b"', BuildOptions(include_dirs=("/base/a b",))),
        ("-O", BuildOptions(optimise="s")),
        ("-O0", BuildOptions(optimise="0")),
        ("-O3 -g", BuildOptions(optimise="3", debug=True)),
        ("-Os", BuildOptions(optimise="s")),
        ("-g -g0", BuildOptions()),
    ],
)
def test_folders_and_levels(text: str, expected: BuildOptions) -> None:
    """-I folders keep their order and count from the base folder; of -O and -g the last one counts."""
    assert parse_build_options(text, "/base") == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("-foo",
         "build_options: unknown option '-foo' "
         "(expected -DNAME, -DNAME=VALUE, -UNAME, -I DIR, -O, -O0 to -O3, -Os, -g or -g0)"),
        ("-D", "build_options: '-D' at the end lacks its argument"),
        ("-DA -I", "build_options: '-I' at the end lacks its argument"),
        ("-D2=3",
         "build_options: '-D2=3' is not a macro (expected -DNAME or NAME=VALUE, NAME of letters, digits and _)"),
        ("-UA=1", "build_options: '-UA=1' is not a macro (expected -UNAME, NAME of letters, digits and _)"),
        ("-DA='", 'build_options: "-DA=\'" cannot be split into options: no closing quotation'),
        ("'-DA=1\n#error x'",
         "build_options: the value in '-DA=1\\n#error x' cannot hold a line break, '/*' or a final backslash"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    """An option that cannot be used is named in the error."""
    with pytest.raises(ScenarioError) as caught:
        parse_build_options(text)
    assert str(caught.value) == message


def test_all_problems_together() -> None:
    """Every option that cannot be used is reported at once."""
    with pytest.raises(ScenarioError) as caught:
        parse_build_options("-x -DOK -y")
    assert [problem.message.split("'")[1] for problem in caught.value.problems] == ["-x", "-y"]


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
VALUES = st.text(max_size=20).filter(
    lambda text: not any(mark in text for mark in ("\n", "\r", "\0", "/*")) and not text.endswith("\\")
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_quoting_round_trip(values: dict[str, str]) -> None:
    """What shlex quotes comes back as it was."""
    text = " ".join("-D" + shlex.quote(f"{name}={value}") for name, value in values.items())
    assert dict(parse_build_options(text).macros) == values


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
