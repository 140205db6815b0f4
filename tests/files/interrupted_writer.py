"""Writes a set of files in one process for each moment at which a signal can strike, and checks what each leaves.

Argument: a folder. A moment is a line of the modules that write. Prints their number.
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from scenario_runner.files import cache_folder, output
from scenario_runner.processes import signals, temporary

WRITERS = {module.__file__ for module in (output, temporary, cache_folder)}
OLD = {"a": b"old"}
NEW = {"a": b"new", "x/y/b": b"new"}


def write(folder: Path) -> None:
    """Write a set of two files, one of them existing, a temporary folder, and a cache file."""
    with temporary.temporary_folder() as work:
        Path(work, "inside").touch()
    cache_folder.replace_own(str(folder.parent / "kept"), b"kept")
    with output.OutputSet() as files:
        for name in NEW:
            with files.create(folder / name, 3) as file:
                file.write(b"new")


def interrupted(folder: Path, moment: int) -> None:
    """Write, and send this process SIGTERM at a moment. Its exit code tells whether that one came."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in WRITERS:
            return None
        if event == "line":
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace

    signals.handle(signals.interrupt)
    sys.settrace(trace)
    try:
        write(folder)
    except KeyboardInterrupt:
        pass
    sys.settrace(None)
    signals.hold()
    temporary.remove_all()
    os._exit(0 if signals.arrived is None else 1)


def main() -> None:
    root = Path(sys.argv[1])
    folder, scratch = root / "files", root / "scratch"
    os.environ["TMPDIR"] = str(scratch)
    moment = 0
    came = True
    while came:
        moment += 1
        shutil.rmtree(root, ignore_errors=True)
        scratch.mkdir(parents=True)
        folder.mkdir()
        for name, content in OLD.items():
            (folder / name).write_bytes(content)
        child = os.fork()
        if not child:
            interrupted(folder, moment)
        came = os.waitpid(child, 0)[1] != 0
        left = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        folders = [path for path in folder.rglob("*") if path.is_dir()]
        assert left in (OLD, NEW), (moment, sorted(left))
        assert bool(folders) == (left == NEW), (moment, folders)
        assert list(scratch.iterdir()) == [], moment
        assert {path.name for path in root.iterdir()} <= {"files", "scratch", "kept"}, moment
    print(moment - 1)


if __name__ == "__main__":
    main()
