"""The rules of the house that can be read off the source: who imports whom, who speaks, and who opens files."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from scenario_runner.scenario.kinds import COMMANDS, RESOURCES

PACKAGE = Path(__file__).resolve().parents[2] / "scenario_runner"

# From the top to the bottom. A part imports parts below its own line only.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("__init__",),  # the public names
    ("cli",),
    ("reduce",),
    ("suite",),
    ("doctor",),
    ("tosa",),
    ("importers",),
    ("runner",),
    ("validation",),
    ("compare",),
    ("run",),
    ("view",),
    ("vulkan",),
    ("plan",),
    ("checks",),
    ("ml",),
    ("scenario",),
    ("shaders",),
    ("files",),
    ("processes",),
    ("errors",),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# The files of vulkan/, from the bottom to the top.
VULKAN = (
    *("vulkan_api", "layers", "printf", "physical_device", "capabilities", "instance", "device"),
    *("memory", "resources", "image_support", "images", "tensors"),
    *("pipeline", "measurements", "graph_pipelines", "optical_flow"),
    *("recording", "recorders", "frame_recording", "transfer", "capture_tools", "execute"),
)

# Beyond the layers: `vulkan` is given a plan and a source of bytes and knows nothing of where they came from.
NEVER = {"vulkan": {"scenario", "shaders", "ml"}}

# Modules that only these parts of ours may import.
ONLY_IN = {
    "pydantic": {"cli", "scenario", "importers", "tosa", "suite"},
    "pydantic_core": {"cli", "scenario", "importers", "tosa", "suite"},
    "vulkan": {"vulkan"},
    "cffi": {"vulkan"},
    "_cffi_backend": {"vulkan"},
    "rich": {"cli"},
    "logging": {"errors", "cli"},  # costly on the way of a small run, and errors.log knows who is listening
}
# What is not said through an exception or a log record is said by these alone.
SPEAKERS = {"cli", "__main__"}
# A worker ends as the command line does: without the interpreter's tear-down, which a damaged process may not survive.
ENDING = {"scenario_runner.processes.isolated_process": "os._exit"}

SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "_generated" not in path.parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def part_of(module: str) -> str:
    """The part of the package that the dotted name `module` belongs to: its second component."""
    return module.split(".")[1] if "." in module else "__init__"


def module_name(path: Path) -> str:
    """The dotted name of the module at `path`."""
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """Line and name of each module that the file imports, at its top or inside a function."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, path
            # `from package import module` names a module, `from module import name` one in it
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name if name in FILES else str(node.module)) for name in names]
    return found


def complaints(path: Path) -> list[str]:
    """Return each rule that the imports of a file break."""
    part = part_of(module_name(path))
    found = []
    for line, module in imports_of(path):
        place = f"{path.relative_to(PACKAGE.parent)}:{line}: {part} imports {module}"
        top, other = module.split(".")[0], part_of(module)
        if top != "scenario_runner":
            if part not in ONLY_IN.get(top, {part}):
                found.append(f"{place}; only {', '.join(sorted(ONLY_IN[top]))} may")
        elif other != part and {other, part} <= RANK.keys():  # a part without a place is named by a test of its own
            if RANK[other] <= RANK[part]:
                found.append(f"{place}, which is not below it")
            elif other in NEVER.get(part, ()):
                found.append(f"{place}, which it must not know")
    return found


def spoken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the line and the text of each call that prints or ends the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "exit", "quit"):
            yield node.lineno, f"{node.func.id}()"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            text = f"{node.value.id}.{node.attr}"
            if text in ("sys.exit", "sys.stdout", "sys.stderr", "os._exit", "os.abort"):
                yield node.lineno, text
        elif isinstance(node, ast.Name) and node.id == "SystemExit":
            yield node.lineno, "SystemExit"


def test_every_part_has_its_place() -> None:
    """Every module and package directly under scenario_runner/ stands in the list of layers."""
    parts = {part_of(module_name(path)) for path in SOURCES}
    assert parts - set(RANK) == set(), "give the new part a place in LAYERS"
    assert "errors" in parts


def test_imports_go_down_only() -> None:
    """A module imports only parts below its own. Pydantic, Vulkan and rich have their own places."""
    assert [complaint for path in SOURCES for complaint in complaints(path)] == []


