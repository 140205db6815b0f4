"""Systems without modules and functions of Linux, such as macOS: what works there, and what is refused."""

import subprocess
import sys
from pathlib import Path

import numpy

CHECKOUT = Path(__file__).resolve().parents[2]
ADD = CHECKOUT / "scenarios" / "basics" / "add"


def called(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.robustness.other_system", *map(str, arguments)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)


def test_every_module_is_imported() -> None:
    """No module needs fcntl, resource, fork or /proc to be imported."""
    done = called()
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 200


def test_validate_and_run(tmp_path: Path) -> None:
    """Scenarios are checked and run, also several at once, which have no process of their own then."""
    done = called("validate", ADD / "scenario.json")
    assert (done.returncode, done.stderr) == (0, "")
    files = [ADD / "scenario.json", CHECKOUT / "scenarios" / "basics" / "push_constants" / "scenario.json"]
    done = called("run", *files, "--output", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(": ")[2][:3] for line in done.stdout.splitlines()] == ["ok:", "ok:"]
    (path,) = tmp_path.rglob("sum.npy")
    expected = numpy.load(ADD / "a.npy") + numpy.load(ADD / "b.npy")
    assert (numpy.load(path).view(expected.dtype) == expected).all()


def test_convert(tmp_path: Path) -> None:
    """A model is converted."""
    model = CHECKOUT / "scenarios" / "custom_shaders" / "image_model" / "model.mlir"
    done = called("convert", model, "--output", tmp_path / "model.vgf")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "model.vgf").read_bytes()[:4] == b"VGF1"


def test_suites_are_refused() -> None:
    """Suites need processes of their own: an error says so, and what runs scenarios without them."""
    done = called("test", ADD)
    assert done.returncode == 6
    assert done.stderr.splitlines() == [
        "error: running scenarios in processes of their own needs Linux",
        "  help: scenario-runner run --no-isolate FILE… runs scenarios without them, and compares nothing",
    ]
