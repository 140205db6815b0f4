"""The generated bindings: regenerating changes nothing, and what they say is true by other sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from scenario_runner.vulkan import _generated, ffi
from scenario_runner.vulkan._generated import arm, constants, features, spirv_requirements, structures

GENERATED = Path(_generated.__path__[0])
ROOT = Path(__file__).resolve().parents[2]

CONSTANTS = {
    "DESCRIPTOR_TYPE_TENSOR_ARM": 1000460000,
    "IMAGE_LAYOUT_TENSOR_ALIASING_ARM": 1000460000,
    "IMAGE_USAGE_TENSOR_ALIASING_BIT_ARM": 0x800000,
    "TENSOR_TILING_LINEAR_ARM": 1,
    "TENSOR_USAGE_SHADER_BIT_ARM": 0x2,
    "TENSOR_USAGE_DATA_GRAPH_BIT_ARM": 0x20,
    "FORMAT_FEATURE_2_TENSOR_SHADER_BIT_ARM": 0x8000000000,
    "FORMAT_FEATURE_2_TENSOR_DATA_GRAPH_BIT_ARM": 0x1000000000000,
    "PIPELINE_BIND_POINT_DATA_GRAPH_ARM": 1000507000,
    "WHOLE_SIZE": 2**64 - 1,
    "QUEUE_FAMILY_IGNORED": 2**32 - 1,
    "LOD_CLAMP_NONE": 1000.0,
    "ERROR_OUT_OF_POOL_MEMORY": -1000069000,
}


def check(directory: Path) -> tuple[int, str, str]:
    """Exit code and output of the generator that only compares its files with those of ``directory``."""
    command = [sys.executable, str(ROOT / "tools" / "generate_bindings.py"), "--output", str(directory), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_generator_writes_exactly_the_committed_files(tmp_path: Path) -> None:
    """Regenerating from the pinned package versions gives the same files, byte for byte; --check writes nothing and
    names the file that would change."""
    pinned = dict(re.findall(r"(vulkan-object|vulkan) (\d[\d.]*\d)", (GENERATED / "arm.py").read_text("utf-8")))
    installed = {name: version(name) for name in pinned}
    assert sorted(pinned) == ["vulkan", "vulkan-object"]
    if installed != pinned:
        pytest.skip(f"the bindings were made from {pinned}, installed are {installed}")
    assert check(GENERATED) == (0, "", "")
    copy = Path(shutil.copytree(GENERATED, tmp_path / "copy"))
    edited = copy / "features.py"
    edited.write_text(edited.read_text("utf-8").replace("shaderInt8", "shaderInt9"), "utf-8")
    before = edited.read_bytes()
    (copy / "stale.py").touch()
    assert check(copy)[:2] == (1, "features.py: would change\nstale.py: is not generated, remove it\n")
    assert edited.read_bytes() == before


def test_arm_types_mix_with_the_types_of_the_package() -> None:
    """A handle or structure of the package is one type in both modules, so that either takes the other's data."""
    assert arm.ffi.typeof("VkDevice") is ffi.typeof("VkDevice")
    assert arm.ffi.typeof("VkMemoryRequirements2*") is ffi.typeof("VkMemoryRequirements2*")
    bind = arm.ffi.new("VkBindTensorMemoryInfoARM*")
    bind.memory = ffi.cast("VkDeviceMemory", 0x1234)
    assert bind.memory == ffi.cast("VkDeviceMemory", 0x1234)
    with pytest.raises(TypeError):
        bind.memory = ffi.cast("VkBuffer", 0x1234)


def test_constants_have_the_documented_values() -> None:
    """Values of the Arm extensions and the API constants that are written as C expressions are right."""
    assert {name: getattr(constants, name) for name in CONSTANTS} == CONSTANTS


def test_constants_agree_with_the_c_headers_of_the_package() -> None:
    """Every value that both the registry and the package's C enumerations name is the same in both."""
    compared = 0
    for name in ffi.list_types()[0]:
        kind = ffi.typeof(name)
        if kind.kind == "enum":
            declared = {each.removeprefix("VK_"): value for each, value in kind.relements.items()}
            both = {each: value for each, value in declared.items() if hasattr(constants, each)}
            assert {each: getattr(constants, each) for each in both} == both, name
            compared += len(both)
    assert compared > 50


