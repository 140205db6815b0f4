"""Many shaders at a time by Google's glslc: only ever a matter of speed."""

import logging
import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.errors import CompileError, FileError, ScenarioError
from scenario_runner.shaders.compile import compile_all, compile_each
from scenario_runner.shaders.compilers.search import Compiled
from scenario_runner.shaders.source import CompileRequest
from tests.program import executable
from tests.scenes import error_of
from tests.shaders.modules import holds, made_by, version

SHADERC, GLSLANG = 13, 8  # the tools that made a module, by SPIR-V's registry of generators
HEAD = "#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Out { float v[]; } data_out;\n"
BAD = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {\n  int x = 1;\n  nope = x;\n}\n"
Sizes = Callable[[], list[int]]
Counted = Callable[..., Sizes]
# A real program that hands everything to glslc, but for the files that hold a word.
WRAPPER = """#!{python} -IS
import os, signal, subprocess, sys, time
real, words = {real!r}, sys.argv[1:]
files = [word for word in words if word.isdigit()]
if files:
    with open({log!r}, "a") as log:
        log.write(f"{{len(files)}}\\n")
for at, word in enumerate(words):
    if word.isdigit() and "TROUBLE" in open(word).read():
        subprocess.run([real, *words[:at]])
        {trouble}
os.execv(real, [real, *words])
"""


def source(value: float, more: str = "") -> str:
    return f"{HEAD}{more}void main() {{ data_out.v[0] = {value}; }}\n"


def sources(*values: float) -> list[CompileRequest]:
    return [CompileRequest(source=source(value), label=f"s{value}") for value in values]


def names(module: bytes) -> list[bytes]:
    """Return the names in OpName (5) and OpMemberName (6), in order."""
    found, at = [], 20
    while at < len(module):
        word: int = struct.unpack_from("<I", module, at)[0]
        if word & 0xFFFF in (5, 6):
            found.append(module[at + (8 if word & 0xFFFF == 5 else 12) : at + 4 * (word >> 16)].rstrip(b"\0"))
        at += 4 * (word >> 16)
    return found


@pytest.fixture(autouse=True)
def no_other_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_dxc_library: None) -> None:
    """Search only PATH for compilers, and not the folder of the interpreter."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))


@pytest.fixture
def glslc() -> str:
    """The path of the installed glslc."""
    path = shutil.which("glslc")
    assert path, "these tests need Google's glslc (Debian: glslc)"
    return path


@pytest.fixture
def counted(glslc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Put a glslc first on PATH, and return a function with the number of files in each of its batches so far."""

    def counted(trouble: str = "pass") -> Sizes:
        log = tmp_path / "batches"
        text = WRAPPER.format(python=sys.executable, real=glslc, log=str(log), trouble=trouble)
        program = executable(tmp_path / "bin" / "glslc", text)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        return lambda: [int(line) for line in log.read_text().split()] if log.exists() else []

    return counted


@pytest.fixture
def sizes(counted: Counted) -> Sizes:
    """The sizes of the batches of a glslc that has no trouble."""
    return counted()


def test_many_shaders_are_made_by_a_process_per_core(sizes: Sizes) -> None:
    """Ten shaders take two processes on two cores, come back in order, and start nothing the next time."""
    values = [number + 0.25 for number in range(10)]
    modules = compile_all(sources(*values), jobs=2)
    for module, value in zip(modules, values, strict=True):
        assert [other for other in values if holds(module, other)] == [value]
        assert made_by(module) == SHADERC
    assert sorted(sizes()) == [5, 5]
    assert compile_all(sources(*values), jobs=2) == modules
    assert len(sizes()) == 2


def test_names_are_those_of_the_other_compiler(glslang: str) -> None:
    """A module from a batch names blocks, members, variables and functions as glslangValidator's does."""
    texts = [
        HEAD + "float helper(float a) { float local = a * 2.0; return local; }\n"
        "void main() { data_out.v[0] = helper(data_out.v[1]); }\n",
        "#version 450\nlayout(constant_id = 3) const uint count = 2;\n"
        "layout(push_constant) uniform P { vec4 tint; } p;\n"
        "layout(binding = 1, rgba8) uniform readonly image2D picture;\nlayout(binding = 2) uniform sampler2D smooth_;\n"
        "shared float kept[4];\nlayout(binding = 3) uniform U { mat3 turn; int depth[3]; };\n"
        "void main() { kept[0] = imageLoad(picture, ivec2(count)).x + texture(smooth_, p.tint.xy).y + turn[0].x; }\n",
    ]
    requests = [CompileRequest(source=text) for text in texts]
    for ours, theirs in zip(compile_all(requests), compile_all(requests, compiler=glslang), strict=True):
        assert (made_by(ours), made_by(theirs)) == (SHADERC, GLSLANG)
        assert names(ours) == names(theirs)
        assert names(ours)
    assert {b"data_out", b"Out", b"v", b"helper(f1;", b"local"} <= set(names(compile_all(requests)[0]))


