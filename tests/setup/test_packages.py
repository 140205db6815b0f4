"""What the set-up says is missing, for each distribution, and when it leaves a machine alone."""

from __future__ import annotations

import pytest

from tools.bootstrap.packages import advice, can_install, look

PARTS = """\
missing: the Vulkan loader (libvulkan.so.1)
missing: a Vulkan driver (your GPU's, or Mesa's lavapipe)
missing: a GLSL compiler (glslang)
"""
SOONER = "\nmany shaders compile sooner with {} installed as well"


def said(tree, level="run", *, system="Linux", superuser=False):
    machine = tree.machine(system=system, superuser=superuser)
    return advice(machine, look(machine, level))


@pytest.mark.parametrize(
    "identifier, command, batch",
    [
        ("debian", "sudo apt-get install libvulkan1 mesa-vulkan-drivers glslang-tools", "glslc"),
        ("ubuntu", "sudo apt-get install libvulkan1 mesa-vulkan-drivers glslang-tools", "glslc"),
        ("fedora", "sudo dnf install vulkan-loader mesa-vulkan-drivers glslang", "glslc"),
        ("arch", "sudo pacman -S vulkan-icd-loader vulkan-swrast glslang", "shaderc"),
        ("alpine", "sudo apk add vulkan-loader mesa-vulkan-swrast glslang", "shaderc"),
        ("unheard-of", "the packages of your system that hold them", None),
    ],
)
def test_everything_missing_is_named_with_the_command(tree, identifier, command, batch):
    """A machine with nothing gets each missing part, the exact command of its distribution, and what is welcome."""
    tree.file("etc/os-release", f"ID={identifier}\n")
    assert said(tree) == PARTS + "install: " + command + (SOONER.format(batch) if batch else "")


def test_macos_is_sent_to_homebrew(tree):
    """On macOS the command is Homebrew's, without sudo."""
    command = "install: brew install vulkan-loader molten-vk glslang"
    assert said(tree, system="Darwin") == PARTS + command + SOONER.format("shaderc")


def test_a_superuser_needs_no_sudo(tree):
    """Where we are root the command stands alone."""
    tree.file("etc/os-release", "ID=fedora\n")
    assert "\ninstall: dnf install vulkan-loader mesa-vulkan-drivers glslang\n" in said(tree, superuser=True)


def test_nothing_is_missing_on_a_complete_machine(tree):
    """Loader, driver and compiler are all a run needs; the tests also need what assembles SPIR-V, vulkaninfo, glslc."""
    tree.file("etc/os-release", "ID=debian\n")
    tree.loader()
    tree.mesa()
    tree.program("usr/bin/glslangValidator")
    assert look(tree.machine(), "run").parts == ()
    tree.program("usr/bin/vulkaninfo")
    assert look(tree.machine(), "test").parts == ("batch", "spirv")
    tree.program("usr/bin/glslc")
    assert said(tree, "test") == "missing: SPIR-V tools (spirv-as)\ninstall: sudo apt-get install spirv-tools"
    tree.program("usr/bin/spirv-as")
    assert look(tree.machine(), "test").parts == ()


def test_a_machine_with_its_own_driver_gets_no_mesa(tree):
    """With a vendor's manifest only the compiler is asked for."""
    tree.file("etc/os-release", "ID=ubuntu\n")
    tree.loader()
    tree.file("usr/lib/libGLX_nvidia.so.0")
    tree.manifest("etc/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    command = "missing: a GLSL compiler (glslang)\ninstall: sudo apt-get install glslang-tools"
    assert said(tree) == command + SOONER.format("glslc")
    tree.program("usr/bin/glslc")
    assert said(tree) == command


def test_a_driver_without_its_loader_needs_the_loader_only(tree):
    """A container that was handed the vendor's driver, but has no loader, is told of the loader alone."""
    tree.file("etc/os-release", "ID=ubuntu\n")
    tree.file("usr/lib/libGLX_nvidia.so.0")
    tree.manifest("usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    tree.program("usr/bin/glslang")
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
    """When VK_ICD_FILENAMES names a file that is no driver, no package would help: the variable is named."""
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
