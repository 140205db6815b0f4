"""Standard output and standard error: whatever is written to them is shown, and does nothing to a terminal."""

from __future__ import annotations

import io
import sys

from scenario_runner.visible import visible


class VisibleStream(io.TextIOWrapper):
    """A text stream that escapes control characters; ``styled`` is the same without that, for our own colours."""

    def write(self, text: str) -> int:
        super().write(visible(text))
        return len(text)

    @property
    def styled(self) -> Styled:
        return Styled(self)


class Styled:
    """A file for `rich`: what comes here has gone through `visible` already."""

    def __init__(self, stream: VisibleStream) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        return io.TextIOWrapper.write(self._stream, text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def set_up() -> None:
    """Replace the standard streams. One that whoever started us closed stays None."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
            # letters that the encoding lacks are escaped as well
            new = VisibleStream(
                stream.detach(), encoding, "backslashreplace", line_buffering=by_line, write_through=at_once
            )
            setattr(sys, name, new)
