"""What the set-up says is missing, for each distribution, and when it leaves a machine alone."""

from __future__ import annotations

import pytest

from scenario_runner.system_packages import package_names
from tools.bootstrap.packages import NEEDED, WELCOME, WORDS, advice, can_install, look

PARTS = """\
missing: the Vulkan loader (libvulkan.so.1)
missing: a Vulkan driver (your GPU's, or Mesa's lavapipe)
missing: a GLSL compiler (glslang)
"""
USEFUL = """\
useful: a GLSL compiler that takes many shaders at a time (Google's glslc)
useful: SPIR-V tools (spirv-as, spirv-val)
"""
DEBIAN = "libvulkan1 mesa-vulkan-drivers glslang-tools glslc spirv-tools"
LISTS = "var/lib/apt/lists/mirror_dists_stable_main_binary-amd64_Packages.lz4"


def said(tree, level="run", *, system="Linux", superuser=False):
    machine = tree.machine(system=system, superuser=superuser)
    return advice(machine, look(machine, level))


@pytest.mark.parametrize("system", ["debian", "fedora", "arch", "alpine", "macos", "unheard-of"])
@pytest.mark.parametrize("level", ["run", "test"])
@pytest.mark.parametrize("superuser", [False, True])
def test_whatever_is_missing_there_is_advice(tree, system, level, superuser):
    """For every family, level and user the advice names each missing part, and one command with packages for all."""
    tree.file("etc/os-release", f"ID={system}\n")
    machine = tree.machine(system="Darwin" if system == "macos" else "Linux", superuser=superuser)
    *parts, command = advice(machine, look(machine, level)).splitlines()
    assert parts == [
        *(f"missing: {WORDS[part]}" for part in NEEDED[level]),
        *(f"useful: {WORDS[part]}" for part in WELCOME[level]),
    ]
    if system == "unheard-of":
        assert command == "install: the packages of your system that hold them"
    else:
        assert command.endswith(" ".join(package_names(system, (*NEEDED[level], *WELCOME[level]))))


@pytest.mark.parametrize(
    "identifier, command",
    [
        (
            "debian",
            f"sudo apt-get update && sudo apt-get install {DEBIAN}",
        ),
        (
            "ubuntu",
            f"sudo apt-get update && sudo apt-get install {DEBIAN}",
        ),
        ("fedora", "sudo dnf install vulkan-loader mesa-vulkan-drivers glslang glslc spirv-tools"),
        ("arch", "sudo pacman -Sy && sudo pacman -S vulkan-icd-loader vulkan-swrast glslang shaderc spirv-tools"),
        ("alpine", "sudo apk update && sudo apk add vulkan-loader mesa-vulkan-swrast glslang shaderc spirv-tools"),
        ("unheard-of", "the packages of your system that hold them"),
    ],
)
def test_everything_missing_is_named_with_the_command(tree, identifier, command):
    """A machine with nothing gets each missing part, what is welcome, and the exact command of its distribution."""
    tree.file("etc/os-release", f"ID={identifier}\n")
    assert said(tree) == PARTS + USEFUL + "install: " + command


def test_package_lists_that_are_there_are_not_fetched(tree):
    """The command begins with apt-get update only where apt has no package lists."""
    tree.file("etc/os-release", "ID=debian\n")
    tree.file(LISTS)
    assert said(tree).endswith(f"\ninstall: sudo apt-get install {DEBIAN}")


def test_macos_is_sent_to_homebrew(tree):
    """On macOS the command is Homebrew's, without sudo."""
    command = "install: brew install vulkan-loader molten-vk glslang shaderc spirv-tools"
    assert said(tree, system="Darwin") == PARTS + USEFUL + command


def test_a_superuser_needs_no_sudo(tree):
    """Where we are root the commands stand alone."""
    tree.file("etc/os-release", "ID=debian\n")
    assert "\ninstall: apt-get update && apt-get install libvulkan1 " in said(tree, superuser=True)


def test_nothing_is_missing_on_a_complete_machine(tree):
    """Loader, driver and compiler are all a run needs; the tests need what assembles SPIR-V, vulkaninfo and more."""
    tree.file("etc/os-release", "ID=debian\n")
    tree.file(LISTS)
    tree.loader()
    tree.mesa()
    tree.program("usr/bin/glslangValidator")
    assert look(tree.machine(), "run").parts == ()
    tree.program("usr/bin/vulkaninfo")
    assert look(tree.machine(), "test").parts == ("glslc", "spirv_tools", "c_compiler")
    tree.program("usr/bin/glslc")
    tree.program("usr/bin/gcc")
    tree.file("usr/include/stdio.h")
    assert said(tree, "test") == (
        "missing: SPIR-V tools (spirv-as, spirv-val)\nuseful: the Khronos validation layer\n"
        "install: sudo apt-get install spirv-tools vulkan-validationlayers"
    )
    tree.program("usr/bin/spirv-as")
    assert look(tree.machine(), "test").parts == ()


def test_a_c_compiler_needs_the_headers(tree):
    """gcc without the C library's headers, as Debian installs it without recommended packages, is not enough."""
    tree.file("etc/os-release", "ID=debian\n")
    tree.program("usr/bin/gcc")
    assert "c_compiler" in look(tree.machine(), "test").parts
    assert said(tree, "test").endswith(" gcc libc6-dev vulkan-validationlayers")
    tree.file("usr/include/stdio.h")
    assert "c_compiler" not in look(tree.machine(), "test").parts


