"""Sources become SPIR-V with real compilers, and failures become errors of this program."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.errors import CompileError, CompilerNotFoundError, MissingFileError, ScenarioError, UsageError
from scenario_runner.processes import progress
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import read_module
from tests.program import process_state, wait_until
from tests.scenes import error_of
from tests.shaders.modules import MINIMAL, holds, problem_of, version

TENSOR = (
    "#version 450\n#extension GL_ARM_tensors : require\nlayout(local_size_x = 1) in;\n"
    "layout(set = 0, binding = 0) uniform tensorARM<float, 1> t;\nvoid main() {}\n"
)
OUT = "layout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Out { float v[]; } data_out;\n"
HLSL = """
RWStructuredBuffer<float> o : register(u5);
[numthreads(1, 1, 1)] void go(uint3 id : SV_DispatchThreadID) { o[id.x] = SCALE * 3.0f; }
"""


def entry_name(module: bytes) -> str:
    return read_module(module).entry_points[0].name


def test_duplicates_are_compiled_once(script: Callable[[str], str], tmp_path: Path, glslang: str) -> None:
    """Equal requests start one process, however many there are; different ones start one each."""
    compiler = script(f'echo x >> "{tmp_path}/count"\nexec "{glslang}" "$@"')
    compile_all([CompileRequest(source=MINIMAL, label=str(n)) for n in range(5)], compiler=compiler)
    compile_all([CompileRequest(source=MINIMAL + "// 2\n")] * 2, compiler=compiler)
    assert (tmp_path / "count").read_text() == "x\nx\n"


def test_different_shaders_are_compiled_in_parallel(
    script: Callable[[str], str], tmp_path: Path, glslang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes compile at a time, each waiting for the other. Then the noted activity is the earlier one again."""
    for name in ("_page", "numbers"):  # put back at the end
        monkeypatch.setattr(progress, name, getattr(progress, name))
    progress.share()
    progress.set_work("reading it", "/resources/0")
    (tmp_path / "signs").mkdir()
    wait = f'touch "{tmp_path}/signs/$$"\nwhile [ $(ls "{tmp_path}/signs" | wc -l) -lt 2 ]; do sleep 0.02; done\n'
    later = f'mkdir "{tmp_path}/first" || later=1\n{wait}[ -z "$later" ] || sleep 0.2\n'
    compiler = script(f'{later}exec "{glslang}" "$@"')
    requests = [CompileRequest(source=MINIMAL + f"// {n}\n") for n in range(2)]
    assert len(compile_all(requests, compiler=compiler, jobs=2, timeout_s=30)) == 2
    assert progress.work() == ("reading it", "/resources/0", "reading it")


def test_default_target_and_names(compile_text: Callable[..., bytes]) -> None:
    """The module is SPIR-V 1.5 unless asked otherwise, is not optimised, and keeps the names."""
    text = OUT + "void main() { float unused = 7.5; data_out.v[0] = 1.0; }\n"
    module = compile_text(text)
    assert version(module) == (1, 5)
    assert b"data_out\0" in module
    assert holds(module, 7.5)
    assert b"void main()" not in module
    assert version(compile_text(text, target="vulkan1.1")) == (1, 3)
    assert version(compile_text(text, target="vulkan1.3")) == (1, 6)


def test_optimised_and_debug(compile_text: Callable[..., bytes]) -> None:
    """-O drops unused code, and -g keeps the source's name and text in the module."""
    text = OUT + "void main() { float unused = 7.5; data_out.v[0] = 1.0; }\n"
    assert not holds(compile_text(text, build_options="-O"), 7.5)
    debug = compile_text(text, build_options="-g -DX")
    assert b"float unused = 7.5" in debug
    assert b"shader.comp" in debug


def test_entry_of_glsl(compile_text: Callable[..., bytes]) -> None:
    """A GLSL entry point gets the name that the request asks for."""
    assert entry_name(compile_text(MINIMAL)) == "main"
    assert entry_name(compile_text(MINIMAL, entry="other")) == "other"


def test_macro_that_the_compiler_refuses(compile_text: Callable[..., bytes]) -> None:
    """An error in a macro names build_options, not a line of the source."""
    error = error_of(CompileError, compile_text, MINIMAL, build_options="-UGL_x", label="s")
    assert str(error).startswith("shader.comp: shader 's': in build_options: '#undef' : names beginning with")


