"""One shader that should become SPIR-V."""

from __future__ import annotations

from typing import Literal, NamedTuple

Language = Literal["GLSL", "HLSL"]
Stage = Literal["compute", "vertex", "fragment"]
TARGETS = ("vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3", "vulkan1.4")


class CompileRequest(NamedTuple):
    """What the scenario's ``shader`` resource says about a source.

    Either ``path`` names the file, or ``source`` holds the text and ``name`` labels it in messages. ``build_options``
    is the scenario's string (see `parse_build_options`); a relative ``-I`` in it counts from ``base_dir`` (the
    scenario's folder). ``include_dirs`` are searched in order, after the folder of the file that includes. ``label`` is
    the shader's uid. ``target`` is the oldest Vulkan version that the module must run on; a source that needs a newer
    one (GL_ARM_tensors) gets it.
    """

    language: Language = "GLSL"
    path: str | None = None
    source: str | None = None
    name: str = "<source>"
    entry: str = "main"
    stage: Stage = "compute"
    build_options: str = ""
    include_dirs: tuple[str, ...] = ()
    base_dir: str = ""
    label: str = ""
    target: str = "vulkan1.2"

    @property
    def place(self) -> str:
        """What messages call the source: the path as it was given, or the name of a text."""
        return self.path if self.path is not None else self.name
