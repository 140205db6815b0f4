"""Bad input, end to end: each kind with its exit code and its whole message, and nothing written."""

import os
import re
import struct

import numpy
import pytest

from tests.program import Program
from tests.scenes import ADD, Scene


def refused(program: Program, scene: Scene, code: int, message: str, *files: str) -> None:
    """The run ends with this exit code and this message (a pattern), on one line, and without any output."""
    before = sorted(path.name for path in scene.folder.iterdir())
    ended = program(*(files or ("scenario.json",)))
    assert (ended.code, ended.out) == (code, ""), ended
    assert re.fullmatch(f"error: {message}\n(  help: [^\n]+\n)?", ended.err), ended.err
    assert sorted(path.name for path in scene.folder.iterdir()) == before


def test_json(program: Program, scene: Scene) -> None:
    """Bytes that are not a scenario end with exit code 3 and the place of the first thing wrong."""
    scene.file("scenario.json", b'{"resources": [],\n "commands": [,]}')
    refused(program, scene, 3, re.escape("scenario.json:2:15: /commands: expected a value, got ','"))


LITTLE_MEMORY = ("prlimit", f"--as={6_000_000 << 10}")


def test_huge_json(program: Program, scene: Scene) -> None:
    """A scenario file of gigabytes is refused without reading all of it: there is no room for it."""
    os.truncate(scene.file("scenario.json", ""), 8 << 30)
    ended = program("scenario.json", launcher=LITTLE_MEMORY)
    assert (ended.code, ended.out) == (3, "")
    assert re.match(r"error: scenario\.json: a scenario of more than \d+ MiB is not read\n  help: ", ended.err)


def test_scenario_file(program: Program, scene: Scene) -> None:
    """A scenario that cannot be read ends with exit code 4."""
    refused(program, scene, 4, r"\.: cannot read the scenario: is a directory", ".")


def test_npy(program: Program, scene: Scene) -> None:
    """A .npy file that is damaged ends with exit code 4 and its path; no code in it runs."""
    scene.shader("add", ADD).buffer("x", size=16, src="x.npy").dispatch("add", ["x"], [4]).write()
    text = b"__import__('os').system('touch pwned')".ljust(117) + b"\n"
    path = scene.file("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(16))
    place = r"scenario\.json:\d+:\d+: /resources/1/buffer/src: "
    message = f"{path}: has a .npy header that cannot be read: "
    refused(program, scene, 4, place + re.escape(message) + "[^\n]*")


def test_npy_of_another_size(program: Program, scene: Scene) -> None:
    """A .npy file whose bytes are not those of the buffer ends with exit code 4 and both sizes."""
    scene.shader("add", ADD).buffer("x", numpy.zeros(5, numpy.float32), size=16).dispatch("add", ["x"], [4]).write()
    path = re.escape(repr(str(scene.folder / "x.npy")))
    place = r"scenario\.json:\d+:\d+: /resources/1/buffer/size: "
    refused(program, scene, 4, rf"{place}buffer 'x' has 16 bytes, but {path} holds 20")


def test_missing_files_are_reported_together(program: Program, scene: Scene) -> None:
    """Every src that does not exist is reported, by a run before any shader is compiled."""
    scene.shader("bad", "no shader at all").buffer("x", size=16, src="x.npy").buffer("y", size=16, src="y.npy")
    scene.dispatch("bad", ["x"]).write()
    for word in ("run", "validate"):
        ended = program(word, "scenario.json")
        assert (ended.code, ended.out) == (4, "")
        lines = [line for line in ended.err.splitlines() if "no such file" in line]
        for line, name in zip(lines, ("x.npy", "y.npy"), strict=True):
            assert f"{scene.folder / name}: cannot be opened: no such file or directory" in line
        assert ("shader 'bad'" in ended.err) == (word == "validate")


def test_spirv(program: Program, scene: Scene) -> None:
    """Bytes that are not a SPIR-V module end with exit code 5 and never reach the driver."""
    scene.module("s", b"\x7fELF" + bytes(1000), entry="start").dispatch("s", []).write()
    message = "a SPIR-V module begins with the word 0x07230203, this one with the bytes 7f 45 4c 46"
    refused(program, scene, 5, rf"scenario\.json:\d+:\d+: /resources/0/shader: s\.spv: {message}")


@pytest.mark.parametrize("size", [3 << 30, 2**62, 2**63 - 1])
def test_allocation_too_large(program: Program, scene: Scene, size: int) -> None:
    """A buffer that the device cannot give ends with exit code 9 and says how much was asked; nothing is written."""
    scene.shader("add", ADD).buffer("x", numpy.arange(4, dtype=numpy.uint32)).buffer("big", size=size)
    scene.dispatch("add", ["x"], [4]).write()
    ended = program("scenario.json")
    assert (ended.code, ended.out) == (9, "")
    assert re.match(r"error: scenario\.json:\d+:\d+: /resources/2/buffer: ", ended.err)
    assert f"({size} bytes)" in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_out_of_memory_in_the_middle(program: Program, scene: Scene) -> None:
    """When the system gives no more memory the exit code is 9, with how much was asked, and nothing is half-written."""
    for number in range(8):
        scene.buffer(f"b{number}", size=1000 << 20)
    scene.buffer("x", size=16).write()
    ended = program("scenario.json", launcher=LITTLE_MEMORY)
    assert (ended.code, ended.out) == (9, "")
    # Drivers notice it when memory is allocated or when it is mapped; Mesa 25 does not notice a failure to map.
    failure = r"vkAllocateMemory failed with VK_ERROR_OUT_OF_|vkMapMemory (failed with|returned VK_SUCCESS and) "
    assert re.match(rf"error: [^\n]+/resources/\d/buffer: ({failure})", ended.err)
    assert "asked for 1000.0 MiB (1048576000 bytes)" in ended.err
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_more_than_the_machine_has(program: Program, scene: Scene) -> None:
    """Buffers that each fit and that together this machine cannot hold are refused before any of them is used."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = 1900 << 20
    for number in range(memory_bytes // size + 1):
        scene.buffer(f"b{number}", size=size, dst=None)
    scene.buffer("x", size=16).write()
    ended = program("scenario.json")
    assert (ended.code, ended.out) == (9, "")
    assert re.fullmatch(
        r"error: scenario\.json:\d+:\d+: /resources/\d+/buffer: 'b\d+' asks for 1\.9 GiB \(1992294400 bytes\),"
        r" which makes [\d.]+ GiB \(\d+ bytes\) in all; this machine has [\d.]+ GiB \(\d+ bytes\) of memory left\n",
        ended.err,
    )
    assert not list(scene.folder.glob("*.out.npy"))