def test_failures_together(tmp_path: Path) -> None:
    """Every shader that fails is reported, with its first error's place, the label, and the compiler's own words."""
    paths = [tmp_path / f"{n}.comp" for n in range(3)]
    paths[0].write_text("#version 450\nvoid main() {\n  nope = 1;\n}\n")
    paths[1].write_text(MINIMAL)
    paths[2].write_text("#version 450\nvoid f();\nvoid main() { f(); }\n")
    error = error_of(CompileError, compile_all, [CompileRequest(path=str(path), label=path.stem) for path in paths])
    assert str(error).splitlines() == [
        f"{paths[0]}:3:3: shader '0': 'nope' : undeclared identifier",
        "    3 |   nope = 1;",
        "      |   ^~~~",
        f"{paths[2]}: shader '2': Linking compute stage: No function definition (body) found:",
        "  f(",
    ]
    assert len(error.problems) == 2


def test_failures_of_different_kinds(tmp_path: Path) -> None:
    """Failures of different kinds are one error with every problem, of the class of the first."""
    requests = [
        CompileRequest(path=str(tmp_path / "none.comp"), label="a"),
        CompileRequest(source=MINIMAL, build_options="-bad", label="b"),
        CompileRequest(source="#version 450\nx\n", label="c"),
    ]
    error = error_of(MissingFileError, compile_all, requests)
    assert [problem.message[:10] for problem in error.problems] == ["shader 'a'", "shader 'b'", "shader 'c'"]


@pytest.mark.parametrize("entry", ["", "-x", "a\0b"])
def test_bad_entry(entry: str) -> None:
    """An invalid entry name, or one that a compiler would take for an option, is refused."""
    with pytest.raises(ScenarioError, match="is not an entry point name"):
        compile_all([CompileRequest(source=MINIMAL, entry=entry)])


def test_bad_target() -> None:
    """An unknown target is refused with the known ones."""
    with pytest.raises(UsageError, match=r"unknown target 'vulkan9' \(expected one of vulkan1.0, "):
        compile_all([CompileRequest(source=MINIMAL, target="vulkan9")])


def test_tensors_need_a_newer_compiler(script: Callable[[str], str]) -> None:
    """A compiler before 15.4 is told to lack GL_ARM_tensors, without trying, and with the command that helps."""
    problem = problem_of(CompileRequest(source=TENSOR, label="t"), CompilerNotFoundError, script("exit 1"))
    assert problem.message.startswith("shader 't': the source uses GL_ARM_tensors, which ")
    assert problem.message.endswith("compiler.sh (12.0.0) does not know")
    assert problem.help is not None
    assert "pip install --no-deps --upgrade --target" in problem.help


@pytest.mark.parametrize(
    "commands, message",
    [
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ("exit 0", "wrote no module"),
        ("printf '%32s' x > module.spv", "wrote 32 bytes that are not a SPIR-V module"),
        ("exit 3", "the compiler gave no reason"),
        ("echo some words; exit 3", "some words"),
        ("yes", "wrote more than 1 MiB of messages"),
        ("exec yes > module.spv", "was ended by SIGXFSZ"),
    ],
)
def test_compilers_that_misbehave(script: Callable[[str], str], commands: str, message: str) -> None:
    """A compiler that crashes, writes nothing, writes garbage or never stops writing is an error of ours."""
    request = CompileRequest(source=MINIMAL, name="a.comp", label="s")
    error = error_of(CompileError, compile_all, [request], compiler=script(commands), timeout_s=60)
    assert str(error).startswith("a.comp: shader 's': ")
    assert message in str(error)


def is_bound(pid: int) -> bool:
    """Report that a program ends when a pipe of its is closed."""
    infos = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return any(int(info.partition("flags:")[2].split()[0], 8) & os.O_ASYNC for info in infos)


@pytest.fixture
def hanging(script: Callable[[str], str], tmp_path: Path) -> str:
    """A compiler that starts a child, writes both process ids to the file ``pids`` and does not end."""
    return script(f'sleep 600 &\necho $$ $! > "{tmp_path}/pids"\nwait')


