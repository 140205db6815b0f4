"""The files of an item: which ones, how they get into the store of another host, and where they are there."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy
import pytest

from scenario_runner.suite.cluster.host import ContentStore, Layout, Piece
from scenario_runner.suite.cluster.jobs import Job, job_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import Expected
from tests.scenes import Scene


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContentStore:
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    return ContentStore()


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_files_of_an_item(tmp_path: Path, store: ContentStore) -> None:
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
    sent = Job.of_json(json.loads(json.dumps(job_of(item, Expected("Fail")).as_json())))
    assert sent.expected == Expected("Fail")
    assert sent.absolute == ()
    contents = {path: Path(path).read_bytes() for path in sent.files}
    names = {str(Path(path).relative_to(origin)) for path in contents}
    inside = {"scenario.json", "check.json", "x.comp", "a.npy", "expected/a.npy", "two/two.glsl"}
    assert names == {f"suite/{name}" for name in inside} | {"one/one.glsl", "one/deep.glsl"}
    assert store.missing(sent.files.values())
    store.receive([Piece(hash, 0, contents[path], True) for path, hash in sent.files.items()])
    shutil.rmtree(origin)
    layout = Layout(store, str(tmp_path / "scratch"))
    placed = layout.place(sent)
    assert placed.path == f"{tmp_path}/scratch{item.path}"
    assert {path: Path(layout.here(path)).read_bytes() for path in contents} == contents
    said = {"path": placed.path, "reason": [f"{placed.expectations}: wrong"]}
    assert layout.there(said) == {"path": item.path, "reason": [f"{item.expectations}: wrong"]}
    layout.clear()
    assert not (tmp_path / "scratch").exists()


def test_a_file_in_pieces(store: ContentStore) -> None:
    """A file is there when all of it is, and only if its content has the hash."""
    data = b"abcdefgh"
    store.receive([Piece(hash_of(data), 0, data[:5], False)])
    assert store.missing([hash_of(data)]) == [hash_of(data)]
    store.receive([Piece(hash_of(data), 5, data[5:], True), Piece(hash_of(b"x"), 0, b"y", True)])
    assert store.missing([hash_of(data), hash_of(b"x")]) == [hash_of(b"x")]
    assert Path(store.path(hash_of(data))).read_bytes() == data
    assert {path.suffix for path in Path(store.path("")).parent.iterdir()} == {".content"}


def test_two_workers_of_one_host(store: ContentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sent the same file at the same time."""
    data = b"abcdefgh"
    store.receive([Piece(hash_of(data), 0, data[:5], False)])
    monkeypatch.setattr("os.getpid", lambda: -1)
    ContentStore().receive([Piece(hash_of(data), 0, data, True)])
    store.receive([Piece(hash_of(data), 5, data[5:], True)])
    assert Path(store.path(hash_of(data))).read_bytes() == data


def test_absolute_paths_that_the_host_has(tmp_path: Path, store: ContentStore) -> None:
    """A file that is named by an absolute path is taken from there, where it is the same."""
    scene = Scene(tmp_path / "suite")
    data = scene.file("../data.npy", "data")
    item = Item("a", str(scene.resource("raw_data", uid="data", src=str(data.resolve())).write()))
    job = job_of(item, Expected())
    assert job.absolute == (str(data.resolve()),)
    store.receive([Piece(hash, 0, Path(path).read_bytes(), True) for path, hash in job.files.items()])
    assert Layout(store, str(tmp_path / "scratch")).place(job).id == "a"
