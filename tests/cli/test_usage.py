"""Command lines that are refused, and words that were probably meant; the options of the reference runner."""

import shlex
from pathlib import Path

import pytest

from tests.program import Program

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
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    ended = program(*shlex.split(arguments))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("arguments, choices", [("x.json --log-level eror", "'error'"), ("vgf shwo x", "'show'")])
def test_mistyped_choices(program: Program, arguments: str, choices: str) -> None:
    """The same for words that an option or a command takes."""
    ended = program(*arguments.split())
    assert ended.code == 2
    assert f"(did you mean {choices}?)" in ended.err


def test_scenario_named_like_a_mistyped_command(program: Program, tmp_path: Path) -> None:
    """A file that exists is run, whatever its name is like."""
    (tmp_path / "vlidate").write_text("[", encoding="utf-8")
    ended = program("vlidate")
    assert ended.code == 3
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
    ended = program(*command, wrong)
    assert ended.code == 4
    assert (f"  help: did you mean '{right}'?" in ended.err.splitlines()) == (right is not None)
    assert ("did you mean" in ended.err) == (right is not None)


def test_every_option_is_known(program: Program, checkout: Path) -> None:
    """Every option of the reference runner is in the help text and in the documentation."""
    shown = program("--help").out
    page = (checkout / "docs" / "command_line.md").read_text()
    for option in REFERENCE.split():
        assert option in shown
        assert option in page