def test_feature_members_are_in_the_order_of_the_c_headers() -> None:
    """A feature's position in the table is its position in the package's C structure."""
    compared = 0
    for name, (_, _, _, members) in features.FEATURES.items():
        try:
            kind = ffi.typeof(structures.SPELLINGS.get(name, name))
        except ffi.error:
            continue  # younger than the package
        assert [(each, field.type.cname) for each, field in kind.fields[2:]] == [(each, "uint32_t") for each in members]
        assert ffi.sizeof(kind) == 16 + -(-4 * len(members) // 8) * 8
        compared += 1
    assert compared > 150
    assert list(features.CORE_FEATURES) == [each for each, _ in ffi.typeof("VkPhysicalDeviceFeatures").fields]


def test_features_know_their_extension_and_their_core_version() -> None:
    """The table says which extension or version brings a structure, also after promotion and renaming."""
    table = features.FEATURES
    core_1_2 = 1 << 22 | 2 << 12
    assert table["VkPhysicalDeviceShaderFloat16Int8Features"] == (
        1000082000,
        core_1_2,
        ("VK_KHR_shader_float16_int8",),
        ("shaderFloat16", "shaderInt8"),
    )
    assert table["VkPhysicalDeviceVulkan11Features"][1:3] == (core_1_2, ())
    assert set(table["VkPhysicalDeviceRobustness2FeaturesKHR"][2]) == {"VK_EXT_robustness2", "VK_KHR_robustness2"}
    assert table["VkPhysicalDeviceTensorFeaturesARM"][1:3] == (0, ("VK_ARM_tensors",))
    assert features.ALIASES["VkPhysicalDeviceRobustness2FeaturesEXT"] == "VkPhysicalDeviceRobustness2FeaturesKHR"


def test_rolled_up_structures_lose_no_member() -> None:
    """Each structure said to be part of a VkPhysicalDeviceVulkan1xFeatures has all its members there."""
    for old, new in features.ROLLED_UP.items():
        assert set(features.FEATURES[old][3]) <= set(features.FEATURES[new][3]), old
    assert features.ROLLED_UP["VkPhysicalDevice8BitStorageFeatures"] == "VkPhysicalDeviceVulkan12Features"


def test_every_spirv_requirement_names_a_known_feature_property_or_extension() -> None:
    """No alternative of a capability points at a structure, member or extension that does not exist."""
    known = {"VkPhysicalDeviceFeatures": features.CORE_FEATURES}
    known |= {name: row[3] for name, row in features.FEATURES.items()}
    for capability, alternatives in spirv_requirements.CAPABILITIES.items():
        assert alternatives, capability
        for kind, *rest in alternatives:
            if kind == "feature":
                assert rest[1] in known[rest[0]], capability
            elif kind == "property":
                assert rest[1] in dict(ffi.typeof(rest[0]).fields), capability
                assert rest[2] > 0
            else:
                assert kind in ("version", "extension"), capability


def test_spirv_requirements_are_those_of_the_specification() -> None:
    """A few rows against the specification's table "Capabilities and Their Requirements"."""
    table = spirv_requirements.CAPABILITIES
    core_1_0, core_1_1, core_1_2 = 1 << 22, 1 << 22 | 1 << 12, 1 << 22 | 2 << 12
    assert table["Shader"] == (("version", core_1_0),)
    assert table["Int64"] == (("feature", "VkPhysicalDeviceFeatures", "shaderInt64", core_1_0, ()),)
    assert ("feature", "VkPhysicalDeviceVulkan12Features", "shaderInt8", core_1_2, ()) in [
        (*row[:4], ()) for row in table["Int8"]
    ]
    assert table["GroupNonUniformArithmetic"] == (
        ("property", "VkPhysicalDeviceVulkan11Properties", "subgroupSupportedOperations", 0x4, core_1_1, ()),
    )
    assert table["TensorsARM"] == (
        ("feature", "VkPhysicalDeviceTensorFeaturesARM", "shaderTensorAccess", 0, ("VK_ARM_tensors",)),
    )
    assert spirv_requirements.EXTENSIONS["SPV_KHR_variable_pointers"] == (
        ("version", core_1_1),
        ("extension", "VK_KHR_variable_pointers"),
    )
