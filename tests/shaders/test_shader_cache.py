"""The cache: sound, bounded, and safe when its files are damaged or shared."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenario_runner.files import cache_folder
from scenario_runner.files.cache_folder import ContentCache, default_cache_dir
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from tests.shaders.modules import MINIMAL

MAGIC = b"\x03\x02\x23\x07"


def kept(folder: Path) -> int:
    """Count the entries. Each begins with the same eight bytes."""
    return sum(path.read_bytes().count(b"SRCACHE1") for path in (folder / "shaders").glob("*.entry"))


def test_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is SCENARIO_RUNNER_CACHE, else below XDG_CACHE_HOME, else below ~/.cache."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", "/mine")
    assert default_cache_dir() == "/mine"
    monkeypatch.delenv("SCENARIO_RUNNER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache_dir() == "/xdg/scenario-runner"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_cache_dir() == "/home/me/.cache/scenario-runner"


def test_every_damage_is_a_miss(tmp_path: Path) -> None:
    """An entry cut short, or with any byte or number in the index changed, is never taken."""
    store = ContentCache(str(tmp_path), "shaders")
    store.store(b"key", b"module")
    path = Path(store.path(b"key"))
    whole = path.read_bytes()
    begin = whole.index(b"SRCACHE1")
    slot = next(at for at in range(0, begin, 16) if any(whole[at : at + 16]))
    for size in (0, slot, slot + 9, *range(begin - 1, len(whole))):
        path.write_bytes(whole[:size])
        assert store.load(b"key") is None
    for at in (*range(slot, slot + 16), *range(begin, len(whole))):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        assert store.load(b"key") is None or slot + 8 <= at < begin  # a larger size reads no further than the end
    path.write_bytes(whole)
    assert store.load(b"key") == b"module"


def test_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    """A shader with a damaged entry is compiled again, and a sound entry follows."""
    request = CompileRequest(source=MINIMAL)
    first = compile_all([request], cache_dir=str(tmp_path))
    (path,) = (tmp_path / "shaders").iterdir()
    path.write_bytes(path.read_bytes()[:-4])
    for _ in range(2):
        assert compile_all([request], cache_dir=str(tmp_path)) == first
        assert kept(tmp_path) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"source": MINIMAL + "\n"},
        {"entry": "other"},
        {"stage": "vertex", "source": "#version 450\nvoid main() {}\n"},
        {"build_options": "-DX"},
        {"build_options": "-g"},
        {"build_options": "-Os"},
        {"target": "vulkan1.1"},
        {"build_options": "--target-env vulkan1.1"},
        {"build_options": "--target-env spv1.4"},
    ],
)
def test_what_makes_another_entry(tmp_path: Path, change: dict[str, str]) -> None:
    """Each input of the module changes the entry; label and place do not."""
    base = {"source": MINIMAL}
    compile_all([CompileRequest(**base)], cache_dir=str(tmp_path))  # type: ignore[arg-type]
    compile_all([CompileRequest(**base, label="x", name="y")], cache_dir=str(tmp_path))  # type: ignore[arg-type]
    assert kept(tmp_path) == 1
    compile_all([CompileRequest(**{**base, **change})], cache_dir=str(tmp_path))  # type: ignore[arg-type]
    assert kept(tmp_path) == 2


def test_no_cache(tmp_path: Path) -> None:
    """Without the cache nothing is written."""
    assert compile_all([CompileRequest(source=MINIMAL)], cache_dir=str(tmp_path), use_cache=False)[0][:4] == MAGIC
    assert not list(tmp_path.iterdir())[1:]
    assert not (tmp_path / "shaders").exists()


def test_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A cache folder that cannot be made means work without a cache, and one line in the log."""
    (tmp_path / "file").write_text("in the way")
    folder = str(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert compile_all([CompileRequest(source=MINIMAL)], cache_dir=folder)[0][:4] == MAGIC
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["nothing is kept for the next run"]


def test_eviction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the packs used longest ago go, and so do temporary files of a process that died."""
    monkeypatch.setitem(cache_folder.KINDS, "shaders", cache_folder.KINDS["shaders"]._replace(most_files=8))
    store = ContentCache(str(tmp_path), "shaders")
    now = time.time()
    by_pack = {store.path(b"%d" % number): b"%d" % number for number in range(100)}
    keys = [*by_pack.values()][:9]
    for index, key in enumerate(keys):
        store.store(key, b"module")
        os.utime(store.path(key), (now - 1000 + index,) * 2)
    stale, fresh = Path(store.folder) / "a.tmp", Path(store.folder) / "b.tmp"
    for path in (stale, fresh):
        path.write_bytes(b"")
    os.utime(stale, (now - 7200,) * 2)
    store.evict()
    assert [store.load(key) is not None for key in keys] == [False] * 3 + [True] * 6
    assert not stale.exists()
    assert fresh.exists()


def test_a_hit_counts_as_use(tmp_path: Path) -> None:
    """A hit on an entry not used for days makes it new for eviction."""
    store = ContentCache(str(tmp_path), "shaders")
    store.store(b"key", b"module")
    old = time.time() - 3 * 86400
    os.utime(store.path(b"key"), (old, old))
    assert store.load(b"key") == b"module"
    assert os.stat(store.path(b"key")).st_mtime > old + 86400


PROGRAM = """
import sys
from scenario_runner.shaders.source import CompileRequest; from scenario_runner.shaders.compile import compile_all
source = "#version 450\\nlayout(local_size_x = %d) in;\\nvoid main() {}\\n"
modules = compile_all([CompileRequest(source=source % size) for size in (1, 2, 3)], cache_dir=sys.argv[1])
sys.stdout.buffer.write(b"".join(modules))
"""


def test_processes_share_one_folder(tmp_path: Path) -> None:
    """Processes that fill one cache at the same time all get the right modules, and the cache gives no others."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    answers = [process.communicate(timeout=120) for process in running]
    assert [errors for _, errors in answers] == [b""] * 4
    sources = [f"#version 450\nlayout(local_size_x = {size}) in;\nvoid main() {{}}\n" for size in (1, 2, 3)]
    alone = compile_all([CompileRequest(source=source) for source in sources], use_cache=False)
    assert {output for output, _ in answers} == {b"".join(alone)}
    assert all(path.suffix == ".entry" for path in (tmp_path / "shaders").iterdir())
    assert compile_all([CompileRequest(source=source) for source in sources], cache_dir=str(tmp_path)) == alone
