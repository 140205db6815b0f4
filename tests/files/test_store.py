"""Where the files of a scenario are looked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.image_file import write_image
from scenario_runner.files.store import Store
from scenario_runner.formats import format_named


def test_names_start_from_their_folder() -> None:
    """Sources are relative to the scenario, results to the output folder; absolute names stay as they are."""
    store = Store("scenario", "output")
    assert store.source_path("data/a.npy") == "scenario/data/a.npy"
    assert store.destination_path("b.npy") == "output/b.npy"
    assert store.source_path("/data/a.npy") == "/data/a.npy"
    assert store.destination_path("/data/b.npy") == "/data/b.npy"


def test_all_missing_sources_are_one_error(tmp_path: Path) -> None:
    """Every missing file is reported at once, with the uid that reads it."""
    (tmp_path / "there.npy").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    store = Store(str(tmp_path), str(tmp_path))
    store.check_sources([("a", "there.npy")])
    with pytest.raises(FileError) as caught:
        store.check_sources([("a", "there.npy"), ("b", "gone.npy"), ("c", "folder"), ("d", "nul\0.npy")])
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/gone.npy: source file does not exist, but 'b' reads it",
        f"{tmp_path}/folder: the source of 'c' is a folder, expected a file",
        f"{tmp_path}/nul\0.npy: source file does not exist, but 'd' reads it",
    ]


def test_sources_are_opened(tmp_path: Path) -> None:
    """Arrays and images are found beside the scenario."""
    np.save(tmp_path / "a.npy", np.arange(3, dtype="<u4"))
    write_image(tmp_path / "a.dds", format_named("VK_FORMAT_R8_UINT"), 2, 1, [b"xy"])
    store = Store(str(tmp_path), str(tmp_path / "out"))
    with store.open_npy("a", "a.npy") as reader:
        assert reader.header.shape == (3,)
    with store.open_image("b", "a.dds", format_named("VK_FORMAT_R8_UINT"), 2, 1) as image:
        assert image.level_size_bytes() == 2
    with pytest.raises(FileError, match=r"gone\.npy: source file does not exist, but 'a' reads it"):
        store.open_npy("a", "gone.npy")
    with pytest.raises(FileError, match=r"gone\.dds: source file does not exist, but 'b' reads it"):
        store.open_image("b", "gone.dds", format_named("VK_FORMAT_R8_UINT"), 2, 1)


def test_the_store_imports_no_image_codec() -> None:
    """A scenario without images pays for none."""
    code = (
        "import sys, scenario_runner.files.store\n"
        "assert not {'numpy', 'imageio', 'scenario_runner.files.dds', 'scenario_runner.formats'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
