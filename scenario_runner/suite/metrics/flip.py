"""FLIP, the difference that a viewer sees who flips between two pictures, by NVIDIA's own package flip-evaluator.

Source: Andersson et al., "FLIP: A Difference Evaluator for Alternating Images" (2020), and its variant for high dynamic
range (2021), which float formats get. Colours of other formats count as sRGB. The result is the mean over all texels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.suite.metrics.pairs import Pair

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


_LUMINANCES = (0.2126, 0.7152, 0.0722)  # of red, green and blue
# Twice what the package counts as black: where all of what is expected is that, it ends the process, and where that is
# negative, it returns 0.
_LEAST_LUMINANCE = 2.0**-22


def flip(pairs: Sequence[Pair]) -> float:
    """0 where both pictures are equal, at most 1.

    Raises ValueError for values that are not finite, and for different floats where nothing but black is expected.
    """
    import numpy

    actual, expected = (_picture(pairs, side) for side in (0, 1))
    for what, picture in (("the output", actual), ("what is expected", expected)):
        if not numpy.isfinite(picture).all():
            raise ValueError(f"{what} has values that are not finite")
    if (actual == expected).all():
        return 0.0
    import flip_evaluator

    kind = "HDR" if pairs[0].actual.dtype.kind == "f" else "LDR"
    if kind == "HDR" and (expected.astype("f8") @ _LUMINANCES).max() < _LEAST_LUMINANCE:
        raise ValueError("what is expected is black, which no exposure makes visible: choose another metric")
    _, mean, _ = flip_evaluator.evaluate(expected, actual, kind, computeMeanError=True, applyMagma=False)
    return float(mean)


def _picture(pairs: Sequence[Pair], side: int) -> Array:
    import numpy

    colors = [(pair.expected if side else pair.actual).astype("f4") / pair.peak for pair in pairs[:3]]
    return numpy.stack([color.reshape(pairs[0].shape) for color in colors], axis=-1).astype("f4")
