"""The modules of two paths: a small run, and its planning. A module on a path imports at its top only modules on it.

A failure names a module that was hoisted onto a path: import it where it is used instead, or add it here where the path
needs it.
"""

from __future__ import annotations

from pathlib import Path

from tests.architecture.test_early_imports import command_line, imported_by

HEAVY = {"numpy", "pydantic", "imageio", "PIL", "rich", "logging", "json", "signal", "subprocess", "dataclasses"}

RUN = {
    "scenario_runner",
    "scenario_runner.arm_glslc",
    "scenario_runner.byte_data",
    "scenario_runner.cli",
    "scenario_runner.cli.arguments",
    "scenario_runner.cli.messages",
    "scenario_runner.cli.options",
    "scenario_runner.cli.run",
    "scenario_runner.cli.run_files",
    "scenario_runner.cli.run_outputs",
    "scenario_runner.cli.supervisor",
    "scenario_runner.content_cache",
    "scenario_runner.diagnostics",
    "scenario_runner.errors",
    "scenario_runner.files",
    "scenario_runner.files.codec",
    "scenario_runner.files.npy",
    "scenario_runner.files.npy_header",
    "scenario_runner.files.output",
    "scenario_runner.files.source",
    "scenario_runner.formats",
    "scenario_runner.kinds",
    "scenario_runner.log",
    "scenario_runner.plan",
    "scenario_runner.plan.destinations",
    "scenario_runner.plan.limits",
    "scenario_runner.plan.plan",
    "scenario_runner.plan.plan_cache",
    "scenario_runner.plan.records",
    "scenario_runner.plan.sources",
    "scenario_runner.progress",
    "scenario_runner.run",
    "scenario_runner.run.given_scenario",
    "scenario_runner.run.output_files",
    "scenario_runner.run.resource_files",
    "scenario_runner.run.session",
    "scenario_runner.runner",
    "scenario_runner.shaders",
    "scenario_runner.shaders.compile",
    "scenario_runner.shaders.compilers",
    "scenario_runner.shaders.discovery",
    "scenario_runner.shaders.source",
    "scenario_runner.signals",
    "scenario_runner.streams",
    "scenario_runner.system_limits",
    "scenario_runner.system_packages",
    "scenario_runner.temporary",
    "scenario_runner.text",
    "scenario_runner.vulkan",
    "scenario_runner.vulkan._generated",
    "scenario_runner.vulkan._generated.constants",
    "scenario_runner.vulkan._generated.extension_names",
    "scenario_runner.vulkan._generated.features",
    "scenario_runner.vulkan._generated.spirv_requirements",
    "scenario_runner.vulkan._generated.structures",
    "scenario_runner.vulkan.loader",
    "scenario_runner.vulkan.structs",
    "scenario_runner.vulkan.device",
    "scenario_runner.vulkan.layers",
    "scenario_runner.vulkan.ml_emulation",
    "scenario_runner.vulkan.physical_device",
    "scenario_runner.vulkan.requirements",
    "scenario_runner.vulkan.execute",
    "scenario_runner.vulkan.recording",
    "scenario_runner.vulkan.transfer",
    "scenario_runner.vulkan.pipeline",
    "scenario_runner.vulkan.resources",
    "scenario_runner.vulkan.memory",
}
"""The modules of a small run whose plan is kept."""

PLANNING = {
    "scenario_runner.checks",
    "scenario_runner.checks.bindings",
    "scenario_runner.checks.resources",
    "scenario_runner.checks.shaders",
    "scenario_runner.plan.context",
    "scenario_runner.plan.commands",
    "scenario_runner.plan.resolve",
    "scenario_runner.plan.resources",
    "scenario_runner.plan.shaders",
    "scenario_runner.plan.special_records",
    "scenario_runner.program",
    "scenario_runner.scenario",
    "scenario_runner.scenario.commands",
    "scenario_runner.scenario.loader",
    "scenario_runner.scenario.model",
    "scenario_runner.scenario.model_base",
    "scenario_runner.scenario.scenario",
    "scenario_runner.scenario.shaders",
    "scenario_runner.scenario.storage",
    "scenario_runner.shaders.running",
    "scenario_runner.shaders.processes",
    "scenario_runner.spirv",
    "scenario_runner.spirv._generated",
    "scenario_runner.spirv._generated.enumerants",
    "scenario_runner.spirv._generated.opcodes",
    "scenario_runner.spirv.access",
    "scenario_runner.spirv.constants",
    "scenario_runner.spirv.index",
    "scenario_runner.spirv.interface",
    "scenario_runner.spirv.layout",
    "scenario_runner.spirv.module",
    "scenario_runner.spirv.stage_interface",
    "scenario_runner.spirv.type_table",
    "scenario_runner.spirv.types",
}
"""The modules that planning and compiling need besides."""


def test_paths_import_only_their_modules(tmp_path: Path) -> None:
    """The first run of a scenario imports the modules of both paths, the second one those of a run alone."""
    arguments = ("scenarios/basics/add/scenario.json", "--output", str(tmp_path / "out"), "--quiet")
    first, second = (
        imported_by(command_line(*arguments), SCENARIO_RUNNER_CACHE=str(tmp_path / "cache")) for _ in range(2)
    )
    own = {name for name in first if name.partition(".")[0] == "scenario_runner"}
    assert own - RUN - PLANNING == set()
    assert {name for name in second if name.partition(".")[0] == "scenario_runner"} - RUN == set()
    assert second & HEAVY == set()
    assert own & PLANNING
    assert second >= {"scenario_runner.vulkan.execute"}
