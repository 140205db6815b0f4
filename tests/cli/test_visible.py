"""Keys, paths, arguments and compiler messages cannot move the cursor, colour the terminal or fake a message."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line, visible
from tests.program import Program, on_terminal
from tests.scenes import Scene

# A title of the window, red letters, the 8-bit form of an escape, text turned round, a return, and a faked message.
EVIL = "\x1b]0;title\x07\x1b[31mred\x9b32m\u202eturned\u2066\r\nerror: faked"
# What terminals obey, and what changes the order of letters or breaks lines.
OBEYED = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029"]
OBEYED += [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
HARMLESS_CATEGORIES = {"L", "M", "N", "P", "S"}


@given(st.text(st.sampled_from([*OBEYED, *"aé漢 /:'\\", "\U0001f600"]) | st.characters(), max_size=40))
def test_visible(text: str) -> None:
    """Every control or format character is escaped, everything else stays, and doing it again changes nothing."""
    shown = visible(text)
    assert not set(shown) & (set(OBEYED) - set("\n\t"))
    assert shown.count("\n") == text.count("\n")
    for letter in text:
        if unicodedata.category(letter)[0] in HARMLESS_CATEGORIES or letter in " \n\t\xa0\u3000":
            assert visible(letter) == letter
    assert visible(shown) == shown
    shown.encode()  # there are no lone surrogates either


@given(st.text(st.sampled_from(OBEYED) | st.characters(), max_size=3000), st.text(max_size=50))
def test_names_stay_on_one_short_line(path: str, pointer: str) -> None:
    """The place that a message begins with is one line, whatever a file or a key is called."""
    text = str(Diagnostic("SR-BIND-003", "error", f"/{pointer}", "wrong", path=path, line=1, column=2))
    assert not set(text) & set(OBEYED)
    assert text.endswith(": wrong")
    assert len(one_line(path)) <= 10 * 1000  # an escape sequence has ten characters at most


@pytest.fixture
def evil(scene: Scene) -> list[list[str]]:
    """Arguments that make the program print names and texts of others."""
    (scene.folder / "uid.json").write_text(
        json.dumps({"commands": [], "resources": [{"buffer": {"uid": EVIL, EVIL: 1, "size": EVIL}}, {EVIL: {}}]})
    )
    file = {"uid": EVIL, "size": 4, "shader_access": "readonly", "src": f"{EVIL}.npy"}
    (scene.folder / "src.json").write_text(json.dumps({"commands": [], "resources": [{"buffer": file}]}))
    empty = scene.folder / f"{EVIL.replace('/', '')}.json"
    empty.write_text('{"commands": [], "resources": []}')
    shader = Scene(scene.folder)
    shader.shader("wrong", f"#version 450\n#error {EVIL}\nvoid main() {{}}\n").dispatch("wrong", []).write("glsl.json")
    return [
        ["uid.json"],
        ["validate", "uid.json"],
        ["src.json"],
        ["validate", "src.json"],
        ["glsl.json"],
        [empty.name],
        ["validate", empty.name],
        [f"{EVIL}.missing"],
        [f"--{EVIL}"],
        ["view", f"{EVIL}.npy"],
        ["shader", "show", f"{EVIL}.spv"],
        ["vgf", "show", f"{EVIL}.vgf"],
        ["explain", EVIL],
        ["--device", EVIL, empty.name],
        ["--log-level", EVIL, empty.name],
    ]


def test_pipes(program: Program, evil: list[list[str]]) -> None:
    """On pipes, newlines are the only control characters, and no name fakes a line."""
    for arguments in evil:
        ended = program(*arguments)
        text = ended.out + ended.err
        assert "red" in text, arguments
        assert not set(text) & (set(OBEYED) - {"\n"}), (arguments, text)
        assert not [line for line in text.splitlines() if line.startswith("error: faked")], arguments


def test_terminals(shader_cache: Path, evil: list[list[str]], tmp_path: Path) -> None:
    """On a terminal the program's own colours are all there is."""
    assert "\x1b[1;31merror:\x1b[0m" in on_terminal(tmp_path, "missing.json")[1]
    for arguments in evil:
        code, text = on_terminal(tmp_path, *arguments)
        assert code in (0, 2, 3, 4, 5, 8)
        assert "red" in text, arguments
        for part in ("\x1b]0;", "\x1b[31mred", "\x9b", "\u202e", "\u2066", "\x07"):
            assert part not in text, (arguments, text)


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize("long", ["key", "kind", "uid", "src", "reference"])
def test_long_names_are_clipped(program: Program, tmp_path: Path, command: str, long: str) -> None:
    """A long name is shortened in messages; a key of almost 32 MiB is as long as one can be."""
    name = "n" * ((32 << 20) - 400 if long == "key" else 1 << 20)
    buffer = {"uid": "a", "size": 4, "shader_access": "readwrite"}
    command_body = {"shader_ref": "s", "rangeND": [1], "bindings": []}
    resources = [{"buffer": buffer}]
    match long:
        case "key":
            buffer[name] = 1
        case "kind":
            resources.append({name: {}})
        case "uid":
            resources = [{"buffer": {**buffer, "uid": name}}] * 2
        case "src":
            buffer["src"] = name
        case "reference":
            command_body["shader_ref"] = name
    commands = [{"dispatch_compute": command_body}] if long == "reference" else []
    (tmp_path / "long.json").write_text(json.dumps({"resources": resources, "commands": commands}))
    ended = program(command, "long.json")
    assert ended.code in ((0,) if long == "key" else (3, 4))
    assert len(ended.out + ended.err) < 5000
    assert "nnn" in ended.err
