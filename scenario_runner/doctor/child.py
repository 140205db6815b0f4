"""One `probe` in a process of its own, bounded in time and output: its crash is a fact, not the end of the report."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from scenario_runner import system_limits
from scenario_runner.errors import LimitError

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
        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._output = _Reader(_FACTS_BYTES)
        self._messages = _Reader(_MESSAGES_BYTES)
        self._process: subprocess.Popen[bytes] | None = None
        self._refused = ""
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "scenario_runner.doctor.probe", json.dumps(dict(request))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, "PYTHONPATH": path},
                start_new_session=True,
            )
        except OSError as error:
            self._refused = f"could not be started ({(error.strerror or str(error)).lower()})"
            return
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            self._output.start(self._process.stdout)
            self._messages.start(self._process.stderr)
        except LimitError as error:
            self.stop()
            self._process = None
            self._refused = f"could not be read: {error}"

    def finish(self) -> Outcome:
        """Wait until it ends, or kill it when its time is over."""
        if self._process is None:
            return Outcome({}, "starting the process", self._refused)
        failure, name, timed_out = "", None, False
        try:
            code = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            failure, timed_out = f"did not finish within {self._timeout_s:g} s", True
        else:
            if code < 0:
                name = _signal_name(-code)
                failure = f"was ended by {name}"
            elif code:
                failure = f"ended with exit code {code}"
        self.stop()
        facts, step = _parse(self._output.text())
        if not failure and "done" not in facts:
            failure = "ended early"
        messages = [line.rstrip() for line in self._messages.text().splitlines() if line.strip()]
        return Outcome(facts, step, failure, name, timed_out, messages[:_MESSAGES_LINES])

    def stop(self) -> None:
        """End the process and whatever it started; doing so again does nothing."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            elif self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
