"""Inputs and outputs as a caller sees them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vgf_samples import FIXTURES

from scenario_runner.errors import FileError
from scenario_runner.graphs import Vgf, find_port, input_ports, output_ports, read_vgf


def model(name: str) -> Vgf:
    """The fixture ``name``, read."""
    return read_vgf(FIXTURES / f"{name}.vgf")


def test_one_input_has_all_its_views() -> None:
    """An input seen as tensor and as buffer is one port with both rows, the model's own first."""
    vgf = model("mixed")
    x, y = input_ports(vgf)
    assert (x.binding, x.name, y.binding, y.name) == (0, "x", 1, "y")
    assert x.view_indices[0] == x.resource_index == vgf.inputs[0].resource_index
    assert {vgf.resources[i].alias_group for i in x.view_indices} == {vgf.resources[x.resource_index].alias_group}
    assert {vgf.resources[i].descriptor_type for i in x.view_indices} == {7, 1000460000}
    # y is read by graphs only, so it has one row.
    assert len(y.view_indices) == 1


def test_an_output_that_a_later_segment_reads_has_both_rows() -> None:
    """An output and the intermediate that shares its memory are views of one port."""
    vgf = model("placeholder")
    shaded = output_ports(vgf)[0]
    assert [vgf.resources[i].category for i in shaded.view_indices] == ["output", "intermediate"]


def test_a_result_returned_twice_is_one_port_with_two_names() -> None:
    """Equal slots are one port, which answers to each of its names."""
    ports = output_ports(model("ends"))
    assert [(port.binding, port.names) for port in ports] == [
        (2, ("sum", "sum_again")),
        (3, ("difference",)),
        (0, ("same",)),
    ]
    assert find_port(ports, "sum_again") is find_port(ports, "sum") is find_port(ports, 2)


def test_names_are_not_trusted_when_they_do_not_match_the_slots() -> None:
    """With more names than slots a port has a number only, and can be found by that."""
    ports = input_ports(model("unused"))
    assert [(port.binding, port.names) for port in ports] == [(1, ()), (2, ())]
    assert find_port(ports, "2") is ports[1]
    with pytest.raises(FileError, match=r"^the model has no 'z' here; it has: binding 1, binding 2$"):
        find_port(ports, "z")


def test_a_name_that_several_inputs_have_must_be_a_number() -> None:
    """Two inputs of one name are told apart by their bindings."""
    ports = input_ports(replace(model("ends"), input_names=("x", "x")))
    with pytest.raises(FileError, match=r"^several are called 'x': 'x' \(binding 0\), 'x' \(binding 1\)$"):
        find_port(ports, "x")
    assert find_port(ports, "1") is ports[1]


def test_an_absurd_number_is_no_port() -> None:
    """A key of thousands of digits is refused in no time, and so is a digit of another script."""
    for key in ("9" * 5000, "\u0661"):
        with pytest.raises(FileError, match="the model has no"):
            find_port(input_ports(model("ends")), key)