def test_only_the_command_line_speaks() -> None:
    """Only cli/ and __main__ print, touch the standard streams or end the process."""
    found = []
    for path in SOURCES:
        name = module_name(path)
        if part_of(name) not in SPEAKERS:
            found += [(name, line, text) for line, text in spoken(tree_of(path)) if text != ENDING.get(name)]
    assert found == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    """No docstring of the package begins with a question word such as What or Whether."""
    clause = re.compile(r"(What|Whether|Which|How|Those|That|Who|Where|When|Why)\b")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{path.relative_to(PACKAGE)}: {text.splitlines()[0]}"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, kinds) and clause.match(text := ast.get_docstring(node) or "")
    ]
    assert found == []


def imported_files(path: Path) -> set[str]:
    """The modules of the package that a file imports."""
    return {module for _, module in imports_of(path) if module in FILES} - {module_name(path)}


def test_no_files_import_each_other() -> None:
    """No file imports one that needs it, neither at once nor lazily nor for its types."""
    TopologicalSorter({name: imported_files(path) for name, path in FILES.items()}).prepare()  # names a circle


def test_vulkan_is_built_from_the_bindings_up() -> None:
    """Each file of vulkan/ imports only those before it in VULKAN."""
    package = PACKAGE / "vulkan"
    assert {path.stem for path in package.glob("*.py")} == {"__init__", *VULKAN}
    for rank, name in enumerate(VULKAN):
        modules = imported_files(package / f"{name}.py")
        others = {module.split(".")[2] for module in modules if module.startswith("scenario_runner.vulkan.")}
        assert others <= {"_generated", *VULKAN[:rank]}, name


# Some words are used for other things as well, such as the parts of a VGF file.
MOST_KINDS_IN_A_COLLECTION = 4


def kinds_together(tree: ast.Module) -> int:
    """The most kinds that stand together in one collection of a module."""
    most = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.List | ast.Set | ast.Tuple):
            parts = list(node.elts)
        else:
            continue
        values = {part.value for part in parts if isinstance(part, ast.Constant)}
        most = max(most, len(values & {*RESOURCES, *COMMANDS}))
    return most


def test_no_other_list_of_kinds() -> None:
    """Only the registry lists kinds. All other files ask the model, the record or the registry."""
    registry = PACKAGE / "scenario" / "kinds.py"
    assert kinds_together(tree_of(registry)) > MOST_KINDS_IN_A_COLLECTION
    most = {path: kinds_together(tree_of(path)) for path in SOURCES if path != registry}
    assert {path: count for path, count in most.items() if count > MOST_KINDS_IN_A_COLLECTION} == {}


OPENING = {
    *("open", "read_bytes", "read_text", "write_bytes", "write_text"),
    *("fromfile", "memmap", "load", "copyfile", "ZipFile"),
}
# File and number of calls, with the reason why no scenario, check file, list or shader gives these names.
ALLOWED: dict[str, tuple[int, str]] = {
    "cli/github.py": (1, "the summary that GitHub names in the environment"),
    "cli/validate.py": (1, "a schema of the package"),
    "compare/differences.py": (1, "files that the caller compares"),
    "errors/codes.py": (1, "the table of the package"),
    "errors/installation.py": (2, "a table of the package, and os-release"),
    "importers/item_folders.py": (2, "the new suite"),
    "importers/script_items.py": (1, "the new suite"),
    "processes/isolated_process.py": (5, "pipes, settings in /proc, and private temporary files"),
    "processes/progress.py": (1, "a private temporary file"),
    "processes/system_limits.py": (4, "files in /proc and /sys"),
    "processes/temporary.py": (4, "new files with names that nobody can guess, and /proc"),
    "processes/worker_process.py": (2, "files in /proc and private temporary files"),
    "reduce/packing.py": (3, "the archive in a private temporary folder"),
    "reduce/reduction.py": (4, "the packed copy in a private temporary folder"),
    "run/dump_files.py": (1, "the index in the checked folder of a dump, as a new file that replaces none"),
    "shaders/compilers/compile_jobs.py": (4, "files of compilers in a private temporary folder"),
    "shaders/compilers/dxc_process.py": (2, "files of compilers in a private temporary folder"),
    "shaders/spirv_val.py": (1, "a module in a private temporary folder"),
    "suite/cluster_host.py": (2, "kept files, named by their hashes"),
    "suite/discovery.py": (1, "standard input"),
    "suite/hashes.py": (1, "the source of the package"),
    "suite/reports/ci_reports.py": (1, "parts of the report in the caller's folder"),
    "suite/reports/pages.py": (2, "files about failures in the results, and parts of the page"),
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
    """files/ opens files and asks the sandbox. The list has each other call that opens a file, and no more."""
    found = Counter(
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        for call in ast.walk(tree_of(path))
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
