"""Builds small scenarios in a folder, for tests that run them: shaders, .npy files and the JSON around them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy
import pytest

from scenario_runner.errors import ScenarioError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.validation import Options, validate_file

Raised = TypeVar("Raised", bound=Exception)
Binding = str | Mapping[str, Any]
Bindings = Sequence[Binding] | Mapping[tuple[int, int], Binding]
_FORMATS = {"f2": "R16_SFLOAT", "f4": "R32_SFLOAT", "i1": "R8_SINT", "i2": "R16_SINT", "i4": "R32_SINT",
             "i8": "R64_SINT", "u1": "R8_UINT", "u2": "R16_UINT", "u4": "R32_UINT", "b1": "R8_BOOL_ARM"}  # fmt: skip


def error_of(kind: type[Raised], call: Callable[..., object], *arguments: Any, **keys: Any) -> Raised:
    """Return the error that a call raises."""
    with pytest.raises(kind) as caught:
        call(*arguments, **keys)
    return caught.value


def assemble(text: str, target: str = "spv1.3") -> bytes:
    """SPIR-V assembly as a module, by the real spirv-as."""
    command = ["spirv-as", "--preserve-numeric-ids", "--target-env", target, "-o", "-", "-"]
    return subprocess.run(command, input=text.encode(), check=True, capture_output=True).stdout


_BOUND = r'OpName %\1 "\1"\nOpDecorate %\1 DescriptorSet \2\nOpDecorate %\1 Binding \3'


def kernel(text: str = "") -> str:
    """Return SPIR-V assembly with the declarations of ``text`` and, after a line "main:", the instructions of %main.
    %void, %uint, the type %nothing of %main and a missing entry point are added.

    A line "Bind %NAME SET BINDING" names a variable and gives it a descriptor set and a binding.
    """
    declared, _, body = text.partition("main:\n")
    declared = re.sub(r"Bind %(\w+) (\d+) (\d+)", _BOUND, declared)
    lines = ["OpCapability Shader", "OpMemoryModel Logical GLSL450"]
    lines += [] if "OpEntryPoint" in text else ['OpEntryPoint GLCompute %main "main"']
    lines += [] if "OpExecutionMode" in text else ["OpExecutionMode %main LocalSize 1 1 1"]
    lines += ["%void = OpTypeVoid", "%nothing = OpTypeFunction %void", "%uint = OpTypeInt 32 0"]
    lines += [line.strip() for line in declared.splitlines()]
    head = ["OpCapability", "OpExtension", "OpMemoryModel", "OpEntryPoint", "OpExecutionMode", "OpName", "OpMemberName"]
    order = [*head, "Op", "{", "%", ""]
    lines.sort(key=lambda line: [line.startswith(each) for each in order].index(True))
    end = [] if body.rstrip().endswith("OpFunctionEnd") else ["OpReturn", "OpFunctionEnd"]
    return "\n".join([*lines, "%main = OpFunction %void None %nothing", "%start = OpLabel", body, *end])


def glsl(body: str, declarations: str = "", *, local_size: int = 1) -> str:
    """A compute shader around the body of its ``main``."""
    return f"#version 450\nlayout(local_size_x = {local_size}) in;\n{declarations}\nvoid main() {{\n{body}\n}}\n"


ADD = glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer B { uint a[]; };\n")


def findings_of(path: Path, *, hazards: bool = False) -> list[Diagnostic]:
    """Return the findings of validate without the note about other runners."""
    findings = validate_file(path, Options(hazards=hazards)).findings
    return [finding for finding in findings if finding.severity != "note"]


def hazards_of(path: Path) -> list[str]:
    """Return the codes of the hazards that validate finds."""
    return [finding.code for finding in findings_of(path, hazards=True) if finding.code.startswith("SR-HAZARD")]


def at_level(uid: str, lod: int) -> Binding:
    """A mip level of an image, to be bound."""
    return {"resource_ref": uid, "lod": lod}


def bound(bindings: Bindings) -> list[dict[str, Any]]:
    """Number the bindings of a command: a list counts up in set 0, a mapping has (set, id) as keys."""
    if not isinstance(bindings, Mapping):
        bindings = {(0, number): binding for number, binding in enumerate(bindings)}
    named = {place: {"resource_ref": each} if isinstance(each, str) else each for place, each in bindings.items()}
    return [{"set": set, "id": id, **binding} for (set, id), binding in named.items()]


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

    def image(
        self, uid: str, format: str, content: Any = None, *, size: tuple[int, int] | None = None, **keys: Any
    ) -> Scene:
        """An image of ``size`` (width, height), or with the texels of an array of the shape (height, width[, items]).

        ``format`` is the name of the VkFormat, with or without its prefix.
        """
        if content is not None:
            height, width = content.shape[:2]
            size = (width, height)
            keys["src"] = self.npy(f"{uid}.npy", content.reshape(1, height, width, -1))
        keys = {"dims": [1, *(size or ()), 1], "shader_access": "readwrite", **keys}
        return self.resource("image", uid=uid, format=f"VK_FORMAT_{format.removeprefix('VK_FORMAT_')}", **keys)

    def tensor(self, uid: str, content: Any = None, **keys: Any) -> Scene:
        """A tensor with the values of an array; it is written to ``<uid>.out.npy``."""
        if content is not None:
            keys["src"] = self.npy(f"{uid}.npy", content)
            keys.setdefault("dims", list(content.shape))
            if "format" not in keys:
                keys["format"] = f"VK_FORMAT_{_FORMATS[content.dtype.str[1:]]}"
        keys = {"shader_access": "readwrite", "dst": f"{uid}.out.npy", "format": "VK_FORMAT_R32_SFLOAT", **keys}
        return self.resource("tensor", uid=uid, **{key: value for key, value in keys.items() if value is not None})

    def raw_data(self, uid: str, content: Any) -> Scene:
        return self.resource("raw_data", uid=uid, src=self.npy(f"{uid}.npy", content))

    def resource(self, kind: str, **keys: Any) -> Scene:
        self.resources.append({kind: keys})
        return self

    def barrier(
        self,
        uid: str,
        image: str | None = None,
        *,
        layouts: tuple[str, str] = ("general", "general"),
        access: tuple[str, str] = ("memory_write", "memory_read"),
        **keys: Any,
    ) -> Scene:
        """A memory barrier, or the barrier of an image between two layouts."""
        keys = {"uid": uid, "src_access": access[0], "dst_access": access[1], **keys}
        if image is None:
            return self.resource("memory_barrier", **keys)
        return self.resource(
            "image_barrier", image_resource=image, old_layout=layouts[0], new_layout=layouts[1], **keys
        )

    def dispatch(self, shader: str, bindings: Bindings, groups: Sequence[int] = (1,), **keys: Any) -> Scene:
        """Add a dispatch_compute with the bindings of `bound`."""
        return self.command("dispatch_compute", shader_ref=shader, bindings=bound(bindings), rangeND=[*groups], **keys)

    def command(self, kind: str, **keys: Any) -> Scene:
        self.commands.append({kind: keys})
        return self

    def write(self, name: str = "scenario.json") -> Path:
        """Store the scenario."""
        return self.file(name, json.dumps({"resources": self.resources, "commands": self.commands}, indent=1))

    def refusal(self, run: Callable[[Path], object], kind: type[ScenarioRunnerError] = ScenarioError) -> Diagnostic:
        """Return the only problem of the error that ``run`` (or ``plan``) of the scenario raises."""
        (problem,) = error_of(kind, run, self.write()).problems
        return problem

    def output(self, uid: str, dtype: Any = "int8") -> Any:
        """Return the output of a buffer, whose file must be 1-D int8 as in the reference runner."""
        array = numpy.load(self.folder / f"{uid}.out.npy")
        assert array.dtype == numpy.int8
        assert array.ndim == 1
        return array.view(dtype)

    def leftovers(self) -> list[str]:
        """Files that no run should leave behind."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.tmp"))
