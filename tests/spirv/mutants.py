"""SPIR-V modules with something changed at random, and scenarios that run them."""

from __future__ import annotations

import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

from scenario_runner.errors import SpirvError
from scenario_runner.plan.shaders import compile_request
from scenario_runner.scenario import Shader, load
from scenario_runner.shaders import compile_all
from scenario_runner.shaders.module_check import check_module

_EDGES = (0, 1, 2, 3, 4, 7, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def mutated(code: bytes, dice: random.Random) -> bytes:
    """A module with one to three words replaced (by ids, words of the module, extremes), or instructions cut out,
    repeated or moved."""
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        starts = [5]
        while starts[-1] < len(words):
            starts.append(starts[-1] + max(1, words[starts[-1]] >> 16))
        at = dice.choice(starts[:-1])
        instruction = words[at : at + (words[at] >> 16)]
        kind = dice.randrange(12)
        if kind == 0:
            del words[at : at + len(instruction)]
        elif kind == 1:
            words[at:at] = instruction
        elif kind == 2:
            place = dice.choice(starts[:-1])
            words[place:place] = instruction
        elif kind == 3:
            words[at] = words[at] & 0xFFFF0000 | dice.choice(words) & 0xFFFF
        else:
            place = at + dice.randrange(1, max(2, len(instruction)))
            value = dice.choice((dice.randrange(words[3]), dice.choice(words), dice.choice(_EDGES), dice.randrange(64)))
            if place < len(words):
                words[place] = value
    return struct.pack(f"<{len(words)}I", *words)


def our_verdict(code: bytes) -> str:
    """What our own checks have against a module; empty for nothing."""
    try:
        check_module("mutant", code)
    except SpirvError as error:
        return str(error)
    return ""


def as_spirv(scenario_file: Path, folder: Path) -> dict[str, bytes]:
    """Copy a scenario to a folder, with SPIR-V in place of its GLSL; its modules by file name."""
    shutil.copytree(scenario_file.parent, folder, dirs_exist_ok=True)
    scenario = load(str(scenario_file))
    document: dict[str, Any] = json.loads(scenario_file.read_text())
    modules = {}
    for resource in document["resources"]:
        shader = resource.get("shader")
        if shader is None or shader["type"] != "GLSL":
            continue
        parsed = scenario.resource(shader["uid"])
        assert isinstance(parsed, Shader)
        name = f"{shader['uid']}.spv"
        modules[name] = compile_all([compile_request(scenario, parsed)])[0]
        (folder / name).write_bytes(modules[name])
        for key in ("build_options", "include_dirs"):
            shader.pop(key, None)
        shader.update(type="SPIR-V", src=name)
    (folder / scenario_file.name).write_text(json.dumps(document))
    return modules
