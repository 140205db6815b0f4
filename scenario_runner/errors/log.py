"""The library's log records. The first record that a handler wants imports `logging`.

The import takes a twentieth of a small run, and most runs log nothing.
"""

import sys
from collections.abc import Callable

_set_up: Callable[[], None] | None = None


def before_first_record(set_up: Callable[[], None]) -> None:
    """Call ``set_up`` before the next record. A later call of this function replaces ``set_up``."""
    global _set_up
    _set_up = set_up


def warning(logger: str, message: str, *arguments: object) -> None:
    """Log at WARNING level. ``logger`` is a module name."""
    _record("warning", logger, message, arguments)


def error(logger: str, message: str, *arguments: object) -> None:
    """Log at ERROR level. Errors that end a run are raised instead."""
    _record("error", logger, message, arguments)


def printed(logger: str, message: str, *arguments: object) -> None:
    """Log a message of a shader at the level PRINTF (45), above ERROR."""
    _record("printf", logger, message, arguments)


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "printf": 45}


def _record(level: str, logger: str, message: str, arguments: tuple[object, ...]) -> None:
    global _set_up
    import logging

    if _set_up is not None:
        set_up, _set_up = _set_up, None
        set_up()
    logging.addLevelName(_LEVELS["printf"], "PRINTF")
    logging.getLogger(logger).log(_LEVELS[level], message, *arguments)


def is_enabled(logger: str, level: str) -> bool:
    """Return whether anything handles records of the level "INFO" or "DEBUG". Nothing does without `logging`."""
    if "logging" not in sys.modules:
        return False
    import logging  # another thread may still import it

    return logging.getLogger(logger).isEnabledFor(_LEVELS[level.lower()])


def info(logger: str, message: str, *arguments: object) -> None:
    """Log at INFO level."""
    if is_enabled(logger, "INFO"):
        _record("info", logger, message, arguments)


def debug(logger: str, message: str, *arguments: object) -> None:
    """Log at DEBUG level."""
    if is_enabled(logger, "DEBUG"):
        _record("debug", logger, message, arguments)


def silence(package: str) -> None:
    """Let the existing loggers of a package pass critical records only."""
    import logging

    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == package:
            logging.getLogger(name).setLevel(logging.CRITICAL)
