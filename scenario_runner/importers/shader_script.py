"""A parsed script of Amber, the common form of AmberScript and VkScript.

::

    AmberScript ─▶ amber_script ─┐
                                 ├─▶ Script ─▶ script_items ─▶ scenario.json, check.json
    VkScript ────▶ vkscript ─────┘
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy

from scenario_runner.errors import FileError
from scenario_runner.errors.text import Json, close_names, did_you_mean
from scenario_runner.files.vk_formats import Format, format_named
from scenario_runner.importers.item_folders import file_error
from scenario_runner.importers.memory_layouts import Bytes, Element, Number, of_format

MOST_BYTES: Final = 1 << 30
"""The greatest size of a buffer."""
FRAMEBUFFER: Final = "framebuffer"
"""The image that pipelines without a colour attachment draw into."""
UNSUPPORTED_STAGES: Final = {
    "geometry": "geometry shaders",
    "tessellation_control": "tessellation shaders",
    "tessellation_evaluation": "tessellation shaders",
    **dict.fromkeys(
        ("ray_generation", "any_hit", "closest_hit", "miss", "intersection", "callable"), "ray tracing pipelines"
    ),
}
"""Shader stages that scenarios lack, with the reason."""
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|[(),]|#.*|\\\r?\n|\n|[^\s(),]+')

_WORD: Final = 0xFFFFFFFF
_NO_END: Final = "the END of this statement is missing"


def words_of(text: str) -> list[str]:
    """Return the words of a text without comments."""
    return [word for word in _TOKEN.findall(text) if not word.startswith(("#", "\\", "\n"))]


class Statement:
    """The words of a statement, which may continue on further lines.

    ``line`` is the number of the first line.
    """

    def __init__(self, path: str, line: int, words: list[str]) -> None:
        self.path, self.line, self._words = path, line, words

    def wrong(self, message: str) -> FileError:
        """Make the error for this line."""
        return file_error(self.path, message, "correct the script", line=self.line)

    def peek(self) -> str:
        """Return the next word; empty after the last word."""
        return self._words[0] if self._words else ""

    def word(self, meaning: str) -> str:
        """Take the next word."""
        if not self._words:
            raise self.wrong(f"{meaning} is missing")
        return self._words.pop(0).strip('"')

    def expect(self, *words: str) -> str:
        """Take the next word. Raises an error unless it is one of ``words``."""
        found = self.word(" or ".join(words))
        if found not in words:
            raise self.wrong(f"unexpected {found!r}, expected {' or '.join(words)}")
        return found

    def has(self, word: str) -> bool:
        """Take the next word if it is this word."""
        if self.peek() != word:
            return False
        self._words.pop(0)
        return True

    def known(self, table: Mapping[str, object], kind: str) -> str:
        """Take the next word, a name in a table."""
        name = self.word(f"the name of a {kind}")
        if name not in table:
            raise self.wrong(f"there is no {kind} {name!r}{did_you_mean(close_names(name, table))}")
        return name

    def rest(self) -> list[str]:
        """Take all further words."""
        words, self._words = self._words, []
        return words

    def integer(self, meaning: str, least: int = 0) -> int:
        """Take an integer from ``least`` to 1 GiB, also in hexadecimal."""
        number = self.as_integer(self.word(meaning), meaning)
        if not least <= number <= MOST_BYTES:
            raise self.wrong(f"{meaning} must be from {least} to {MOST_BYTES}, not {number}")
        return number

    def as_integer(self, word: str, meaning: str) -> int:
        """Convert a word to an integer."""
        try:
            return int(word, 16 if word.lower().startswith("0x") else 10)
        except ValueError:
            raise self.wrong(f"{meaning} must be an integer, not {word!r}") from None

    def number(self, meaning: str) -> float:
        """Take a number."""
        return self.as_number(self.word(meaning), meaning)

    def as_number(self, word: str, meaning: str) -> float:
        """Convert a word to a finite number."""
        number = self.value(word, "float64")
        if not math.isfinite(number):
            raise self.wrong(f"{meaning} must be finite, not {word!r}")
        return float(number)

    def values(self, words: list[str], element: Element) -> list[Number]:
        """Convert one word or more to numbers of elements."""
        if not words:
            raise self.wrong("there is no value")
        types = [dtype for _, dtype in element.numbers]
        return [self.value(word, types[index % len(types)]) for index, word in enumerate(words)]

    def value(self, word: str, dtype: str) -> Number:
        """Convert a word to a number of a type."""
        if not dtype.startswith("float"):
            return int(self.as_number(word, "a value")) if "." in word else self.as_integer(word, "a value")
        try:
            return float(int(word, 16) if word.lower().startswith("0x") else float(word))
        except (OverflowError, ValueError):
            raise self.wrong(f"{word!r} is not a number") from None

    def end(self) -> None:
        """Check that no word is left."""
        if self._words:
            raise self.wrong(f"unexpected {self._words[0]!r} at the end of the line")


class Lines:
    """The lines of a script as statements, without comments, and as text."""

    def __init__(self, path: str, text: str, first_line: int = 1) -> None:
        self.text, self.first_line = text, first_line
        self._path = path
        self._lines = text.splitlines()
        self._line = 0  # the number of lines that were read
        self.statements = self._read()

    def _read(self) -> Iterator[Statement]:
        while self._line < len(self._lines):
            first, text = self.first_line + self._line, self._next()
            while text.rstrip().endswith("\\") and not text.lstrip().startswith("#") and self._line < len(self._lines):
                text = text.rstrip()[:-1] + " " + self._next()
            words = words_of(text)
            if words:
                yield Statement(self._path, first, words)

    def _next(self) -> str:
        self._line += 1
        return self._lines[self._line - 1]

    def block(self, opened: Statement) -> Iterator[Statement]:
        """Yield the statements up to END."""
        opened.end()
        for row in self.statements:
            if row.has("END"):
                row.end()
                return
            yield row
        raise opened.wrong(_NO_END)

    def words_before_end(self, opened: Statement) -> list[str]:
        """Return the words up to END, which may stand on further lines."""
        words = opened.rest()
        while "END" not in words:
            further = next(self.statements, None)
            if further is None:
                raise opened.wrong(_NO_END)
            words += further.rest()
        if words.index("END") != len(words) - 1:
            raise opened.wrong("there are words after END")
        return words[:-1]

    def text_before_end(self, opened: Statement) -> str:
        """Return the lines up to END."""
        taken: list[str] = []
        while self._line < len(self._lines):
            line = self._next()
            if line.split()[:1] == ["END"]:
                return "\n".join(taken) + "\n"
            taken.append(line)
        raise opened.wrong(_NO_END)


@dataclass
class Shader:
    """A shader. ``text`` is the source, assembly (``language`` "SPIRV-ASM") or a module ("SPIRV")."""

    name: str
    stage: str
    language: str
    text: str | bytes
    target_env: str = ""
    path: str = ""


@dataclass
class Buffer:
    """A buffer or an image. A size of 0 x 0 means the size of the pipeline that draws into it."""

    name: str
    element: Element
    data: Bytes | None = None
    count: int = 0
    size: tuple[int, int] = (0, 0)
    mips: int = 1
    is_image: bool = False
    picture: str = ""
    """The path of a PNG file with the content."""

    @property
    def format(self) -> Format | None:
        """The VkFormat of an element."""
        return self.element.format


class Attached(NamedTuple):
    """A shader of a pipeline; specialization constants are pairs of id and value."""

    shader: Shader
    entry: str
    constants: tuple[tuple[int, Number], ...]


class Bound(NamedTuple):
    """A descriptor, or an array of descriptors. An offset and a size belong to each name; -1 is the whole size."""

    kind: str
    names: list[str]
    is_array: bool = False
    samplers: Sequence[str] = ()
    set: int = 0
    binding: int = 0
    lod: int | None = None
    offsets: Sequence[int] = ()
    sizes: Sequence[int] = ()

    @property
    def is_sampler(self) -> bool:
        """Return whether the names are samplers."""
        return self.kind == "sampler"

    @property
    def is_image(self) -> bool:
        """Return whether the names are images, with or without samplers."""
        return self.kind in ("storage_image", "sampled_image", "combined_image_sampler")


class VertexData(NamedTuple):
    """A vertex attribute. ``keys`` has the format, stride, offset and rate as in a scenario."""

    location: int
    buffer: str
    keys: dict[str, Json]


@dataclass
class Pipeline:
    """A pipeline with everything that is bound to it."""

    name: str
    kind: str
    shaders: dict[str, Attached] = field(default_factory=dict)
    size: tuple[int, int] = (250, 250)
    bindings: list[Bound] = field(default_factory=list)
    colors: dict[int, tuple[str, int]] = field(default_factory=dict)
    depth: str = ""
    push_constants: str = ""
    vertex_data: list[VertexData] = field(default_factory=list)
    indices: str = ""
    depth_test: dict[str, Json] | None = None
    state: dict[str, Json] = field(default_factory=dict)
    """Keys of draws: viewport and polygon_mode."""
    full_subgroups: set[str] = field(default_factory=set)

    @property
    def is_compute(self) -> bool:
        """Return whether the pipeline dispatches; else it draws."""
        return self.kind == "compute"


class Dispatch(NamedTuple):
    """Run a compute pipeline."""

    pipeline: Pipeline
    groups: list[int]


class Draw(NamedTuple):
    """Run a graphics pipeline. ``vertices`` are positions at location 0; otherwise the vertex data is drawn."""

    pipeline: Pipeline
    keys: dict[str, Json]
    indexed: bool = False
    vertices: tuple[float, ...] = ()


class Clear(NamedTuple):
    """Fill the attachments of a pipeline."""

    pipeline: Pipeline
    color: list[float]
    depth: float


class Copy(NamedTuple):
    """Copy the content of a buffer, to an offset in bytes."""

    source: str
    target: str
    offset: int = 0


class Tolerance(NamedTuple):
    """A tolerance of an expectation, or a percentage."""

    value: float
    is_percent: bool

    def of(self, number: float) -> float:
        """Return the tolerance around a number."""
        return abs(number) * self.value / 100 if self.is_percent else self.value


class Values(NamedTuple):
    """Expect values in a buffer, from an offset in bytes on."""

    buffer: str
    offset: int
    values: list[Number]
    element: Element
    tolerance: Tolerance | None = None
    line: int = 0


class Texels(NamedTuple):
    """Expect a colour in a rectangle of an image; without alpha it has three values."""

    buffer: str
    rect: tuple[int, int, int, int]
    color: list[float]
    tolerances: list[Tolerance]
    scale: float
    """The unit of the tolerances: 1/255 in AmberScript."""
    line: int = 0


class SameContent(NamedTuple):
    """Expect the content of another buffer, or a similar content by a metric."""

    buffer: str
    other: str
    metric: tuple[str, float] | None = None


Command = Dispatch | Draw | Clear | Copy | Values | Texels | SameContent


@dataclass
class Script:
    """A script. ``samplers`` have the keys of images."""

    path: str
    shaders: dict[str, Shader] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    samplers: dict[str, dict[str, Json]] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    virtual_files: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    """The paths of all files that the script names."""
    features: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)

    def add_buffer(self, name: str, element: Element, data: bytes) -> None:
        """Add a buffer with content."""
        content = numpy.frombuffer(data, numpy.uint8)
        self.buffers[name] = Buffer(name, element, content, len(data) // element.size_bytes)

    def buffer_name(self, row: Statement) -> str:
        """Read the name of a buffer, or the name of the default framebuffer."""
        if row.peek() == FRAMEBUFFER:
            self.buffers.setdefault(FRAMEBUFFER, framebuffer())
        return row.known(self.buffers, "buffer")

    def pipeline(self, row: Statement) -> Pipeline:
        """Read the name of a pipeline."""
        return self.pipelines[row.known(self.pipelines, "pipeline")]


def framebuffer(format: str = "B8G8R8A8_UNORM", name: str = FRAMEBUFFER) -> Buffer:
    """Make the image for pipelines without an attachment."""
    return Buffer(name, of_format(format_named(f"VK_FORMAT_{format}")), is_image=True)


def empty_fragment_shader() -> Shader:
    """Make the fragment shader for pipelines without one."""
    return Shader("no_fragment_shader", "fragment", "GLSL", "#version 450\nvoid main() {}\n")


def module_of(row: Statement, words: list[str]) -> bytes:
    """Convert hexadecimal words to a SPIR-V module."""
    return numpy.array([row.as_integer(word, "a word of the module") & _WORD for word in words], "<u4").tobytes()


def passthrough(name: str) -> Shader:
    """Make the vertex shader that copies the position at location 0."""
    text = "#version 450\nlayout(location = 0) in vec4 position;\nvoid main() { gl_Position = position; }\n"
    return Shader(name, "vertex", "GLSL", text)
