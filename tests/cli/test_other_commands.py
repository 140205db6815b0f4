"""Commands about the program: help, usage errors, completion, schema and codes."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import scenario_runner
from scenario_runner.cli.options import COMMANDS
from scenario_runner.errors.codes import CODES
from tests.program import COMMAND, Program, files_in, python_path
from tests.scenes import ADD, Scene


@pytest.fixture
def valid(scene: Scene) -> Path:
    return scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4]).write()


def test_validate(program: Program, valid: Path, scene: Scene) -> None:
    """validate reports every file, and the first wrong file gives the exit code."""
    scene.file("bad.json", '{"resources": [{"buffer": {"uid": "x", "size": -4}}], "commands": []}')
    ended = program("validate", "scenario.json", "bad.json", exit_code=3)
    assert ended.out == "scenario.json: valid: 2 resources, 1 command\n"
    lines = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 2  # the size and the missing shader_access, in one go
    assert all(line.startswith("error: bad.json:1:") for line in lines)
    assert not (scene.folder / "x.out.npy").exists()


SCHEMAS = {name: f"{name}.schema.json" for name in ("scenario", "expectations", "suite")}


@pytest.mark.parametrize("arguments", [(), ("scenario",), ("expectations",), ("suite",), ("custom-op",)])
def test_schema(program: Program, checkout: Path, arguments: tuple[str, ...]) -> None:
    """schema prints a committed JSON Schema."""
    ended = program.succeed("schema", *arguments)
    name = arguments[0] if arguments else "scenario"
    assert ended.out == (checkout / "scenario_runner" / "schemas" / f"{name}.schema.json").read_text()


def test_settings_of_vscode(program: Program, checkout: Path, tmp_path: Path) -> None:
    """The settings name a schema for each kind of file, as a relative path inside the folder and else as a URL."""
    (tmp_path / "venv lib").mkdir()
    shutil.copytree(checkout / "scenario_runner", tmp_path / "venv lib" / "scenario_runner")
    command = [sys.executable, "-m", "scenario_runner", "schema", "--vscode"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "venv lib")}
    inside = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    files = [["scenario.json", "*.scenario.json"], ["check.json", "*.check.json"], ["suite.json"]]
    for out, folder in (
        (program("schema", "--vscode").out, (checkout / "scenario_runner" / "schemas").as_uri()),
        (inside.stdout, "./venv lib/scenario_runner/schemas"),
    ):
        settings = json.loads(out)["json.schemas"]
        assert [entry["fileMatch"] for entry in settings] == files
        assert [entry["url"] for entry in settings] == [f"{folder}/{name}" for name in SCHEMAS.values()]


def test_schemas_that_there_are_not(program: Program) -> None:
    """An unknown name, and a name beside --vscode, are errors that name the choices."""
    ended = program.fail(2, "schema", "scenarios")
    start = "error: argument format: invalid choice: 'scenarios' (choose from scenario, "
    assert ended.err.replace("'scenario',", "scenario,").startswith(start)  # quoted before Python 3.12
    assert "(did you mean 'scenario'?)" in ended.err
    ended = program.fail(2, "schema", "suite", "--vscode")
    assert ended.err.startswith("error: --vscode is for all schemas, but 'suite' is given\n")


@pytest.mark.parametrize("option", ["--version", "-v"])
def test_version(program: Program, option: str) -> None:
    """--version prints JSON with the reference runner's keys."""
    ended = program.succeed(option)
    shown = json.loads(ended.out)
    assert shown["version"] == scenario_runner.__version__
    assert shown["revision"]
    assert {entry["name"] for entry in shown["dependencies"]} >= {"vulkan", "numpy", "pydantic"}


