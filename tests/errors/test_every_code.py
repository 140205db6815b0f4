"""Every code of the table is raised by an input here, or asserted by the tests of the part that raises it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from scenario_runner.errors.codes import CODES
from tests.errors.case import Case
from tests.program import Program
from tests.scenes import Scene

HERE = Path(__file__).parent
TABLES = [import_module(f"tests.errors.{path.stem}").INPUTS for path in sorted(HERE.glob("*_inputs.py"))]
INPUTS = {code: raise_it for table in TABLES for code, raise_it in table.items()}
# Where the other codes are asserted with their messages and places.
ASSERTED = {
    "ACCESS BIND LAYOUT PUSH SHADER SPEC": "checks/test_interface_rules.py",
    "ACCESS-002 DISPATCH PUSH": "validation/test_messages.py",
    "BIND-010 IMAGE": "gpu/test_image_formats.py",
    "SHADER-013": "shaders/test_spirv_val.py",
    "ATTACH STAGE": "checks/test_drawings.py",
    "FLOW": "checks/test_optical_flow_images.py gpu/test_optical_flow.py",
    "HAZARD": "checks/test_hazards.py",
    "IMAGE": "checks/test_interface_rules.py",
    "CUSTOM": "tosa/test_attributes.py tosa/test_shader_agreement.py tosa/test_bad_models.py",
    "CLUSTER": "suite/cluster/test_failing_hosts.py suite/cluster/test_sent_files.py",
    "SUITE": "suite/test_lists.py suite/cases.txt suite/test_discovery.py suite/test_journal.py"
    " cli/test_test_command.py cli/test_missing_tools.py",
    "ITEM": "cli/test_github.py",
    "EXPECT": "suite/expectations/test_validation.py suite/expectations/wrong.txt suite/test_update.py"
    " suite/test_models.py",
    "EXPECT-014 JSON-011 SUITE-017": "suite/test_parameters.py",
    "TOSA": "tosa/test_conformance_tests.py",
    "GRAPH TENSOR": "gpu/test_graphs.py gpu/test_graphs_bad_input.py gpu/test_graph_numbers.py",
    "RUN-003": "gpu/test_graphs_bad_input.py",
    "LIMIT": "plan/test_limits.py",
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
    """The code is among those that are found."""
    assert code in INPUTS[code](Case(scene, program, fault_layer))
