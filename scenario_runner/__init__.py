"""Run GPU workloads described in JSON on the Vulkan device in front of you.

``with scenario_runner.Runner() as runner: result = runner.run("test.json")``, then ``result["out"]`` is a NumPy array.
Names are imported when they are first used: a program that only wants one part does not pay for the others.
"""

TYPE_CHECKING = False  # typing takes milliseconds, in which Ctrl-C would show a traceback
if TYPE_CHECKING:
    from scenario_runner.cli.suites.whole_suites import test as test
    from scenario_runner.errors import ScenarioRunnerError as ScenarioRunnerError
    from scenario_runner.errors.diagnostic import Diagnostic as Diagnostic
    from scenario_runner.errors.installation import __version__ as __version__
    from scenario_runner.run.graph_reports import GraphReportFiles as GraphReportFiles
    from scenario_runner.run.pipeline_caching import PipelineCaching as PipelineCaching
    from scenario_runner.run.result import Frame as Frame
    from scenario_runner.run.result import Prepared as Prepared
    from scenario_runner.run.result import Result as Result
    from scenario_runner.runner import Runner as Runner
    from scenario_runner.scenario import Scenario as Scenario
    from scenario_runner.scenario import from_dict as from_dict
    from scenario_runner.scenario import load as load
    from scenario_runner.scenario import loads as loads
    from scenario_runner.tosa.conversion import ConvertedModel as ConvertedModel
    from scenario_runner.tosa.conversion import convert as convert
    from scenario_runner.validation import validate as validate
    from scenario_runner.vulkan.instance import devices as devices

_HOME = {
    "__version__": "errors.installation",
    "ConvertedModel": "tosa.conversion",
    "Diagnostic": "errors.diagnostic",
    "Frame": "run.result",
    "GraphReportFiles": "run.graph_reports",
    "PipelineCaching": "run.pipeline_caching",
    "Prepared": "run.result",
    "Result": "run.result",
    "Runner": "runner",
    "Scenario": "scenario",
    "ScenarioRunnerError": "errors",
    "convert": "tosa.conversion",
    "devices": "vulkan.instance",
    "from_dict": "scenario",
    "load": "scenario",
    "loads": "scenario",
    "test": "cli.suites.whole_suites",
    "validate": "validation",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
