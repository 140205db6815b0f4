"""``python -m scenario_runner`` and the ``scenario-runner`` command."""

from __future__ import annotations

import os
import sys

from scenario_runner.cli import main


def console() -> None:
    """Run the command line and end the process.

    The interpreter's own tear-down is skipped: every device object and file is closed by now, and freeing all modules
    one by one takes longer than a small scenario.
    """
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    os._exit(code)


if __name__ == "__main__":
    console()
