"""Builds small scenarios in a folder, for tests that run them: shaders, .npy files and the JSON around them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError, ScenarioRunnerError

Bindings = Sequence[str] | Mapping[tuple[int, int], str]


def assemble(text: str, target: str = "spv1.3") -> bytes:
    """SPIR-V assembly as a module, by the real spirv-as."""
    command = ["spirv-as", "--preserve-numeric-ids", "--target-env", target, "-o", "-", "-"]
    return subprocess.run(command, input=text.encode(), check=True, capture_output=True).stdout


def kernel(text: str = "") -> str:
    """SPIR-V assembly of a module: its declarations in ``text`` and, behind a line "main:", the instructions of %main.

    What every module has is added: %void, %uint, and %nothing, the type of %main; an entry point where there is none.
    """
    declared, _, body = text.partition("main:\n")
    lines = ["OpCapability Shader", "OpMemoryModel Logical GLSL450"]
    lines += [] if "OpEntryPoint" in text else ['OpEntryPoint GLCompute %main "main"']
    lines += [] if "OpExecutionMode" in text else ["OpExecutionMode %main LocalSize 1 1 1"]
    lines += ["%void = OpTypeVoid", "%nothing = OpTypeFunction %void", "%uint = OpTypeInt 32 0"]
    lines += [line.strip() for line in declared.splitlines()]
    order = ("OpCapability", "OpExtension", "OpMemoryModel", "OpEntryPoint", "OpExecutionMode", "Op", "{", "%", "")
    lines.sort(key=lambda line: [line.startswith(each) for each in order].index(True))
    end = [] if body.rstrip().endswith("OpFunctionEnd") else ["OpReturn", "OpFunctionEnd"]
    return "\n".join([*lines, "%main = OpFunction %void None %nothing", "%start = OpLabel", body, *end])


def glsl(body: str, declarations: str = "", *, local_size: int = 1) -> str:
    """A compute shader around the body of its ``main``."""
    return f"#version 450\nlayout(local_size_x = {local_size}) in;\n{declarations}\nvoid main() {{\n{body}\n}}\n"


ADD = glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer B { uint a[]; };\n")


class Scene:
    """A scenario being put together; ``write`` stores it and gives its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.resources: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []

    def file(self, name: str, content: str | bytes) -> Path:
        """A file beside the scenario."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def npy(self, name: str, array: Any) -> str:
        """A .npy file beside the scenario; returns its name."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        numpy.save(self.folder / name, array)
        return name

    def shader(self, uid: str, text: str, **keys: Any) -> Scene:
        """A GLSL shader."""
        self.file(f"{uid}.comp", text)
        return self.resource("shader", uid=uid, src=f"{uid}.comp", type="GLSL", **keys)

    def module(self, uid: str, code: bytes, **keys: Any) -> Scene:
        """A SPIR-V shader."""
        self.file(f"{uid}.spv", code)
        return self.resource("shader", uid=uid, src=f"{uid}.spv", type="SPIR-V", **keys)

    def buffer(self, uid: str, content: Any = None, *, size: int | None = None, **keys: Any) -> Scene:
        """A buffer with the bytes of an array, or of ``size`` bytes; it is written to ``<uid>.out.npy``."""
        if content is not None:
            keys["src"] = self.npy(f"{uid}.npy", content)
            size = content.nbytes if size is None else size
        keys = {"dst": f"{uid}.out.npy", "shader_access": "readwrite", **keys}
        return self.resource("buffer", uid=uid, size=size, **{key: value for key, value in keys.items() if value})

    def raw_data(self, uid: str, content: Any) -> Scene:
        return self.resource("raw_data", uid=uid, src=self.npy(f"{uid}.npy", content))

    def resource(self, kind: str, **keys: Any) -> Scene:
        self.resources.append({kind: keys})
        return self

    def dispatch(self, shader: str, bindings: Bindings, groups: Sequence[int] = (1,), **keys: Any) -> Scene:
        """A dispatch_compute; a list of bindings counts up in set 0, a mapping has (set, id) as keys."""
        if not isinstance(bindings, Mapping):
            bindings = {(0, number): uid for number, uid in enumerate(bindings)}
        bound = [{"set": set, "id": id, "resource_ref": uid} for (set, id), uid in bindings.items()]
        return self.command("dispatch_compute", shader_ref=shader, bindings=bound, rangeND=list(groups), **keys)

    def command(self, kind: str, **keys: Any) -> Scene:
        self.commands.append({kind: keys})
        return self

    def write(self, name: str = "scenario.json") -> Path:
        """Store the scenario."""
        return self.file(name, json.dumps({"resources": self.resources, "commands": self.commands}, indent=1))

    def refusal(self, run: Callable[[Path], object], kind: type[ScenarioRunnerError] = ScenarioError) -> Diagnostic:
        """The one problem of the error that ``run`` (or ``plan``) of the scenario ends with."""
        with pytest.raises(kind) as caught:
            run(self.write())
        (problem,) = caught.value.problems
        return problem

    def output(self, uid: str, dtype: Any = "int8") -> Any:
        """What a run wrote for a buffer; the file must be what the reference runner writes: 1-D int8."""
        array = numpy.load(self.folder / f"{uid}.out.npy")
        assert array.dtype == numpy.int8
        assert array.ndim == 1
        return array.view(dtype)

    def leftovers(self) -> list[str]:
        """Files that no run should leave behind."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.tmp"))
