"""Files named by a scenario, for code before planning."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from scenario_runner.errors import FileError, ScenarioRunnerError
from scenario_runner.errors.text import Json, reason_of
from scenario_runner.files.codec_table import CODECS
from scenario_runner.files.input import SourceFile
from scenario_runner.files.json_text import LimitError
from scenario_runner.files.output import marker_path
from scenario_runner.files.parameters import replaced
from scenario_runner.files.sandbox import allows
from scenario_runner.run.output_files import file_key
from scenario_runner.shaders.source import Language, parse_build_options

_WRITTEN: Final = ("buffer", "tensor", "image")
"""The resource kinds that may have a ``dst``."""
_BOUNDARIES: Final = ("mark_boundary", "frame_boundary")


class NamedFiles(NamedTuple):
    """A scenario's files. ``writes`` and ``reads`` are paths, and ``captures`` are (number of the frame, uid).

    ``include_dirs`` are the folders for shader includes. ``texts`` are shader sources inside the scenario.
    """

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    captures: frozenset[tuple[int, str]] = frozenset()
    include_dirs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def on_disk(self) -> list[str]:
        """Return the existing output files, recognized by their content. The scenario's inputs are left out."""
        inputs = {file_key(path) for path in self.reads}
        return [
            path
            for path in dict.fromkeys(self.writes)
            if allows(path) and _holds_output(path) and file_key(path) not in inputs
        ]

    def remove(self) -> None:
        """Remove the output files. Raise FileError."""
        for path in self.on_disk():
            try:
                os.unlink(os.path.realpath(path))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise FileError(f"{path}: cannot be removed: {reason_of(error)}") from error
        marker = marker_path(self.writes)
        if marker is not None and allows(os.path.dirname(marker)):
            with suppress(OSError):
                os.unlink(marker)


def named_files(
    text: str | bytes, base_dir: str, output_dir: str | None = None, parameters: Mapping[str, Json] | None = None
) -> NamedFiles:
    """Return the files for a scenario with this text and these parameters. Relative paths start from ``base_dir``.

    A wrong text names no files, and a run reports the errors. Bytes already hold the values of parameters.
    """
    if isinstance(text, str):
        with suppress(LimitError):
            text = replaced(text, parameters or {})
    try:
        tree: Json = json.loads(text)
        resources, commands = tree["resources"], tree.get("commands", ())
        bodies = [(kind, body) for entry in resources for kind, body in entry.items() if isinstance(body, dict)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return NamedFiles()
    target = base_dir if output_dir is None else output_dir
    sources = [body.get("src") for _, body in bodies]
    destinations = [body.get("dst") for kind, body in bodies if kind in _WRITTEN]
    return NamedFiles(
        tuple(os.path.join(target, path) for path in _paths(destinations)),
        tuple(os.path.join(base_dir, path) for path in _paths(sources)),
        _captures(commands),
        tuple(folder for kind, body in bodies if kind == "shader" for folder in _include_dirs(body, base_dir)),
        tuple(text for source in sources if isinstance(source, dict) for text in _lines(source.get("text"))),
    )


def _paths(values: Iterable[object]) -> Iterator[str]:
    """Yield the values that can be file names."""
    for value in values:
        if value and isinstance(value, str) and "\0" not in value:
            with suppress(ValueError):
                os.fsencode(value)
                yield value


def _lines(text: Json) -> list[str]:
    """Return the strings in a list, or a string alone."""
    return [line for line in (text if isinstance(text, list) else [text]) if isinstance(line, str)]


def _include_dirs(body: Mapping[str, object], base_dir: str) -> Iterator[str]:
    """Yield the folders where a compiler searches includes."""
    yield from (os.path.join(base_dir, folder) for folder in _paths(_lines(body.get("include_dirs"))))
    options = body.get("build_options")
    if isinstance(options, str) and "-I" in options:
        with suppress(ScenarioRunnerError):
            is_hlsl = body.get("type") == "HLSL" or str(body.get("src")).lower().endswith(".hlsl")
            language: Language = "HLSL" if is_hlsl else "GLSL"
            yield from _paths(parse_build_options(options, base_dir, language).include_dirs)


def _captures(commands: Json) -> frozenset[tuple[int, str]]:
    """Find the captures at frame boundaries."""
    names: set[tuple[int, str]] = set()
    with suppress(TypeError, KeyError, AttributeError):  # a run reports the error
        boundaries = (command[word] for command in commands for word in _BOUNDARIES if word in command)
        for count, boundary in enumerate(boundaries):
            number = boundary.get("frame_id", count)
            names.update((number, uid) for uid in boundary["resources"])
    return frozenset(names)


def _holds_output(path: str) -> bool:
    """Return whether a file begins like an output."""
    with suppress(ScenarioRunnerError), SourceFile(path) as file:
        return file.read(16).startswith(tuple(codec.signature for codec in CODECS))
    return False
