"""The table of metrics: what each measures, its bounds where nobody gives any, and what it can be computed of."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.visible import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scenario_runner.suite.metrics.pairs import Pair
    from scenario_runner.suite.tolerance.planes import Plane


class Metric(NamedTuple):
    """One metric; ``function`` is "module:name" in this package, and computes it of pairs of channels.

    A likeness is better where it is greater; other metrics are errors. ``defaults`` are the bounds (warning, failure)
    without which the user must give some. ``images`` tells that it is one of images, whose sides are at least
    ``least_side`` texels, ``package`` what must be installed for it.
    """

    name: str
    function: str
    is_likeness: bool = False
    defaults: tuple[float, float] | None = None
    images: bool = False
    least_side: int = 1
    package: str | None = None

    def value(self, pairs: Sequence[Pair]) -> float:
        """The metric of channels. Raises ValueError with the reason where these values have none."""
        module, _, function = self.function.partition(":")
        found: Any = getattr(import_module(f"scenario_runner.suite.metrics.{module}"), function)
        return float(found(pairs))

    def misfits(self, planes: Sequence[Plane]) -> Iterator[tuple[str, str, str | None]]:
        """Why it cannot be computed of an output: code, message and help."""
        if self.images:
            (plane, *others) = planes
            if plane.image is None:
                yield "SR-EXPECT-009", "is a metric of images; this output is none", None
            elif others:
                message = f"is a metric of one picture; this output has {len(planes)} (mip levels, depth and stencil)"
                yield "SR-EXPECT-009", message, None
            elif min(plane.shape[:2]) < self.least_side:
                size = f"{plane.shape[1]}x{plane.shape[0]}"
                yield "SR-EXPECT-009", f"needs {self.least_side} texels each way; this image has {size}", None
            elif self.package and plane.shape[2] < 3:
                yield "SR-EXPECT-009", f"needs three channels; this image has {plane.shape[2]}", None
        if self.package and find_spec(self.package.replace("-", "_")) is None:
            message = f"needs the package {self.package!r}, which is not installed"
            yield "SR-EXPECT-010", message, "pip install 'scenario-runner[compare]'"


METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric("rmse", "squares:rmse"),
        Metric("psnr", "squares:psnr", is_likeness=True),
        Metric("ssim", "ssim:ssim", is_likeness=True, images=True, least_side=11),
        Metric("histogram_emd", "histogram:histogram_emd"),
        Metric("flip", "flip:flip", images=True, package="flip-evaluator"),
        Metric("rel_l2", "relative:rel_l2", defaults=(3e-6, 1.5e-5)),
        Metric("cosine", "relative:cosine", is_likeness=True, defaults=(0.999999, 0.999995)),
        Metric("scale_error", "relative:scale_error", defaults=(2e-6, 1e-5)),
        Metric("wasserstein_rel", "relative:wasserstein_rel", defaults=(2e-7, 1e-6)),
        Metric("atol_p999", "relative:atol_p999", defaults=(3e-6, 1e-5)),
    )
}
"""By the names that expectations use."""


def verdict(metric: Metric, bounds: Any, value: float) -> tuple[str, str]:
    """What a value means under the bounds of the expectations: "Pass", "Warn" or "Fail", and a sentence if not Pass."""
    warn, limit = bounds.warn, bounds.min if metric.is_likeness else bounds.max
    if warn is None and limit is None and metric.defaults is not None:
        warn, limit = metric.defaults
    for status, bound in (("Fail", limit), ("Warn", warn)):
        if bound is None:
            continue
        is_within = value >= bound if metric.is_likeness else value <= bound
        if not is_within:  # a NaN is within nothing
            wanted = "at least" if metric.is_likeness else "at most"
            found, expected = distinct(value, bound)
            return status, f"{metric.name} is {found}, expected {wanted} {expected}"
    return "Pass", ""
