"""docs/coming_from.md: our commands, options and JSON are accepted; files for Arm's runner are judged as it says."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scenario_runner.cli.arguments import parser_of
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.scenario import loads
from tests.program import Program
from tests.scenes import ADD, Scene

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "coming_from.md").read_text(encoding="utf-8")
OURS = [row.rpartition(" | ")[2] for row in re.findall(r"^\| (?!---).*(?= \|$)", PAGE, re.MULTILINE)]
SPANS = [span for cell in OURS for span in re.findall(r"`([^`]+)`", cell)]
COMMANDS = sorted({span for span in SPANS if span.startswith(("scenario-runner ", "-"))})
SNIPPETS = sorted({span for span in SPANS if re.match(r'\{ |"\w+": ', span)})
PLACEHOLDERS = {"DIR", "FILE", "M", "N", "RE", "S", "SEED"}
EXPECTATIONS = Draft202012Validator(
    json.loads((CHECKOUT / "schemas" / "expectations.schema.json").read_text(encoding="utf-8"))
)


def is_accepted(name: str, arguments: list[str]) -> bool:
    try:
        parser_of(name).parse_args(arguments)
    except ScenarioRunnerError:
        return False
    return True


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_accepted(command: str) -> None:
    """A whole command by its parser; options by that of `run` or `test`, with a value where the page has none."""
    words = ["1" if word in PLACEHOLDERS else word for word in shlex.split(command)]
    if words[0] == "scenario-runner":
        name, *arguments = words[1:]
        assert is_accepted(name, arguments) if name.isalpha() else is_accepted("run", words[1:])
    else:
        values: tuple[list[str], ...] = ([], ["1"], ["on"])
        assert any(is_accepted(name, ["a", *words, *value]) for name in ("run", "test") for value in values)


def is_valid(change: dict[str, Any]) -> bool:
    """Tell whether an object, or some keys of one, have a place in a scenario or in expectations."""
    buffer: dict[str, Any] = {"uid": "b", "shader_access": "readwrite", "size": 4}
    unsized = {key: value for key, value in buffer.items() if key != "size"}
    image = {"uid": "i", "format": "VK_FORMAT_R8_UNORM", "dims": [1, 4, 4, 1], "shader_access": "readonly"}
    shader = {"uid": "s", "src": "s.comp"}
    dispatch: dict[str, Any] = {"shader_ref": "s", "rangeND": [1], "bindings": []}
    resources: list[dict[str, Any]] = [{"buffer": buffer}, {"image": image}, {"shader": shader}]
    (key,) = change if len(change) == 1 else ("",)
    if key in ("buffer", "shader"):
        return _loads([change], [])
    changed = (
        ([{"buffer": {**buffer, **change}}], []),
        ([{"buffer": {**unsized, "src": change}}], []),
        ([{"image": {**image, **change}}], []),
        ([{"shader": {**shader, **change}}], []),
        (resources, [{"dispatch_compute": {**dispatch, **change}}]),
        (resources, [{"dispatch_compute": {**dispatch, "bindings": [change]}}]),
    )
    output = {"values": [1], **change}
    expected = (change, {"outputs": change}, {"outputs": {"b": output}})
    return any(_loads(*parts) for parts in changed) or any(EXPECTATIONS.is_valid(part) for part in expected)


def _loads(resources: list[dict[str, Any]], commands: list[dict[str, Any]]) -> bool:
    try:
        return not loads(json.dumps({"resources": resources, "commands": commands})).warnings
    except ScenarioRunnerError:
        return False


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_json_is_valid(snippet: str) -> None:
    """Without a warning; a key that does not exist is noticed."""
    change = json.loads(snippet if snippet.startswith("{") else f"{{{snippet}}}")
    assert is_valid(change)
    assert not is_valid({f"{key}_": value for key, value in change.items()} if "b" not in change else {"b": {"x": 1}})


def test_files_for_arms_runner(tmp_path: Path, program: Program) -> None:
    """Oddities of the format are warnings, values that another program would convert are errors, "" is no path."""

    def scene(name: str, **keys: Any) -> None:
        one = Scene(tmp_path).shader("add", ADD).buffer("b", size=16).dispatch("add", ["b"])
        image = {"mips": True} if name == "mips" else {}
        one.image("i", "R8_UNORM", size=(4, 4), **image)
        if name == "dimensions":
            one.commands[0]["dispatch_compute"]["rangeND"] = [1, 1, 1, 1]
        if name == "layout":
            access = {"src_access": "memory_write", "dst_access": "memory_read"}
            layouts = {"old_layout": "tensor_aliasing", "new_layout": "general"}
            one.resource("image_barrier", uid="barrier", image_resource="i", **access, **layouts)
            one.command("dispatch_barrier", image_barrier_refs=["barrier"])
        one.resources[1]["buffer"].update(keys)
        one.write(f"{name}.json")

    for name in ("mips", "dimensions", "layout"):
        scene(name)
    scene("fraction", size=16.0)
    for name, size in (("part", 10.7), ("negative", -1), ("boolean", True)):
        scene(name, size=size)
    scene("no_file", src="none.npy")
    scene("empty", src="", dst="")
    names = ("mips", "dimensions", "layout", "fraction", "part", "negative", "boolean", "no_file", "empty")
    report = json.loads(program("validate", "--format", "json", *(f"{name}.json" for name in names)).out)
    assert [[finding["severity"] for finding in file["findings"]] for file in report["files"]] == [
        *[["warning"]] * 4,
        *[["error"]] * 4,
        [],
    ]
