"""Every code is raised by a test, is unique, and is documented."""

import ast
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from scenario_runner import errors
from scenario_runner.cli import main
from scenario_runner.errors import FileError, ScenarioError, ScenarioRunnerError, ShaderError, error_class
from scenario_runner.errors.codes import CODES, FAMILIES
from tests.errors.case import Case
from tests.program import Program
from tests.scenes import Scene

HERE = Path(__file__).parent
TABLES = [import_module(f"tests.errors.{path.stem}").INPUTS for path in sorted(HERE.glob("*_inputs.py"))]
INPUTS = {code: raise_it for table in TABLES for code, raise_it in table.items()}
# Where the other codes are asserted with their messages and places.
ASSERTED = {
    "ACCESS BIND LAYOUT PUSH SHADER SPEC": "checks/test_interface_rules.py checks/rules.txt",
    "ACCESS-002 DISPATCH PUSH": "validation/test_messages.py",
    "BIND-010 IMAGE": "gpu/test_image_formats.py",
    "SHADER-013": "shaders/test_spirv_val.py",
    "BIND-007 BIND-012": "gpu/test_descriptor_arrays.py",
    "BIND-011 BIND-013": "gpu/test_texel_buffers.py",
    "BIND-014": "cli/test_bad_input.py",
    "CONFLICT-011 LIMIT-014": "gpu/test_buffer_parts.py",
    "COPY": "gpu/test_transfers.py",
    "ATTACH STAGE DRAW JSON-012": "checks/test_drawings.py checks/drawings.txt checks/draw_inputs.txt",
    "FLOW": "checks/test_optical_flow_images.py gpu/test_optical_flow.py",
    "HAZARD": "checks/test_hazards.py",
    "IMAGE": "checks/test_interface_rules.py",
    "CUSTOM": "tosa/test_attributes.py tosa/test_shader_agreement.py tosa/test_bad_models.py tosa/wrong_attributes.txt"
    " tosa/bad_models.txt",
    "CLUSTER": "suite/cluster/test_failing_hosts.py suite/cluster/test_cluster.py",
    "SUITE": "suite/test_discovery.py suite/cases.txt suite/test_journal.py"
    " cli/test_test_command.py cli/test_missing_tools.py",
    "ITEM": "cli/test_github.py",
    "EXPECT": "suite/expectations/test_validation.py suite/expectations/wrong.txt suite/test_update.py"
    " suite/test_models.py",
    "EXPECT-014 JSON-011 SUITE-017": "suite/test_parameters.py",
    "IMPORT": "importers/test_item_folders.py",
    "TOSA": "tosa/test_conformance_tests.py",
    "GRAPH TENSOR": "gpu/test_graphs.py gpu/test_graphs_bad_input.py gpu/test_graph_numbers.py gpu/graphs.txt",
    "RUN-003": "gpu/test_graphs_bad_input.py",
    "LIMIT": "plan/test_resolve.py",
    "LIMIT-010 FEATURE-003": "gpu/test_fragment_order.py",
    "FEATURE-002": "checks/test_drawings.py",
    "FILE": "files/test_npy.py files/test_dds.py files/test_png.py ml/test_vgf_reader.py plan/test_destinations.py",
    "FEATURE-005": "ml/test_vgf_reader.py",
    "DEVICE": "vulkan/test_faults.py processes/test_troubles.py",
    "MEMORY-009 MEMORY-010": "gpu/test_tensors_groups.py",
}


def asserted_elsewhere() -> set[str]:
    """The codes of each family that the test files of this family name."""
    codes = set()
    for families, names in ASSERTED.items():
        prefixes = tuple(f"SR-{family}" for family in families.split())
        text = "".join((HERE.parent / name).read_text(encoding="utf-8") for name in names.split())
        codes |= {code for code in re.findall(r"\bSR-[A-Z]+-\d{3}\b", text) if code.startswith(prefixes)}
    return codes


def test_every_code_is_raised_by_a_test() -> None:
    """By one input here, or elsewhere; no other code has an input."""
    assert len(INPUTS) == sum(map(len, TABLES))
    assert set(CODES) - set(INPUTS) - asserted_elsewhere() == set()
    assert set(INPUTS) - set(CODES) == set()
    assert set(INPUTS) & asserted_elsewhere() == set()


