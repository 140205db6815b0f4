"""``reduce``: the smallest scenario that still fails alike, with real failures: crashes, hangs, wrong results."""

import json
import os
import shutil
import signal
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from tests.cli.long_run import SLOW
from tests.crash import crash_shader
from tests.devices import NARROW, WIDE
from tests.program import COMMAND, Ended, Program, executable, files_in, wait_until
from tests.scenes import ADD, Scene, glsl

FOUR = glsl("atomicAdd(a[0], 4u);\na[1] = 3u;\na[2] = 5u;", "layout(binding = 0) buffer B { uint a[]; };\n")
# Shader "four", as text or as a module, has an atomic addition; until it is a reduced module, "one" is there.
ADDS = """#!/bin/sh
module=$(grep -A1 '"uid": "four"' "$1" | sed -n 's/.*"src": "\\(.*\\.spv\\)".*/\\1/p')
if [ "$module" ]; then spirv-dis "$(dirname "$1")/$module" | grep -q OpAtomicIAdd || exit 1
else grep -q -e atomicAdd -e four.comp "$1" || exit 1; fi
[ "$module" = reduced_four.spv ] || grep -q '"uid": "one"' "$1"
"""


def scenario(folder: Path) -> dict[str, Any]:
    """The scenario in a folder."""
    return dict(json.loads((folder / "scenario.json").read_text()))


def module(scene: Scene, uid: str, text: str) -> Scene:
    """Add a shader as SPIR-V, so that its text is not reduced."""
    (code,) = compile_all([CompileRequest(source=text)])
    return scene.module(uid, code)


