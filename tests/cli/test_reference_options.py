"""Every option of the reference runner is there."""

from __future__ import annotations

from pathlib import Path

from tests.program import Program

# The options of the released runner, by its --help.
REFERENCE = [
    "--scenario",
    "--output",
    "--profiling-dump-path",
    "--perf-counters-dump-path",
    "--pipeline-caching",
    "--clear-pipeline-cache",
    "--cache-path",
    "--fail-on-pipeline-cache-miss",
    "--emulation-layer-profiling-dump-dir",
    "--neural-debug-database-dump-dir",
    "--neural-statistics-dump-dir",
    "--neural-statistics-mode",
    "--session-memory-dump-dir",
    "--log-level",
    "--wait-for-key-stroke-before-run",
    "--pause-on-exit",
    "--dry-run",
    "--disable-extension",
    "--enable-gpu-debug-markers",
    "--repeat",
    "--capture-frame",
    "--enable-robustness-features",
    "--help",
    "--version",
]


def test_every_option_is_known(program: Program, checkout: Path) -> None:
    """An option is in the help text and in the documentation."""
    shown = program("--help").out
    page = (checkout / "docs" / "command_line.md").read_text()
    for option in REFERENCE:
        assert option in shown
        assert option in page
