"""tools/run, tools/test and .ci/run before Python takes over: an interpreter, what is due, a machine for the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.system_packages import package_names
from tools.bootstrap.packages import NEEDED, WELCOME

# An interpreter that writes down what it is asked for. Questions about its version go to the real one, and the set-up
# that it is asked to do leaves what the real set-up leaves.
INTERPRETER = f"""#!/bin/sh
case $* in
*tools.bootstrap*)
    echo "set up $4" >>"$NOTES"
    mkdir -p .venv/bin && cp "$0" .venv/bin/python && touch .venv/driver
    for level in run $4; do printf '%s\\n' "$5" "$PWD" "$PWD/.venv/driver" >".venv/ready-$level"; done ;;
*"sys.exit(console())"*)
    shift 3
    {{ printf 'run in %s:' "$PWD"; printf ' <%s>' "$@"; echo; }} >>"$NOTES" ;;
*pytest*) shift 2; echo "pytest in $PWD: $*" >>"$NOTES"; echo "1 passed" ;;
*ruff*|*mypy*) shift; echo "$*" >>"$NOTES" ;;
*) exec '{sys.executable}' "$@" ;;
esac
"""
SHIM = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"
OLD = '#!/bin/sh\ncase $* in *version_info*) exit 1 ;; *) echo "asked an old interpreter" >&2; exit 9 ;; esac\n'


class Checkout:
    """A copy of the scripts in a folder with a space in its name, and a PATH with nothing but the basic tools."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.root = folder / "check out"
        self.notes = folder / "notes"
        self.programs = folder / "bin"
        self.programs.mkdir()
        basic = ("cat", "cksum", "readlink", "mkdir", "cp", "touch", "sh", "id", "tail", "bash", "dirname", "sed")
        for name in basic:
            found = shutil.which(name)
            assert found is not None, name
            (self.programs / name).symlink_to(found)
        for name in ("tools", ".ci"):
            shutil.copytree(original / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(original / "pyproject.toml", self.root)
        (self.root / "scenario_runner").mkdir()
        for name in ("system_packages.py", "arm_glslc.py"):
            shutil.copy(original / "scenario_runner" / name, self.root / "scenario_runner")
        self.environ = {"PATH": str(self.programs), "HOME": str(folder), "NOTES": str(self.notes)}

    def program(self, name: str, text: str) -> Path:
        path = self.programs / name
        path.unlink(missing_ok=True)  # a link to the machine's own program, which would be written over
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def call(self, *command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command],
            cwd=folder or self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def found_python(self) -> str:
        done = self.call("sh", "-c", 'root=$PWD; . "$root/tools/bootstrap/set_up.sh"; find_python')
        return Path(done.stdout.strip()).name

    def noted(self) -> list[str]:
        text = self.notes.read_text(encoding="utf-8") if self.notes.exists() else ""
        self.notes.write_text("", encoding="utf-8")
        return text.splitlines()


@pytest.fixture
def copy(tmp_path: Path, checkout: Path) -> Checkout:
    """A fresh checkout that was never set up."""
    return Checkout(tmp_path, checkout)


def test_the_first_start_sets_up_and_later_ones_do_not(copy):
    """tools/run sets up once, then goes straight to the program with the user's folder and arguments as they are."""
    copy.program("python3", INTERPRETER)
    folder = copy.root.parent
    for expected in (["set up run"], []):
        done = copy.call(copy.root / "tools/run", "a b", "--c=*", "", folder=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert copy.noted() == [*expected, f"run in {folder}: <a b> <--c=*> <>"]


def test_the_tests_set_up_for_both(copy):
    """tools/test works in the checkout, in parallel without arguments; afterwards tools/run has nothing to set up."""
    copy.program("python3", INTERPRETER)
    copy.call(copy.root / "tools/test", folder=copy.root.parent)
    copy.call(copy.root / "tools/test", "-q", "tests/x.py", folder=copy.root.parent)
    copy.call(copy.root / "tools/run")
    assert copy.noted() == [
        "set up test",
        f"pytest in {copy.root}: -n auto --maxprocesses 4 --dist worksteal",
        f"pytest in {copy.root}: -q tests/x.py",
        f"run in {copy.root}: <>",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "pyproject.toml").write_text("[project]\n", encoding="utf-8"),
        lambda root: (root / "tools/bootstrap/packages.py").write_text("", encoding="utf-8"),
        lambda root: (root / "scenario_runner/system_packages.py").write_text("", encoding="utf-8"),
        lambda root: (root / ".venv/driver").unlink(),
        lambda root: (root / ".venv/ready-run").write_text("", encoding="utf-8"),
        lambda root: (root / ".venv/ready-run").unlink(),
        lambda root: shutil.rmtree(root / ".venv"),
    ],
    ids=["pyproject", "bootstrap", "packages", "driver gone", "empty stamp", "no stamp", "no environment"],
)
def test_a_change_is_noticed(copy, change):
    """A changed project file or set-up, a missing path or a missing stamp: the next start sets up again, once."""
    copy.program("python3", INTERPRETER)
    copy.call(copy.root / "tools/run")
    change(copy.root)
    copy.noted()
    copy.call(copy.root / "tools/run")
    copy.call(copy.root / "tools/run")
    assert [line for line in copy.noted() if line.startswith("set up")] == ["set up run"]