def test_a_batch_with_a_bad_shader(sizes: Sizes, glslang: str) -> None:
    """A shader that does not compile is reported in the words, and with the line, that it has when compiled alone."""
    bad = CompileRequest(source=BAD, name="bad.comp", label="bad")
    good = sources(1.25, 2.25, 3.25)
    alone = str(error_of(CompileError, compile_all, [bad], compiler=glslang))
    assert str(error_of(CompileError, compile_all, [*good, bad], jobs=1)) == alone
    assert alone.splitlines()[0] == "bad.comp:5:3: shader 'bad': 'nope' : undeclared identifier"
    assert sizes() == [4]
    assert [made_by(module) for module in compile_all(good)] == [SHADERC] * 3
    assert sizes() == [4], "the good ones were kept"


def test_what_glslc_warns_about_is_compiled_alone(sizes: Sizes, caplog: pytest.LogCaptureFixture) -> None:
    """A shader with an extension that glslc lacks goes to the preferred compiler, whose warning is logged."""
    lacking = CompileRequest(source=source(7.25).replace("layout", "#extension GL_NO_such : enable\nlayout", 1))
    with caplog.at_level(logging.WARNING):
        modules = compile_all([*sources(1.25, 2.25), lacking], jobs=1)
    assert [made_by(module) for module in modules] == [SHADERC, SHADERC, GLSLANG]
    assert holds(modules[2], 7.25)
    assert sizes() == [3]
    (record,) = caplog.records
    assert "extension not supported: GL_NO_such" in record.getMessage()


