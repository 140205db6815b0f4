"""A shell that waits beside a run of one file, and says what was being done when a driver crashed.

A parent process costs such a run a twentieth of its time (see `supervisor`): the memory that both have after a fork is
copied piece by piece. A shell is started without that. It cannot change how the run ends, which is by the signal.

A handler in the process itself cannot do this: faulthandler writes nothing but its own lines, and Python code that runs
in a crashed process may wait forever for a lock that the driver held.
"""

from __future__ import annotations

import faulthandler
import os

from scenario_runner import progress
from scenario_runner.text import one_line

# $1 is the file (or nothing), standard input a pipe that brings a line when the run ends by itself, $2 the descriptor
# of what `progress` keeps, $3 that of what `faulthandler` says of the signal.
_SCRIPT = f"""
read -r line && exit
read -r fault </proc/self/fd/$3
case $fault in
*Segmentation*) name=SIGSEGV ;; *Abort*) name=SIGABRT ;; *Bus*) name=SIGBUS ;;
*Floating*) name=SIGFPE ;; *Illegal*) name=SIGILL ;; *) name=SIGKILL ;;
esac
tail -c +{progress.TEXT + 1} /proc/self/fd/$2 | tr '\\000' '\\n' | {{
  read -r what
  read -r pointer
  place="${{1:+$1: }}${{pointer:+$pointer: }}"
  echo "error: ${{place}}the process that ran it was ended by $name while ${{what:-starting}}" >&2
}}
"""


class Watcher:
    """Life cycle: started with the run; told that it has `ended`, or finds that its process is gone without that."""

    def __init__(self, file: str = "") -> None:
        """Nothing is watched where there is no shell, or no Linux."""
        self._held = -1
        try:
            kept, said = (os.memfd_create("scenario-runner", 0) for _ in range(2))  # 0: the shell inherits them
            read, held = os.pipe()
            progress.share(kept)
            os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT, "sh", one_line(file), str(kept), str(said)],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_CLOSE, 1)],
            )
        except (AttributeError, OSError):
            return
        os.close(read)
        self._held = held

        faulthandler.enable(said, all_threads=False)

    def ended(self) -> None:
        """The run has ended by itself."""
        try:
            if self._held >= 0:
                os.write(self._held, b"\n")
        except OSError:
            pass  # Ctrl-C ended the shell
