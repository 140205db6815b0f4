"""The plan cache: a kept plan is used when nothing changed, and never when something did."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import scenario_runner
from scenario_runner import Runner
from scenario_runner.errors import FileError
from scenario_runner.files import cache_folder
from scenario_runner.files.cache_folder import ContentCache, reason_to_distrust
from scenario_runner.plan.plan import Plan
from tests.program import Program, python_path, run_program
from tests.scenes import Scene, glsl

ADD = glsl(
    "c[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] + amount() + pushed;",
    '#include "amount.glsl"\n'
    "layout(set = 0, binding = 0) readonly buffer A { int a[]; };\n"
    "layout(set = 0, binding = 1) buffer C { int c[]; };\n"
    "layout(push_constant) uniform P { int pushed; };",
)
AMOUNT = "#extension GL_GOOGLE_include_directive : enable\nint amount() { return 10; }\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, used by this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


@pytest.fixture
def path(scene: Scene) -> Path:
    return adding(scene)


def adding(scene: Scene) -> Path:
    """Write a scenario that adds 10 (from an include) and 5 (from raw_data) to four numbers."""
    scene.file("amount.glsl", AMOUNT)
    scene.shader("add", ADD, push_constants_size=4)
    scene.raw_data("push", numpy.array([5], dtype="<i4"))
    scene.buffer("a", numpy.array([1, 2, 3, 4], dtype="<i4"))
    scene.buffer("c", size=16)
    scene.dispatch("add", ["a", "c"], [4], push_data_ref="push")
    return scene.write()


def outcome(path: Path, runner: Runner) -> list[int]:
    """Run for files, and return the values of the output."""
    runner.run_to_files(path)
    return list(numpy.load(path.parent / "c.out.npy").view("<i4"))


def kept(cache: Path) -> int:
    """Count the kept plans. Each begins with the same eight bytes."""
    return sum(pack.read_bytes().count(b"SRCACHE1") for pack in (cache / "plans").glob("*.entry"))


def test_second_run_needs_no_models(cache: Path, path: Path) -> None:
    """A run with a kept plan imports neither pydantic nor the reader of scenarios."""
    program = (
        "import sys; from scenario_runner.cli import main; code = main([sys.argv[1]]);"
        "print(code, 'pydantic' in sys.modules, 'scenario_runner.plan.resolve' in sys.modules, 'numpy' in sys.modules)"
    )
    lines = [
        subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert [text.splitlines()[-1] for text in lines] == ["0 True True False", "0 False False False"]
    assert list(numpy.load(path.parent / "c.out.npy").view("<i4")) == [16, 17, 18, 19]


def test_changed_data_is_used(cache: Path, path: Path, runner: Runner) -> None:
    """The next run computes with new values from a .npy file of the same type and shape."""
    outcome(path, runner)
    numpy.save(path.parent / "a.npy", numpy.array([5, 6, 7, 8], dtype="<i4"))
    assert outcome(path, runner) == [20, 21, 22, 23]


def test_vanished_file_is_an_error(cache: Path, path: Path, runner: Runner) -> None:
    """A file that is no longer there is reported as if no plan had been kept."""
    outcome(path, runner)
    (path.parent / "a.npy").unlink()
    with pytest.raises(FileError, match=r"/resources/2/buffer/src: .*a\.npy: cannot be opened"):
        outcome(path, runner)


def test_output_folder_belongs_to_the_plan(cache: Path, path: Path, runner: Runner, tmp_path: Path) -> None:
    """Another output folder is another plan."""
    outcome(path, runner)
    (path.parent / "c.out.npy").unlink()
    runner.run_to_files(path, output_dir=tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "c.out.npy").exists()
    assert not (path.parent / "c.out.npy").exists()


def test_nothing_is_kept_when_not_asked(cache: Path, path: Path) -> None:
    """Without a cache nothing is written to it."""
    with Runner(use_cache=False) as runner:
        assert outcome(path, runner) == [16, 17, 18, 19]
    assert not cache.exists()


PACKAGE = Path(scenario_runner.__file__).parent


def test_a_changed_program_plans_anew(cache: Path, path: Path, tmp_path: Path) -> None:
    """A plan of the program before one of its modules changed is not used."""
    copy = tmp_path / "program" / "scenario_runner"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))

    def kept_after_a_run() -> int:
        assert run_program(tmp_path, path, env={"PYTHONPATH": python_path(copy.parent)}).code == 0
        return kept(cache)

    assert [kept_after_a_run(), kept_after_a_run()] == [1, 1]
    os.utime(copy / "ml" / "vgf_file.py", ns=(1, 1))
    assert kept_after_a_run() == 2


@pytest.mark.parametrize("value", [b"", b"\xff" * 40, b"(\x02\x00\x00\x00", pickle.dumps((("no plan",), ()))])
def test_an_entry_that_cannot_be_decoded_is_not_used(cache: Path, path: Path, runner: Runner, value: bytes) -> None:
    """A sound entry that holds no plan is ignored, and the plan is made again."""
    assert outcome(path, runner) == [16, 17, 18, 19]
    (pack,) = (cache / "plans").glob("*.entry")
    content = pack.read_bytes()
    entry = content[content.index(b"SRCACHE1") :]
    key = entry[28:][: int.from_bytes(entry[8:16], "little")]
    plans = ContentCache(str(cache), "plans")
    assert isinstance(pickle.loads(plans.load(key) or b"")[0], Plan)
    plans.store(key, value)
    assert plans.load(key) == value
    assert outcome(path, runner) == [16, 17, 18, 19]
    assert isinstance(pickle.loads(plans.load(key) or b"")[0], Plan)


def entries_of(count: int) -> dict[bytes, bytes]:
    """Make keys that differ in a number, and values of different lengths."""
    return {b"plan %d" % number: b"%d" % number * (number % 50) for number in range(count)}


def test_packs_hold_many_entries(tmp_path: Path) -> None:
    """Two processes that store side by side never read a wrong value. Later values replace earlier ones."""
    plans, entries = ContentCache(str(tmp_path), "plans"), entries_of(4000)
    if (child := os.fork()) == 0:
        for key in entries:
            ContentCache(str(tmp_path), "plans").store(b"other " + key, key)
        os._exit(0)
    for key, value in entries.items():
        assert plans.load(key) is None
        plans.store(key, b"old")
        plans.store(key, value)
    assert os.waitpid(child, 0)[1] == 0
    entries |= {b"other " + key: key for key in entries}
    for key, value in entries.items():
        assert plans.load(key) in (value, None)  # both processes may have taken a slot, or made a pack
        plans.store(key, value)
    assert all(plans.load(key) == value for key, value in entries.items())
    assert len(list((tmp_path / "plans").iterdir())) == 64


def test_a_damaged_pack_gives_no_value_and_begins_anew(tmp_path: Path) -> None:
    """A pack with other bytes, without an end, or without anything gives no wrong value."""
    plans, entries = ContentCache(str(tmp_path), "plans"), entries_of(300)
    for damage in (
        lambda data: data[:-5],
        lambda data: data[: len(data) // 3],
        lambda data: b"",
        lambda data: data[::-1],
    ):
        for key, value in entries.items():
            plans.store(key, value)
        for pack in (tmp_path / "plans").iterdir():
            pack.write_bytes(damage(pack.read_bytes()))
        assert all(plans.load(key) in (value, None) for key, value in entries.items())
        for key, value in entries.items():
            plans.store(key, value)
            assert plans.load(key) == value


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(cache: Path, path: Path, runner: Runner) -> None:
    """An entry that is not a regular file is replaced by one that is."""
    outcome(path, runner)
    (entry,) = (cache / "plans").glob("*.entry")
    entry.unlink()
    os.mkfifo(entry)
    assert outcome(path, runner) == [16, 17, 18, 19]
    assert entry.is_file()


@pytest.mark.parametrize("part, mode", [("", 0o770), ("plans", 0o707), ("shaders", 0o1777)])
def test_a_folder_that_others_may_write_to_is_ignored(
    cache: Path, path: Path, program: Program, part: str, mode: int
) -> None:
    """A folder that others may write to is neither read nor written, with a warning and a help."""
    environment = {"SCENARIO_RUNNER_CACHE": str(cache)}
    assert program(path, env=environment).code == 0
    (cache / part).chmod(mode)
    before = {file: file.stat().st_mtime_ns for file in cache.rglob("*")}
    path.write_text(path.read_text() + " ")
    ended = program(path, env=environment, exit_code=0)
    warning = f"warning: the cache folder {str(cache / part)!r} is ignored: other users may write to it"
    assert ended.err.startswith(warning)
    assert "chmod it to 700" in ended.err
    ignored = cache / part
    after = {file: file.stat().st_mtime_ns for file in cache.rglob("*")}
    assert {file: time for file, time in after.items() if ignored in file.parents} == {
        file: time for file, time in before.items() if ignored in file.parents
    }
    (cache / part).chmod(0o700)
    assert program(path, env=environment).err == ""


def test_folders_and_entries_of_others_are_not_used(cache: Path, path: Path, program: Program) -> None:
    """Folders and entries of another user are left alone."""
    environment = {"SCENARIO_RUNNER_CACHE": str(cache)}
    assert program(path, env=environment).code == 0
    (entry,) = (cache / "plans").glob("*.entry")
    status = entry.stat()
    assert reason_to_distrust(status) == ""
    fields = list(status)
    fields[4] += 1
    assert reason_to_distrust(os.stat_result(fields)) == (
        f"it belongs to the user with the id {status.st_uid + 1}, not to {os.geteuid()}"
    )
    if os.geteuid() == 0:  # only root can give files away
        os.chown(cache / "plans", 65534, -1)
        ended = program(path, env=environment)
        assert (ended.code, ended.err.partition(": it belongs")[0]) == (
            0,
            f"warning: the cache folder {str(cache / 'plans')!r} is ignored",
        )


def test_what_is_kept_is_this_users_alone(cache: Path, path: Path, program: Program) -> None:
    """Folders and files of the cache are made such that they are used again, whatever the umask is."""
    old = os.umask(0)
    try:
        assert program(path, env={"SCENARIO_RUNNER_CACHE": str(cache)}).code == 0
    finally:
        os.umask(old)
    modes = {file.stat().st_mode & 0o777 for file in [cache, *cache.rglob("*")]}
    assert modes == {0o700, 0o600}
    assert program(path, env={"SCENARIO_RUNNER_CACHE": str(cache)}).err == ""


def test_plans_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs are removed while plans are stored, by the limit of plans and by the limit of the user."""
    plans, value = ContentCache(str(tmp_path), "plans"), bytes(1 << 16)

    def stored_bytes(name: str, count: int) -> int:
        for number in range(count):
            key = f"{name} {number}".encode()
            plans.store(key, value)
            assert plans.load(key) in (value, None)  # it may be removed at once
        return sum(pack.stat().st_size for pack in (tmp_path / "plans").iterdir())

    assert 50 << 20 < stored_bytes("first", 1000) < 80 << 20
    monkeypatch.setitem(cache_folder.KINDS, "plans", cache_folder.KINDS["plans"]._replace(most_bytes=32 << 20))
    assert 10 << 20 < stored_bytes("second", 1000) < 50 << 20
    monkeypatch.setenv(cache_folder.LIMIT_VARIABLE, "1M")
    assert stored_bytes("third", 1000) < 20 << 20
