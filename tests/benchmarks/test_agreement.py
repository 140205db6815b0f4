"""What two programs write is compared file by file."""

import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.agreement import difference, main, outputs
from benchmarks.programs import CHECKOUT

ADD = CHECKOUT / "scenarios" / "basics" / "add"


def program(path: Path, body: str) -> str:
    """A program with the reference's options."""
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_same_results_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our own program, called as the reference is, agrees with itself."""
    itself = program(
        tmp_path / "itself", 'os.execv(sys.executable, [sys.executable, "-m", "scenario_runner", *sys.argv[1:]])'
    )
    assert main(["--reference", itself, str(ADD)]) == 0
    assert "1 equal" in capsys.readouterr().out


def test_what_differs_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another result is shown with the number of bytes, and the exit code is 1."""
    zeros = program(
        tmp_path / "zeros",
        'import numpy\nnumpy.save(os.path.join(sys.argv[-1], "out", "sum.npy"), numpy.zeros(400, "i1"))',
    )
    assert main(["--reference", zeros, str(ADD)]) == 1
    output = capsys.readouterr().out
    assert "out/sum.npy: " in output
    assert "1 different" in output


def test_a_program_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where one program cannot run a scenario there is nothing to compare; what it said is shown."""
    failing = program(tmp_path / "failing", 'sys.exit("no such device")')
    assert main(["--reference", failing, str(ADD)]) == 0
    assert "only ours runs it" in (output := capsys.readouterr().out)
    assert "exit code 1: no such device" in output


def test_arrays_are_equal_whatever_their_headers(tmp_path: Path) -> None:
    """Elements, type and shape of a .npy file count, not the padding of its header; other files count byte by byte."""
    array = np.arange(4, dtype="i1")
    np.save(tmp_path / "a.npy", array)
    payload = (tmp_path / "a.npy").read_bytes()
    header = b"{'descr': '|i1', 'fortran_order': False, 'shape': (4,), }\n"
    short = payload[:8] + len(header).to_bytes(2, "little") + header + array.tobytes()
    (tmp_path / "b.npy").write_bytes(short)
    assert len(short) != len(payload)
    assert difference(tmp_path / "a.npy", tmp_path / "b.npy") == ""
    np.save(tmp_path / "c.npy", array.astype("u1"))
    assert difference(tmp_path / "a.npy", tmp_path / "c.npy") == "int8[4], the reference's uint8[4]"
    (tmp_path / "a.dds").write_bytes(payload)
    (tmp_path / "b.dds").write_bytes(payload[:-1] + b"\xff")
    assert difference(tmp_path / "a.dds", tmp_path / "b.dds") == f"1 of {len(payload)} bytes"
    assert difference(tmp_path / "a.dds", tmp_path / "none.dds") == "reference: no such file"


def test_outputs_are_found_wherever_they_are() -> None:
    """Every relative dst counts once."""
    document = {"resources": [{"buffer": {"dst": "a.npy"}}, {"image": {"dst": "b.dds"}}], "x": {"dst": "a.npy"}}
    assert outputs(document) == ["a.npy", "b.dds"]
