"""One test for every way in which the parts of a file can contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vgf_samples import FIXTURES, SAMPLED_IMAGE, everything

from scenario_runner.graphs import (
    DescriptorSet,
    GraphConstant,
    PushConstantRange,
    Slot,
    Vgf,
    find_problems,
    parse_vgf,
    read_vgf,
    unwritten_inputs,
)

RANGE_RULE = "both are multiples of 4, the size is not 0, and the range ends at 65536 bytes or before"
SOUND = parse_vgf(everything())


def said(vgf: Vgf) -> list[str]:
    """The problems of a file as text."""
    return [str(problem) for problem in find_problems(vgf, "m.vgf")]


def with_item(vgf: Vgf, table: str, index: int, **changes: Any) -> Vgf:
    """``vgf`` with one entry of one of its tables changed."""
    items = list(getattr(vgf, table))
    items[index] = replace(items[index], **changes)
    return replace(vgf, **{table: tuple(items)})


def test_sound_files_have_no_problems() -> None:
    """Neither the encoded sample nor a converted model is complained about."""
    assert said(SOUND) == []
    assert said(read_vgf(FIXTURES / "image.vgf")) == []


@pytest.mark.parametrize(
    "table, index, changes, place, message",
    [
        ("constants", 1, {"resource_index": 8}, "/constants/1", "the resource index is 8, but the file has 8 of them"),
        (
            "segments",
            1,
            {"module_index": 4},
            "/segments/1/module_index",
            "the module index is 4, but the file has 4 of them",
        ),
        (
            "segments",
            3,
            {"inputs": (Slot(0, 2**32 - 1),)},
            "/segments/3/inputs/0",
            "the resource index is 4294967295, but the file has 8 of them",
        ),
        (
            "segments",
            3,
            {"outputs": (Slot(0, 9),)},
            "/segments/3/outputs/0",
            "the resource index is 9, but the file has 8 of them",
        ),
        (
            "segments",
            0,
            {"constants": (GraphConstant(0, 2),)},
            "/segments/0/constants/0",
            "the constant index is 2, but the file has 2 of them",
        ),
        (
            "resources",
            2,
            {"shape": (4, 0)},
            "/resources/2",
            "has the shape [4, 0]; a dimension is 1 or more, or -1 when dynamic",
        ),
        (
            "resources",
            2,
            {"shape": (2**63 - 1, -2)},
            "/resources/2",
            "has the shape [9223372036854775807, -2]; a dimension is 1 or more, or -1 when dynamic",
        ),
        (
            "resources",
            5,
            {"shape": (2**40, -1, 2)},
            "/resources/5",
            "has the shape [1099511627776, -1, 2], which is more than 2**40 elements",
        ),
        ("resources", 5, {"shape": (1,) * 17}, "/resources/5", "has 17 dimensions, at most 16 are expected"),
        ("resources", 0, {"strides": (4,)}, "/resources/0", "has 1 strides for 2 dimensions"),
        (
            "resources",
            0,
            {"strides": (0, 4)},
            "/resources/0",
            "has the strides [0, 4]; a stride is between 1 and 2**40",
        ),
        (
            "resources",
            4,
            {"shape": (4, 4)},
            "/resources/4",
            "is an image of the shape [4, 4], expected [H, W, components] or [1, H, W, components]",
        ),
        (
            "resources",
            4,
            {"shape": ()},
            "/resources/4",
            "is an image of the shape [], expected [H, W, components] or [1, H, W, components]",
        ),
        (
            "resources",
            4,
            {"shape": (2, 4, 4, 4)},
            "/resources/4",
            "is an image of the shape [2, 4, 4, 4], expected [H, W, components] or [1, H, W, components]",
        ),
        (
            "resources",
            4,
            {"shape": (4, 4, 3)},
            "/resources/4",
            "is an image of the shape [4, 4, 3], but VK_FORMAT_R32G32B32A32_SFLOAT has 4 components",
        ),
        (
            "resources",
            7,
            {"alias_group": 3},
            "/resources/7",
            "a constant cannot be in an alias group, but this one is in group 3",
        ),
        (
            "resources",
            1,
            {"shape": (4, 8)},
            "/resources/1",
            "has 128 bytes (shape [4, 8], VK_FORMAT_R32_SFLOAT), but shares the memory of resource 0, "
            "which has 256 bytes (alias group 0)",
        ),
        ("constants", 0, {"resource_index": 0}, "/constants/0", "resource 0 is not a constant, but an input"),
        (
            "constants",
            0,
            {"sparsity_dimension": 2},
            "/constants/0/sparsity_dimension",
            "is 2, but the constant has 2 dimensions",
        ),
        (
            "resources",
            6,
            {"shape": (-1, 8)},
            "/constants/0",
            "has the dynamic shape [-1, 8], but the shape of a constant is fixed",
        ),
        (
            "resources",
            6,
            {"format": 100},
            "/constants/0",
            "has 24 bytes of data, but shape [3, 8] of VK_FORMAT_R32_SFLOAT takes 96",
        ),
        (
            "constants",
            1,
            {"size_bytes": 19},
            "/constants/1",
            "has 19 bytes of data, but shape [5] of VK_FORMAT_R32_SFLOAT takes 20",
        ),
        (
            "segments",
            1,
            {"module_index": 0},
            "/segments/1",
            "is a compute segment, but its module 'graph_0' is a graph module",
        ),
        (
            "modules",
            0,
            {"language": None, "code": None},
            "/segments/0",
            "is a graph, but its module 'graph_0' has no code, expected SPIR-V",
        ),
        (
            "modules",
            0,
            {"language": "GLSL", "code": "x"},
            "/segments/0",
            "is a graph, but its module 'graph_0' has GLSL code, expected SPIR-V",
        ),
        (
            "segments",
            0,
            {"constants": (GraphConstant(5, 0), GraphConstant(5, 1))},
            "/segments/0/constants/1",
            "the graph constant id 5 is used twice",
        ),
        (
            "segments",
            3,
            {"outputs": (Slot(0, 7),)},
            "/segments/3/outputs/0",
            "resource 7 is of the category 'constant', expected input or output or intermediate",
        ),
        (
            "segments",
            3,
            {"descriptor_sets": (DescriptorSet(0, (Slot(0, 6),)),)},
            "/segments/3/descriptor_sets/0/slots/0",
            "binds resource 6, which is a constant",
        ),
        (
            "resources",
            5,
            {"descriptor_type": None},
            "/segments/2/descriptor_sets/0/slots/1",
            "binds resource 5, which has no descriptor type",
        ),
        (
            "segments",
            3,
            {"descriptor_sets": (DescriptorSet(0, ()), DescriptorSet(0, ()))},
            "/segments/3/descriptor_sets/1",
            "the set index 0 is used twice",
        ),
        (
            "segments",
            3,
            {"descriptor_sets": (DescriptorSet(2**32 - 3, ()),)},
            "/segments/3/descriptor_sets/0",
            "the set index is 4294967293, expected less than 1024",
        ),
        (
            "segments",
            3,
            {"descriptor_sets": (DescriptorSet(0, (Slot(2**32 - 3, 0),)),)},
            "/segments/3/descriptor_sets/0/slots/0",
            "the binding is 4294967293, expected less than 65536",
        ),
        (
            "segments",
            3,
            {"push_constant_ranges": (PushConstantRange(32, 0, 6),)},
            "/segments/3/push_constant_ranges/0",
            "has the offset 0 and the size 6; " + RANGE_RULE,
        ),
        (
            "segments",
            3,
            {"push_constant_ranges": (PushConstantRange(32, 0, 0),)},
            "/segments/3/push_constant_ranges/0",
            "has the offset 0 and the size 0; " + RANGE_RULE,
        ),
    ],
)
def test_a_contradiction_is_reported_once(
    table: str, index: int, changes: dict[str, Any], place: str, message: str
) -> None:
    """A changed entry is reported at its place, with what was found and what was expected."""
    assert said(with_item(SOUND, table, index, **changes)) == [f"m.vgf: {place}: {message}"]


def test_model_slots_have_their_categories() -> None:
    """An input of the model is an input row, and an output is an output row."""
    assert said(replace(SOUND, inputs=(Slot(0, 0), Slot(2, 4)))) == [
        "m.vgf: /inputs/1: resource 4 is of the category 'output', expected input"
    ]


def test_an_input_that_no_caller_can_supply_is_reported() -> None:
    """A shader that binds an input which the model does not list would read nothing."""
    assert said(replace(SOUND, inputs=())) == [
        f"m.vgf: {place}: uses resource {row}, an input that the model does not list as one"
        for place, row in (
            ("/segments/0/descriptor_sets/0/slots/0", 0),
            ("/segments/2/descriptor_sets/0/slots/0", 1),
            ("/segments/3/descriptor_sets/0/slots/0", 1),
        )
    ]


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"outputs": (Slot(2, 4), Slot(2, 5))},
            "/outputs/1: the binding 2 is used twice, for values that do not share",
        ),
        ({"inputs": (Slot(0, 0), Slot(1, 1))}, "/inputs/1: the bindings 0 and 1 mean the same value"),
    ],
)
def test_numbers_of_the_model_are_those_of_values(changes: dict[str, Any], message: str) -> None:
    """A scenario binds by these numbers, so that each is one value."""
    assert [problem.startswith(f"m.vgf: {message}") for problem in said(replace(SOUND, **changes))] == [True]


def test_segments_number_as_they_like() -> None:
    """Numbers of a segment may be those of its shader: what is bound where is said by the descriptor sets."""
    for inputs in ((Slot(0, 0), Slot(0, 2)), (Slot(0, 0), Slot(1, 1))):
        assert said(with_item(SOUND, "segments", 3, inputs=inputs)) == []


def test_segments_out_of_order_are_found() -> None:
    """A segment that reads what only a later one writes reads what nothing has written."""
    first, second, *rest = SOUND.segments
    swapped = (replace(second, index=0), replace(first, index=1), *rest)
    model = replace(SOUND, segments=swapped)
    assert said(model) == []
    assert list(unwritten_inputs(model)) == [(swapped[0], Slot(1, 3))]
    assert list(unwritten_inputs(SOUND)) == []


def test_equal_slots_are_accepted() -> None:
    """The converter repeats a slot for a result that is returned twice; that is not a contradiction."""
    assert said(read_vgf(FIXTURES / "ends.vgf")) == []


def test_an_unknown_format_switches_size_checks_off() -> None:
    """A format that the converter did not know does not make the file invalid."""
    assert said(with_item(SOUND, "resources", 6, format=-1)) == []
    assert said(with_item(SOUND, "resources", 4, format=2**31 - 1, descriptor_type=SAMPLED_IMAGE)) == []


def test_at_most_twenty_problems_are_listed() -> None:
    """A file that is wrong all over is not answered with a flood."""
    assert len(said(replace(SOUND, inputs=tuple(Slot(i, 99) for i in range(1000))))) == 20
