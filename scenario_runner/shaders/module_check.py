"""SPIR-V modules from outside, checked before a driver sees them: our own rules first, then spirv-val where it is.

Modules that a compiler made for this program are not looked at. What was found is kept by content, so that a module is
checked once.
"""

from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.content_cache import ContentCache
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv_val import OFF, VARIABLE, find_validator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.shaders.spirv_val import Validator

_FORMAT = 1  # part of every key; raise it when a check is added
_GOOD = b"\0"
_CODE = "SR-SHADER-013"
_MAX_ENTRIES = 4096
_MAX_TOTAL_BYTES = 64 << 20
_HELP = f"generate the module again (spirv-val found the error; {VARIABLE}={OFF} turns it off)"


class Checked(NamedTuple):
    """What is wrong with modules, by uid: ``errors`` by our own rules, ``complaints`` by the validator's.

    A module with a complaint can be read, and our rules for interfaces and layouts may say more of what is wrong.
    """

    errors: dict[str, SpirvError]
    complaints: dict[str, SpirvError]


def check_modules(modules: "Mapping[str, tuple[str, bytes]]", *, cache_dir: str | None, use_cache: bool) -> Checked:
    """Check modules from outside. ``modules`` are the names for messages and the bytes, by uid.

    Raises UsageError where the validator that the environment names is not there.
    """
    cache = (
        ContentCache(cache_dir, "checked", max_entries=_MAX_ENTRIES, max_total_bytes=_MAX_TOTAL_BYTES)
        if use_cache
        else None
    )
    validator = find_validator()
    identity = repr((_FORMAT, validator and validator.identity)).encode("utf-8", "backslashreplace") + b"\n"
    errors: dict[str, SpirvError] = {}
    verdicts: dict[bytes, str] = {}  # what the validator said of a module: empty for a valid one
    extended: dict[bytes, bool] = {}  # those that it is to be asked about, and whether they have extensions
    for uid, (name, code) in modules.items():
        if code in verdicts or code in extended:
            continue
        kept = cache.load(identity + code) if cache else None
        if kept is not None:
            verdicts[code] = "" if kept == _GOOD else kept.decode("utf-8", "replace")
            continue
        try:
            extended[code] = check_module(name, code)
        except SpirvError as error:
            errors[uid] = error  # found again as fast as it is read
    if extended:
        said = _ask(validator, extended) if validator else dict.fromkeys(extended, "")
        verdicts.update(said)
        if cache:
            for code, verdict in said.items():
                cache.store(identity + code, verdict.encode() or _GOOD)
            cache.evict()
    complaints = {
        uid: SpirvError(
            [Diagnostic(_CODE, "error", None, f"{name}: the module is not valid SPIR-V: {verdicts[code]:.1000}", _HELP)]
        )
        for uid, (name, code) in modules.items()
        if verdicts.get(code)
    }
    return Checked(errors, complaints)


def check_module(name: str, code: bytes) -> bool:
    """Check a module by our own rules; returns whether it declares extensions. Raises SpirvError."""
    from scenario_runner.spirv import read_module

    module = read_module(code, name=name)
    for entry in module.entry_points:
        if entry.execution_model == "GLCompute":
            stage = entry.stage_interface()
            if stage.inputs or stage.outputs or stage.problems:
                what = stage.problems[0] if stage.problems else f"{(stage.inputs or stage.outputs)[0].name!r}"
                raise SpirvError(
                    f"{name}: the compute shader {entry.name!r:.200} has an input or output that is not built in:"
                    f" {what}"
                )
    return bool(module.extensions)


def _ask(validator: "Validator", modules: "Mapping[bytes, bool]") -> dict[bytes, str]:
    """What the validator says of each module, as `complaint` does; some processes side by side.

    Those of which it cannot tell have nothing against them. Those for which it failed are left out.
    """
    import os
    from functools import partial

    from scenario_runner.shaders.compile import work_off
    from scenario_runner.shaders.process import Processes
    from scenario_runner.shaders.spirv_val import complaint
    from scenario_runner.temporary import temporary_folder

    said: dict[bytes, str] = {}
    processes = Processes()

    def ask(code: bytes, folder: str) -> None:
        try:
            found = complaint(validator, code, has_extensions=modules[code], folder=folder, processes=processes)
        except OSError:
            return
        said[code] = found or ""

    with temporary_folder() as root:
        tasks = [partial(ask, code) for code in modules]
        work_off(tasks, os.path.join(root, "module"), os.cpu_count() or 1, processes)
    return said
