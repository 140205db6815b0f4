"""The examples of models with shaders: their scripts build the committed models, and find NumPy's results."""

import runpy
import shutil
from pathlib import Path

import pytest

from scenarios.generate import HERE
from tests.left_out import VGF_LIBRARY, needs

pytestmark = needs(VGF_LIBRARY)

EXAMPLES = sorted(path.parent for path in (HERE / "custom_shaders").glob("*/build.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_script(example: Path, tmp_path: Path, shader_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script builds, converts, runs and compares. What Arm's converter makes may differ between its versions; all
    else is the committed model to the byte."""
    copy = tmp_path / example.name
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("model.*", "out", "expected"))
    runpy.run_path(str(copy / "build.py"), run_name="__main__")
    assert "largest difference from NumPy" in capsys.readouterr().out
    for name in ("model.mlir", "model.vgf") if example.name == "shaders_only" else ("model.mlir",):
        assert (copy / name).read_bytes() == (example / name).read_bytes(), name
