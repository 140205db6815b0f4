"""The benchmark of workers does what it measures."""

from __future__ import annotations

import pytest

from benchmarks.isolation import main


@pytest.mark.heavy
def test_quick(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list runs to its end: the plain one passes, and of the others all but what crashes or hangs."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", "")
    assert main(["--quick"]) == 0
    out = capsys.readouterr().out
    assert out.count("(200 Pass)") == 2
    assert "(198 Pass, 2 Crash)" in out
    assert "1 Timeout" in out
