"""``python -m scenario_runner`` and the ``scenario-runner`` command."""

import gc
import os
import sys
from typing import Any

from scenario_runner import signals

_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000


def console() -> None:
    """Run the command line and end the process.

    The interpreter's own tear-down is skipped: every device object and file is closed by now, and freeing all modules
    one by one takes longer than a small scenario. Garbage is looked for seldom: what is imported stays in use.
    """
    signals.handle(signals.END)  # Python's own handler would show a traceback of the imports that it struck
    from scenario_runner.cli import main, messages
    from scenario_runner.cli.supervisor import supervised

    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    messages.set_up_streams()
    try:
        code = supervised(main)
    except KeyboardInterrupt:  # before main or after it
        code = signals.exit_code()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed by whoever started us
                stream.flush()
        except OSError as error:
            code = code or 1
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                os.write(2, f"error: standard output cannot be written: {error.strerror}\n".lower().encode())
    os._exit(code)


def resume(connection: None, *state: Any) -> None:
    """Run the command line in a child that was spawned."""
    from scenario_runner.cli import supervisor

    supervisor.resume(*state)
    console()


if __name__ == "__main__":
    console()