def test_a_c_compiler_of_its_own_folder_brings_its_headers(tree):
    """A compiler outside the system's folders finds headers of its own."""
    tree.environ["PATH"] = "/usr/local/toolchain/bin:/usr/bin"
    tree.program("usr/local/toolchain/bin/clang")
    assert "c_compiler" not in look(tree.machine(), "test").parts


def test_the_tests_need_glslang_by_its_old_name(tree):
    """Tests call glslangValidator: neither `glslang` nor another compiler stands in for it; a run takes `glslang`."""
    tree.program("usr/bin/glslang")
    tree.program("usr/bin/glslc")
    assert "glslang" not in look(tree.machine(), "run").parts
    assert "glslang" in look(tree.machine(), "test").parts


def test_a_compiler_that_stands_in_leaves_glslang_welcome(tree):
    """Where Arm's glslc does the work of glslang, the command for what else is missing names glslang all the same."""
    tree.file("etc/os-release", "ID=fedora\n")
    machine = tree.machine()
    lack = look(machine, "run").without_need_of("glslang")
    assert (lack.parts, lack.welcome) == (("loader", "driver"), ("glslang", "glslc", "spirv_tools"))
    assert advice(machine, lack).endswith(
        "sudo dnf install vulkan-loader mesa-vulkan-drivers glslang glslc spirv-tools"
    )
    tree.loader()
    tree.mesa()
    assert advice(machine, look(machine, "run").without_need_of("glslang")) == ""


@pytest.mark.parametrize("variable", ["", "VK_ADD_LAYER_PATH", "VK_LAYER_PATH"])
def test_the_validation_layer_is_found_where_the_loader_looks(tree, variable):
    """Its manifest counts in a standard folder, and in those that the loader's variables name."""
    assert look(tree.machine(), "test").welcome == ("validation",)
    folder = "sdk/layers" if variable else "usr/share/vulkan/explicit_layer.d"
    tree.file(f"{folder}/VkLayer_khronos_validation.json")
    if variable:
        tree.environ[variable] = f"/{folder}"
    assert look(tree.machine(), "test").welcome == ()


def test_a_machine_with_its_own_driver_gets_no_mesa(tree):
    """With a vendor's manifest only the compiler is asked for."""
    tree.file("etc/os-release", "ID=ubuntu\n")
    tree.loader()
    tree.file("usr/lib/libGLX_nvidia.so.0")
    tree.manifest("etc/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    tree.program("usr/bin/glslc")
    tree.program("usr/bin/spirv-as")
    tree.file(LISTS)
    assert said(tree) == "missing: a GLSL compiler (glslang)\ninstall: sudo apt-get install glslang-tools"


def test_a_driver_without_its_loader_needs_the_loader_only(tree):
    """A container that was handed the vendor's driver, but has no loader, is told of the loader alone."""
    tree.file("etc/os-release", "ID=ubuntu\n")
    tree.file("usr/lib/libGLX_nvidia.so.0")
    tree.manifest("usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    tree.program("usr/bin/glslang")
    tree.program("usr/bin/glslc")
    tree.program("usr/bin/spirv-as")
    tree.file(LISTS)
    expected = "missing: the Vulkan loader (libvulkan.so.1)\ninstall: sudo apt-get install libvulkan1"
    assert said(tree) == expected


def test_a_driver_out_of_the_loaders_sight_is_pointed_out(tree):
    """A vendor's manifest where the Vulkan loader does not look is named, and Mesa is not put beside it."""
    tree.file("etc/os-release", "ID=ubuntu\n")
    tree.loader()
    tree.program("usr/bin/glslang")
    tree.file("usr/lib/libGLX_nvidia.so.0")
    stray = tree.manifest("usr/local/vendor/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert look(tree.machine(), "run").installable() == ()
    assert said(tree) == (
        "missing: a Vulkan driver (your GPU's, or Mesa's lavapipe)\n"
        f"a driver is at {stray}, where the Vulkan loader does not look: set VK_DRIVER_FILES={stray}"
    )


def test_a_wrong_override_is_not_answered_with_packages(tree):
    """When VK_ICD_FILENAMES names a file that is not a driver, no package would help: the variable is named."""
    tree.file("etc/os-release", "ID=debian\n")
    tree.loader()
    tree.mesa()
    tree.program("usr/bin/glslang")
    tree.environ["VK_ICD_FILENAMES"] = "/gone.json"
    assert look(tree.machine(), "run").installable() == ()
    assert said(tree).endswith("VK_ICD_FILENAMES=/gone.json names no usable driver manifest: correct or unset it")


def test_packages_are_installed_by_the_superuser_of_a_debian_only(tree):
    """Without root, or on another distribution, nothing is installed for the user."""
    tree.file("etc/os-release", "ID=debian\n")
    assert not can_install(tree.machine(superuser=False))
    tree.program("usr/bin/apt-get")
    assert can_install(tree.machine(superuser=True))
    tree.file("etc/os-release", "ID=fedora\n")
    assert not can_install(tree.machine(superuser=True))