def test_a_moved_checkout_is_noticed(copy):
    """A checkout that was copied with its environment does not use the paths of the old place."""
    copy.program("python3", INTERPRETER)
    copy.call(copy.root / "tools/run")
    moved = copy.root.with_name("moved")
    copy.root.rename(moved)
    copy.noted()
    copy.call(moved / "tools/run", folder=moved)
    assert copy.noted()[0] == "set up run"


def test_a_link_to_the_script_works(copy):
    """A symbolic link to tools/run, as on somebody's PATH, finds its checkout."""
    copy.program("python3", INTERPRETER)
    link = copy.programs / "scenario-run"
    link.symlink_to(copy.root / "tools/run")
    copy.call(link, "x", folder=copy.root.parent)
    assert copy.noted() == ["set up run", f"run in {copy.root.parent}: <x>"]


def test_other_peoples_packages_stay_out(copy):
    """PYTHONPATH and PYTHONHOME of the user do not reach the environment's interpreter."""
    copy.program(
        "python3",
        INTERPRETER.replace("    shift 3\n", '    shift 3\n    echo "${PYTHONPATH-}${PYTHONHOME-}." >>"$NOTES"\n'),
    )
    copy.environ |= {"PYTHONPATH": "/elsewhere", "PYTHONHOME": "/nowhere"}
    copy.call(copy.root / "tools/run")
    assert copy.noted()[1] == "."


def test_a_failed_set_up_ends_the_start(copy):
    """When the set-up fails, its exit status is the script's, and nothing is run."""
    copy.program("python3", INTERPRETER.replace('echo "set up $4" >>"$NOTES"', "exit 3"))
    done = copy.call(copy.root / "tools/run", "x")
    assert (done.returncode, copy.noted()) == (3, [])


