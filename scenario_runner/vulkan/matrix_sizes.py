"""Cooperative matrices that a device supports, compared with the needs of shaders.

Source: Vulkan specification, VkCooperativeMatrixPropertiesKHR, VkCooperativeMatrixFlexibleDimensionsPropertiesNV and
the rules that `plan.shader_modules` names.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scenario_runner.plan.records import MatrixUse
from scenario_runner.vulkan._generated import constants as vk

_MOST_SHOWN: Final = 24
# VkComponentTypeKHR
COMPONENTS: Final = {
    **dict(enumerate(("float16", "float32", "float64", "int8", "int16", "int32", "int64"))),
    **dict(enumerate(("uint8", "uint16", "uint32", "uint64"), start=7)),
    1000141000: "bfloat16",
    1000491002: "float8_e4m3",
    1000491003: "float8_e5m2",
}


class MatrixSizes(NamedTuple):
    """One combination that a device supports: M, N and K, the types of A, B, C and the result.

    ``invocations`` is the size that a workgroup must have; 0 allows any. ``is_flexible`` tells that multiples of the
    sizes are supported, too.
    """

    sizes: tuple[int, int, int]
    components: tuple[str, str, str, str]
    scope: int
    saturating: bool
    invocations: int = 0
    is_flexible: bool = False

    def __str__(self) -> str:
        multiples = " and multiples" if self.is_flexible else ""
        workgroups = f" in workgroups of {self.invocations}" if self.invocations else ""
        return f"{'x'.join(map(str, self.sizes))}{multiples} ({', '.join(self.components)}){workgroups}"

    @property
    def features(self) -> list[str]:
        """Members of VkPhysicalDeviceCooperativeMatrix2FeaturesNV that shaders need to use the combination."""
        features = ["cooperativeMatrixFlexibleDimensions"] if self.is_flexible else []
        return features + (["cooperativeMatrixWorkgroupScope"] if self.scope == vk.SCOPE_WORKGROUP_KHR else [])

    def suits(self, use: MatrixUse) -> bool:
        """Return whether a type or a product is one of this combination."""
        if use.scope != self.scope or use.saturating not in (None, self.saturating):
            return False
        if self.invocations not in (0, use.invocations):
            return False
        for wanted, size in zip(use.sizes, self.sizes, strict=True):
            if wanted is not None and (wanted % size if self.is_flexible else wanted != size):
                return False
        return any(
            all(not names or name in names for names, name in zip(alternative, self.components, strict=True))
            for alternative in use.components
        )


def missing_matrices(uses: Iterable[MatrixUse], supported: Sequence[MatrixSizes]) -> str:
    """Name the types and products that no combination suits, and the supported combinations; empty if there is none."""
    missing = [use.words for use in uses if not any(each.suits(use) for each in supported)]
    if not missing:
        return ""
    shown = list(dict.fromkeys(map(str, supported)))
    shown[_MOST_SHOWN:] = ["…"] if len(shown) > _MOST_SHOWN else []
    table = f"of M x N x K (A, B, C, result) it supports {'; '.join(shown) or 'none'}"
    return f"{', '.join(missing)}; {table}"
