"""The library's log records: those of `logging`, which is imported with the first one that somebody can hear.

Importing it takes a twentieth of a small run, and most runs have nothing to say.
"""

import sys
from collections.abc import Callable

_set_up: Callable[[], None] | None = None


def before_first_record(set_up: Callable[[], None]) -> None:
    """Have ``set_up`` called before the next record; it replaces the one that was given before."""
    global _set_up
    _set_up = set_up


def warning(logger: str, message: str, *arguments: object) -> None:
    """A record of the logger of this name (a module's ``__name__``)."""
    _record("warning", logger, message, arguments)


def error(logger: str, message: str, *arguments: object) -> None:
    """The same for what is wrong for certain; what ends a run is raised, not logged."""
    _record("error", logger, message, arguments)


def printed(logger: str, message: str, *arguments: object) -> None:
    """A message of a shader, of the level 45, "PRINTF": also heard where only errors are."""
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


def hears(logger: str, level: str) -> bool:
    """Return whether records of the level, "INFO" or "DEBUG", are handled: not where `logging` has not been
    imported."""
    if "logging" not in sys.modules:
        return False
    import logging  # waits for another thread that imports it

    return logging.getLogger(logger).isEnabledFor(_LEVELS[level.lower()])


def info(logger: str, message: str, *arguments: object) -> None:
    """A record for people who want to follow what is done."""
    if hears(logger, "INFO"):
        _record("info", logger, message, arguments)


def debug(logger: str, message: str, *arguments: object) -> None:
    """A record for people who look into a failure."""
    if hears(logger, "DEBUG"):
        _record("debug", logger, message, arguments)


def silence(package: str) -> None:
    """Let nothing but critical records through of a package that has made its loggers, each with a level of its own."""
    import logging

    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == package:
            logging.getLogger(name).setLevel(logging.CRITICAL)