@pytest.fixture
def without_tool(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without spirv-reduce."""
    folder = tmp_path.parent / f"{tmp_path.name}-programs"
    folder.mkdir()
    for name in ("sh", "grep", "glslc", "glslangValidator", "spirv-val"):
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    return {"PATH": str(folder)}


def crash(scene: Scene, device_name: str, commands: int, buffers: int, length: int, **keys: Any) -> Scene:
    """Add commands of which one crashes."""
    module(module(scene, "add", ADD), "crash", crash_shader(device_name))
    at = 2 * buffers // 3
    for number in range(buffers):
        scene.buffer(f"b{number}", numpy.full(length, 1 if number == at else number, numpy.uint32), **keys)
    for number in range(commands):
        crashes = number == 2 * commands // 3
        shader, uid = ("crash", f"b{at}") if crashes else ("add", f"b{number % buffers}")
        scene.dispatch(shader, [uid], [1 if crashes else length])
    return scene


def test_a_crash(program: Program, scene: Scene, device_name: str, without_tool: dict[str, str]) -> None:
    """The command that crashes stays alone, and fails alike when it runs from the folder."""
    crash(scene, device_name, 4, 3, 4, dst=None).write()
    before = files_in(scene.folder)
    ended = program.succeed("reduce", "scenario.json", "--output", "out", env=without_tool)
    after = files_in(scene.folder)
    assert {name: after[name] for name in before} == before
    made = after.keys() - before.keys()
    assert {"out/scenario.json", "out/failure.txt", "out/doctor.json"} <= made
    assert all(name.startswith("out/") for name in made)
    assert f"\nwritten: out: scenario.json, failure.txt, doctor.json ({len(made)} files)\n" in ended.out
    reduced = scenario(scene.folder / "out")
    (command,) = reduced["commands"]
    assert command["dispatch_compute"]["shader_ref"] == "crash"
    assert len(reduced["resources"]) <= 2
    assert "was ended by SIGSEGV while running this command" in ended.out
    assert "shaders are not reduced further: spirv-reduce is not installed (package spirv-tools)\n" in ended.out
    assert "ready" in json.loads(after["out/doctor.json"])
    (run,) = [line for line in after["out/failure.txt"].decode().splitlines() if line.startswith("to run it here: ")]
    assert run == "to run it here: scenario-runner test scenario.json"
    repeated = program("test", "out/scenario.json", "--retries", "0", exit_code=1)
    assert "Crash out/scenario.json: /commands/0: the process was ended by SIGSEGV" in repeated.out


@pytest.mark.heavy
def test_a_crash_of_a_large_scenario(
    program: Program, scene: Scene, device_name: str, without_tool: dict[str, str]
) -> None:
    """One of 60 commands over 40 resources crashes: it stays alone, after at most two minutes."""
    crash(scene, device_name, 60, 38, 64).write()
    began = time.monotonic()
    ended = program.succeed("reduce", "scenario.json", "--output", "out", env=without_tool)
    assert time.monotonic() - began < 120
    (command,) = scenario(scene.folder / "out")["commands"]
    assert command["dispatch_compute"]["shader_ref"] == "crash"
    assert "commands: 60 before, 1 now; resources: 40 before, 2 now; " in ended.out


@pytest.mark.heavy
def test_a_hang(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """A command that never ends stays alone. --limit bounds the time, the result so far is written, and an archive has
    the same files."""
    module(module(scene, "add", ADD), "slow", SLOW).buffer("x", size=256).buffer("y", size=256)
    scene.dispatch("add", ["y"], [4]).dispatch("slow", ["x"], [20000]).dispatch("add", ["x"], [4]).write()
    arguments = ("--timeout", "0.5", "--zip", "--output", "report", "--limit", "4")
    ended = program.succeed("reduce", "scenario.json", *arguments, env=without_tool)
    assert "did not finish within 0.5 s" in ended.out
    with zipfile.ZipFile(scene.folder / "report.zip") as archive:
        assert {"report/scenario.json", "report/failure.txt"} <= set(archive.namelist())
        assert "slow" in archive.read("report/scenario.json").decode()


@pytest.mark.heavy
def test_a_wrong_result(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """Only the commands that make the same numbers wrong stay."""
    bad = ADD.replace("+= 1u", "+= gl_WorkGroupID.x == 5u ? 2u : 1u")
    module(module(scene, "add", ADD), "bad", bad)
    for number in range(3):
        scene.buffer(f"b{number}", numpy.full(8, number, numpy.uint32))
        scene.npy(f"expected/b{number}.npy", numpy.full(8, number + 2, numpy.uint32))
    for name, number in (("add", 0), ("add", 1), ("add", 2), ("add", 0), ("bad", 1), ("add", 2)):
        scene.dispatch(name, [f"b{number}"], [8])
    scene.write()
    ended = program.succeed("reduce", "scenario.json", "--output", "out", env=without_tool)
    reduced = scenario(scene.folder / "out")
    assert [command["dispatch_compute"]["shader_ref"] for command in reduced["commands"]] == ["add", "bad"]
    assert "fails in each run: b1: 1 of 8 elements (12.5 %) is wrong at [5]: 4 " in ended.out
    repeated = program("test", "out/scenario.json", "--retries", "0")
    assert "Fail out/scenario.json: b1: 1 of 8 elements (12.5 %) is wrong at [5]: 4 " in repeated.out


@pytest.mark.heavy
def test_a_wrong_frame(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """Captured frames go, except the wrong one."""
    module(module(scene, "add", ADD), "bad", ADD.replace("1u", "2u"))
    for number, shader in enumerate(("add", "bad", "add")):
        scene.buffer(f"b{number}", size=16, dst=None).dispatch(shader, [f"b{number}"], [4])
        scene.command("mark_boundary", resources=[f"b{number}"], frame_id=number)
        scene.npy(f"expected/frame_{number}/b{number}.npy", numpy.ones(4, numpy.uint32))
    scene.write()
    program.succeed("reduce", "scenario.json", "--output", "out", env=without_tool)
    dispatch, boundary = scenario(scene.folder / "out")["commands"]
    assert (dispatch["dispatch_compute"]["shader_ref"], boundary["mark_boundary"]["frame_id"]) == ("bad", 1)
    repeated = program("test", "out/scenario.json", "--retries", "0")
    assert "Fail out/scenario.json: frame_1/b1: 4 of 4 elements (100 %) are wrong at [0]: 2 " in repeated.out


def test_expectations_that_are_wrong(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """Wrong expectations stay: without them the scenario passes."""
    scene.buffer("b", size=16).buffer("x", size=16).write()
    (scene.folder / "check.json").write_text('{"outputs": {"c": {"values": [1], "dtype": "uint32"}}}')
    ended = program.succeed("reduce", "scenario.json", "--output", "out", env=without_tool)
    assert "fails in each run: /outputs/c: 'c' is not an output of the scenario" in ended.out
    assert len(scenario(scene.folder / "out")["resources"]) < 2
    assert "'c' is not an output of the scenario" in program("test", "out", "--retries", "0").out


def hazard(scene: Scene) -> Scene:
    """Add three commands on one buffer, without a barrier after the first."""
    module(scene, "add", ADD).buffer("x", numpy.zeros(4, numpy.uint32))
    scene.dispatch("add", ["x"], [4], implicit_barrier=False).dispatch("add", ["x"], [4]).dispatch("add", ["x"], [4])
    return scene


@pytest.mark.heavy
def test_a_message(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """A warning of `validate` stays with two commands."""
    hazard(scene).write()
    ended = program.succeed("reduce", "scenario.json", "--code", "SR-HAZARD-001", "--output", "out", env=without_tool)
    assert len(scenario(scene.folder / "out")["commands"]) == 2
    assert "fails in each run: SR-HAZARD-001: shader 'add' reads buffer 'x'" in ended.out
    assert "[SR-HAZARD-001]" in program("validate", "--hazards", "out/scenario.json").err


@pytest.mark.heavy
def test_a_script_and_the_shader(program: Program, scene: Scene) -> None:
    """Lines of a shader and then instructions of its module go while the script still fails. The folder has only texts
    of shaders in the result."""
    adding = executable(scene.folder / "script.sh", ADDS)
    scene.shader("one", "#version 450\nvoid main() {}\n").shader("four", FOUR).buffer("x", size=16).buffer("y", size=16)
    scene.dispatch("four", ["x"]).write()
    program.succeed("reduce", "scenario.json", "--script", f"'{adding}'", "--output", "out")
    files = files_in(scene.folder / "out")
    text, module = files["reduced_four.glsl"].decode(), scene.folder / "out" / "reduced_four.spv"
    assert "atomicAdd" in text
    assert "a[1]" not in text
    shown = subprocess.run(["spirv-dis", str(module)], capture_output=True, check=True, text=True).stdout
    assert "OpAtomicIAdd" in shown
    assert not list(scene.folder.glob("temp_*"))
    assert files.keys() == {"scenario.json", "failure.txt", "doctor.json", "reduced_four.glsl", "reduced_four.spv"}


@pytest.mark.heavy
def test_two_devices(program: Program, scene: Scene, without_tool: dict[str, str], two_devices: dict[str, str]) -> None:
    """The command with differing subgroups stays, and the result of the first device becomes the expectation."""
    floats = "layout(binding = 0) buffer A { float a[]; };\n"
    size = glsl("a[gl_WorkGroupID.x] *= gl_SubgroupSize;", floats).replace(
        "#version 450", "#version 450\n#extension GL_KHR_shader_subgroup_basic : require"
    )
    module(module(scene, "add", glsl("a[gl_WorkGroupID.x] += 1.0;", floats)), "size", size)
    scene.buffer("x", numpy.ones(4, numpy.float32)).buffer("y", size=16)
    for name, uid in (("add", "y"), ("add", "x"), ("size", "x"), ("add", "y")):
        scene.dispatch(name, [uid], [4])
    scene.write()
    environment = {**without_tool, **two_devices}
    within = ("--devices", NARROW, WIDE, "--rtol", "1")  # of floats: as bytes, 8.0 and 16.0 are further apart
    assert program("diff", *within, "scenario.json", env=environment).code == 0
    ended = program("reduce", "scenario.json", *within, "--output", "none", env=environment)
    assert (ended.code, "does not fail" in ended.err) == (1, True)
    arguments = ("--devices", NARROW, WIDE, "--atol", "0.5", "--output", "out")
    program.succeed("reduce", "scenario.json", *arguments, env=environment)
    run = f"scenario-runner diff --devices '{NARROW}' '{WIDE}' scenario.json --atol=0.5\n"
    assert f"\nto run it here: {run}" in (scene.folder / "out" / "failure.txt").read_text()
    (command,) = scenario(scene.folder / "out")["commands"]
    assert command["dispatch_compute"]["shader_ref"] == "size"
    assert program("diff", "--devices", NARROW, WIDE, "out/scenario.json", env=environment).code == 1
    assert program("test", "out/scenario.json", "--device", NARROW, env=environment).code == 0
    assert program("test", "out/scenario.json", "--device", WIDE, env=environment).code == 1


def test_a_failure_that_comes_and_goes(program: Program, scene: Scene) -> None:
    """A warning tells of a failure that comes and goes, and each try runs several times."""
    flag = scene.folder / "flag"
    flaky = executable(
        scene.folder / "script.sh", f"#!/bin/sh\nif [ -e {flag} ]; then rm {flag}; exit 1; fi\ntouch {flag}\n"
    )
    scene.buffer("x", size=16).buffer("y", size=16).write()
    ended = program("reduce", "scenario.json", "--script", flaky, "--output", "out", exit_code=0)
    assert ended.err == "warning: scenario.json: fails in some runs only, so each try takes 4 runs\n"
    assert scenario(scene.folder / "out")["resources"] == []


def test_files_of_a_report(program: Program, scene: Scene, without_tool: dict[str, str]) -> None:
    """Data of the scenario keeps its name, and the report gets another one. A scenario is not reduced to one that
    cannot be packed, whatever the script says."""
    for name in ("failure.txt", "Doctor.json"):
        scene.file(name, "mine")
        scene.resource("shader", uid=name, src=name, type="SPIR-V")
    scene.buffer("x", numpy.zeros(4, numpy.uint32)).write()
    three = executable(scene.folder / "script.sh", '#!/bin/sh\n[ "$(grep -c src "$1")" = 3 ]\n')
    ended = program.succeed("reduce", "scenario.json", "--script", three, "--output", "out", env=without_tool)
    assert "\nwritten: out: scenario.json, failure~2.txt, doctor~2.json (6 files)\n" in ended.out
    files = files_in(scene.folder / "out")
    assert files["failure.txt"] == files["Doctor.json"] == b"mine"
    assert files["failure~2.txt"].startswith(b"fails in each run: the script ended with exit code 0\n")
    assert b"; doctor~2.json describes the machine\n" in files["failure~2.txt"]
    assert "ready" in json.loads(files["doctor~2.json"])
    ((kind, body),) = scenario(scene.folder / "out")["resources"][2].items()
    assert (kind, body["size"]) == ("buffer", 4)
    assert numpy.load(scene.folder / "out" / body["src"]).nbytes == 4


def test_interrupt(scene: Scene) -> None:
    """Ctrl-C writes the smallest scenario so far, and has its own exit code."""
    flag = scene.folder / "flag"
    lines = ['grep -q \'"uid": "y"\' "$1" || exit 1', f'grep -q \'"uid": "z"\' "$1" || {{ touch {flag}; sleep 60; }}']
    waiting = executable(scene.folder / "script.sh", "\n".join(["#!/bin/sh", *lines, ""]))
    for uid in ("x", "y", "z"):
        scene.buffer(uid, size=16)
    scene.write()
    arguments = [*COMMAND, "reduce", "scenario.json", "--script", str(waiting), "--output", "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*arguments, "--timeout", "100"], cwd=scene.folder, text=True, **pipes) as process:
        wait_until(flag.exists, "the try that does not end")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "")
    assert "interrupted before the end\n" in out
    uids = [entry["buffer"]["uid"] for entry in scenario(scene.folder / "out")["resources"]]
    assert uids == ["y", "z"]


def refused(ended: Ended, code: int, message: str) -> None:
    """A call that ended with one error."""
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err


MISTAKES = [
    (["scenario.json"], 1, "scenario.json: does not fail, so nothing can be reduced: Pass"),
    (["scenario.json", "--script", "false"], 1, "nothing can be reduced: the script ended with exit code 1"),
    (["scenario.json", "--device", "none"], 8, "no device has the index, name or UUID 'none'"),
    (["none.json"], 4, "none.json: cannot read the scenario"),
    (["script.txt"], 3, "script.txt:1:1: expected an object"),
    (["model.vgf"], 2, "model.vgf: is a model, expected a scenario"),
    (["scenario.json", "--script", "./none"], 2, "--script './none': there is no such program"),
    (["scenario.json", "--script", "''"], 2, "--script '': there is no such program"),
    (["scenario.json", "--script", "script.txt"], 2, "script.txt: is not executable\n  help: chmod +x script.txt"),
    (["scenario.json", "--script", "'"], 2, "--script ': No closing quotation"),
    (["scenario.json", "--atol", "1"], 2, "--atol, --rtol and --ulp are for --devices"),
    (["scenario.json", "--device", "0", "--devices", "0", "0"], 2, "--device and --devices were given"),
    (["scenario.json", "--code", "A", "--script", "b"], 2, "not allowed with argument"),
]


@pytest.mark.parametrize("arguments, code, message", MISTAKES)
def test_mistakes(program: Program, scene: Scene, arguments: list[str], code: int, message: str) -> None:
    """Each has one error, and nothing is written."""
    scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4]).write()
    scene.file("script.txt", "exit 0\n")
    scene.file("model.vgf", "")
    before = files_in(scene.folder)
    refused(program("reduce", *arguments, "--output", "out"), code, message)
    assert files_in(scene.folder) == before
    assert not (scene.folder / "out").exists()


@pytest.mark.parametrize("more", [[], ["--zip"]])
def test_an_output_that_exists(program: Program, scene: Scene, more: list[str]) -> None:
    """An existing output stays unchanged."""
    scene.file("out/mine.txt", "mine")
    scene.file("out.zip", "mine")
    before = files_in(scene.folder)
    name = os.path.basename(scene.write())
    refused(program("reduce", name, "--output", "out", *more), 2, "--output out: 'out")
    assert files_in(scene.folder).items() - before.items() == {(name, (scene.folder / name).read_bytes())}


def test_an_output_that_cannot_be_written(program: Program, scene: Scene) -> None:
    """An output that cannot be written is refused before the search, which may take hours."""
    scene.file("mine.txt", "mine")
    name = os.path.basename(scene.write())
    ended = program("reduce", name, "--script", "true", "--output", "mine.txt/out")
    refused(ended, 2, "mine.txt' is not a folder that can be written")


def test_an_error_names_no_temporary_folder(program: Program, scene: Scene) -> None:
    """The file of the error is one of the report, also where the time is over before the first try."""
    scene.shader("bad", "#version 450\nvoid main() { nothing(); }").dispatch("bad", [], [1]).write()
    program.succeed("reduce", "scenario.json", "--output", "out", "--limit", "0.001")
    text = (scene.folder / "out" / "failure.txt").read_text()
    assert "'nothing' : no matching overloaded function" in text
    assert "\nthe time limit came before the end\n" in text
    assert "/tried/" not in text