def numbers_in(path: Path) -> list[int]:
    """Return the numbers in a file as soon as another process has written it."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(number) for number in path.read_text().split()]


def compiling(compiler: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that compiles a shader, with temporary files in a folder."""
    program = (
        "from scenario_runner.shaders.compile import compile_all\n"
        "from scenario_runner.shaders.source import CompileRequest\n"
        f"try:\n    compile_all([CompileRequest(source='void main() {{}}')], compiler={compiler!r})\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, **streams)


def test_a_compiler_that_hangs(hanging: str, tmp_path: Path) -> None:
    """A compiler that does not end is killed in time, with its child."""
    with pytest.raises(CompileError, match="did not finish within 1 s"):
        compile_all([CompileRequest(source=MINIMAL)], compiler=hanging, timeout_s=1)
    pids = numbers_in(tmp_path / "pids")
    wait_until(lambda: not any(map(process_state, pids)))


def test_compilers_end_with_the_process_that_started_them(hanging: str, tmp_path: Path) -> None:
    """A killed process, such as a worker beyond its time limit, takes its compilers and their children with it."""
    with compiling(hanging, tmp_path / "tmp") as process:
        pids = numbers_in(tmp_path / "pids")
        assert all(map(process_state, pids))
        # the compiler runs before it is bound to the process that started it (O_ASYNC on its end of the pipe)
        wait_until(lambda: is_bound(pids[0]))
        process.kill()
        wait_until(lambda: not any(map(process_state, pids)))


def test_ctrl_c_kills_the_compilers(hanging: str, tmp_path: Path) -> None:
    """Ctrl-C during a compilation ends the compilers and their children, and leaves no temporary files."""
    temporary = tmp_path / "tmp"
    with compiling(hanging, temporary) as process:
        pids = numbers_in(tmp_path / "pids")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (output, errors) == (b"interrupted\n", b"")
    wait_until(lambda: not any(map(process_state, pids)))
    assert not list(temporary.iterdir())


def test_hlsl_by_glslang(glslang: str, no_dxc_library: None) -> None:
    """Without dxc, HLSL is compiled by glslang: the entry, macros and register numbers as asked."""
    request = CompileRequest(language="HLSL", source=HLSL, name="a.hlsl", entry="go", build_options="-DSCALE=2.5")
    (module,) = compile_all([request], compiler=glslang)
    assert entry_name(module) == "go"
    assert holds(module, 7.5)
    assert version(module) <= (1, 3)


def test_hlsl_errors_have_places(tmp_path: Path, glslang: str, no_dxc_library: None) -> None:
    """An HLSL error shows the line of the file it is in, also inside an include. Without dxc nobody can say whether the
    source is wrong."""
    (tmp_path / "bad.hlsli").write_text("\nfloat f() { return zzz; }\n")
    path = tmp_path / "main.hlsl"
    path.write_text('#include "bad.hlsli"\n' + HLSL)
    request = CompileRequest(language="HLSL", path=str(path), entry="go")
    problem = problem_of(request, CompilerNotFoundError, glslang)
    assert (problem.path, problem.line) == (str(tmp_path / "bad.hlsli"), 2)
    path.write_text(HLSL)
    problem = problem_of(request, CompilerNotFoundError, glslang)
    assert (problem.path, problem.line) == (str(path), 3)
    assert problem.help is not None
    assert "does not know HLSL 2021; dxc may compile it: " in problem.help


def test_arm_glslc_compiles_tensors(arm_glslc: str, tmp_path: Path) -> None:
    """Arm's glslc compiles GL_ARM_tensors, with macros and includes of any number of folders, and shows places."""
    for folder, value in (("a", 1.5), ("b", 2.5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.glsl").write_text(f"#define {folder.upper()} {value}\n")
    text = TENSOR.replace("void main() {}", '#include "a.glsl"\n#include "b.glsl"\n')
    text += "layout(binding = 1) buffer Out { float v[]; };\nvoid main() { v[0] = A; v[1] = B; v[2] = C; }\n"
    dirs = (str(tmp_path / "a"), str(tmp_path / "b"))
    request = CompileRequest(source=text, name="t.comp", include_dirs=dirs, build_options="-D'C=(1.0 + 2.5)'")
    (module,) = compile_all([request], compiler=arm_glslc)
    assert all(holds(module, value) for value in (1.5, 2.5, 3.5))
    assert struct.pack("<II", 2 << 16 | 17, 4174) in module  # OpCapability TensorsARM
    assert version(module) == (1, 6)
    (tmp_path / "b" / "b.glsl").write_text("\nzzz;\n")
    problem = problem_of(request, compiler=arm_glslc)
    assert (problem.path, problem.line) == (str(tmp_path / "b" / "b.glsl"), 2)
    request = CompileRequest(source="void main() {\n  zzz;\n}\n", name="t.comp")
    with pytest.raises(CompileError, match=r"^t\.comp:2:\d+: 'zzz' : undeclared identifier"):
        compile_all([request], compiler=arm_glslc)
    plain, tensor = compile_all([CompileRequest(source=text) for text in (MINIMAL, TENSOR)])
    assert (version(plain), version(tensor)) == ((1, 5), (1, 6)), "glslangValidator made the one, glslc the other"
    with pytest.raises(CompilerNotFoundError, match=r"GLSL entry points must be called 'main' for .*, not 'x'"):
        compile_all([CompileRequest(source=MINIMAL, entry="x")], compiler=arm_glslc)
