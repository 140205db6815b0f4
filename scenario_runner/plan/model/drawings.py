"""Drawings in a plan: graphics pipelines, and the draws that use them. Apart from `records`: few scenarios draw."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

from scenario_runner.plan.model.records import LayoutBinding, Specialization


class ShaderStagePlan(NamedTuple):
    """One shader of a graphics pipeline; ``label`` is its uid.

    ``inputs`` and ``outputs`` count the locations that its variables take, built-in ones aside.
    """

    code: bytes
    entry: str
    specialization: Specialization
    label: str
    pointer: str
    inputs: int = 0
    outputs: int = 0


class GraphicsPipelinePlan(NamedTuple):
    """A vertex and a fragment shader, and the VkFormat of each color attachment; equal `content` is one pipeline.

    ``push_constants_size`` is seen by both shaders. ``write_masks`` are the components of each attachment that the
    fragment shader gives, VkColorComponentFlags; the others keep their values. ``pointer`` is that of the first command
    that draws with it.
    """

    vertex: ShaderStagePlan
    fragment: ShaderStagePlan
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    push_constants_size: int
    formats: tuple[int, ...]
    write_masks: tuple[int, ...]
    pointer: str

    @property
    def content(self) -> Hashable:
        """What decides which pipeline this is."""
        return self.vertex[:3], self.fragment[:3], *self[2:6]


class Target(NamedTuple):
    """A mip level of an image that is drawn into."""

    uid: str
    level: int


class Draw(NamedTuple):
    """Draw three vertices with ``pipeline`` into ``targets``; ``extent`` is the width and height of what is drawn.

    What the triangle does not cover keeps its texels.
    """

    pipeline: int
    descriptors: int
    targets: tuple[Target, ...]
    extent: tuple[int, int]
    push_constants: bytes
    barrier_after: bool
    command: int

    @property
    def kind(self) -> Literal["draw"]:
        """Which kind of operation it is."""
        return "draw"
