"""One `probe` in a process of its own, bounded in time and output: its crash is a fact, not the end of the report."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from scenario_runner import system_limits
from scenario_runner.errors import LimitError
from scenario_runner.program import Program

_FACTS_BYTES = 64 << 20
_MESSAGES_BYTES = 256 << 10
_MESSAGES_LINES = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a probe said. ``failure`` says how the process ended when it did not end well, after announcing ``step``."""

    facts: Mapping[str, list[Any]]
    step: str
    failure: str = ""
    signal: str | None = None
    timed_out: bool = False
    messages: list[str] = field(default_factory=list)

    def first(self, key: str) -> Any:
        """The first fact of this name, or None."""
        return next(iter(self.facts.get(key, ())), None)

    @property
    def problem(self) -> str:
        """One sentence for an error that was reported or a bad end; ``""`` when all went well."""
        if self.failure:
            return f"the process {self.failure} in the step: {self.step}"
        error = self.first("error")
        return error["message"] if error else ""


class Child:
    """A running probe: started at once, read in the background, `finish` waits for it."""

    def __init__(self, request: Mapping[str, Any], *, timeout_s: float, environment: Mapping[str, str]) -> None:
        self._output = _Reader(_FACTS_BYTES)
        self._messages = _Reader(_MESSAGES_BYTES)
        self._program: Program | None = None
        self._refused = ""
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        try:
            self._program = Program(
                [sys.executable, "-P", "-m", "scenario_runner.doctor.probe", json.dumps(dict(request))],
                timeout_s,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, "PYTHONPATH": path},
            )
        except OSError as error:
            self._refused = f"could not be started ({(error.strerror or str(error)).lower()})"
            return
        except LimitError as error:
            self._refused = f"could not be started: {error}"
            return
        assert self._program.stdout is not None
        assert self._program.stderr is not None
        try:
            self._output.start(self._program.stdout)
            self._messages.start(self._program.stderr)
        except LimitError as error:
            self.stop()
            self._program = None
            self._refused = f"could not be read: {error}"

    def finish(self) -> Outcome:
        """Wait until it ends, or its time is over."""
        program = self._program
        if program is None:
            return Outcome({}, "starting the process", self._refused)
        code = program.wait()
        facts, step = _parse(self._output.text())
        messages = [line.rstrip() for line in self._messages.text().splitlines() if line.strip()]
        self.stop()
        failure = program.failure or (f"ended with exit code {code}" if code else "")
        if not failure and "done" not in facts:
            failure = "ended early"
        name = None if program.timed_out or code >= 0 else failure.removeprefix("was ended by ")
        return Outcome(facts, step, failure, name, program.timed_out, messages[:_MESSAGES_LINES])

    def stop(self) -> None:
        """End the process and whatever it started; doing so again does nothing."""
        if self._program is not None:
            self._program.end()


class _Reader:
    """Reads a pipe to its end on a thread and keeps the first bytes of it."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._thread: threading.Thread | None = None

    def start(self, stream: IO[bytes]) -> None:
        self._thread = threading.Thread(target=self._drain, args=(stream,), daemon=True)
        system_limits.start(self._thread)

    def text(self) -> str:
        """What was read; a process that holds the pipe beyond its parent's end is not waited for."""
        if self._thread is not None:
            self._thread.join(1.0)
        return b"".join(self._chunks)[: self._limit_bytes].decode("utf-8", "replace")

    def _drain(self, stream: IO[bytes]) -> None:
        size = 0
        with contextlib.suppress(OSError, ValueError), stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                if size < self._limit_bytes:
                    self._chunks.append(chunk)
                    size += len(chunk)


def _parse(text: str) -> tuple[dict[str, list[Any]], str]:
    """Facts by name, and the last step; a line that was cut off is left out."""
    facts: dict[str, list[Any]] = {}
    step = "starting the process"
    for line in text.splitlines():
        try:
            key, value = json.loads(line)
        except (ValueError, TypeError):
            continue
        if key == "step":
            step = str(value)
        else:
            facts.setdefault(str(key), []).append(value)
    return facts, step
