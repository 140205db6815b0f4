"""Start-up is a feature: what a command does not need, it does not import. Each case is a process of its own.

A module on the path of a small run, or of its planning, imports at its top only modules on that path. A failure names a
module that was hoisted onto a path: import it where it is used instead, or add it here where the path needs it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

# Modules that open a driver or make arrays, and others that cost milliseconds to import.
GPU = ("vulkan", "cffi", "_cffi_backend", "scenario_runner.vulkan")
HEAVY = (*GPU, "numpy", "pydantic", "imageio", "PIL", "rich")
NOT_ON_A_RUN = {
    *("numpy", "pydantic", "imageio", "PIL", "rich", "logging", "json", "signal", "subprocess", "dataclasses"),
    *("multiprocessing", "socket", "select"),
}
STANDARD = ("asyncio", "importlib.metadata", "json", "logging", "subprocess", "tempfile")


def modules(packages: dict[str, str]) -> set[str]:
    """Dotted names of packages and of the modules in each, below scenario_runner."""
    names = [(package, module) for package, listed in packages.items() for module in ("", *listed.split())]
    return {".".join(filter(None, ("scenario_runner", *name))) for name in names}


# The modules of a small run whose plan is kept.
RUN = modules(
    {
        "": "runner",
        "cli": "arguments console model_options option_types options",
        "cli.run": "run_files",
        "errors": "diagnostic installation log text",
        "files": "cache_folder codec codec_table dds input npy output png png_codec sandbox vk_formats",
        "plan": "limits plan records sources",
        "processes": "progress signals system_limits temporary",
        "run": "device_session output_files",
        "scenario": "kinds",
        "shaders": "compile source",
        "shaders.compilers": "search table",
        "vulkan": "capabilities device execute frame_recording instance layers memory physical_device pipeline"
        " recording resources transfer vulkan_api",
        "vulkan._generated": "constants extensions features spirv_requirements structures",
    }
)
# The modules that planning and compiling need besides.
PLANNING = modules(
    {
        "checks": "bindings entry_points",
        "plan": "basic_commands command_parts graph_records image_layouts image_records resolve resources"
        " shader_modules tensors",
        "processes": "programs",
        "shaders.compilers": "compile_jobs compiler_processes",
        "files": "json_text parameters",
        "scenario": "commands drawing entries inline_contents json_model loader resources scenario shaders writing",
        "shaders.spirv": "access block_layout constants declarations index interface module stage_interface types",
        "shaders.spirv._generated": "enumerants opcodes",
    }
)

PROBE = """
import sys
allowed = set(sys.modules)
try:
    exec(sys.argv[1])
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write("\\n" + " ".join(set(sys.modules) - allowed))
"""


def imported_by(statements: str, **environment: str) -> set[str]:
    """Return the modules that `statements` load into a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, statements],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def command_line(*arguments: str) -> str:
    return f"from scenario_runner.cli import main; assert main({list(arguments)!r}) == 0"


HELP_OF_ALL = """
from scenario_runner.cli import main
from scenario_runner.cli.options import COMMANDS
for name in COMMANDS.keys() - {'help'}:
    assert main([name, "--help"]) == 0
"""


@pytest.mark.parametrize(
    "statements, forbidden",
    [
        ("import scenario_runner", (*HEAVY, *STANDARD, "argparse", "pathlib")),
        ("import scenario_runner.errors", (*HEAVY, *STANDARD, "argparse", "pathlib")),
        ("import scenario_runner.cli", (*HEAVY, *STANDARD)),
        (HELP_OF_ALL, (*HEAVY, *STANDARD)),
        (command_line("--version"), HEAVY),
        (command_line("validate", "scenarios/basics/add/scenario.json"), ("importlib.metadata",)),  # of the version
        ("import scenario_runner.cli.suites.test", HEAVY),  # the rest is imported while the pool starts
    ],
)
def test_a_start_imports_only_what_it_needs(statements: str, forbidden: tuple[str, ...]) -> None:
    """Importing the package or the command line, and asking for help, leaves costly modules alone."""
    modules = imported_by(statements)
    assert "scenario_runner" in modules
    assert modules & set(forbidden) == set()


def test_validate_opens_no_gpu_and_needs_no_numpy(shader_cache: Path) -> None:
    """`validate` of a plain scenario imports neither Vulkan nor NumPy nor a reader of pictures."""
    modules = imported_by(command_line("validate", "scenarios/basics/add/scenario.json"))
    assert "scenario_runner.scenario" in modules
    assert modules & {*GPU, "numpy", "imageio", "PIL"} == set()


def test_paths_import_only_their_modules(tmp_path: Path) -> None:
    """The first run of a scenario imports the modules of both paths, the second run only the modules of a run."""
    arguments = ("scenarios/basics/add/scenario.json", "--output", str(tmp_path / "out"), "--quiet")
    first, second = (
        imported_by(command_line(*arguments), SCENARIO_RUNNER_CACHE=str(tmp_path / "cache")) for _ in range(2)
    )
    own = {name for name in first if name.partition(".")[0] == "scenario_runner"}
    assert own - RUN - PLANNING == set()
    assert {name for name in second if name.partition(".")[0] == "scenario_runner"} - RUN == set()
    assert second & NOT_ON_A_RUN == set()
    assert own & (PLANNING - RUN)
    assert second >= {"scenario_runner.vulkan.execute"}