@pytest.mark.parametrize(
    "trouble",
    [
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "time.sleep(600)",
        "print('words ' * 500000)",
        # ended while it writes: what is there looks like a module and is not one
        "os.truncate(words[at - 2] + '.spv', 200); os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_a_compiler_that_fails_at_one_shader(counted: Counted, trouble: str) -> None:
    """A shader at which glslc crashes, hangs or prints endlessly is compiled alone."""
    sizes = counted(trouble)
    # the longest come first: the third one is in the midst of the batch
    lines = ["//".ljust(90, "."), "//".ljust(75, "."), "// TROUBLE".ljust(60, "."), "//"]
    requests = [CompileRequest(source=source(number, f"{line}\n")) for number, line in enumerate(lines, 1)]
    modules = compile_all(requests, jobs=1, timeout_s=4)
    assert [holds(module, number) for number, module in enumerate(modules, 1)] == [True] * 4
    assert [made_by(module) for module in modules] == [SHADERC, GLSLANG, GLSLANG, GLSLANG]
    assert sizes() == [4]


def test_stages_share_a_batch(sizes: Sizes) -> None:
    """One process compiles shaders of different stages (Vertex 0, Fragment 4, GLCompute 5)."""
    stages = ("compute", "vertex", "fragment", "vertex")
    requests = [
        CompileRequest(source=f"#version 450\nvoid main() {{ float kept = {number}.25; }}\n", stage=stage)  # type: ignore[arg-type]
        for number, stage in enumerate(stages)
    ]
    modules = compile_all(requests, jobs=1)
    models = {"vertex": 0, "fragment": 4, "compute": 5}
    for number, (module, stage) in enumerate(zip(modules, stages, strict=True)):
        assert holds(module, number + 0.25)
        assert struct.pack("<II", 5 << 16 | 15, models[stage]) in module
    assert sizes() == [4]


def test_targets_have_batches_of_their_own(sizes: Sizes) -> None:
    """Each shader is made for the Vulkan version that it asks for."""
    targets = ("vulkan1.1", "vulkan1.3", "vulkan1.1")
    requests = [one._replace(target=target) for one, target in zip(sources(1.25, 2.25, 3.25), targets, strict=True)]
    modules = compile_all(requests, jobs=1)
    assert [version(module) for module in modules] == [(1, 3), (1, 6), (1, 3)]
    assert sorted(sizes()) == [1, 2]


def test_includes_and_macros_in_a_batch(sizes: Sizes, tmp_path: Path) -> None:
    """Every shader of a batch has its own includes and macros, though files and names are the same."""
    paths = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "value.glsl").write_text(f"#define VALUE {number}.5\n")
        (folder / "main.comp").write_text(
            HEAD + '#include "value.glsl"\nvoid main() { data_out.v[0] = VALUE; data_out.v[1] = MORE; }\n'
        )
        paths.append(str(folder / "main.comp"))
    requests = [CompileRequest(path=path, build_options=f"-DMORE={more}") for path in paths for more in (3.25, 4.25)]
    modules = compile_all(requests, jobs=1)
    wanted = [(1.5, 3.25), (1.5, 4.25), (2.5, 3.25), (2.5, 4.25)]
    found = [tuple(value for value in (1.5, 2.5, 3.25, 4.25) if holds(module, value)) for module in modules]
    assert found == wanted
    assert sizes() == [4]


@pytest.mark.parametrize(
    "change",
    [
        {"build_options": "-g"},
        {"build_options": "-O"},
        {"entry": "other"},
        {"source": source(1.25, "const int most = gl_MaxImageUnits;\n")},
        {"source": source(1.25, "const int here = __LINE__;\n")},
        {"language": "HLSL", "source": "[numthreads(1, 1, 1)] void main() {}"},
    ],
    ids=["debug", "optimised", "entry", "limit", "line", "HLSL"],
)
def test_what_the_compilers_do_differently_is_in_no_batch(sizes: Sizes, glslang: str, change: dict[str, str]) -> None:
    """A shader with another module from glslc comes from glslangValidator, whatever the number of shaders."""
    request = CompileRequest(**{"source": source(1.25), **change})  # type: ignore[arg-type]
    module, *_ = compile_all([request, *sources(2.25, 3.25, 4.25, 5.25)], jobs=1)
    assert [module] == compile_all([request], compiler=glslang, use_cache=False)
    assert sizes() == [4]


def test_a_file_named_by_a_line_directive(sizes: Sizes) -> None:
    """A #line directive with a file, which glslc accepts and glslangValidator refuses, is refused for any number of
    shaders."""
    request = CompileRequest(source=HEAD + '#line 7 "other.comp"\nvoid main() {}\n')
    with pytest.raises(CompileError, match="required extension not requested"):
        compile_all([request, *sources(2.25, 3.25, 4.25)], jobs=1)
    assert sizes() == [3]


def test_a_named_compiler_is_the_only_one(sizes: Sizes, glslang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler named by the user compiles everything. A named glslc works in batches and shows its own errors."""
    values = (1.25, 2.25, 3.25, 4.25)
    assert {made_by(module) for module in compile_all(sources(*values), compiler=glslang)} == {GLSLANG}
    monkeypatch.setenv("SCENARIO_RUNNER_GLSLANG", "glslangValidator")
    assert {made_by(module) for module in compile_all(sources(*values))} == {GLSLANG}
    assert sizes() == []
    monkeypatch.setenv("SCENARIO_RUNNER_GLSLANG", "glslc")
    assert {made_by(module) for module in compile_all(sources(*values), jobs=1)} == {SHADERC}
    assert sizes() == [4]
    with pytest.raises(CompileError, match=r"^bad\.comp:5:3: 'nope' : undeclared identifier\n"):
        compile_all([CompileRequest(source=BAD, name="bad.comp"), *sources(*values)], jobs=1)


def test_each_has_its_module_or_its_failure(tmp_path: Path) -> None:
    """`compile_each` returns a failure in the place of a module, also for two equal wrong texts. A module comes with
    its included files."""
    (tmp_path / "one.glsl").touch()
    including = sources(2.25)[0]._replace(base_dir=str(tmp_path))
    including = including._replace(source=f'{including.source}#include "one.glsl"\n')
    requests = [
        CompileRequest(source=BAD, name="a.comp", label="a"),
        *sources(1.25),
        CompileRequest(source=BAD, name="b.comp", label="b"),
        CompileRequest(path=str(tmp_path / "none.comp"), label="c"),
        CompileRequest(source=BAD, build_options="-bad", label="d"),
        including,
    ]
    first, good, second, missing, option, more = compile_each(requests)
    assert isinstance(first, CompileError)
    assert str(first).startswith("a.comp:5:3: shader 'a': 'nope' : undeclared identifier\n")
    assert isinstance(good, Compiled)
    assert holds(good.module, 1.25)
    assert good.includes == []
    assert isinstance(more, Compiled)
    assert holds(more.module, 2.25)
    assert more.includes == [str(tmp_path / "one.glsl")]
    assert isinstance(second, CompileError)
    assert str(second).startswith("b.comp:5:3: shader 'b': 'nope' : undeclared identifier\n")
    assert isinstance(missing, FileError)
    assert isinstance(option, ScenarioError)
    assert compile_each([]) == []
