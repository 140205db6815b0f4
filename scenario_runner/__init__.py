"""Run GPU workloads described in JSON on the Vulkan device in front of you.

``with scenario_runner.Runner() as runner: result = runner.run("test.json")``, then ``result["out"]`` is a NumPy array.
Names are imported when they are first used: a program that only wants one part does not pay for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.kinds import lazy_names

if TYPE_CHECKING:
    from scenario_runner.conversion.convert import ConvertedModel, convert
    from scenario_runner.diagnostics import Diagnostic
    from scenario_runner.errors import ScenarioRunnerError
    from scenario_runner.run.pipeline_caching import PipelineCaching
    from scenario_runner.run.report_files import GraphReportFiles
    from scenario_runner.run.result import Frame, Prepared, Result
    from scenario_runner.runner import Runner
    from scenario_runner.scenario import Scenario, from_dict, load, loads

__version__ = "0.1.0"

__all__ = [
    "ConvertedModel",
    "Diagnostic",
    "Frame",
    "GraphReportFiles",
    "PipelineCaching",
    "Prepared",
    "Result",
    "Runner",
    "Scenario",
    "ScenarioRunnerError",
    "__version__",
    "convert",
    "from_dict",
    "load",
    "loads",
]

_HOME = {
    "ConvertedModel": "conversion.convert",
    "Diagnostic": "diagnostics",
    "Frame": "run.result",
    "GraphReportFiles": "run.report_files",
    "PipelineCaching": "run.pipeline_caching",
    "Prepared": "run.result",
    "Result": "run.result",
    "Runner": "runner",
    "Scenario": "scenario",
    "ScenarioRunnerError": "errors",
    "convert": "conversion.convert",
    "from_dict": "scenario",
    "load": "scenario",
    "loads": "scenario",
}

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
