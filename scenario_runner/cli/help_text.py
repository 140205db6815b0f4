"""The help texts of commands with many options: the commands first, then the options by what they are about."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "device": (
        "--device",
        "--devices",
        "--list-devices",
        "--timeout",
        "--ml-emulation",
        "--disable-extension",
        "--enable-robustness-features",
        "--isolate",
    ),
    "models": ("--input", "--shader", "--push-constants"),
    "results": ("--output", "--folder-each", "--clean", "--dry-run", "--repeat", "--repeat-keep-state", "--quiet"),
    "checking": ("--strict", "--sandbox", "--validation", "--validation-report", "--validation-sync"),
    "shaders and caches": (
        "--glslang",
        "--no-cache",
        "--pipeline-caching",
        "--cache-path",
        "--clear-pipeline-cache",
        "--fail-on-pipeline-cache-miss",
    ),
    "debugging": ("--dump-after", "--dump-dir", "--dump-all", "--debug-labels", "--log-level"),
    "capture": ("--capture-dir", "--capture-frame", "--gfxr"),
    "timing and measurements": (
        "--profiling-dump-path",
        "--perf-counters-dump-path",
        "--trace",
        "--shader-instrumentation",
        "--session-memory-dump-dir",
        "--emulation-layer-profiling-dump-dir",
        "--neural-debug-database-dump-dir",
        "--neural-statistics-dump-dir",
        "--neural-statistics-mode",
    ),
    "compatibility": ("--scenario", "--wait-for-key-stroke-before-run", "--pause-on-exit"),
}


_REGROUPED = ("options", "how each scenario runs")
_FEWEST = 20  # a shorter help text needs no headings


def group_options(parser: argparse.ArgumentParser) -> None:
    """Show each option of the table under its heading, where there are many."""
    if len(parser._actions) < _FEWEST:
        return
    sources = [group for group in parser._action_groups if group.title in _REGROUPED]
    for title, options in _GROUPS.items():
        heading = parser.add_argument_group(title)
        for option in options:
            action = parser._option_string_actions.get(option)
            source = next((group for group in sources if action in group._group_actions), None)
            if action is not None and source is not None:
                source._group_actions.remove(action)
                heading._group_actions.append(action)


def with_commands(text: str, commands: Mapping[str, str]) -> str:
    """A help text with a line for each command before its arguments."""
    width = max(map(len, commands))
    lines = "".join(f"  {name:{width}}  {purpose}\n" for name, purpose in commands.items())
    return text.replace("positional arguments:\n", f"commands:\n{lines}\npositional arguments:\n", 1)
