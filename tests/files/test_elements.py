"""Kinds of numbers, against ml_dtypes and NumPy's own spacing."""

import numpy
import pytest

from scenario_runner.files.elements import ELEMENTS, element_of


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_steps_count_values_between_two(name: str) -> None:
    """The distance in steps is the number of times that nextafter goes from one value to the other, across zero too."""
    element = ELEMENTS[name]
    start = numpy.array([-0.0, 1.0, -1.0, 0.0], element.dtype)
    value = start
    for count in range(1, 6):
        value = numpy.nextafter(value, numpy.array(numpy.inf, element.dtype))
        assert element.steps(start, value).tolist() == [count] * 4
        assert element.steps(value, start).tolist() == [count] * 4
    least = -numpy.nextafter(numpy.array(0, element.dtype), numpy.array(1, element.dtype))
    assert element.steps(least.reshape(1), -least.reshape(1)).tolist() == [2]


def test_values_are_shown_with_their_bits() -> None:
    """A value is shown in decimal and, in hexadecimal, as its bits."""
    assert ELEMENTS["float32"].text(numpy.array([1.5], "f4")) == "1.5 (0x3fc00000)"
    assert ELEMENTS["int16"].text(numpy.array([-2], "i2")) == "-2 (0xfffe)"
    assert ELEMENTS["bool"].text(numpy.array([True])) == "True (0x01)"
    assert ELEMENTS["bfloat16"].text(numpy.array([0x3FC0], "u2")) == "1.5 (0x3fc0)"


def test_types_of_files() -> None:
    """NumPy's plain types have an element; raw bytes are bfloat16 and float8, and complex numbers are nothing."""
    assert element_of("f2") is ELEMENTS["float16"]
    assert element_of("b1") is ELEMENTS["bool"]
    assert element_of("V2") is ELEMENTS["bfloat16"]
    assert element_of("c8") is element_of("f16") is element_of("V3") is None
