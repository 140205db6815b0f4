"""The files that a run writes: whether they can be written, and what they must not overwrite.

What is there now decides, so this is asked before every run, of plans from the plan cache too.
"""

import os
from collections.abc import Iterator

from scenario_runner.errors import FileError, SandboxError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.codec import codec_of
from scenario_runner.files.output import check_destination, marker_path
from scenario_runner.plan.plan import Plan


def wrong_destinations(plan: Plan) -> Iterator[Diagnostic]:
    """Find the problems of the files of the plan's outputs; each problem's pointer is that of the ``dst``.

    Existing files are compared by what they are, so that links and other spellings of a name do not matter.
    """
    inputs = set(map(_identity, plan.reads))
    first: dict[str, str] = {}
    pointers: dict[str, str] = {}
    for uid, path in plan.outputs:
        if path is None:
            continue
        resource = plan.resources[uid]
        pointer = f"{resource.pointer}/dst"
        if _identity(path) in inputs:
            message = f"the dst {path!r} of resource {uid!r} is a file that the scenario reads"
            yield Diagnostic("SR-FILE-003", "error", pointer, message, "choose another name: it would be overwritten")
            continue
        try:
            codec_of(path, resource.kind)
            check_destination(path)
        except SandboxError:
            continue  # the plan was not made then
        except FileError as error:
            yield from (at_pointer(problem, pointer) for problem in error.problems)
            continue
        file = os.path.realpath(path)  # a symbolic link is followed when the file is written
        if first.setdefault(file, uid) != uid:
            message = f"resources {first[file]!r} and {uid!r} have the same dst {path!r}"
            yield Diagnostic("SR-FILE-003", "error", pointer, message)
        pointers[file] = pointer
    for file in first:
        above = os.path.dirname(file)
        while above not in first and above != os.path.dirname(above):
            above = os.path.dirname(above)
        if above in first:
            below = f"lies below that of resource {first[above]!r}, which is a file"
            yield Diagnostic("SR-FILE-003", "error", pointers[file], f"the dst of resource {first[file]!r} {below}")


def mixed_outputs(plan: Plan) -> Diagnostic | None:
    """A warning where the output files are of two runs, because a process was killed while it replaced them."""
    paths = {uid: path for uid, path in plan.outputs if path is not None}
    marker = marker_path(paths.values())
    if marker is None or not os.path.lexists(marker):
        return None
    message = f"the output files are of two runs: a run was killed while it put them in place (it left {marker!r})"
    pointer = f"{plan.resources[next(iter(paths))].pointer}/dst"
    return Diagnostic("SR-FILE-005", "warning", pointer, message, "run the scenario again")


def at_pointer(problem: Diagnostic, pointer: str) -> Diagnostic:
    """The problem of a file at the place that names it."""
    return Diagnostic(problem.code, "error", pointer, f"{problem.path}: {problem.message}", problem.help)


def _identity(path: str) -> tuple[int, int] | str:
    """Device and inode of a file; its absolute path where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return status.st_dev, status.st_ino
