"""Messages that shaders print (debugPrintfEXT in GLSL, printf in HLSL), through the Khronos validation layer.

The layer adds code to shaders that print, and reports their messages through VK_EXT_debug_utils: older versions in
vkQueueSubmit, newer versions on another thread. Messages do not name commands, so each command is submitted alone. With
``printf_verbose``, messages name invocations. Version 1.3.239 (Debian 12) reads this setting only from a file.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from scenario_runner.errors import FileError, UsageError, log
from scenario_runner.plan.plan import Operation, Plan
from scenario_runner.processes import temporary
from scenario_runner.vulkan import Handle
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.layers import text_of, with_environment

BUFFER_BYTES: Final = 1 << 16
"""Default space for a command's messages. The layer's default has room for about 25 messages."""
LEAST_BYTES, MOST_BYTES = 64, 1 << 30

_SETTINGS_VARIABLE, _SETTINGS_FILE = "VK_LAYER_SETTINGS_PATH", "vk_layer_settings.txt"
_BUFFER_SIZE = "khronos_validation.printf_buffer_size"
_VERBOSE, _TO_STDOUT = "khronos_validation.printf_verbose", "khronos_validation.printf_to_stdout"
_WHERE = (
    r"Stage = (?P<stage>\w+)\. +(?:Global invocation ID \(x, y, z\) = \((?P<id>[^)]*)\)"
    r"|Vertex Index = (?P<vertex>\d+ Instance Index = \d+)\. |Fragment coord \(x,y\) = \((?P<coord>[^)]*)\)\. )"
)
# Messages from 1.3.239 and 1.4.309, each with printf_verbose and without.
_FORMS = (
    re.compile(
        rf"\| MessageID = \w+ \| Command buffer .*?{_WHERE} (?P<text>.*) (?:Unable to find [^\n]*"
        r"|Debug shader printf message generated (?:in file (?P<file>[^\n]*) )?at line (?P<line>\d+)\.\n.*)\Z",
        re.DOTALL,
    ),
    re.compile(
        rf"DebugPrintf:\n(?P<text>.*)\n{_WHERE}\nCommand buffer .*?"
        r"(?:Unable to [^\n]*|Debug shader printf message generated at (?P<file>[^\n]*):(?P<line>\d+)\n.*)\n\Z",
        re.DOTALL,
    ),
    re.compile(r"(?:\| MessageID = \w+ \| |DebugPrintf:\n)(?P<text>.*)\Z", re.DOTALL),
)
# From 1.4.363 on, reports about lost messages have the severity of printed messages.
_LOST = re.compile(r"[^|\n]*Debug Printf message was truncated")
_ADJUSTED = ("VALIDATION-SETTINGS", "WARNING-Setting-Limit-Adjusted")


class Printed(NamedTuple):
    """A message from a shader.

    ``command`` counts the scenario's commands from 0, and ``iteration`` the iterations of ``repeat``. ``shader`` is the
    uid, ``stage`` is "compute", "vertex" or "fragment". ``invocation`` is gl_GlobalInvocationID, the vertex and
    instance indexes, or gl_FragCoord.xy in texels. ``source`` is "file:line" in shaders with debug information. Stage,
    invocation and source are empty if the layer does not tell.
    """

    text: str
    command: int
    shader: str
    stage: str = ""
    invocation: tuple[float, ...] = ()
    source: str = ""
    iteration: int = 0

    def __str__(self) -> str:
        where = ", ".join(f"{number:g}" for number in self.invocation)
        stage = "" if self.stage in ("", "compute") else f" {self.stage}"
        place = f"{self.shader}{stage}" + (f" ({where})" if where else "")
        place += (f" in iteration {self.iteration}" if self.iteration else "") + (self.source and f", {self.source}")
        return f"/commands/{self.command}: {place}: {self.text}"


class Printer:
    """Collects the messages that shaders print in a Runner's runs.

    Life cycle: created; each instance is created within `settings`; `begin` starts a run, `begin_operation` starts an
    operation, and `receive` gets the operation's messages.
    """

    def __init__(self, buffer_bytes: int | None = None) -> None:
        """Set the space for the messages of a command, in bytes. Raises UsageError for an impossible size.

        With None, the layer's settings file decides. Without the file, the size is `BUFFER_BYTES`.
        """
        is_size = isinstance(buffer_bytes, int) and LEAST_BYTES <= buffer_bytes <= MOST_BYTES
        if buffer_bytes is not None and not is_size:
            expected = f"expected True or a number of bytes from {LEAST_BYTES} to {MOST_BYTES}"
            raise UsageError(f"printf is {buffer_bytes!r}, {expected}")
        self.messages: list[Printed] = []
        self._forced = buffer_bytes is not None
        self._size_bytes = buffer_bytes or BUFFER_BYTES
        self._plan: Any = None
        self._operation: Operation | None = None
        self._iteration = self._first = 0
        self._error: BaseException | None = None

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Make the layer of an instance created in the block read our settings after the user's own.

        The user's settings stay in force, except the target of messages. Raises FileError.
        """
        path = os.environ.get(_SETTINGS_VARIABLE, "")
        if not os.path.isfile(path):
            path = os.path.join(path, _SETTINGS_FILE)
        lines: list[str] = []
        with suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
        theirs = {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in lines}
        if not self._forced and theirs.get(_BUFFER_SIZE, "").isdecimal():
            self._size_bytes = int(theirs[_BUFFER_SIZE])
        ours = {_BUFFER_SIZE: str(self._size_bytes), _VERBOSE: theirs.get(_VERBOSE, "true"), _TO_STDOUT: "false"}
        lines = [line for line in lines if line.partition("=")[0].strip() not in ours]
        lines += [f"{key} = {value}" for key, value in ours.items()]
        try:
            folder = temporary.make_folder()
            path = os.path.join(folder, _SETTINGS_FILE)
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write("\n".join([*lines, ""]))
        except OSError as error:
            message = f"the settings of the validation layer cannot be written to a temporary file: {error.strerror}"
            raise FileError(message, help="set TMPDIR to a folder that can be written and has room") from error
        try:
            with with_environment(_SETTINGS_VARIABLE, path):
                yield
        finally:
            temporary.remove(folder)

    def begin(self, plan: Plan) -> None:
        """Begin a run."""
        self.messages = []
        self._plan = plan

    def begin_operation(self, operation: Operation | None, iteration: int) -> None:
        """Note the operation that is submitted next."""
        self._operation, self._iteration = operation, iteration
        self._first = len(self.messages)

    def end_operation(self) -> None:
        """Note that all messages of the operation have arrived. Raises the error of `keep_error`."""
        self._operation = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def keep_error(self, _kind: object, error: BaseException, _trace: object) -> None:
        """Keep an error of the messenger's callback, such as Ctrl-C, which the layer cannot pass on."""
        self._error = error

    def receive(self, severity: int, data: Handle, subject: str | None) -> bool:
        """Handle a VkDebugUtilsMessengerCallbackDataEXT. Return whether it is about printing, or of no interest.

        ``subject`` is the object that is being created. Lost messages, and shaders that cannot print, are logged as
        warnings.
        """
        name = text_of(data.pMessageIdName)
        if "DEBUG-PRINTF" not in name:
            return severity < vk.DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT or name in _ADJUSTED
        text = text_of(data.pMessage)
        if severity < vk.DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT and not _LOST.match(text):
            self._add(text)
        elif "truncated" in text:
            self._truncated()
        elif "descriptor set at slot" in text:
            reason = "its pipelines use the last descriptor set of the device, which the validation layer needs"
            log.warning(__name__, "%s: messages of the shader are not shown: %s", subject, reason)
        elif severity >= vk.DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT:
            reason = text.rpartition(" | ")[2]
            log.warning(__name__, "messages of shaders are not shown; the validation layer says: %s", reason)
        return True

    def _add(self, message: str) -> None:
        match = next(filter(None, (form.search(message) for form in _FORMS)), None)
        parts: dict[str, Any] = {"text": message} if match is None else match.groupdict()
        stage = (parts.get("stage") or "").lower()
        numbers = re.findall(r"[\d.]+", parts.get("id") or parts.get("vertex") or parts.get("coord") or "")
        source = f"{parts.get('file') or 'line'}:{parts['line']}" if parts.get("line") else ""
        printed = Printed(
            parts["text"],
            getattr(self._operation, "command", -1),
            self._shader(stage),
            stage,
            tuple(map(float, numbers)),
            source,
            self._iteration,
        )
        self.messages.append(printed)
        log.printed(__name__, "%s", printed)

    def _shader(self, stage: str) -> str:
        """Return the uid of the operation's shader in this stage; a draw needs the stage."""
        operation, plan = self._operation, self._plan
        if operation is None:
            return ""
        if operation.kind == "dispatch":
            names = plan.names.get(operation.command, ())  # if another shader has the same content
            return str(names[0] if len(names) == 1 else plan.pipelines[operation.pipeline].label)
        if operation.kind == "draw" and stage:
            return str(getattr(plan.graphics_pipelines[operation.pipeline], stage).label)
        return ""

    def _truncated(self) -> None:
        """Warn of lost messages, and suggest a sufficient size.

        The size assumes that every invocation prints as many messages as the busiest invocation, with the average size
        so far.
        """
        messages, operation, plan = self.messages[self._first :], self._operation, self._plan
        size, invocations = self._size_bytes, 0
        needed = 16 * size
        if messages and operation is not None:
            if operation.kind == "dispatch":
                pipeline = plan.pipelines[operation.pipeline]
                invocations = math.prod(operation.workgroup_count) * math.prod(pipeline.local_size)
            elif operation.kind == "draw":
                invocations = 3 + math.prod(operation.extent)
            counts = Counter((message.stage, message.invocation) for message in messages if message.invocation)
            most = max(counts.values(), default=1)
            needed = invocations * most * size // len(messages)
        enough = min(MOST_BYTES, 1 << max(needed, 2 * size).bit_length())
        place = "" if operation is None else f"/commands/{operation.command}: "
        message = "%sthe shaders print more than %d bytes, and the rest is lost; use --printf-size %d (printf=%d)"
        log.warning(__name__, message, place, size, enough, enough)
