"""Inputs for codes, and functions that return the codes of an input."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scenario_runner import Runner
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import ScenarioRunnerError, error_class
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.run.reported_device import read_device
from scenario_runner.validation import Options, validate_file
from tests.program import Program
from tests.scenes import Scene, error_of

Codes = set[str]


class Case(NamedTuple):
    """An empty scenario, the program, and the layer that makes Vulkan calls fail."""

    scene: Scene
    program: Program
    fault_layer: dict[str, str]

    def validated(self, options: Options | None = None, *, placed: bool = False) -> Codes:
        """Return the codes that validation finds in the scenario; with ``placed`` each needs line, column and
        pointer."""
        self.scene.write()
        return self.validated_file(options, placed=placed)

    def validated_file(self, options: Options | None = None, *, placed: bool = False) -> Codes:
        """Return the codes that validation finds in a file, with the exit code of one of the errors."""
        validation = validate_file(self.scene.folder / "scenario.json", options)
        errors = {each.code for each in validation.findings if each.severity == "error"}
        assert validation.exit_code in ({error_class(code).exit_code for code in errors} or {0})
        if placed:
            assert all(each.line and each.column and each.pointer for each in validation.findings)
        return _codes(validation.findings)

    def against(self, change: Callable[[dict[str, Any]], object]) -> Codes:
        """Return the codes that validation finds against the report of this device with a change."""
        report = json.loads(_report())
        change(report["devices"][0])
        path = self.scene.file("doctor.json", json.dumps(report))
        return self.validated(Options(device=read_device(str(path))))

    def raised(self, call: Callable[[], object]) -> Codes:
        """Return the codes that a call raises; the class of the error belongs to the first code."""
        error = error_of(ScenarioRunnerError, call)
        expected = error_class(error.problems[0].code)
        assert isinstance(error, expected)
        assert error.exit_code == expected.exit_code
        return _codes(error.problems)

    def run(self, scenario: Any = None, inputs: Any = None, **options: Any) -> Codes:
        """Return the codes that a run raises."""
        with Runner(**options) as runner:
            return self.raised(lambda: runner.run(scenario or self.scene.write(), inputs))

    def ended(self, *options: str, env: dict[str, str] | None = None, launcher: Sequence[str] = ()) -> Codes:
        """Return the code that belongs to the exit code of the program, for drivers and the system."""
        ended = self.program(self.scene.write().name, *options, env=env, launcher=launcher)
        return {code for code in _OF_DEVICES if error_class(code).exit_code == ended.code}


@cache
def _report() -> str:
    """The doctor's report of this machine."""
    return json.dumps(gather())


_OF_DEVICES = [f"SR-DEVICE-{number:03}" for number in range(1, 10)]
Input = Callable[[Case], Codes]


def _codes(found: tuple[Diagnostic, ...]) -> Codes:
    for each in found:
        assert each.message
        assert each.path is None or isinstance(each.path, str | Path)
    return {each.code for each in found}