def test_broken_pipe() -> None:
    """When the reader of stdout goes away the program ends quietly."""
    process = subprocess.Popen([*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(30) == 1
    assert errors == ""


def test_full_disk() -> None:
    """When stdout cannot be written the program says so and fails."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "schema"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: standard output cannot be written: no space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(valid: Path, shader_cache: Path, closed: str) -> None:
    """The program works with standard streams that whoever started it has closed."""
    line = " ".join([*COMMAND, str(valid), closed])
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (valid.parent / "x.out.npy").stat().st_size == 128 + 16


def test_internal_error(program: Program, tmp_path: Path) -> None:
    """An exception that this program does not expect ends it with an exit code of its own, and no traceback."""
    (tmp_path / "numpy.py").write_text("raise LookupError('out of order')")
    numpy.save(tmp_path / "a.npy", numpy.zeros(3, "f4"))
    ended = program.fail(70, "view", "a.npy", env={"PYTHONPATH": python_path(tmp_path)})
    assert ended.err.startswith("error: internal error: LookupError: out of order (")


def test_overview(program: Program) -> None:
    """The overview fits 40 lines of 80 columns. It has all commands in groups, examples, and a page."""
    ended = program.succeed("--help")
    assert ended == program("help") == program("-h")
    lines = ended.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    headings = ["Run:", "Test:", "Models:", "Debug:", "Set up:", "examples:"]
    assert [line for line in lines if line.endswith(":")] == headings
    commands = [line.split()[0] for line in lines if line.startswith("  ") and "scenario-runner" not in line]
    assert sorted(commands) == sorted(COMMANDS.keys() - {"help"})
    assert "docs/command_line.md" in lines[-1]


def test_help_is_in_groups(program: Program) -> None:
    """The help of a command begins with a sentence and examples. Groups of options follow a line of usage."""
    ended = program.succeed("run", "--help")
    assert ended == program("help", "run") == program("a.json", "--help")
    assert program("help", "validate") == program("validate", "--help")
    assert ended.out.startswith(
        "Run GPU workloads described in JSON, or models.\n\nexamples:\n  scenario-runner test.json "
    )
    assert "\nusage: scenario-runner [run] FILE… [options]\n\npositional arguments:\n" in ended.out
    headings = [line for line in ended.out.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings[:4] == ["examples:", "positional arguments:", "options:", "device:"]
    assert headings[5:] == [
        "results:",
        "checking:",
        "shaders and caches:",
        "debugging:",
        "capture:",
        "timing and measurements:",
        "compatibility with other runners:",
    ]
    device = ended.out.partition("\ndevice:\n")[2].partition("\n\n")[0]
    assert "  --timeout S " in device
    shown = program("test", "--help").out
    assert shown.startswith("Run many scenarios with expectations, isolated from each other.")
    assert "\nusage: scenario-runner test [PATH…] [options]\n" in shown
    assert "\ndevice:\n  --device D " in shown


def test_json_to_a_file(program: Program, tmp_path: Path) -> None:
    """--json prints JSON, and --json=FILE writes it. Reports without a file are alone on standard output."""
    (tmp_path / "s.json").write_text('{"resources": [], "commands": []}')
    printed = program.succeed("validate", "--json", "s.json").out
    assert json.loads(printed)["files"][0]["file"] == "s.json"
    assert program.succeed("validate", "--json=out.json", "s.json").out == ""
    assert (tmp_path / "out.json").read_text() == printed
    (tmp_path / "s.check.json").write_text('{"outputs": {}}')
    ended = program("test", "s.json", "--json", exit_code=0)
    assert json.loads(ended.out)["results"]["summary"]["passed"] == 1
    assert "suite passed: 1 item" in ended.err


def test_folders_and_standard_input(program: Program, tmp_path: Path) -> None:
    """A folder stands for the scenarios in it, and "-" for standard input. The default of ``test`` is the folder."""
    (tmp_path / "suite").mkdir()
    text = '{"resources": [], "commands": []}'
    for name in ("a.json", "b.json"):
        (tmp_path / "suite" / name).write_text(text)
    valid = "valid: 0 resources, 0 commands\n"
    assert program.succeed("validate", "suite").out == f"suite/a.json: {valid}suite/b.json: {valid}"
    assert program.succeed("validate", "--quiet", "suite").out == ""
    assert program.succeed("validate", "-", stdin=text).out == f"/dev/stdin: {valid}"
    assert program.succeed("run", "-", stdin=text).out.startswith("/dev/stdin: ok: 0 dispatches")
    assert "suite passed: 2 items" in program.succeed("test").out
    (tmp_path / "empty").mkdir()
    assert program.fail(4, "validate", "empty").err == "error: empty: has no scenario\n"
    help = "scenario-runner test suite runs the scenarios in it"
    assert (
        program.fail(4, "suite").err
        == f"error: suite: is a folder, expected a scenario [SR-FILE-001]\n  help: {help}\n"
    )


def test_help_on_a_terminal(program: Program) -> None:
    """Help fills the width of the terminal, at most 120 columns."""
    for columns, most in (("60", 60), ("300", 120)):
        lines = program("validate", "--help", env={"COLUMNS": columns}).out.splitlines()
        assert most - 20 < max(map(len, lines)) <= most


@pytest.mark.parametrize(
    "words, offered",
    [
        ("va", "validate"),
        ("s", "shader schema s.json"),
        ("test --res", "--results --resume --resume-anyway"),
        ("s.json --dump", "--dump-after --dump-dir --dump-all"),
        ("s.json --ml-emulation ''", "auto on off"),
        ("vgf ''", "show scenario extract"),
        ("vgf show ''", "m.vgf out"),
        ("validate s.json ''", "s.json m.vgf out"),
        ("view ''", "a.npy out"),
        ("run --output ''", "out"),
        ("explain SR-BIND-00", " ".join(code for code in CODES if code.startswith("SR-BIND-00"))),
        ("help d", "diff doctor"),
        ("cache clear p", "plans pipelines"),
        ("test --device ''", "0 1"),
        ("diff --devices 0 ''", "0 1"),
    ],
)
def test_completion(program: Program, tmp_path: Path, words: str, offered: str) -> None:
    """Bash completes commands, options, choices, codes, devices, and files of the kinds that a command reads."""
    for name in ("s.json", "m.vgf", "a.npy", "s.comp"):
        (tmp_path / name).touch()
    (tmp_path / "out").mkdir()
    script = program("completion", "bash").out
    ask = (
        "scenario-runner() { printf '%s\\n' '0: first (cpu) - default' '1: second (gpu)'; }\n"
        'complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_scenario_runner; }\n'
        f'complete_words scenario-runner {words} 2>/dev/null; echo "${{COMPREPLY[@]}}"\n'
    )
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert sorted(done.stdout.split()) == sorted(offered.split())


@pytest.mark.parametrize(
    "shell, parts",
    [
        (
            "zsh",
            ["compdef _shtab_scenario_runner -N scenario-runner", "--ml-emulation[", ":(auto on off)", "names=(run "],
        ),
        ("fish", ["-l resume-anyway ", '-l ml-emulation -xka "auto on off"', "-a validate -d "]),
    ],
)
def test_completion_of_other_shells(program: Program, shell: str, parts: list[str]) -> None:
    """The scripts for zsh and fish have commands, options and choices."""
    ended = program.succeed("completion", shell)
    assert [part for part in parts if part not in ended.out] == []


SECONDS = "expected a number of seconds above 0"
NO_MODEL = "--input, --shader and --push-constants are for models, and no model was given"

# The options of the released reference runner, by its --help.
REFERENCE = """
    --scenario --output --profiling-dump-path --perf-counters-dump-path --pipeline-caching
    --clear-pipeline-cache --cache-path --fail-on-pipeline-cache-miss --emulation-layer-profiling-dump-dir
    --neural-debug-database-dump-dir --neural-statistics-dump-dir --neural-statistics-mode
    --session-memory-dump-dir --log-level --wait-for-key-stroke-before-run --pause-on-exit --dry-run
    --disable-extension --enable-gpu-debug-markers --repeat --capture-frame --enable-robustness-features --help
    --version
"""


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("vlidate x.json", "there is no command 'vlidate' (did you mean 'validate'?)"),
        ("help vlidate", "there is no command 'vlidate' (did you mean 'validate'?)"),
        ("x.json --capture-dri out", "unrecognized arguments: --capture-dri out (did you mean '--capture-dir'?)"),
        ("x.json --capture_dir=out", "unrecognized arguments: --capture_dir=out (did you mean '--capture-dir'?)"),
        ("validate x.json --hazard", "unrecognized arguments: --hazard (did you mean '--hazards'?)"),
        ("shader show x --entri y", "unrecognized arguments: --entri y (did you mean '--entry'?)"),
        ("x.json --wibble", "unrecognized arguments: --wibble\n"),
        ("", "no scenario file was given"),
        ("x.json --repeat 0", "argument --repeat: '0': expected a whole number of 1 or more"),
        *(
            (f"{file} --timeout={seconds}", f"argument --timeout: '{seconds}': {SECONDS}")
            for file in ("model.vgf", "x.json", "doctor", "test x.json")
            for seconds in ("0", "-1", "nan", "soon")
        ),
        ("--scenario", "argument --scenario: expected one argument"),
        ("x.json --capture-dir ''", "argument --capture-dir: '': expected the path of a folder"),
        ("x.json --dump-all=", "argument --dump-all: '': expected the path of a folder"),
        ("x.json --folder-each", "--folder-each needs --output or --capture-dir\n"),
        ("x.json --input x=x.npy", NO_MODEL),
        ("x.json y.json --perf-counters-dump-path c", "--perf-counters-dump-path takes the files of one scenario"),
        ("bench", "no scenario file was given"),
        ("bench x.json --repeat 0", "argument --repeat: '0': expected a whole number of 1 or more"),
        ("bench x.json --time 1 --repeat 2", "argument --repeat: not allowed with argument --time"),
        ("bench x.json --threshold 3", "--threshold is an option of --compare"),
        ("bench --compare a.json", "argument --compare: expected 2 arguments"),
        ("bench x.json --compare a.json b.json", "--compare takes two files of --json and no scenario"),
        ("bench x.json --json ./x.json", "--json: ./x.json is a scenario"),
        ("vgf", "the following arguments are required: show|scenario|extract"),
        ("vgf show", "the following arguments are required: FILE"),
    ],
)
def test_refused(program: Program, tmp_path: Path, arguments: str, message: str) -> None:
    """A command line that cannot be understood ends with exit code 2 and a line that says why; nothing is written."""
    for name in ("x.json", "y.json"):
        (tmp_path / name).write_text('{"commands": [], "resources": []}')
    before = files_in(tmp_path)
    ended = program.fail(2, *shlex.split(arguments))
    assert ended.err.startswith(f"error: {message}")
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("arguments, choices", [("x.json --log-level eror", "'error'"), ("vgf shwo x", "'show'")])
def test_mistyped_choices(program: Program, arguments: str, choices: str) -> None:
    """A mistyped choice of an option or command is an error with a close match."""
    ended = program(*arguments.split(), exit_code=2)
    assert f"(did you mean {choices}?)" in ended.err


def test_scenario_named_like_a_mistyped_command(program: Program, tmp_path: Path) -> None:
    """A file that exists is run, whatever its name is like."""
    (tmp_path / "vlidate").write_text("[", encoding="utf-8")
    ended = program("vlidate", exit_code=3)
    assert ended.err.startswith("error: vlidate:1:")


@pytest.mark.parametrize("command", [[], ["validate"]])
@pytest.mark.parametrize(
    "wrong, right",
    [
        ("cases/scenaro.json", "cases/scenario.json"),
        ("case/scenario.json", "cases/scenario.json"),
        ("cases/Scenario.JSON", "cases/scenario.json"),
        ("cases/nothing_like_it.json", None),
    ],
)
def test_missing_scenario(program: Program, tmp_path: Path, command: list[str], wrong: str, right: str | None) -> None:
    """A scenario that does not exist gets files that do: of a name like it, or of its name in a folder near it."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "scenario.json").write_text("{}", encoding="utf-8")
    ended = program(*command, wrong, exit_code=4)
    assert (f"  help: did you mean '{right}'?" in ended.err.splitlines()) == (right is not None)
    assert ("did you mean" in ended.err) == (right is not None)


def test_every_option_is_known(program: Program, checkout: Path) -> None:
    """Every option of the reference runner is in the help text and in the documentation."""
    shown = program("run", "--help").out
    page = (checkout / "docs" / "command_line.md").read_text()
    for option in REFERENCE.split():
        assert option in shown
        assert option in page
