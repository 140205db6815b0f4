"""Statistics and debug databases of neural accelerators, against a layer that brings the extension."""

import struct
from pathlib import Path

import pytest

from tests.gpu.ml_scenes import mixed_model
from tests.layers import layer_from
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene

pytestmark = needs(VGF_LIBRARY)

EXTENSION = "VK_ARM_data_graph_neural_accelerator_statistics"
STATISTICS = "--neural-statistics-dump-dir"
DATABASES = "--neural-debug-database-dump-dir"


neural_layer = layer_from(Path(__file__).with_name("neural_layer.c"), [EXTENSION])


@pytest.fixture
def environment(neural_layer: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "dump").mkdir()
    return {**neural_layer, "NEURAL_LOG": str(tmp_path / "log.txt")}


@pytest.mark.parametrize("mode", [None, 0, 1])
def test_statistics(
    program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str], mode: int | None
) -> None:
    """Each graph has a file with what the accelerator wrote, for the mode that was asked for; 1 by default."""
    options = () if mode is None else ("--neural-statistics-mode", str(mode))
    ended = program(mixed_model(scene).write(), "--output", "out", STATISTICS, "dump", *options, env=environment)
    assert (ended.code, ended.err) == (0, "")
    wanted = 1 if mode is None else mode
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == [f"Graph_Pipeline_{number}_Statistics_{wanted}.bin" for number in range(2)]
    for name in names:
        content = (tmp_path / "dump" / name).read_bytes()
        assert len(content) == 256
        magic, written_mode, dispatches, submissions = struct.unpack_from("<4I", content)
        assert (magic, written_mode, dispatches) == (0x54415453, wanted + 1, 1)
        assert submissions >= 1
    log = (tmp_path / "log.txt").read_text().splitlines()
    assert [line for line in log if line.startswith("WRONG")] == []
    assert log[-1] == "device with statistics"


def test_debug_databases(program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str]) -> None:
    """Each graph has a file with its database, byte for byte; statistics are not asked for."""
    ended = program(mixed_model(scene).write(), "--output", "out", DATABASES, "dump", env=environment)
    assert (ended.code, ended.err) == (0, "")
    files = sorted((tmp_path / "dump").iterdir())
    assert [path.name for path in files] == [f"Graph_Pipeline_{number}_Debug_Database.bin" for number in range(2)]
    assert [path.read_bytes() for path in files] == [b"DEBUG\0DATABASE"] * 2


def test_a_disabled_extension(program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str]) -> None:
    """--disable-extension makes the run one that is refused, with the reason."""
    ended = program(mixed_model(scene).write(), STATISTICS, "dump", "--disable-extension", EXTENSION, env=environment)
    assert ended.code == 6
    assert "which --disable-extension turns off" in ended.err
    assert list((tmp_path / "dump").iterdir()) == []
