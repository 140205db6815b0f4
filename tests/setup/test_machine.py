"""What the set-up sees on a machine: loader, driver manifests, programs, distribution."""

from __future__ import annotations

import pytest

from tools.bootstrap.machine import Machine


def test_an_empty_machine_has_nothing(tree):
    """Without files there is neither loader nor driver nor program."""
    machine = tree.machine()
    assert (machine.loader(), machine.driver(), machine.program("glslang"), machine.stray_driver()) == (None,) * 4
    assert machine.distribution() is None


@pytest.mark.parametrize("folder", ["usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64", "usr/local/lib", "usr/lib"])
def test_the_loader_is_found_where_linkers_look(tree, folder):
    """A loader in a standard library folder is found, in the name that programs open."""
    path = tree.file(f"{folder}/libvulkan.so.1")
    assert tree.machine().loader() == str(path)


def test_the_loader_of_another_processor_is_none(tree):
    """A library in the folder of another architecture does not count."""
    tree.file("usr/lib/i386-linux-gnu/libvulkan.so.1")
    assert tree.machine().loader() is None


def test_the_library_path_of_the_user_is_searched(tree):
    """LD_LIBRARY_PATH leads to a loader outside the standard folders."""
    path = tree.file("sdk/lib/libvulkan.so.1")
    tree.environ["LD_LIBRARY_PATH"] = "/nowhere:/sdk/lib"
    assert tree.machine().loader() == str(path)


def test_a_manifest_with_its_library_is_a_driver(tree):
    """Mesa's manifest in the data folder counts as a driver."""
    manifest = tree.mesa()
    assert tree.machine().driver() == manifest


@pytest.mark.parametrize(
    "folder",
    [
        "etc/vulkan/icd.d",
        "usr/local/etc/vulkan/icd.d",
        "etc/xdg/vulkan/icd.d",
        "usr/local/share/vulkan/icd.d",
        "home/me/.config/vulkan/icd.d",
        "home/me/.local/share/vulkan/icd.d",
    ],
)
def test_every_standard_folder_is_read(tree, folder):
    """Manifests count in each folder that the Vulkan loader reads."""
    tree.file("usr/lib/libGLX_nvidia.so.0")
    manifest = tree.manifest(f"{folder}/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert tree.machine().driver() == manifest


def test_a_library_beside_its_manifest_is_found(tree):
    """A relative library path with a slash is relative to the manifest's folder."""
    tree.file("usr/share/vulkan/icd.d/lib/driver.so")
    manifest = tree.manifest("usr/share/vulkan/icd.d/d.json", "./lib/driver.so")
    assert tree.machine().driver() == manifest


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"ICD": []}',
        '{"ICD": {}}',
        '{"ICD": {"library_path": 3}}',
        '{"ICD": {"library_path": ""}}',
        '{"ICD": {"library_path": "libmissing.so"}}',
        '{"ICD": {"library_path": "/usr/lib/missing.so"}}',
        '{"ICD": {"library_path": "../missing.so"}}',
        '{"ICD": {"library_path": "libhere.so", "library_arch": "32"}}',
        '{"ICD": {"library_path": "lib\\u0000here.so"}}',
        "[" * 100_000,
        " " * (1 << 20) + '{"ICD": {"library_path": "libhere.so"}}',
    ],
    ids=lambda content: repr(content[:50]),
)
def test_a_manifest_without_a_usable_library_is_no_driver(tree, content):
    """A manifest that is broken, huge, for 32 bits, or whose library is missing does not count."""
    tree.file("usr/lib/libhere.so")
    tree.file("usr/share/vulkan/icd.d/driver.json", content)
    assert tree.machine().driver() is None


def test_bytes_that_are_no_text_are_no_driver(tree):
    """A manifest of random bytes does not count."""
    tree.file("usr/share/vulkan/icd.d/driver.json").write_bytes(b"\xff\xfe\x80")
    assert tree.machine().driver() is None


def test_a_container_folder_counts_only_when_pointed_at(tree):
    """A vendor's manifest under /usr/local/<vendor>/share is not a driver, until VK_DRIVER_FILES names it."""
    tree.file("usr/lib/libGLX_nvidia.so.0")
    manifest = tree.manifest("usr/local/vendor/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert tree.machine().driver() is None
    assert tree.machine().stray_driver() == manifest
    tree.environ["VK_DRIVER_FILES"] = "/usr/local/vendor/share/vulkan/icd.d/nvidia_icd.json"
    assert tree.machine().driver() == manifest


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_an_override_hides_the_standard_folders(tree, variable):
    """With VK_DRIVER_FILES or VK_ICD_FILENAMES set, the Vulkan loader reads nothing else, and neither do we."""
    tree.mesa()
    tree.environ[variable] = "/missing.json"
    assert tree.machine().driver() is None
    assert tree.machine().overrides() == variable


def test_additional_drivers_come_beside_the_standard_ones(tree):
    """VK_ADD_DRIVER_FILES names a folder or a file, and the standard folders still count."""
    tree.file("usr/lib/libmine.so")
    mine = tree.manifest("extra/mine.json", "libmine.so")
    tree.environ["VK_ADD_DRIVER_FILES"] = "/extra"
    assert tree.machine().driver() == mine
    mine.unlink()
    assert tree.machine().driver() is None
    mesa = tree.mesa()
    assert tree.machine().driver() == mesa


def test_macos_finds_what_homebrew_installed(tree):
    """On macOS loader and MoltenVK are found in Homebrew's folders."""
    tree.file("opt/homebrew/lib/libvulkan.1.dylib")
    tree.file("opt/homebrew/lib/libMoltenVK.dylib")
    manifest = tree.manifest("opt/homebrew/etc/vulkan/icd.d/MoltenVK_icd.json", "../../../lib/libMoltenVK.dylib")
    machine = tree.machine(system="Darwin")
    assert machine.loader() == str(tree.root / "opt/homebrew/lib/libvulkan.1.dylib")
    assert machine.driver() == manifest
    assert machine.distribution() == "macos"


def test_a_program_must_be_executable(tree):
    """A file on PATH counts as a program when it may be run."""
    path = tree.file("usr/bin/glslangValidator")
    assert tree.machine().program("glslangValidator", "glslang") is None
    path.chmod(0o755)
    assert tree.machine().program("glslangValidator", "glslang") == path


@pytest.mark.parametrize(
    "os_release, family",
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n', "debian"),
        ("ID=ubuntu\nID_LIKE=debian\n", "debian"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian"),
        ("ID=fedora\n", "fedora"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=arch\n", "arch"),
        ("ID=manjaro\nID_LIKE=arch\n", "arch"),
        ("ID=alpine\n", "alpine"),
        ("ID=nixos\n", None),
        ("garbage\x00\n=\n", None),
        ("", None),
    ],
)
def test_the_distribution_is_read_from_os_release(tree, os_release, family):
    """os-release's ID, or else ID_LIKE, says which family's packages apply."""
    tree.file("etc/os-release", os_release)
    assert tree.machine().distribution() == family


def test_this_machine_has_what_these_tests_run_on():
    """On the machine in front of us loader and driver are found: the tests need them anyway."""
    machine = Machine.this()
    assert machine.loader() is not None
    assert machine.driver() is not None
