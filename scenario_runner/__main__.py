"""``python -m scenario_runner`` and the ``scenario-runner`` command."""

import _signal  # type: ignore[import-not-found]  # see signals.py
import os
import sys

_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000


def console() -> None:
    """Run the command line and end the process.

    ``os._exit`` skips the tear-down of the interpreter: all device objects and files are closed, and freeing modules
    takes longer than a small scenario. The garbage collector runs seldom, since imported modules stay in use.
    """
    # during imports, Python's handler would print a traceback
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    import gc

    from scenario_runner.cli import console, main
    from scenario_runner.processes import signals

    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    console.set_up_streams()
    try:
        signals.handle(signals.interrupt)
        code = main()
    except KeyboardInterrupt:  # outside of main
        code = signals.exit_code()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # the caller closed it
                stream.flush()
        except OSError as error:
            code = code or 1
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                os.write(2, f"error: standard output cannot be written: {error.strerror}\n".lower().encode())
    os._exit(code)


if __name__ == "__main__":
    console()
