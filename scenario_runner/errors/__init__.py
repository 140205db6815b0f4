"""The errors that this program raises on purpose, each with an exit code.

    ScenarioRunnerError               1   the program failed
    ├── UsageError                    2   the command line or the API call cannot be understood
    ├── ScenarioError                 3   the scenario is wrong: syntax, shape, references, contradictions
    │   └── ExpectationError          3   the expectations for a scenario are wrong, or do not fit the scenario
    │       └── MetricPackageError    3   (MissingToolError) a metric's package is not installed
    ├── FileError                     4   a file that the scenario names cannot be read, used or written
    │   └── MissingFileError          4   the file does not exist (also a FileNotFoundError)
    ├── ShaderError                   5   a shader cannot be used
    │   ├── CompileError              5   the shader compiler refused the source
    │   ├── CompilerNotFoundError     5   (MissingToolError) no compiler for this language was found
    │   └── SpirvError                5   the bytes are not a valid SPIR-V module
    ├── UnsupportedError              6   valid, but this program or this device cannot do it (a skip, not a failure)
    │   └── MissingPackageError       6   (MissingToolError) a package or a layer is not installed
    ├── DeviceError                   7   the Vulkan driver failed
    │   ├── NoDeviceError             8   no loader, no driver, or no device as requested
    │   ├── OutOfMemoryError          9   the device or the host lacks memory for an allocation
    │   ├── FenceTimeoutError        10   the submitted work did not finish in time
    │   ├── DeviceLostError          11   the driver reports the device as lost
    │   └── DriverCrashError         12   a signal ended the process, such as SIGSEGV in the driver
    ├── ValidationLayerError         13   the Vulkan validation layer reported errors
    ├── SandboxError                 14   the scenario wants to read or write outside of the sandbox
    ├── LimitError                   15   the system refuses this process another thread or process
    ├── PipelineCacheMissError       16   --fail-on-pipeline-cache-miss: a pipeline did not come from the cache
    └── MissingToolError             17   `test`: items could not run, because this machine lacks a tool

An interrupted run (Ctrl-C) stays a KeyboardInterrupt. The command line treats SIGTERM and SIGHUP as interrupts too. The
exit code is then 128 plus the signal number: 130, 143, 129. Any other exception is a defect and ends with 70.

Messages are in lower case, quote values with ``repr`` and begin with the place, if it is known:
``path:line:column: /json/pointer: message``. One error reports all problems of a file together.
"""

from __future__ import annotations

from collections.abc import Iterable
from errno import ENOENT
from typing import ClassVar, Final

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import close_files_help, reason_of

INTERNAL_ERROR_EXIT_CODE: Final = 70  # EX_SOFTWARE of sysexits.h

# A code or code family → the error class, which has the exit code.
_CLASSES: Final[dict[str, type[ScenarioRunnerError]]] = {}


