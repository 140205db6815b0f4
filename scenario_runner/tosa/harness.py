"""The module for TOSA's official harness: ``tosa_verif_run_tests --sut-module scenario_runner.tosa.harness``.

The harness (package tosa-tools) calls `TosaSUTRunner.runTestGraph` for each test and judges the written files.
"""

import os
import subprocess
import sys

from runner.tosa_test_runner import TosaTestRunner

from scenario_runner.errors import FileError, ScenarioError, ScenarioRunnerError, UnsupportedError
from scenario_runner.files.input import SCENARIO_FILE
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.tosa.conformance_tests import REFUSALS, Description, copy_array, write_scenario

_TIMEOUT_S = 600
_REFUSALS = frozenset({ScenarioError.exit_code, FileError.exit_code, UnsupportedError.exit_code})


class TosaSUTRunner(TosaTestRunner):  # type: ignore[misc]
    """A runner for the harness's tests on a Vulkan device; each test runs in a separate process.

    Arguments of the module are options of ``scenario-runner run``, as in
    ``--sut-module-args scenario_runner.tosa.harness:--device=1``.
    """

    def runTestGraph(self) -> tuple[TosaTestRunner.TosaGraphResult, str | None]:  # noqa: N802  (the harness calls it)
        """Convert and run the test, and write the outputs. Return the result and a message."""
        results = TosaTestRunner.TosaGraphResult
        description = Description.model_validate(self.testDesc)
        with temporary_folder() as folder:
            try:
                outputs = write_scenario(self.testDir, description, folder)
            except ScenarioRunnerError as error:
                is_refusal = error.problems[0].code in REFUSALS
                return results.TOSA_ERROR if is_refusal else results.OTHER_ERROR, str(error)
            command = [sys.executable, "-m", "scenario_runner", "run", os.path.join(folder, SCENARIO_FILE), "--isolate"]
            done = subprocess.run(
                [*command, *self.runnerArgs], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
            if done.returncode:
                is_refusal = done.returncode in _REFUSALS
                return results.TOSA_ERROR if is_refusal else results.OTHER_ERROR, done.stderr
            for name, file_name in zip(description.ofm_name, description.ofm_file, strict=True):
                output = os.path.join(folder, outputs[name]["dst"])
                copy_array(output, os.path.join(self.testDir, file_name), outputs[name]["format"], "i")
        return results.TOSA_VALID, None
