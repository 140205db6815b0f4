"""Bad input, end to end: each kind with its exit code and its whole message, and nothing written."""

from __future__ import annotations

import os
import re
import struct

import numpy
import pytest

from tests.program import Program
from tests.scenes import ADD, Scene, assemble, kernel

MODULE = kernel("""
    OpEntryPoint GLCompute %main "start"
""")


def refused(program: Program, scene: Scene, code: int, message: str, *files: str) -> None:
    """The run ends with this exit code and this message (a pattern), on one line, and without any output."""
    before = sorted(path.name for path in scene.folder.iterdir())
    ended = program(*(files or ("scenario.json",)))
    assert (ended.code, ended.out) == (code, ""), ended
    assert re.fullmatch(f"error: {message}\n(  help: [^\n]+\n)?", ended.err), ended.err
    assert sorted(path.name for path in scene.folder.iterdir()) == before


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "1:1: the file is empty"),
        (b'{"resources": [],\n "commands": [,]}', "2:15: /commands: expected a value, got ','"),
        (b"[]", "1:1: expected an object with the keys 'resources' and 'commands', got an array"),
        (b"[" * 100_000, "1:65: more than 64 arrays and objects are nested in one another"),
        (b'{"resources": [], "commands": ["\xff"]}', "1:33: the byte 0xff is not UTF-8"),
    ],
)
def test_json(program: Program, scene: Scene, content: bytes, message: str) -> None:
    """Bytes that are not a scenario end with exit code 3 and the place of the first thing wrong."""
    scene.file("scenario.json", content)
    refused(program, scene, 3, re.escape(f"scenario.json:{message}"))


LITTLE_MEMORY = ("prlimit", f"--as={6_000_000 << 10}")


def test_huge_json(program: Program, scene: Scene) -> None:
    """A scenario file of gigabytes is refused without reading all of it: there is no room for it."""
    os.truncate(scene.file("scenario.json", ""), 8 << 30)
    ended = program("scenario.json", launcher=LITTLE_MEMORY)
    assert (ended.code, ended.out) == (3, "")
    assert re.match(r"error: scenario\.json: a scenario of more than \d+ MiB is not read\n  help: ", ended.err)


@pytest.mark.parametrize(
    "name, reason",
    [("nowhere.json", "no such file or directory"), (".", "is a directory"), ("sub/../x", "no such file or directory")],
)
def test_scenario_file(program: Program, scene: Scene, name: str, reason: str) -> None:
    """A scenario that cannot be read ends with exit code 4."""
    refused(program, scene, 4, re.escape(f"{name}: cannot read the scenario: {reason}"), name)


def header(text: str) -> bytes:
    """The start of a .npy file with this header text."""
    padded = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded


@pytest.mark.parametrize(
    "content, message",
    [
        (header("{'descr': '<u4', 'fortran_order': False, 'shape': (4,), }") + bytes(15),
         "is truncated: 15 bytes follow the header, expected 16 bytes for shape (4,) of '<u4'"),
        (header("__import__('os').system('touch pwned')") + bytes(16),
         "has a .npy header that cannot be read: expected '{' at character 1, found"
         """ "__import__('os').system('touch pwned')\""""),
        (b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00.",
         "is not a .npy file: it begins with b'\\x80\\x04\\x95\\x00\\x00\\x00', expected b'\\x93NUMPY'"),
    ],
)  # fmt: skip
def test_npy(program: Program, scene: Scene, content: bytes, message: str) -> None:
    """A .npy file that is damaged, contradicts itself or holds objects ends with exit code 4 and its path."""
    scene.shader("add", ADD).buffer("x", size=16, src="x.npy").dispatch("add", ["x"], [4]).write()
    path = scene.file("x.npy", content)
    place = r"scenario\.json:\d+:\d+: /resources/1/buffer/src: "
    refused(program, scene, 4, place + re.escape(f"{path}: {message}"))


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


NOT_SPIRV = "a SPIR-V module begins with the word 0x07230203, this one with the bytes"


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\x7fELF" + bytes(1000), f"{NOT_SPIRV} 7f 45 4c 46"),
        (assemble(MODULE)[:-8], "the function at word 30 has no end: the module is cut off"),
        (assemble(MODULE) + b"\0\0\0\0", "the instruction at word 39 has a word count of 0"),
    ],
)
def test_spirv(program: Program, scene: Scene, content: bytes, message: str) -> None:
    """Bytes that are not a SPIR-V module, of odd length or cut off end with exit code 5 and never reach the driver."""
    scene.module("s", content, entry="start").dispatch("s", []).write()
    refused(program, scene, 5, rf"scenario\.json:\d+:\d+: /resources/0/shader: s\.spv: {message}")


def test_spirv_without_the_entry_point(program: Program, scene: Scene) -> None:
    """A module without the entry point ends with exit code 5 and the entry points that it has."""
    scene.module("s", assemble(MODULE), entry="begin").dispatch("s", []).write()
    message = (
        r"scenario\.json:\d+:\d+: /resources/0/shader/entry: shader 's' has no entry point 'begin' for the compute"
        r" stage; the module's entry points are: 'start' \(GLCompute\)"
    )
    refused(program, scene, 5, message)


@pytest.mark.parametrize("name, words", [("s.spv", "cannot be opened: "), ("s.comp", r"[^\n]*")])
def test_missing_shader(program: Program, scene: Scene, name: str, words: str) -> None:
    """A shader file that does not exist ends with exit code 4 and its path, for each language."""
    scene.resource("shader", uid="s", src=name).dispatch("s", []).write()
    refused(program, scene, 4, rf"[^\n]*{re.escape(name)}: {words}no such file or directory")


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
