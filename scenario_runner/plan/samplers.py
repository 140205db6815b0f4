"""Samplers of images: what the scenario asks for, in a form in which equal samplers are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.plan.model.resources import SamplerPlan

if TYPE_CHECKING:
    from scenario_runner.formats import Format
    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import Image

_INTEGERS = frozenset({"uint", "sint"})


def is_integer(format: Format) -> bool:
    """Whether shaders see the texels as integers."""
    return format.numeric in _INTEGERS


def sampler_of(image: Image, format: Format, pointer: str, problems: Problems) -> SamplerPlan:
    """The image's sampler. What cannot matter is left at its default, so that it makes no other sampler.

    A standard border color is the one of the format's kind: INT_OPAQUE_WHITE and FLOAT_OPAQUE_WHITE both mean white.
    """
    plan = SamplerPlan(image.min_filter, image.mag_filter, image.mip_filter, image.border_address_mode)
    if image.mips == 1:
        plan = plan._replace(mip_filter="NEAREST")  # there is one level to choose from
    if image.border_address_mode != "CLAMP_BORDER":
        return plan
    kind, _, name = image.border_color.partition("_")
    kind_of_format = "INT" if is_integer(format) else "FLOAT"
    if name != "CUSTOM_EXT":
        return plan._replace(border_color=f"{kind_of_format}_{name}")
    if kind != kind_of_format:
        other = f"{kind_of_format}_CUSTOM_EXT"
        problems.error(
            "SR-IMAGE-008",
            f"{pointer}/border_color",
            f"border color {image.border_color} does not fit image {image.uid!r} of {format.name}, whose texels are"
            f" {'integers' if kind_of_format == 'INT' else 'no integers'}",
            f"use {other}",
        )
        return plan
    color = image.custom_border_color or (0, 0, 0, 0)
    values: tuple[int | float, ...] = tuple(
        int(value) & 0xFFFF_FFFF if kind == "INT" else float(value) for value in color
    )
    return plan._replace(border_color=image.border_color, custom_color=values, custom_format=format.value)
