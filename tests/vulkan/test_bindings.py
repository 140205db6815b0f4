"""The generated bindings equal a new generation and other sources. Structures fill in types and lengths, and keep
their memory alive."""

import gc
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from scenario_runner.vulkan import _generated, ffi, vulkan_api
from scenario_runner.vulkan._generated import arm, constants, features, spirv_requirements, structures
from scenario_runner.vulkan.vulkan_api import chain, new

GENERATED = Path(_generated.__path__[0])
ROOT = Path(__file__).resolve().parents[2]


def check(directory: Path) -> tuple[int, str, str]:
    """Return exit code and output of the generator that compares its files with ``directory``."""
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


def test_rolled_up_structures_lose_no_member() -> None:
    """Each structure said to be part of a VkPhysicalDeviceVulkan1xFeatures has all its members there."""
    for old, later in features.ROLLED_UP.items():
        assert set(features.FEATURES[old][3]) <= set(features.FEATURES[later][3]), old
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


def churn() -> None:
    """Overwrite freed memory, so that a dangling pointer does not read the old content."""
    gc.collect()
    for size in range(1, 400):
        ffi.new("char[]", b"\xee" * size)


def test_lists_set_their_length_and_live_as_long_as_the_structure() -> None:
    """Strings, numbers and nested structures stay readable when nothing else refers to them."""
    info = new(
        "VkInstanceCreateInfo",
        pApplicationInfo=new("VkApplicationInfo", pApplicationName="caf\xe9", apiVersion=7),
        ppEnabledLayerNames=["first", b"second"],
        ppEnabledExtensionNames=[],
    )
    churn()
    assert ffi.string(info.pApplicationInfo.pApplicationName).decode() == "caf\xe9"
    assert (info.pApplicationInfo.sType, info.pApplicationInfo.apiVersion) == (0, 7)
    assert [ffi.string(info.ppEnabledLayerNames[index]) for index in range(info.enabledLayerCount)] == [
        b"first",
        b"second",
    ]
    assert (info.enabledExtensionCount, info.ppEnabledExtensionNames) == (0, ffi.NULL)


def test_structure_inside_another_is_a_dict_or_a_structure() -> None:
    """A structure inside another is filled in place, and the memory of its pointers stays alive."""
    stage = new("VkPipelineShaderStageCreateInfo", stage=0x20, pName="main")
    info = new("VkComputePipelineCreateInfo", stage=stage, basePipelineIndex=-1)
    del stage
    churn()
    assert (info.stage.sType, info.stage.stage, ffi.string(info.stage.pName)) == (18, 0x20, b"main")
    image = new("VkImageCreateInfo", extent={"width": 4, "height": 3, "depth": 1}, mipLevels=1)
    assert (image.extent.width, image.extent.height, image.extent.depth) == (4, 3, 1)
    named = new("VkComputePipelineCreateInfo", stage={"pName": "entry"})
    churn()
    assert (named.stage.sType, ffi.string(named.stage.pName)) == (18, b"entry")


def test_chain_appends_in_order_and_keeps_alive() -> None:
    """pNext chains grow at their end and live with their head."""
    head = chain(
        new("VkPhysicalDeviceFeatures2", pNext=new("VkPhysicalDeviceVulkan11Features", multiview=1)),
        new("VkPhysicalDeviceVulkan12Features", shaderInt8=1),
        new("VkPhysicalDeviceTensorFeaturesARM", tensors=1),
    )
    chain(head, new("VkPhysicalDeviceVulkan13Features", maintenance4=1))
    churn()
    types = []
    link = ffi.cast("VkBaseOutStructure*", head).pNext
    while link:
        types.append(link.sType)
        last, link = link, link.pNext
    assert types == [49, 51, 1000460009, 53]
    assert ffi.cast("VkPhysicalDeviceVulkan13Features*", last).maintenance4 == 1


def test_memory_is_released_with_the_structure() -> None:
    """A released structure leaves nothing in memory."""
    gc.collect()
    before = len(vulkan_api._alive)
    infos = [new("VkApplicationInfo", pApplicationName="x" * 100) for _ in range(50)]
    assert len(vulkan_api._alive) == before + 50
    del infos
    gc.collect()
    assert len(vulkan_api._alive) == before


@pytest.mark.parametrize("name", ["VkBufferCreateInfo", "PFN_vkCreateBuffer", "PFN_none", "VkDevice", "int", "none"])
def test_types_are_prepared(name: str) -> None:
    """An unknown name, as from a worker with damaged memory, is ignored."""
    vulkan_api.prepare(name)


def test_mistakes_are_named() -> None:
    """Unknown structures and members and wrong kinds are errors that name them."""
    with pytest.raises(TypeError, match=r"^no Vulkan structure is called 'VkBufferCreateInf'$"):
        new("VkBufferCreateInf")
    with pytest.raises(TypeError, match=r"^no Vulkan structure is called 'VkDevice'$"):
        new("VkDevice")
    with pytest.raises(TypeError, match=r"^VkMemoryAllocateInfo has no member 'size'; it has sType, pNext, "):
        new("VkMemoryAllocateInfo", size=1)
    with pytest.raises(TypeError):
        new("VkShaderModuleCreateInfo", pCode=1.5)
    with pytest.raises(OverflowError):
        new("VkMemoryAllocateInfo", memoryTypeIndex=-1)


def test_bytes_are_words_or_memory_as_the_member_says() -> None:
    """Shader code is words that are counted in bytes; memory is used where it lies."""
    code = np.arange(6, dtype=np.uint32)
    module = new("VkShaderModuleCreateInfo", pCode=code.tobytes())
    assert (module.codeSize, list(module.pCode[0:6])) == (24, [0, 1, 2, 3, 4, 5])
    constant = new("VkSpecializationInfo", pMapEntries=[{"constantID": 4, "size": 4}], pData=code)
    assert (constant.mapEntryCount, constant.dataSize) == (1, 24)
    assert int(ffi.cast("uintptr_t", constant.pData)) == code.ctypes.data
    cache = new("VkPipelineCacheCreateInfo", pInitialData=b"")
    assert (cache.initialDataSize, cache.pInitialData) == (0, ffi.NULL)
