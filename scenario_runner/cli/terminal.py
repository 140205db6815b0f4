"""Colours and pictures on a terminal. `rich` takes long to import, so only output on a terminal imports this module."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from scenario_runner.errors.text import Span, visible


class _Styled:
    """A standard stream for `rich`. Terminal.render has already escaped the text, so the stream must not."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.write = stream.write_styled

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Terminal(Console):
    """A rich console that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        file: Any = _Styled(stream) if hasattr(stream, "write_styled") else stream
        super().__init__(file=file)

    @property
    def shows_pictures(self) -> bool:
        """True if the terminal has colours and Unicode block characters."""
        has_blocks = self.encoding.lower().startswith("utf")
        return has_blocks and self.color_system is not None and not self.no_color

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        for text, style, control in super().render(*arguments, **options):
            yield Segment(text if control else visible(text), style, control)

    def show(self, *spans: Span) -> None:
        """Print texts without separators, then a line feed. Texts may contain line feeds."""
        self.print(Text.assemble(*spans), soft_wrap=True)

    def live(self, rows: Callable[[], Iterable[Iterable[Span]]]) -> Live:
        """Keep rows below all other lines. A few times a second, ``rows`` is called again."""

        def picture() -> Group:
            return Group(*(Text.assemble(*row, no_wrap=True, overflow="ellipsis") for row in rows()))

        return Live(get_renderable=picture, console=self, transient=True, redirect_stdout=False, redirect_stderr=False)
