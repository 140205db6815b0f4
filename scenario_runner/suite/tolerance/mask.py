"""Elements that do not count: those that a mask covers, and a border."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.files.codec import codec_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

    from scenario_runner.suite.tolerance.planes import Plane

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def ignored_elements(planes: Sequence[Plane], mask: str | None, border: int) -> Array:
    """A flag for each element of one plane: true where it does not count.

    A mask has the shape of the elements, or of an image without its channels. Raises FileError where it cannot be read,
    and ValueError with the reason where it does not fit, or leaves nothing to compare.
    """
    import numpy

    if len(planes) != 1:
        raise ValueError(f"the output has {len(planes)} parts (mip levels, depth and stencil), expected one")
    (plane,) = planes
    flags = numpy.zeros(plane.shape, bool)
    if mask is not None:
        flags |= _spread(_covered(mask), plane)
    if border:
        rows, columns = (0, 1) if plane.image is not None else (-2, -1)
        if len(plane.shape) < 2:
            raise ValueError(f"the output has the shape {plane.shape}: there are no rows and columns with a border")
        inner = [slice(None)] * len(plane.shape)
        for axis in (rows, columns):
            inner[axis] = slice(border, max(border, plane.shape[axis] - border))
        outside = numpy.ones(plane.shape, bool)
        outside[tuple(inner)] = False
        flags |= outside
    if flags.size and flags.all():
        raise ValueError("no element of the output counts")
    return flags.reshape(-1)


def _covered(path: str) -> Array:
    """Where a mask is not zero, in its own shape."""
    import numpy

    from scenario_runner.files.npy import read_array
    from scenario_runner.files.source import file_error

    if codec_of(path).is_array:
        array = read_array(path)
        if array.dtype.kind not in "biuf":
            raise file_error(path, f"is a mask of the type {array.dtype.str!r}, expected numbers or bool")
        return numpy.asarray(array != 0)
    from scenario_runner.viewing.reading import read_content

    content = read_content(path)
    colors = [channel.raw for channel in content.channels if channel.name != "A"]
    return numpy.asarray(numpy.any([color != 0 for color in colors], axis=0))


def _spread(covered: Array, plane: Plane) -> Array:
    """A mask over all elements of a plane."""
    import numpy

    shape = covered.shape
    while len(shape) > 1 and len(shape) > len(plane.shape) and shape[0] == 1:
        shape = shape[1:]
    covered = covered.reshape(shape)
    if shape == plane.shape:
        return covered
    if plane.image is not None and shape == plane.shape[:2]:
        return numpy.broadcast_to(covered[..., None], plane.shape)
    if covered.size == plane.element_count and plane.image is None:
        return covered.reshape(plane.shape)
    raise ValueError(f"the mask has the shape {covered.shape}, but the output has {plane.shape}")
