"""What can go wrong with the files of frames, before the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.files.existing_folder import check_folder_to_write
from scenario_runner.files.output import check_destination
from scenario_runner.plan.destinations import at_pointer
from scenario_runner.run.capture_files import CaptureNames
from scenario_runner.run.capture_manifest import MANIFEST, check_manifest

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan


def check_captures(plan: Plan, folder: str, repeat: int, outputs: dict[str, str]) -> None:
    """Refuse captures that cannot be written, or would overwrite what the scenario reads or one of its ``outputs``.

    Problems of a frame's files have the pointer of the resource. Raises FileError.
    """
    inside = os.path.join(os.path.realpath(folder), "")
    others = {os.path.realpath(path): "reads" for path in plan.reads}
    others |= {os.path.realpath(path): "has as a dst" for path in outputs.values()}
    taken = {path: why for path, why in others.items() if path.startswith(inside)}
    _refuse(os.path.join(folder, MANIFEST), "the list of captures", taken)
    check_manifest(folder)
    if os.path.lexists(folder):  # in a new folder nothing is in the way
        _check_files(plan, folder, repeat, taken)
    check_folder_to_write(folder)


def _check_files(plan: Plan, folder: str, repeat: int, taken: dict[str, str]) -> None:
    names = CaptureNames(plan, folder, repeat)
    for iteration in range(repeat):
        for frame in plan.frames:
            for uid, files in names.files(iteration, frame).items():
                for file in files:
                    if taken:
                        _refuse(file.path, f"a frame of {uid!r}", taken)
                    if not os.path.lexists(os.path.dirname(file.path)):
                        continue
                    try:
                        check_destination(file.path)
                    except FileError as error:
                        pointer = plan.resources[uid].pointer
                        error.problems = tuple(at_pointer(problem, pointer) for problem in error.problems)
                        raise


def _refuse(path: str, what: str, taken: dict[str, str]) -> None:
    why = taken.get(os.path.realpath(path)) if taken else None
    if why is not None:
        message = f"is where {what} would be written, but the scenario {why} this file"
        help = "choose another folder for captures"
        raise FileError(Diagnostic("SR-FILE-001", "error", None, message, help, path=path))
