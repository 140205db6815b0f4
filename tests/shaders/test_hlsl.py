"""HLSL by dxc's library, in a process of its own: modules, messages, batches, crashes."""

import logging
import shutil
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import CompileError, CompilerNotFoundError, ScenarioError
from scenario_runner.errors.installation import requirement
from scenario_runner.shaders.compile import compile_all, compile_each
from scenario_runner.shaders.compilers.search import Compiled, find_compilers
from scenario_runner.shaders.compilers.table import DXC_PACKAGE
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import read_module
from tests.left_out import DXC_LIBRARY, needs
from tests.scenes import error_of
from tests.shaders.modules import holds, problem_of

pytestmark = needs(DXC_LIBRARY)

HEAD = "RWStructuredBuffer<float> o : register(u5);\n"
BAD = HEAD + "[numthreads(1, 1, 1)] void main() {\n  o[0] = nope;\n}\n"
DXC = 14  # the generator "Google spiregg", by SPIR-V's registry


def source(value: float, more: str = "") -> str:
    return f"{HEAD}{more}[numthreads(1, 1, 1)] void main() {{ o[0] = {value:f}; }}\n"


def hlsl(text: str, **keywords: object) -> CompileRequest:
    return CompileRequest(language="HLSL", source=text, name="a.hlsl", **keywords)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def only_the_library(dxc: str, glslang: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No dxc on PATH, whatever this machine has."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "glslangValidator").symlink_to(glslang)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))


def test_the_library_is_found(dxc: str) -> None:
    """The library of the installed package is the compiler of HLSL, with its version, and not one of GLSL."""
    (found,) = find_compilers(language="HLSL")
    assert (found.path, found.flavour, found.languages) == (dxc, "dxc-library", ("HLSL",))
    assert found.version.startswith("1.")
    assert [one.flavour for one in find_compilers(language="GLSL")] == ["glslang"]


def test_the_library_can_be_named(dxc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCENARIO_RUNNER_DXC names a library by its path. A file that cannot be loaded is refused with the loader's
    message."""
    copy = tmp_path / "libdxcompiler.so"
    shutil.copyfile(dxc, copy)
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", str(copy))
    assert [(one.path, one.flavour) for one in find_compilers(language="HLSL")] == [(str(copy), "dxc-library")]
    assert holds(compile_all([hlsl(source(2.5))])[0], 2.5)
    copy.write_bytes(b"\x7fELF no library")
    with pytest.raises(CompilerNotFoundError, match=r"named by SCENARIO_RUNNER_DXC\) is not a known shader compiler"):
        find_compilers(language="HLSL")


def test_without_any_compiler(no_dxc_library: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says how to install the library."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    problem = problem_of(hlsl(source(1.25), label="s"), CompilerNotFoundError)
    assert problem.message == "shader 's': no HLSL compiler was found"
    assert problem.help is not None
    install = f"pip install '{requirement(DXC_PACKAGE).text}'"
    assert problem.help.startswith(f"{install}, or put dxc on PATH, or name it or its library by ")


def test_constants() -> None:
    """[[vk::constant_id]] is a specialization constant, [[vk::push_constant]] the block of push constants."""
    text = """
        [[vk::constant_id(4)]] const int count = 3;
        struct Push { float4 scale; uint n; };
        [[vk::push_constant]] Push push;
        RWStructuredBuffer<float> o : register(u0);
        [numthreads(1, 1, 1)] void main() { o[0] = push.scale.y * count * push.n; }
    """
    module = read_module(compile_all([hlsl(text)])[0])
    assert [(each.id, each.type, each.default) for each in module.spec_constants] == [(4, "int32", 3)]
    block = module.entry_points[0].interface.push_constants
    assert block is not None
    assert block.size_bytes >= 20


@pytest.mark.parametrize(
    "stage, model, text",
    [
        ("compute", "GLCompute", "[numthreads(4, 2, 1)] void go() {}"),
        ("vertex", "Vertex", "float4 go(uint i : SV_VertexID) : SV_Position { return float4(i, 0, 0, 1); }"),
        ("fragment", "Fragment", "float4 go(float4 p : SV_Position) : SV_Target0 { return p; }"),
    ],
)
def test_stages(stage: str, model: str, text: str) -> None:
    """Each stage has its profile, and the entry point any name."""
    module = read_module(compile_all([hlsl(text, stage=stage, entry="go")])[0])
    assert [(each.name, each.execution_model) for each in module.entry_points] == [("go", model)]


def test_16_bit_types() -> None:
    """float16_t and int16_t are types of 16 bits."""
    text = """
        RWStructuredBuffer<float16_t> o : register(u0);
        StructuredBuffer<int16_t> i : register(t1);
        [numthreads(1, 1, 1)] void main() { o[0] = (float16_t)i[0] * (float16_t)0.5; }
    """
    capabilities = read_module(compile_all([hlsl(text)])[0]).capabilities
    assert {"Float16", "Int16"} <= set(capabilities)


def test_includes_and_options(tmp_path: Path) -> None:
    """Includes are found beside the file, in include_dirs and in -I folders; -D, -U and a bare -D work."""
    for folder, value in (("a", 1.5), ("b", 2.5), ("c", 3.5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.hlsli").write_text(f"#define {folder.upper()} {value}\n")
    path = tmp_path / "a" / "main.hlsl"
    path.write_text(
        '#include "a.hlsli"\n#include <b.hlsli>\n#include "c.hlsli"\n#ifdef GONE\nbad\n#endif\n'
        + HEAD
        + "[numthreads(1, 1, 1)] void main() { o[0] = A; o[1] = B; o[2] = C; o[3] = D * ONE; }\n"
    )
    options = "-I c -D'D=(4.0 + 0.5)' -DONE -DGONE -UGONE"
    request = CompileRequest(language="HLSL", path=str(path), build_options=options, base_dir=str(tmp_path))
    (module,) = compile_all([request._replace(include_dirs=(str(tmp_path / "b"),))])
    assert [value for value in (1.5, 2.5, 3.5, 4.5) if not holds(module, value)] == []


def test_levels_of_optimisation_and_debug_information() -> None:
    """-O0 keeps unused code, and -g keeps the file's name."""
    text = source(1.25, "static float unused = 7.5;\nfloat f() { return unused; }\n")
    plain, kept, debug = compile_all([hlsl(text, build_options=option) for option in ("", "-O0", "-g")])
    assert len(kept) >= len(plain)
    assert b"a.hlsl" in debug


WAVE = HEAD + "[numthreads(32, 1, 1)] void main() { o[0] = WaveActiveSum(o[1]); }\n"


def test_options_of_dxc() -> None:
    """-T brings 16-bit types only with -enable-16bit-types, and other words change the module."""
    half = "RWStructuredBuffer<half> o : register(u0);\n[numthreads(1, 1, 1)] void main() { o[0] = o[1] * o[0]; }\n"
    options = ["", "-T cs_6_2", "-T cs_6_2 -enable-16bit-types", "-Tcs_6_0"]
    modules = compile_all([hlsl(half, build_options=option) for option in options])
    assert ["Float16" in read_module(module).capabilities for module in modules] == [True, False, True, False]
    versions = compile_all([hlsl(source(1.25), build_options=f"-fspv-target-env=vulkan1.{n}") for n in (0, 1, 3)])
    assert [read_module(module).version for module in versions] == [(1, 0), (1, 3), (1, 6)]
    (shifted,) = compile_all([hlsl(source(1.25), build_options="-HV 2021 -fvk-u-shift 4 0 -Od -Zpr -Wall")])
    assert [binding.binding for binding in read_module(shifted).entry_points[0].interface.bindings] == [9]


def test_words_of_dxc_are_part_of_the_cache_key(tmp_path: Path) -> None:
    """Two shaders with other words of dxc have two entries: each makes the files of the cache larger."""

    def compiled(options: str) -> int:
        compile_all([hlsl(source(1.25), build_options=options)], cache_dir=str(tmp_path))
        return sum(file.stat().st_size for file in (tmp_path / "shaders").iterdir())

    words = ("", "-T cs_6_0", "-T cs_6_6", "-T cs_6_6 -Zpr", "-Gis")
    sizes = [compiled(options) for options in words]
    assert sizes == sorted(set(sizes))
    assert [compiled(options) for options in words] == [sizes[-1]] * 5


@pytest.mark.parametrize(
    "options, words",
    [
        ("-E other", "unknown option '-E' (expected -DNAME, "),
        ("-Fo=x", "unknown option '-Fo=x'"),
        ("@file", "unknown option '@file'"),
        ("-metal", "unknown option '-metal'"),
        ("-fspv-entrypoint-name=x", "unknown option '-fspv-entrypoint-name=x'"),
        ("-fspv-print-all", "unknown option '-fspv-print-all'"),
        ("--target-env vulkan1.1", "unknown option '--target-env'"),
        ("-T", "'' is not a profile (after '-T'; expected one such as cs_6_6)"),
        ("-T vs_6_0", "the profile 'vs_6_0' is for another stage than 'compute'"),
        ("-fvk-b-shift 1", "'-fvk-b-shift' needs 2 values, got 1"),
        ("-HV -Fo", "'-HV' needs 1 values, got -Fo"),
    ],
)
def test_other_options_are_refused_by_name(options: str, words: str) -> None:
    """Options that name files, the entry point or another output are errors."""
    error = error_of(ScenarioError, compile_all, [hlsl(source(1.25), build_options=options)])
    assert (error.problems[0].code, error.problems[0].message[: len(words) + 15]) == (
        "SR-SHADER-014",
        f"build_options: {words}",
    )


def test_words_of_dxc_need_dxc(no_dxc_library: None) -> None:
    """glslang does not know the words: without dxc, a tool is missing."""
    problem = problem_of(hlsl(source(1.25), build_options="-T cs_6_0"), CompilerNotFoundError)
    assert problem.message.startswith("the build_options are for dxc; ")


def test_unused_partitions_are_removed() -> None:
    """dxc declares partitioned operations for each reduction of a subgroup."""
    (code,) = compile_all([hlsl(WAVE)])
    module = read_module(code)
    assert "GroupNonUniformArithmetic" in module.capabilities
    assert ("GroupNonUniformPartitionedNV" in module.capabilities, module.extensions) == (False, ())


def test_an_error_has_file_line_column_and_source_line() -> None:
    """An error of DXC reads as one of glslang: place, words, the line and a mark; further errors follow."""
    text = BAD.replace("nope;", "nope;\n  int2 z = float3(1, 2, 3)")
    assert str(error_of(CompileError, compile_all, [hlsl(text, label="s")])).splitlines() == [
        "a.hlsl:3:10: shader 's': use of undeclared identifier 'nope'",
        "    3 |   o[0] = nope;",
        "      |          ^~~~",
        "  a.hlsl:4:27: expected ';' at end of declaration",
        "    4 |   int2 z = float3(1, 2, 3)",
        "      |                           ^",
    ]


def test_an_error_in_an_include(tmp_path: Path) -> None:
    """The place is that in the included file; one in a macro of build_options says so."""
    (tmp_path / "bad.hlsli").write_text("\n  float f() { return zzz; }\n")
    path = tmp_path / "main.hlsl"
    path.write_text('#include "bad.hlsli"\n' + source(1))
    problem = problem_of(CompileRequest(language="HLSL", path=str(path)))
    assert (problem.path, problem.line, problem.column) == (str(tmp_path / "bad.hlsli"), 2, 22)
    path.write_text('#include "none.hlsli"\n' + source(1))
    with pytest.raises(CompileError, match=r'cannot find the include file "none\.hlsli"'):
        compile_all([CompileRequest(language="HLSL", path=str(path))])


def test_notes_belong_to_their_error() -> None:
    """A note about a candidate stands with its own place below the error."""
    text = HEAD + "void f(float3 a, float b) {}\n[numthreads(1, 1, 1)] void main() { f(1); }\n"
    problem = problem_of(hlsl(text))
    assert (problem.line, problem.column) == (3, 37)
    assert "\n  a.hlsl:2:6: note: candidate function not viable" in problem.message


def test_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    """Many shaders come back in order; a warning is logged and a refusal spoils no other shader."""
    values = [number + 0.25 for number in range(12)]
    warned = hlsl(source(50.25, "void f() { 1 + 1; }\n"))
    requests = [*(hlsl(source(value)) for value in values), hlsl(BAD, label="bad"), warned]
    with caplog.at_level(logging.WARNING):
        made = compile_each(requests, jobs=2)
    for one, value in zip(made, [*values, None, 50.25], strict=True):
        if value is None:
            assert isinstance(one, CompileError)
            assert str(one).startswith("a.hlsl:3:10: shader 'bad': use of undeclared identifier 'nope'\n")
        else:
            assert isinstance(one, Compiled)
            assert holds(one.module, value)
    (record,) = caplog.records
    assert "expression result unused" in record.getMessage()


def test_the_cache_needs_no_library(dxc: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module in the cache starts no process; another library is another entry."""
    copy = tmp_path / "libdxcompiler.so"
    shutil.copyfile(dxc, copy)
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", str(copy))
    (module,) = compile_all([hlsl(source(1.25))])
    monkeypatch.setattr("scenario_runner.shaders.compilers.compiler_processes.Processes.run", None)
    assert compile_all([hlsl(source(1.25))]) == [module]
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", dxc)
    with pytest.raises(TypeError):
        compile_all([hlsl(source(1.25))])


def test_a_crash_of_the_library_is_one_error() -> None:
    """A crash of the library at one shader is an error of this shader, and the others have their modules."""
    crashing = hlsl(
        HEAD + "[numthreads(1, 1, 1)] void main() { o[0] = " + "+".join(["o[1]"] * 200_000) + "; }", label="c"
    )
    made = compile_each([hlsl(source(1.25)), crashing, hlsl(source(2.25))], jobs=1)
    assert isinstance(made[0], Compiled)
    assert isinstance(made[2], Compiled)
    assert isinstance(made[1], CompileError)
    assert "shader 'c': the shader compiler" in str(made[1])
    assert "was ended by SIG" in str(made[1])


def test_options_of_a_shader_are_no_options_of_the_process() -> None:
    """An entry point of any characters reaches the library as one word."""
    for entry in ("a b", "ä", "4", "x\ny"):
        with pytest.raises(CompileError):
            compile_all([hlsl(source(1), entry=entry)])


def test_a_warning_names_the_file_of_the_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning of a shader that compiles has the place in the source, or in the file that it includes."""
    (tmp_path / "part.hlsli").write_text("#warning second\n")
    path = tmp_path / "a.hlsl"
    path.write_text(source(1.0, '#warning first\n#include "part.hlsli"\n'))
    with caplog.at_level(logging.WARNING, "scenario_runner"):
        compile_all([CompileRequest(language="HLSL", path=str(path))], use_cache=False)
    assert f"{path}:2:2: warning: first" in caplog.text
    assert f"{tmp_path / 'part.hlsli'}:1:2: warning: second" in caplog.text


@pytest.mark.parametrize("name", ["/nonexistent/dxc", sys.executable])
def test_the_help_names_compilers_of_hlsl(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help for a wrong dxc lists compilers of HLSL, and none of GLSL."""
    monkeypatch.setenv("SCENARIO_RUNNER_DXC", name)
    help = problem_of(hlsl(source(1.0)), CompilerNotFoundError).help or ""
    assert "dxc or libdxcompiler.so" in help
    assert "glslang" not in help
