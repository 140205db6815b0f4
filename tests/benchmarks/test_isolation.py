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
    assert out.count("(200 Pass)") == 5
    assert "(198 Pass, 2 Crash)" in out
    assert "1 Timeout" in out


def test_nothing_is_measured_where_results_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that do not run give no rate: the benchmark says what they gave instead, and fails."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", "")
    monkeypatch.setenv("SCENARIO_RUNNER_GLSLANG", "no-such-compiler")
    with pytest.raises(SystemExit, match=r"^error: workers: 200 MissingTool, expected 200 Pass: .*no-such-compiler"):
        main(["--quick"])
