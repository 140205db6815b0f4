"""files/ opens files and asks the sandbox. Each other call that opens a file is listed here, with its reason."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENING = frozenset(
    (
        "open",
        "read_bytes",
        "read_text",
        "write_bytes",
        "write_text",
        "fromfile",
        "memmap",
        "load",
        "copyfile",
        "ZipFile",
    )
)
# File and number of calls, with the reason why no scenario, check file, list or shader gives these names.
ALLOWED: dict[str, tuple[int, str]] = {
    "cli/bench/samples.py": (1, "the caller's measurement"),
    "cli/github.py": (1, "the summary that GitHub names in the environment"),
    "cli/validate.py": (1, "a schema of the package"),
    "compare/differences.py": (1, "files that the caller compares"),
    "errors/codes.py": (1, "the table of the package"),
    "errors/installation.py": (2, "a table of the package, and os-release"),
    "importers/amber.py": (2, "the caller's scripts"),
    "importers/amber_script.py": (1, "files of the caller's scripts"),
    "importers/item_folders.py": (2, "the new suite"),
    "importers/script_items.py": (2, "files of the new suite, and pictures of the caller's scripts"),
    "processes/crash.py": (2, "settings in /proc"),
    "processes/isolated_process.py": (3, "pipes and private temporary files"),
    "processes/progress.py": (1, "a private temporary file"),
    "processes/system_limits.py": (4, "files in /proc and /sys"),
    "processes/temporary.py": (4, "new files with names that nobody can guess, and /proc"),
    "processes/worker.py": (2, "files in /proc and private temporary files"),
    "reduce/packing.py": (3, "the archive in a private temporary folder"),
    "reduce/reduction.py": (4, "the packed copy in a private temporary folder"),
    "run/dump_files.py": (1, "the index in the checked folder of a dump, as a new file that replaces none"),
    "shaders/compilers/compile_jobs.py": (4, "files of compilers in a private temporary folder"),
    "shaders/compilers/dxc_process.py": (2, "files of compilers in a private temporary folder"),
    "shaders/spirv_val.py": (1, "a module in a private temporary folder"),
    "suite/cluster_host.py": (2, "kept files, named by their hashes"),
    "suite/discovery.py": (1, "standard input"),
    "suite/hashes.py": (1, "the source of the package"),
    "suite/reports/html.py": (2, "files about failures in the results, and parts of the page"),
    "suite/reports/junit.py": (1, "parts of the report in the caller's folder"),
    "suite/worker_task.py": (1, "a file in /proc"),
    "tosa/conformance_tests.py": (6, "the caller's conformance tests and the new suite"),
    "tosa/layer_comparison.py": (1, "the caller's activations"),
    "tosa/layer_rules.py": (4, "files of the reference model in a private temporary folder"),
    "tosa/model_converter.py": (2, "output of the converter in private temporary files"),
    "vulkan/capture_tools.py": (4, "the caller's capture, and manifests of layers in folders of the system"),
    "vulkan/memory.py": (2, "files in /proc and /sys"),
    "vulkan/printf.py": (2, "settings of the validation layer in the environment"),
}


def test_names_in_files_are_opened_by_files() -> None:
    """The list is complete, and has nothing that is gone."""
    found = Counter(
        path.relative_to(ROOT / "scenario_runner").as_posix()
        for path in sorted((ROOT / "scenario_runner").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and opens_a_file(call)
    )
    assert {name: count for name, count in found.items() if not name.startswith("files/")} == {
        name: count for name, (count, _) in ALLOWED.items()
    }


def test_each_way_to_open_is_noticed() -> None:
    """The search finds each way to open a file, except a descriptor that the sandbox has given."""
    calls = ("open(p)", "os.open(p, 0)", "Path(p).read_bytes()", "numpy.load(p)", "numpy.memmap(p)", "io.open(p)")
    for text in calls:
        assert opens_a_file(call_of(text)), text
    for text in ("open(open_file(p), 'rb')", "json.load(f)", "read_file(p)"):
        assert not opens_a_file(call_of(text)), text


def call_of(text: str) -> ast.Call:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    return statement.value


def opens_a_file(call: ast.Call) -> bool:
    """Return whether a call opens a file by its name."""
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    if name not in OPENING or (name == "load" and not called.startswith(("numpy.", "np."))):
        return False
    return not (call.args and ast.unparse(call.args[0]).startswith("open_file(")) and not called.startswith("Image.")
