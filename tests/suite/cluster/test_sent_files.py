"""The files of an item: which ones, how they get into the store of another host, and where they are there."""

import hashlib
import shutil
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FileError
from scenario_runner.suite.cluster_host import Layout, check_store, kept_path, missing, receive, sent_item
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.verdicts import Expected
from tests.scenes import Scene


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    check_store()


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_files_of_an_item(tmp_path: Path, store: None) -> None:
    """Sources, what they include by include_dirs and by -I, expectations and expected files are laid out under their
    paths, without the folders that they come from."""
    origin = tmp_path / "origin"
    scene = Scene(origin / "suite")
    scene.file("../one/one.glsl", '#include "deep.glsl"')
    scene.file("../one/deep.glsl", "")
    scene.file("two/two.glsl", "")
    scene.shader("x", "#include <one.glsl>\n#include <two.glsl>", include_dirs=["../one"], build_options="-Itwo -g")
    scene.buffer("a", numpy.zeros(4, numpy.uint8), dst="out/a.npy")
    scene.file("expected/a.npy", "expected")
    scene.file("check.json", "{}")
    item = Item("suite/scenario.json", str(scene.write()), str(origin / "suite" / "check.json"))
    sent = sent_item(item, Expected())
    assert sent.absolute == ()
    contents = {path: Path(path).read_bytes() for path in sent.files}
    names = {str(Path(path).relative_to(origin)) for path in contents}
    inside = {"scenario.json", "check.json", "x.comp", "a.npy", "expected/a.npy", "two/two.glsl"}
    assert names == {f"suite/{name}" for name in inside} | {"one/one.glsl", "one/deep.glsl"}
    assert missing(sent.files.values())
    receive({hash: contents[path] for path, hash in sent.files.items()})
    shutil.rmtree(origin)
    layout = Layout(str(tmp_path / "scratch"))
    placed = layout.place(sent)
    assert placed.path == f"{tmp_path}/scratch{item.path}"
    assert {path: Path(layout.here(path)).read_bytes() for path in contents} == contents
    said = Outcome("Fail", reason=f"{placed.expectations}: wrong", diagnostics=({"path": placed.path},))
    there = Outcome("Fail", reason=f"{item.expectations}: wrong", diagnostics=({"path": item.path},))
    assert layout.there(said) == there
    layout.clear()
    assert not (tmp_path / "scratch").exists()


def test_a_file_that_changed_is_not_kept(store: None) -> None:
    """A file is kept only if its content has the hash that was asked for."""
    receive({hash_of(b"x"): b"y", hash_of(b"z"): b"z"})
    assert missing([hash_of(b"x"), hash_of(b"z")]) == [hash_of(b"x")]
    assert Path(kept_path(hash_of(b"z"))).read_bytes() == b"z"


def test_absolute_paths_that_the_host_has(tmp_path: Path, store: None) -> None:
    """A file that is named by an absolute path is taken from there, where it is the same."""
    scene = Scene(tmp_path / "suite")
    data = scene.file("../data.npy", "data")
    item = Item("a", str(scene.resource("raw_data", uid="data", src=str(data.resolve())).write()))
    sent = sent_item(item, Expected())
    assert sent.absolute == (str(data.resolve()),)
    receive({hash: Path(path).read_bytes() for path, hash in sent.files.items()})
    assert Layout(str(tmp_path / "scratch")).place(sent).id == "a"


@pytest.mark.parametrize(
    "is_absolute, code, message",
    [
        (True, "SR-CLUSTER-005", "is an absolute path, and this host has no such file with the same content"),
        (False, "SR-CLUSTER-006", "it changed while the suite ran, so that this host has not got it"),
    ],
)
def test_files_that_the_host_lacks(tmp_path: Path, store: None, is_absolute: bool, code: str, message: str) -> None:
    """A file that changed after its hash was sent is refused, with the scenario that names it or its own path."""
    scene = Scene(tmp_path / "suite")
    data = scene.file("data.npy", "data")
    scene.resource("raw_data", uid="data", src=str(data) if is_absolute else "data.npy")
    item = Item("a", str(scene.write()))
    sent = sent_item(item, Expected())
    receive({hash: Path(path).read_bytes() for path, hash in sent.files.items() if path != str(data)})
    data.write_text("changed")
    with pytest.raises(FileError) as caught:
        Layout(str(tmp_path / "scratch")).place(sent)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == (code, item.path if is_absolute else str(data))
    assert problem.message.endswith(message)


def test_a_cache_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that cannot make the folder of kept files says so before it is sent any."""
    cache = tmp_path / "cache"
    cache.write_text("no folder")
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(cache))
    with pytest.raises(FileError) as caught:
        missing([hash_of(b"x")])
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("SR-CLUSTER-008", str(cache))
