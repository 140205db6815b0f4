"""SPIR-V modules from outside, checked before a driver sees them: our own rules first, then spirv-val where it is.

Modules that a compiler made for this program are not looked at. What was found is kept by content, so that a module is
checked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.content_cache import ContentCache
from scenario_runner.errors import Problem, SpirvError
from scenario_runner.shaders.spirv_val import OFF, VARIABLE, find_validator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.shaders.spirv_val import Validator

_FORMAT = 1  # part of every key; raise it when a check is added
_GOOD = b"\0"
_MAX_ENTRIES = 4096
_MAX_TOTAL_BYTES = 64 << 20
_HELP = f"make the module again; spirv-val says so, and {VARIABLE}={OFF} leaves it out"


def check_modules(
    modules: Mapping[str, tuple[str, bytes]], *, cache_dir: str | None, use_cache: bool
) -> dict[str, SpirvError]:
    """The errors of those that are invalid. ``modules`` are the names for messages and the bytes, by uid.

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
    unknown: dict[str, tuple[str, bytes]] = {}
    for uid, (name, code) in modules.items():
        kept = cache.load(identity + code) if cache else None
        if kept is None:
            unknown[uid] = name, code
        elif kept != _GOOD:
            errors[uid] = _refused(name, kept.decode("utf-8", "replace"))
    if not unknown:
        return errors
    left = {}
    for uid, (name, code) in unknown.items():
        try:
            left[uid] = code, _has_extensions(name, code)
        except SpirvError as error:
            errors[uid] = error  # found again as fast as it is read
    said = _ask(validator, left) if validator and left else {}
    for uid, (code, _) in left.items():
        complaint = said.get(uid, "")
        if complaint:
            errors[uid] = _refused(unknown[uid][0], complaint)
        if cache:
            cache.store(identity + code, complaint.encode() if complaint else _GOOD)
    if cache:
        cache.evict()
    return errors


def _has_extensions(name: str, code: bytes) -> bool:
    """Whether a module that is right by our own rules declares extensions. Raises SpirvError."""
    from scenario_runner.spirv import read_module
    from scenario_runner.spirv.ids import check_ids

    module = read_module(code, name=name)
    check_ids(module.source)
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


def _ask(validator: Validator, modules: Mapping[str, tuple[bytes, bool]]) -> dict[str, str | None]:
    """What the validator says of each, as `complaint` does; some processes side by side."""
    import os
    import tempfile
    from functools import partial

    from scenario_runner.shaders.compile import work_off
    from scenario_runner.shaders.process import Processes
    from scenario_runner.shaders.spirv_val import complaint

    said: dict[str, str | None] = {}
    processes = Processes()

    def ask(uid: str, folder: str) -> None:
        code, has_extensions = modules[uid]
        said[uid] = complaint(validator, code, has_extensions=has_extensions, folder=folder, processes=processes)

    with tempfile.TemporaryDirectory(prefix="scenario-runner-", ignore_cleanup_errors=True) as root:
        tasks = [partial(ask, uid) for uid in modules]
        work_off(tasks, os.path.join(root, "module"), os.cpu_count() or 1, processes)
    return said


def _refused(name: str, complaint: str) -> SpirvError:
    message = f"{name}: the module is not valid SPIR-V: {complaint:.1000}"
    return SpirvError([Problem(message, help=_HELP, code="SR-SHADER-013")])