@pytest.mark.parametrize("code", INPUTS)
def test_the_input_raises_the_code(
    scene: Scene, program: Program, fault_layer: dict[str, str], shader_cache: Path, code: str
) -> None:
    """The input raises the code."""
    assert code in INPUTS[code](Case(scene, program, fault_layer))


PACKAGE = Path(__file__).resolve().parents[2] / "scenario_runner"


def test_codes_are_well_formed() -> None:
    """Each code has the form SR-FAMILY-123, a known family and severity, and texts that are sentences."""
    for name, code in CODES.items():
        assert re.fullmatch(r"SR-[A-Z]+-\d{3}", name)
        assert name == code.code
        assert name.split("-")[1] in FAMILIES
        assert code.severity in ("error", "warning", "note")
        assert code.title
        assert not code.title.endswith(".")
        assert code.meaning.endswith(".")
        assert code.fix.endswith(".")
        assert code.source


def test_every_code_in_the_source_is_in_the_table() -> None:
    """A code that the source gives can be explained, and a code in the table is given by some statement."""
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r'"(SR-[A-Z]+-\d{3})"', sources))
    assert named - set(CODES) == set()
    assert set(CODES) - named == set()


CLASSES = {
    name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, ScenarioRunnerError)
}


def test_every_class_of_errors_has_a_code() -> None:
    """A message without a code gets the code of its error's class, and this code leads back to the class."""
    for one in CLASSES.values():
        if one is ScenarioRunnerError:
            continue  # the base of all, which is not raised
        assert one("what").problems[0].code == one.code
        assert one.code in CODES
        assert error_class(one.code).exit_code == one.exit_code or one in (ScenarioError, ShaderError)
    assert FileError("b", code="SR-FILE-002").problems[0].code == "SR-FILE-002"


def test_every_code_has_a_class() -> None:
    """Each code that may end a run leads to one class of errors, and so to one exit code; no other is in the table.

    An unexpected result ends no run: it is a verdict, with the exit code 1 of the base class.
    """
    assert {code for code in CODES if error_class(code) is ScenarioRunnerError} == {"SR-ITEM-001"}
    families = {code.rpartition("-")[0] for code in CODES}
    assert {known for known in errors._CLASSES if known not in CODES and known not in families} == set()


def test_diagnostics_have_the_severity_of_their_code() -> None:
    """A statement that names a code gives it the severity of the table."""
    named = {"error": "error", "warning": "warning", "warn": "warning"}
    wrong, seen = [], 0
    for path in PACKAGE.rglob("*.py"):
        for call, name in _calls_of(path, {*named, "Diagnostic"}):
            code, given, *_ = [getattr(each, "value", None) for each in (*call.args, *(None, None))]
            severity = named.get(name, given)
            if code in CODES and severity is not None:
                seen += 1
                if severity != CODES[code].severity:
                    wrong.append((f"{path.relative_to(PACKAGE)}:{call.lineno}", code, severity))
    assert seen > 150
    assert wrong == []


def _calls_of(path: Path, names: set[str]) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in names:
                yield node, name


def test_the_documentation_is_generated(checkout: Path) -> None:
    """Generating the pages of codes again changes nothing, and each code has one heading."""
    pages = runpy.run_path(str(checkout / "tools" / "generate_codes_doc.py"))["pages"]()
    assert {name: (checkout / "docs" / name).read_text(encoding="utf-8") for name in pages} == pages
    assert sorted(re.findall(r"^### (SR-\w+-\d+): ", "".join(pages.values()), re.M)) == sorted(CODES)


def test_explain_one(capsys: pytest.CaptureFixture[str]) -> None:
    """explain prints title, meaning, help and source of a code, in any case of letters."""
    assert main(["explain", "sr-bind-003"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SR-BIND-003 (error, exit code 3): the wrong kind of resource\n")
    assert "\nFix: Bind a resource of the right kind, or change the declaration.\n" in out
    assert "\nSource: Vulkan specification" in out


def test_explain_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    """explain alone lists every code with its severity."""
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("  ")] == [
        [code.code, code.severity]
        for family in FAMILIES
        for code in CODES.values()
        if code.code.split("-")[1] == family
    ]


def test_explain_an_unknown_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A code that does not exist is an error of usage that names close ones."""
    assert main(["explain", "SR-BIND-033"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: there is no code 'SR-BIND-033' (did you mean 'SR-BIND-013' or ")
