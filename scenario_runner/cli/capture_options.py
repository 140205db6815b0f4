"""The options of ``run`` for capture tools: RenderDoc and gfxreconstruct."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from scenario_runner.errors import FileError, UsageError

OPTIONS = ("--capture-frame", "--gfxr")


def add_capture_options(parser: argparse.ArgumentParser, given: Collection[str]) -> None:
    """Define those that are given."""
    if "--capture-frame" in given:
        parser.add_argument(
            "--capture-frame",
            nargs="?",
            const="run",
            metavar="N[,N…]",
            help="capture frames with RenderDoc, by frame id; also 'command:K' and 'run' (the default)",
        )
    if "--gfxr" in given:
        parser.add_argument("--gfxr", metavar="FILE", help="capture all Vulkan calls with gfxreconstruct into FILE")


def check_capture_options(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other. Raises UsageError.

    --capture-frame is without a value in the reference runner, so that a file may follow it.
    """
    frames, file = getattr(options, "capture_frame", None), getattr(options, "gfxr", None)
    if frames is not None and frames.lower().endswith((".json", ".vgf")):
        options.files.insert(0, frames)
        options.capture_frame = "run"
    for name, value in zip(OPTIONS, (frames, file), strict=True):
        if value is not None and options.dry_run:
            raise UsageError(f"{name} and --dry-run contradict each other", help="a dry run submits nothing to capture")
    if frames is not None and file is not None:
        raise UsageError("--capture-frame and --gfxr contradict each other", help="capture with one tool at a time")


def capture_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values as arguments of Runner; gfxreconstruct is set up. Raises UnsupportedError and FileError."""
    file = getattr(options, "gfxr", None)
    if file is not None:
        from scenario_runner.run.capture_tools import set_up_gfxreconstruct

        set_up_gfxreconstruct(file)
    frames = getattr(options, "capture_frame", None)
    if frames is None:
        return {}
    return {"capture_frame": frames, "capture_frame_dir": options.capture_dir or options.output or "."}


def check_capture_file(options: argparse.Namespace) -> int:
    """After the last instance: the exit code for a file of gfxreconstruct that is not whole, which is said; else 0."""
    file = getattr(options, "gfxr", None)
    if file is None:
        return 0
    from scenario_runner.cli.messages import show_error
    from scenario_runner.run.capture_tools import check_gfxreconstruct

    try:
        check_gfxreconstruct(file)
    except FileError as error:
        show_error(error)
        return error.exit_code
    return 0