def test_a_shim_that_fails_is_passed_over(copy):
    """pyenv's shims for versions that are not switched on, and interpreters that are too old, are not chosen."""
    copy.program("python3", OLD)
    copy.program("python3.13", SHIM)
    copy.program("python3.12", SHIM)
    copy.program("python3.11", f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    assert copy.found_python() == "python3.11"


def test_the_users_python3_comes_first(copy):
    """Where python3 is a version that we support it is taken, however many others there are."""
    for name in ("python3", "python3.13", "python3.12"):
        copy.program(name, f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    assert copy.found_python() == "python3"


def test_an_interpreter_without_venv_is_the_last_choice(copy):
    """One that cannot make environments (Debian without python3-venv) is taken when there is no other."""
    crippled = f"#!/bin/sh\ncase $* in *ensurepip*) exit 1 ;; *) exec '{sys.executable}' \"$@\" ;; esac\n"
    copy.program("python3", crippled)
    copy.program("python3.12", f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    assert copy.found_python() == "python3.12"


def test_a_pyenv_version_is_found_without_its_shim(copy):
    """An interpreter that pyenv installed is found in its versions folder."""
    folder = copy.root.parent / ".pyenv/versions/3.12.1/bin"
    folder.mkdir(parents=True)
    shutil.copy(copy.program("python3.12", f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n"), folder / "python3")
    copy.program("python3.12", SHIM)
    copy.program("python3", SHIM)
    done = copy.call("sh", "-c", 'root=$PWD; . "$root/tools/bootstrap/set_up.sh"; find_python')
    assert done.stdout.strip() == str(folder / "python3")


def test_a_named_interpreter_is_the_only_one_tried(copy):
    """SCENARIO_RUNNER_PYTHON decides, and a wrong one is an error that names it."""
    copy.program("python3", INTERPRETER)
    copy.environ["SCENARIO_RUNNER_PYTHON"] = str(copy.program("mine", INTERPRETER))
    assert copy.found_python() == "mine"
    copy.program("mine", SHIM)
    done = copy.call(copy.root / "tools/run")
    assert done.returncode == 1
    assert done.stderr == (
        f"scenario-runner: SCENARIO_RUNNER_PYTHON={copy.programs / 'mine'} "
        "is not a working CPython 3.11, 3.12 or 3.13: correct or unset it\n"
    )


@pytest.mark.parametrize("level", ["run", "test"])
def test_a_machine_without_python_is_told_what_to_install(copy, level):
    """Without any usable interpreter the message names all that Debian lacks for this command, and the variable."""
    script = copy.root / "tools/bootstrap/set_up.sh"
    text = script.read_text(encoding="utf-8")
    assert " /usr/bin/python3 /usr/local/bin/python3" in text  # where this machine may well have one
    script.write_text(text.replace(" /usr/bin/python3 /usr/local/bin/python3", ""), encoding="utf-8")
    copy.program("python3", OLD)
    done = copy.call(copy.root / "tools" / level)
    assert done.returncode == 1
    parts = [*NEEDED[level], *WELCOME[level]]
    packages = " ".join(("python3", "python3-venv", *package_names("debian", parts)))
    (line,) = [line for line in done.stderr.splitlines() if "Debian" in line]
    command, _, names = line.partition("sudo apt-get update && sudo apt-get install ")
    assert command == "scenario-runner:   Debian, Ubuntu   "
    assert sorted(names.split()) == sorted(packages.split())
    assert "SCENARIO_RUNNER_PYTHON=/path/to/python3" in done.stderr


def checks(root: Path) -> list[str]:
    """What .ci/run does in an environment."""
    return [
        "set up run",
        f"run in {root}: <scenarios/basics/add/scenario.json>",
        "set up test",
        *("ruff check .", "ruff format --check .", "mypy"),
        f"pytest in {root}: -n auto --maxprocesses 4 --dist worksteal",
    ]


def test_changes_are_checked_on_a_bare_machine(copy):
    """.ci/run runs both README commands and the linters on the bare machine; pytest's summary comes last."""
    copy.program("python3", INTERPRETER)
    (copy.root / "tools/bare_machine").write_text(
        '#!/bin/sh\necho "machine $*" >>"$NOTES"; [ "$1" != --worktree ] || shift; [ "$1" = true ] || exec "$@"\n'
    )
    done = copy.call(copy.root / ".ci/run")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("ci: running on a bare Debian (bookworm)", "1 passed")
    assert copy.noted() == ["machine true", "machine --worktree .ci/run --here", *checks(copy.root)]


def test_changes_are_checked_here_where_no_machine_is_to_be_had(copy):
    """Where no bare machine can be made, .ci/run says in one line why, and checks in this environment."""
    copy.program("python3", INTERPRETER)
    copy.program("id", "#!/bin/sh\necho 1000\n")
    done = copy.call(copy.root / ".ci/run")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    reason = "bare_machine: making a bare machine takes root"
    assert lines[0] == f"ci: running in this environment, not on a bare Debian: {reason}"
    assert lines[-1] == "1 passed"
    assert copy.noted() == checks(copy.root)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["true"], "making a bare machine takes mmdebstrap: apt-get install mmdebstrap"),
        (["--release", "sid", "true"], "usage: tools/bare_machine [--release bookworm|trixie] [--user] "),
        (["--user"], "usage: tools/bare_machine [--release bookworm|trixie] [--user] "),
    ],
)
def test_a_bare_machine_that_cannot_be_made(copy, arguments, message):
    """tools/bare_machine ends with 125 and says what it lacks, or how it is used."""
    copy.program("id", "#!/bin/sh\necho 0\n")
    done = copy.call(copy.root / "tools/bare_machine", *arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"bare_machine: {message}")


def test_a_failed_check_fails_the_change(copy):
    """Whatever fails, the rest is run and the exit status says that something failed."""
    copy.program("python3", INTERPRETER.replace('*ruff*|*mypy*) shift; echo "$*" >>"$NOTES"', "*mypy*) exit 2"))
    done = copy.call(copy.root / ".ci/run")
    assert done.returncode == 1
    assert "-m mypy failed" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed"
