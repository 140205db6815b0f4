"""Checks SPIR-V modules from outside before a driver sees them: by this program's rules, then by spirv-val.

spirv-val only knows extensions older than itself. Unknown numbers are not counted as errors (`complaint`). The verdict
is cached by content, so that a module is checked once. Modules that a compiler made for this program are not checked.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from scenario_runner.errors import LimitError, SpirvError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import program_version
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.shaders.compilers.compiler_processes import Processes, work_off
from scenario_runner.shaders.compilers.search import OFF, VALIDATOR_VARIABLE, Validator, find_validator
from scenario_runner.shaders.spirv import Module, read_module

TIMEOUT_S = 30.0
# The newest environment of all versions since 2022: it accepts every SPIR-V version of Vulkan. Features for layouts and
# execution modes are checked against the device, so everything is allowed here.
OPTIONS = (
    "--target-env",
    "vulkan1.3",
    "--scalar-block-layout",
    "--workgroup-scalar-block-layout",
    "--allow-localsizeid",
)
# Rules that a Vulkan feature lifts (VK_KHR_maintenance8 and 9). Old validators have no option for it.
_LIFTED = re.compile(r"\[VUID-StandaloneSpirv-(?:Base-04781|Offset-04663|Offset-10213)\]")
# Numbers that the validator does not know: of a newer extension, or invalid.
_UNKNOWN = re.compile(r"Invalid (?P<what>opcode|[\w ]+ operand): \d")
_ERROR = re.compile(r"^error: (?:line \d+: )?(.+)", re.M)


def validator_version(validator: Validator) -> str | None:
    """Return the validator's version, such as "2023.1"; None if it prints no version."""
    try:
        done = Processes().run([validator.path, "--version"], folder=None, timeout_s=TIMEOUT_S)
    except (OSError, LimitError):
        return None
    match = re.search(r"^SPIRV-Tools v(\S{1,80})", done.output, re.M)
    return match[1] if match else None


def complaint(validator: Validator, code: bytes, processes: Processes, folder: str, *, has_extensions: bool) -> str:
    """Return the validator's error about a module; empty for a valid module, and if the validator cannot tell.

    ``folder`` must not exist yet. A number that the validator does not know is an error only in a module without
    extensions (``has_extensions``), because every newer opcode and operand belongs to an extension. Raises OSError if
    the validator cannot run, or must be ended.
    """
    path = os.path.join(folder, "module.spv")
    os.mkdir(folder)
    with open(path, "wb") as file:
        file.write(code)
    done = processes.run([validator.path, *OPTIONS, path], folder=folder, timeout_s=TIMEOUT_S)
    if done.failure:
        raise OSError(f"{validator.path} {done.failure}")
    match = _ERROR.search(done.output) if done.code else None
    if match is None or match[1].startswith("Unrecognized target env") or _LIFTED.search(done.output):
        return ""
    unknown = _UNKNOWN.match(match[1])
    if unknown is not None and (has_extensions or unknown["what"] == "capability operand"):
        return ""
    return " ".join(match[1].split())


_GOOD = b"\0"
_CODE = "SR-SHADER-013"
_HELP = f"generate the module again (spirv-val found the error; {VALIDATOR_VARIABLE}={OFF} turns it off)"


def check_modules(
    modules: Mapping[str, tuple[str, bytes]], *, cache_dir: str | None, use_cache: bool
) -> dict[str, SpirvError]:
    """Check modules from outside. Return the errors by uid.

    ``modules`` has the name for messages and the bytes of each uid. Readers of a module report unreadable modules
    again, and the rules for interfaces and layouts may find more problems in others. Raises UsageError if the validator
    in the environment does not exist.
    """
    cache = ContentCache(cache_dir, "checked") if use_cache else None
    validator = find_validator()
    # the program's version stands for the options and our own rules
    identity = repr((program_version(), validator and validator.identity)).encode("utf-8", "backslashreplace") + b"\n"
    complaints: dict[str, SpirvError] = {}
    verdicts: dict[bytes, str] = {}  # the validator's error about a module, empty if valid
    extended: dict[bytes, bool] = {}  # modules to validate, and whether they have extensions
    for uid, (name, code) in modules.items():
        if code in verdicts or code in extended:
            continue
        kept = cache.load(identity + code) if cache else None
        if kept is not None:
            verdicts[code] = "" if kept == _GOOD else kept.decode("utf-8", "replace")
            continue
        try:
            module = read_module(code, name=name)
            _check_inputs(module)
            extended[code] = bool(module.extensions)
        except SpirvError as error:
            complaints[uid] = error
    if extended:
        messages = _ask(validator, extended) if validator else dict.fromkeys(extended, "")
        verdicts.update(messages)
        if cache:
            for code, verdict in messages.items():
                cache.store(identity + code, verdict.encode() or _GOOD)
            cache.evict()
    for uid, (name, code) in modules.items():
        if verdicts.get(code):
            message = f"{name}: the module is not valid SPIR-V: {verdicts[code]:.1000}"
            complaints[uid] = SpirvError([Diagnostic(_CODE, "error", None, message, _HELP)])
    return complaints


def _check_inputs(module: Module) -> None:
    """Raise SpirvError for a compute shader with an input or output that is not built in."""
    for entry in module.entry_points:
        stage = entry.stage_interface() if entry.execution_model == "GLCompute" else None
        if stage is not None and (stage.inputs or stage.outputs or stage.problems):
            what = stage.problems[0] if stage.problems else f"{(stage.inputs or stage.outputs)[0].name!r}"
            raise SpirvError(
                f"{module.name}: the compute shader {entry.name!r:.200} has an input or output that is not built in:"
                f" {what}"
            )


def _ask(validator: Validator, modules: Mapping[bytes, bool]) -> dict[bytes, str]:
    """Ask the validator about each module, as `complaint` does, in several processes.

    A module has no entry if the validator failed.
    """
    complaints: dict[bytes, str] = {}
    processes = Processes()

    def ask(code: bytes, folder: str) -> None:
        with suppress(OSError):
            complaints[code] = complaint(validator, code, processes, folder, has_extensions=modules[code])

    with temporary_folder() as root:
        tasks = [partial(ask, code) for code in modules]
        work_off(tasks, os.path.join(root, "module"), os.cpu_count() or 1, processes)
    return complaints
