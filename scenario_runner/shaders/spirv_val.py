"""spirv-val, the validator of SPIRV-Tools, where it is installed: what it says of a module, in one sentence.

It knows the rules of SPIR-V and those that Vulkan adds, but only of extensions as old as itself. What it does not know
is not held against a module: see `complaint`.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import LimitError, UsageError

if TYPE_CHECKING:
    from scenario_runner.shaders.process import Processes

VARIABLE = "SCENARIO_RUNNER_SPIRV_VAL"
OFF = "off"
TIMEOUT_S = 30.0
# The newest environment that all versions since 2022 know: it takes every version of SPIR-V that Vulkan has. What a
# device must have for a layout or an execution mode is checked against the device, so everything is allowed here.
OPTIONS = (
    "--target-env",
    "vulkan1.3",
    "--scalar-block-layout",
    "--workgroup-scalar-block-layout",
    "--allow-localsizeid",
)
# Rules that a feature of Vulkan lifts (VK_KHR_maintenance8 and 9), which old versions cannot be told.
_LIFTED = re.compile(r"\[VUID-StandaloneSpirv-(?:Base-04781|Offset-04663|Offset-10213)\]")
# Numbers that the version does not know: of a newer extension, or of none.
_UNKNOWN = re.compile(r"Invalid (?P<what>opcode|[\w ]+ operand): \d")
_ERROR = re.compile(r"^error: (?:line \d+: )?(.+)", re.M)


class Validator(NamedTuple):
    """The program; ``identity`` tells two builds apart."""

    path: str
    identity: str


def find_validator() -> Validator | None:
    """The one that SCENARIO_RUNNER_SPIRV_VAL names (``off``: none), else spirv-val on PATH; None where there is none.

    Raises UsageError where the variable names no program.
    """
    named = os.environ.get(VARIABLE)
    if named == OFF:
        return None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    name = "spirv-val.exe" if os.name == "nt" else "spirv-val"
    for path in [named] if named else [os.path.join(folder, name) for folder in folders if folder]:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode) and os.access(path, os.X_OK):
            return Validator(path, f"{path} {status.st_size} {status.st_mtime_ns}")
    if named:
        raise UsageError(
            f"{VARIABLE} names {named!r}, which is not a program",
            help=f"name spirv-val by its path, unset the variable, or set it to {OFF!r}",
        )
    return None


def validator_version(validator: Validator) -> str | None:
    """Its own word, such as "2023.1"; None where it has none."""
    from scenario_runner.shaders.process import run_program

    try:
        done = run_program([validator.path, "--version"], folder=None, timeout_s=TIMEOUT_S)
    except (OSError, LimitError):
        return None
    found = re.search(r"^SPIRV-Tools v(\S{1,80})", done.output, re.M)
    return found[1] if found else None


def complaint(
    validator: Validator, code: bytes, *, has_extensions: bool, folder: str, processes: Processes | None = None
) -> str | None:
    """What the validator has against a module; empty for a valid one, None where it cannot tell.

    ``folder`` must not exist yet. A number that the validator does not know is proven wrong only in a module
    without extensions (``has_extensions``): every newer opcode and operand comes with one. Raises OSError where it
    cannot be run, or does not end by itself.
    """
    from scenario_runner.shaders.process import run_program

    path = os.path.join(folder, "module.spv")
    os.mkdir(folder)
    with open(path, "wb") as file:
        file.write(code)
    done = run_program([validator.path, *OPTIONS, path], folder=folder, timeout_s=TIMEOUT_S, processes=processes)
    if done.failure:
        raise OSError(f"{validator.path} {done.failure}")
    if done.code == 0:
        return ""
    found = _ERROR.search(done.output)
    if found is None or found[1].startswith("Unrecognized target env") or _LIFTED.search(done.output):
        return None
    unknown = _UNKNOWN.match(found[1])
    if unknown is not None and (has_extensions or unknown["what"] == "capability operand"):
        return None
    return " ".join(found[1].split())
