"""tools/run and tools/test before Python starts: the choice of an interpreter, and the steps that are due."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors.installation import package_names
from tests.program import executable
from tools.bootstrap.machine import NEEDED, WELCOME

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
*) exec '{sys.executable}' "$@" ;;
esac
"""
SHIM = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"
OLD = '#!/bin/sh\ncase $* in *version_info*) exit 1 ;; *) echo "asked an old interpreter" >&2; exit 9 ;; esac\n'


REAL = f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n"
NEWER = f"#!/bin/sh\nexec '{sys.executable}' -c \"import sys; sys.version_info = (3, 99, 0, 'final', 0)\n$2\"\n"
WITHOUT_VENV = f"#!/bin/sh\ncase $* in *ensurepip*) exit 1 ;; *) exec '{sys.executable}' \"$@\" ;; esac\n"


class Checkout:
    """A copy of the scripts in a folder with a space in its name, and a PATH with nothing but the basic tools."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.root = folder / "check out"
        self.notes = folder / "notes"
        self.programs = folder / "bin"
        self.programs.mkdir()
        basic = ("cat", "cksum", "readlink", "mkdir", "cp", "touch", "sh", "id", "tail")
        for name in basic:
            found = shutil.which(name)
            assert found is not None, name
            (self.programs / name).symlink_to(found)
        shutil.copytree(original / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(original / "pyproject.toml", self.root)
        errors = Path("scenario_runner", "errors")
        shutil.copytree(original / errors, self.root / errors, ignore=shutil.ignore_patterns("__pycache__"))
        self.environ = {"PATH": str(self.programs), "HOME": str(folder), "NOTES": str(self.notes)}

    def program(self, name: str, text: str) -> Path:
        path = self.programs / name
        path.unlink(missing_ok=True)  # a link to the machine's own program, which would be written over
        return executable(path, text)

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

    def without_the_machines_python(self) -> None:
        """Keep the set-up from finding an interpreter of this machine outside of PATH."""
        script = self.root / "tools/bootstrap/set_up.sh"
        text = script.read_text(encoding="utf-8")
        assert " /usr/bin/python3 /usr/local/bin/python3" in text
        script.write_text(text.replace(" /usr/bin/python3 /usr/local/bin/python3", ""), encoding="utf-8")

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


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "pyproject.toml").write_text("[project]\n", encoding="utf-8"),
        lambda root: (root / "tools/bootstrap/steps.py").write_text("", encoding="utf-8"),
        lambda root: (root / "scenario_runner/errors/system_packages.toml").write_text("", encoding="utf-8"),
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


@pytest.mark.parametrize(
    "programs, expected",
    [
        ({"python3": OLD, "python3.13": SHIM, "python3.12": SHIM, "python3.11": REAL}, "python3.11"),
        ({"python3": REAL, "python3.13": REAL, "python3.12": REAL}, "python3"),
        ({"python3": NEWER, "python3.13": REAL}, "python3"),
        ({"python3": OLD, "python3.15": REAL, "python3.11": REAL}, "python3.15"),
        ({"python3": WITHOUT_VENV, "python3.12": REAL}, "python3.12"),
    ],
    ids=[
        "shims that fail and old ones are passed over",
        "python3 comes first",
        "no version is too new",
        "the newest replaces an old one",
        "without venv is the last choice",
    ],
)
def test_which_interpreter_is_taken(copy, programs, expected):
    """The first one that works, is supported and can make environments."""
    for name, text in programs.items():
        copy.program(name, text)
    assert copy.found_python() == expected


def test_a_pyenv_version_is_found_without_its_shim(copy):
    """An interpreter that pyenv installed is found in its versions folder."""
    folder = copy.root.parent / ".pyenv/versions/3.12.1/bin"
    folder.mkdir(parents=True)
    shutil.copy(copy.program("python3.12", REAL), folder / "python3")
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
        "is not a working CPython 3.11 or later: correct or unset it\n"
    )


@pytest.mark.parametrize(
    "packaged, installed",
    [
        ({"python3": REAL, "python3.13": REAL}, ["python3"]),
        ({"python3": OLD, "python3.12": REAL, "python3.11": REAL}, ["python3", "python3.12"]),
    ],
    ids=["the system's own", "the newest where the system's own is too old"],
)
def test_which_interpreter_is_installed(copy, packaged, installed):
    """The superuser of Debian gets the system's Python. Another CPython comes only where that one is too old."""
    copy.without_the_machines_python()
    packages = copy.root.parent / "packages"
    packages.mkdir()
    for name, text in packaged.items():
        executable(packages / name, text)
    copy.program("id", "#!/bin/sh\necho 0\n")
    copy.program(
        "apt-get",
        f"""#!/bin/sh
case $* in *update*) exit 0 ;; esac
for package in "$@"; do
    case $package in
    *-venv | -* | install) ;;
    *) cp '{packages}'/"$package" '{copy.programs}' 2>/dev/null || exit 100; echo "$package" >>"$NOTES" ;;
    esac
done
""",
    )
    done = copy.call("sh", "-c", 'root=$PWD; . "$root/tools/bootstrap/set_up.sh"; install_python run')
    assert (done.returncode, Path(done.stdout.strip()).name) == (0, installed[-1])
    assert copy.noted() == installed


@pytest.mark.parametrize("level", ["run", "test"])
def test_a_machine_without_python_is_told_what_to_install(copy, level):
    """Without any usable interpreter the message names all that Debian lacks for this command, and the variable."""
    copy.without_the_machines_python()
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


def test_generators_read_their_own_checkout(tmp_path: Path, checkout: Path) -> None:
    """Generators import the program of their checkout, not an installed one."""
    copied = tmp_path / "tools"
    shutil.copytree(checkout / "tools", copied, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "scenario_runner").mkdir()
    (tmp_path / "scenario_runner" / "__init__.py").write_text('raise SystemExit("the own checkout")\n')
    readers = [path for path in copied.glob("*.py") if "\nfrom scenario_runner" in path.read_text(encoding="utf-8")]
    assert len(readers) == 3
    for reader in readers:
        ended = subprocess.run([sys.executable, reader], cwd=copied, capture_output=True, text=True)
        assert (ended.stdout, ended.stderr) == ("", "the own checkout\n"), reader.name
