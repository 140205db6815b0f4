"""Scripts of Amber as items of a suite: ``scenario-runner import amber``.

AmberScript begins with ``#!amber``. All other scripts are VkScript.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from scenario_runner.errors import FileError, MissingPackageError, ScenarioRunnerError, UnsupportedError
from scenario_runner.importers import item_folders
from scenario_runner.importers.amber_script import FIRST_LINE, parse_amber_script
from scenario_runner.importers.item_folders import (
    FoundTest,
    Imported,
    Outcome,
    Prepared,
    decoded,
    read_source,
    write_not_supported,
)
from scenario_runner.importers.script import Script, Shader
from scenario_runner.importers.script_items import write_item
from scenario_runner.importers.vkscript import parse_vkscript
from scenario_runner.processes.programs import Program

EXTENSIONS: Final = (".amber", ".vkscript")
_VERSION: Final = 3  # of the files in item folders
_EXPECTED_FAILURE: Final = ".expect_fail."
_ASSEMBLER: Final = "spirv-as"
_TIMEOUT_S: Final = 60.0
_ENVIRONMENTS: Final = (("WorkgroupMemoryExplicitLayoutKHR", "spv1.4"), ("OpCapability GroupNonUniform", "spv1.3"))
"""Words in assembly with the environment that they need, for shaders that name none."""
_OLDEST_ENVIRONMENT: Final = "spv1.0"
"""Amber's environment for other shaders."""
_SPIRV_1_4: Final = "VK_KHR_spirv_1_4"


def import_scripts(tests: Sequence[FoundTest], output: str, jobs: int) -> Iterator[Imported]:
    """Write a folder of the suite ``output`` for each script, and yield the outcomes as they come."""
    return item_folders.import_tests(tests, output, jobs, _prepared)


def _prepared(test: FoundTest) -> Prepared:
    content = read_source(test.path)
    text = decoded(content).replace("\0", " ")
    script: Script | ScenarioRunnerError
    try:
        script = parse_amber_script(test.path, text) if text.startswith(FIRST_LINE) else parse_vkscript(test.path, text)
    except UnsupportedError as error:
        script = error
    except FileError as error:
        if _EXPECTED_FAILURE not in test.name:
            raise
        script = error
    hash = hashlib.sha256(f"{_VERSION} {shutil.which(_ASSEMBLER)}".encode())
    for source in [content, *(script.sources if isinstance(script, Script) else ())]:
        hash.update(hashlib.sha256(source).digest())
    return Prepared(hash.hexdigest(), partial(_write, test, script))


def _write(test: FoundTest, script: Script | ScenarioRunnerError, folder: str) -> tuple[Outcome, str]:
    expects_failure = _EXPECTED_FAILURE in test.name
    try:
        if isinstance(script, ScenarioRunnerError):
            raise script
        reason = "the suite expects a failure" if expects_failure else ""
        write_item(script, folder, reason, partial(_assembled, script=script))
    except UnsupportedError as error:
        if isinstance(error, MissingPackageError):
            raise
        return write_not_supported(folder, error.problems[0].message)
    except FileError as error:
        if not expects_failure:
            raise
        reason = "the importer refuses the script, as the suite expects"
        write_not_supported(folder, f"{reason}: {error.problems[0].message}")
        return "expected error", reason
    return "imported", ""


def _assembled(shader: Shader, *, script: Script) -> bytes:
    """Return the module of SPIR-V assembly. Raises UnsupportedError for text that the assembler refuses."""
    program = shutil.which(_ASSEMBLER)
    if program is None:
        raise MissingPackageError(f"{_ASSEMBLER} is not installed", help="install the package spirv-tools")
    text = str(shader.text)
    needed = next((environment for word, environment in _ENVIRONMENTS if word in text), _OLDEST_ENVIRONMENT)
    environment = shader.target_env or ("spv1.4" if _SPIRV_1_4 in script.extensions else needed)
    argv = [program, "--target-env", environment, "-o", "-", "-"]
    with Program(argv, _TIMEOUT_S, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as assembler:
        module, errors = assembler.communicate(text.encode())
    if assembler.returncode:
        message = re.sub(r"^error: [\d:. ]*", "", errors.decode(errors="replace").strip())
        raise UnsupportedError(f"{os.path.basename(program)}: {message}")
    return module