class ScenarioRunnerError(Exception):
    """The base of this program's errors.

    ``problems`` has at least one `Diagnostic`. The process ends with ``exit_code``. ``code`` is the default code of
    messages. Diagnostics with a code or family in ``codes`` become errors of this class, too.
    """

    exit_code = 1
    code: ClassVar[str]
    codes: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        named = f"{vars(cls).get('code', '')} {vars(cls).get('codes', '')}"
        _CLASSES.update(dict.fromkeys(named.split(), cls))

    def __init__(
        self, message: str | Diagnostic | Iterable[Diagnostic], *, help: str | None = None, code: str | None = None
    ) -> None:
        if isinstance(message, str):
            message = Diagnostic(code or self.code, "error", None, message, help)
        self.problems: tuple[Diagnostic, ...] = (message,) if isinstance(message, Diagnostic) else tuple(message)
        super().__init__(message)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def __reduce__(self) -> tuple[type[ScenarioRunnerError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.problems,)

    def at(
        self, *, path: str | None = None, line: int | None = None, pointer: str | None = None
    ) -> ScenarioRunnerError:
        """Add a place to every problem without a place, and return self. Earlier places stay."""
        self.problems = tuple(
            problem._replace(
                path=path if problem.path is None else problem.path,
                line=line if problem.line is None and problem.path is None else problem.line,
                pointer=pointer if problem.pointer is None else problem.pointer,
            )
            for problem in self.problems
        )
        return self

    def of_scenario(self, path: str) -> ScenarioRunnerError:
        """Prefix problems with the scenario's path, for runs of many scenarios. Return self."""
        self.problems = tuple(_of_scenario(problem, path) for problem in self.problems)
        return self


def _of_scenario(problem: Diagnostic, path: str) -> Diagnostic:
    if problem.path is None:
        return problem._replace(path=path)
    if problem.path == path:
        return problem
    return Diagnostic(problem.code, problem.severity, None, str(problem), problem.help, path)


class UsageError(ScenarioRunnerError):
    """The command line or the API call cannot be understood."""

    exit_code = 2
    code = "SR-USAGE-001"
    codes = "SR-SUITE SR-CLUSTER SR-USAGE"


class ScenarioError(ScenarioRunnerError):
    """The scenario is wrong: syntax, shape, references or contradictions."""

    exit_code = 3
    code = "SR-JSON-005"
    codes = (
        "SR-JSON SR-REF SR-CONFLICT SR-MEMORY SR-DATA SR-FILE-003 SR-SHADER-014 SR-BIND SR-ACCESS SR-IMAGE SR-ATTACH "
        "SR-COPY SR-DRAW SR-TENSOR SR-GRAPH SR-FLOW SR-FRAME SR-PUSH SR-DISPATCH SR-HAZARD SR-CUSTOM"
    )


class ExpectationError(ScenarioError):
    """The expectations for a scenario are wrong, or do not fit the scenario."""

    code = "SR-EXPECT-003"
    codes = "SR-EXPECT"


class MissingToolError(ScenarioRunnerError):
    """This machine lacks a compiler, a layer or a Python package that can be installed.

    Suites do not count these errors as failures of the scenario."""

    exit_code = 17
    code = "SR-SUITE-016"


class MetricPackageError(ExpectationError, MissingToolError):
    """The package of a metric, or of TOSA's rules, is not installed."""

    code = "SR-EXPECT-010"


class FileError(ScenarioRunnerError):
    """A file that the scenario names cannot be read, does not fit, or cannot be written."""

    exit_code = 4
    code = "SR-FILE-001"
    codes = (
        "SR-FILE SR-GRAPH-006 SR-SUITE-006 SR-SUITE-008 SR-SUITE-010 SR-SUITE-011 SR-SUITE-014 SR-CLUSTER-005 "
        "SR-CLUSTER-006 SR-CLUSTER-008 SR-CUSTOM-030 SR-IMPORT SR-TOSA"
    )


class MissingFileError(FileError, FileNotFoundError):
    """A file does not exist. ``filename`` is the path, or None if the problems point to a place in a scenario."""

    code = "SR-FILE-006"

    def __init__(
        self, message: str | Diagnostic | Iterable[Diagnostic], *, help: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, help=help, code=code)
        self.errno = ENOENT
        first = self.problems[0]
        self.filename = first.path if first.pointer is None else None


def file_error_code(error: OSError | ValueError) -> str:
    """Return the code for an error that the operating system gave for a file."""
    return MissingFileError.code if isinstance(error, FileNotFoundError) else FileError.code


class ShaderError(ScenarioRunnerError):
    """A shader cannot be used."""

    exit_code = 5
    code = "SR-SHADER-012"
    codes = "SR-SHADER SR-STAGE SR-GRAPH-001 SR-LAYOUT SR-SPEC"


class CompileError(ShaderError):
    """The shader compiler refused the source. The message comes from the compiler, with file and line."""

    code = "SR-SHADER-010"


class CompilerNotFoundError(ShaderError, MissingToolError):
    """There is no compiler for a shader's language. The help names packages with compilers."""

    code = "SR-SHADER-011"


class SpirvError(ShaderError):
    """The bytes are not a valid SPIR-V module."""

    codes = "SR-SHADER-012 SR-SHADER-013 SR-SHADER-015 SR-GRAPH-014"


class UnsupportedError(ScenarioRunnerError):
    """The scenario is valid, but this program or this device lacks a feature. The message names the feature."""

    exit_code = 6
    code = "SR-FEATURE-002"
    codes = (
        "SR-MEMORY-003 SR-MEMORY-004 SR-MEMORY-007 SR-MEMORY-008 SR-BIND-008 SR-IMAGE-005 "
        "SR-GRAPH-007 SR-FLOW-007 SR-PUSH-004 SR-LIMIT SR-FEATURE SR-SUITE-015 SR-CLUSTER-001 "
        "SR-CUSTOM-032 SR-CUSTOM-033 SR-CUSTOM-039 SR-RUN"
    )


class MissingPackageError(UnsupportedError, MissingToolError):
    """A Python package or the ML emulation layers are not installed."""

    code = "SR-FEATURE-005"
    codes = "SR-CUSTOM-031"


class SandboxError(ScenarioRunnerError):
    """The scenario wants to read or write a file outside the sandbox."""

    exit_code = 14
    code = "SR-SANDBOX-001"
    codes = "SR-SANDBOX"


class DeviceError(ScenarioRunnerError):
    """The Vulkan driver failed. The message names the call and the VkResult."""

    exit_code = 7
    code = "SR-DEVICE-001"


class NoDeviceError(DeviceError):
    """There is no Vulkan loader, no driver, or no device as requested."""

    exit_code = 8
    code = "SR-DEVICE-002"
    codes = "SR-CLUSTER-003 SR-CLUSTER-007"


class OutOfMemoryError(DeviceError):
    """The device or the host lacks memory. The message gives the allocation's size."""

    exit_code = 9
    code = "SR-DEVICE-003"


class FenceTimeoutError(DeviceError):
    """The submitted work did not finish within the time allowed."""

    exit_code = 10
    code = "SR-DEVICE-004"


class DeviceLostError(DeviceError):
    """The driver reports the device as lost (VK_ERROR_DEVICE_LOST)."""

    exit_code = 11
    code = "SR-DEVICE-005"


class DriverCrashError(DeviceError):
    """A signal such as SIGSEGV ended the process that ran the scenario. Only the command line raises this."""

    exit_code = 12
    code = "SR-DEVICE-006"


class ValidationLayerError(ScenarioRunnerError):
    """The Vulkan validation layer reported errors in the use of Vulkan."""

    exit_code = 13
    code = "SR-DEVICE-007"


class LimitError(ScenarioRunnerError):
    """The system refuses this process another thread or process. The message names the limit."""

    exit_code = 15
    code = "SR-DEVICE-008"


class PipelineCacheMissError(ScenarioRunnerError):
    """A pipeline did not come from the pipeline cache, and --fail-on-pipeline-cache-miss requires it."""

    exit_code = 16
    code = "SR-DEVICE-009"


def error_class(code: str) -> type[ScenarioRunnerError]:
    """Return the class of error for a code. The class has the exit code."""
    return _CLASSES.get(code) or _CLASSES.get(code.rpartition("-")[0], ScenarioRunnerError)


def error_of(problems: Iterable[Diagnostic]) -> ScenarioRunnerError:
    """Make an error from diagnostics. The code of the first diagnostic decides the class."""
    diagnostics = tuple(problems)
    return error_class(diagnostics[0].code)(diagnostics)


def exit_code_of(findings: Iterable[Diagnostic]) -> int:
    """Return the exit code for the first error among findings, or 0 if there is no error."""
    return next((error_class(finding.code).exit_code for finding in findings if finding.severity == "error"), 0)


def file_error(path: str, message: str, *, help: str | None = None, code: str | None = None) -> FileError:
    """Make a `FileError` about the file ``path``."""
    return FileError(Diagnostic(code or FileError.code, "error", None, message, help, path=path))


def read_error(path: str, what: str, error: OSError | ValueError) -> Exception:
    """Make the error for an unreadable file: a MissingFileError with close names, or a FileError."""
    message, help = f"{what}: {reason_of(error)}", close_files_help(path, error)
    return error_of([Diagnostic(file_error_code(error), "error", None, message, help, path=path)])
