"""Cooperative matrices of a device, compared with the needs of shaders.

Source: Vulkan specification, VkCooperativeMatrixPropertiesKHR, VkCooperativeMatrixFlexibleDimensionsPropertiesNV and
the rules that `plan.shader_modules` names.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from scenario_runner.plan.records import MatrixUse
from scenario_runner.vulkan.physical_device import Feature, PhysicalDevice
from scenario_runner.vulkan.structs import enumerated

_CALL: Final = "vkGetPhysicalDeviceCooperativeMatrix{}"
_FLEXIBLE: Final = ("VkPhysicalDeviceCooperativeMatrix2FeaturesNV", "cooperativeMatrixFlexibleDimensions")
_MOST_SHOWN: Final = 24
# VkComponentTypeKHR
_COMPONENTS: Final = {
    **dict(enumerate(("float16", "float32", "float64", "int8", "int16", "int32", "int64"))),
    **dict(enumerate(("uint8", "uint16", "uint32", "uint64"), start=7)),
    1000141000: "bfloat16",
    1000491002: "float8_e4m3",
    1000491003: "float8_e5m2",
}


class MatrixSizes(NamedTuple):
    """One combination that a device supports: M, N and K, the types of A, B, C and the result.

    ``is_flexible`` tells that multiples of the sizes are supported, too.
    """

    sizes: tuple[int, int, int]
    components: tuple[str, str, str, str]
    scope: int
    saturating: bool
    is_flexible: bool = False

    def __str__(self) -> str:
        multiples = " and multiples" if self.is_flexible else ""
        return f"{'x'.join(map(str, self.sizes))}{multiples} ({', '.join(self.components)})"

    def suits(self, use: MatrixUse) -> bool:
        """Return whether a type or a product is one of this combination."""
        if use.scope != self.scope or use.saturating not in (None, self.saturating):
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


def supported_matrices(physical: PhysicalDevice, disabled: Collection[str]) -> tuple[list[MatrixSizes], Feature | None]:
    """Ask a device for its combinations, and for the feature that flexible sizes need."""
    found: list[MatrixSizes] = []
    feature = physical.features.find(*_FLEXIBLE, disabled)
    for kind in ("PropertiesKHR", *(["FlexibleDimensionsPropertiesNV"] if feature is not None else [])):
        call = _CALL.format(kind)
        letters = "MNK"
        members = [f"{letter}{'Size' if kind == 'PropertiesKHR' else 'Granularity'}" for letter in letters]
        for each in enumerated(f"VkCooperativeMatrix{kind}", call, getattr(physical.fn, call), physical.handle):
            m, n, k = (int(getattr(each, member)) for member in members)
            types = (each.AType, each.BType, each.CType, each.ResultType)
            a, b, c, result = (_COMPONENTS.get(int(type), f"component type {int(type)}") for type in types)
            saturating = bool(each.saturatingAccumulation)
            flexible = kind != "PropertiesKHR"
            found.append(MatrixSizes((m, n, k), (a, b, c, result), int(each.scope), saturating, flexible))
    return found, feature
