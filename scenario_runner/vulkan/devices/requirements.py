"""From what a scenario requires, in SPIR-V's names, to what a device is opened with: features and extensions."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.plan.model.records import ML_STRUCTURES, Requirements
from scenario_runner.vulkan.api._generated.features import CORE_FEATURES, FEATURES
from scenario_runner.vulkan.api._generated.spirv_requirements import CAPABILITIES, EXTENSIONS
from scenario_runner.vulkan.devices.dependencies import companions
from scenario_runner.vulkan.devices.features import CORE, Feature
from scenario_runner.vulkan.devices.layers import FRAME_BOUNDARY

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

# The newest SPIR-V that each Vulkan version takes (Vulkan specification, appendix "Vulkan Environment for SPIR-V").
_SPIRV_VERSIONS = ((1 << 22 | 3 << 12, (1, 6)), (1 << 22 | 2 << 12, (1, 5)))
# Must not be enabled beside its successor.
_SUPERSEDED = frozenset({"VkPhysicalDeviceBufferDeviceAddressFeaturesEXT"})
# Capabilities under the names that they had before they became part of a newer extension.
_RENAMED = {
    "GroupNonUniformPartitionedNV": "GroupNonUniformPartitionedEXT",
}
_LACKING = "SR-FEATURE-001"
_ROBUSTNESS2 = "VkPhysicalDeviceRobustness2FeaturesKHR"


class Enabled:
    """Features and extensions to open a device with, and whether its queue must do graphics work.

    ``covers`` tells whether an open device is enough for more.
    """

    def __init__(self, features: frozenset[Feature], extensions: frozenset[str], *, graphics: bool = False) -> None:
        self.features = features
        self.extensions = extensions
        self.graphics = graphics

    def covers(self, other: Enabled) -> bool:
        enough = other.features <= self.features and other.extensions <= self.extensions
        return enough and (self.graphics or not other.graphics)

    def union(self, other: Enabled) -> Enabled:
        graphics = self.graphics or other.graphics
        return Enabled(self.features | other.features, self.extensions | other.extensions, graphics=graphics)


def enabled_for(
    physical: PhysicalDevice,
    requirements: Requirements,
    *,
    robustness: bool = False,
    frame_boundaries: bool = False,
    disabled_extensions: Collection[str] = (),
    emulated: bool = False,
) -> Enabled:
    """What ``physical`` must be opened with. ``emulated``: it is seen through the ML emulation layers.

    Raises UnsupportedError with one sentence for each thing that the device lacks: the shader, its capability, and the
    feature, extension or property that would bring it.
    """
    features: set[Feature] = set()
    extensions: set[str] = set()
    problems: list[Diagnostic] = []
    tables = (
        ("capability", requirements.capabilities, CAPABILITIES, True),
        ("extension", requirements.spirv_extensions, EXTENSIONS, True),
        # the emulation layers process graphs themselves, whatever the device lacks
        ("capability", requirements.graph_capabilities, CAPABILITIES, not emulated),
    )
    for what, names, table, required in tables:
        for name, shader in names.items():
            alternatives = table.get(_RENAMED.get(name, name))
            if alternatives is None:
                if what == "capability" and required:
                    problems.append(
                        Diagnostic(
                            _LACKING,
                            "error",
                            requirements.places.get(shader),
                            f"shader {shader!r} needs the capability {name}, which no Vulkan version knows",
                        )
                    )
                continue
            found = False
            lacking = []
            for alternative in alternatives:
                if found and (alternative[0] != "feature" or alternative[1] in _SUPERSEDED):
                    continue  # of features (atomics on buffers, on shared memory, …) all that exist are enabled
                satisfied = _satisfy(physical, alternative, disabled_extensions)
                if satisfied is None:
                    lacking.append(_describe(alternative))
                    continue
                found = True
                features |= satisfied.features
                extensions |= satisfied.extensions
            if not found and required:
                problems.append(
                    Diagnostic(
                        _LACKING,
                        "error",
                        requirements.places.get(shader),
                        f"shader {shader!r} needs the {what} {name}; {physical.name!r} lacks {' and '.join(lacking)}",
                    )
                )
    for needed in requirements.features:
        feature = physical.features.find(needed.structure, needed.member)
        if feature is not None and (feature.extension is None or feature.extension not in disabled_extensions):
            features.add(feature)
            continue
        help = None
        if needed.structure in ML_STRUCTURES:
            help = "the ML emulation layers bring it to devices with compute shaders: --ml-emulation auto"
            if ML_STRUCTURES[needed.structure] in disabled_extensions:
                help = f"run without --disable-extension {ML_STRUCTURES[needed.structure]}"
        problems.append(
            Diagnostic(
                "SR-FEATURE-002",
                "error",
                needed.pointer,
                f"{needed.what} needs {needed.member} ({needed.structure}), which {physical.name!r} lacks",
                help,
            )
        )
    newest = next((spirv for version, spirv in _SPIRV_VERSIONS if physical.api_version >= version), (1, 3))
    if requirements.spirv_version > newest:
        major, minor = requirements.spirv_version
        problems.append(
            Diagnostic(
                _LACKING,
                "error",
                requirements.places.get(requirements.newest_shader),
                f"a shader is SPIR-V {major}.{minor}; {physical.name!r} takes SPIR-V {newest[0]}.{newest[1]} at most",
                "compile it for an older target (for GLSL files the runner does that itself)",
            )
        )
    if requirements.graphics is not None and physical.queue_family(graphics=True) is None:
        problems.append(
            Diagnostic(
                "SR-FEATURE-004",
                "error",
                requirements.graphics,
                f"a drawing needs a queue family with graphics and compute, which {physical.name!r} lacks",
                "--list-devices shows the devices there are, --device chooses one",
            )
        )
    if problems:
        raise errors.error_of(problems)
    if emulated:
        from scenario_runner.vulkan.devices.ml_emulation import features_for_layers

        features |= features_for_layers(physical)
    features.update(companions(physical, requirements, disabled_extensions))
    if robustness:
        features |= _robustness(physical, disabled_extensions)
    if frame_boundaries and FRAME_BOUNDARY not in disabled_extensions:
        feature = physical.features.find("VkPhysicalDeviceFrameBoundaryFeaturesEXT", "frameBoundary")
        if feature is not None:
            features.add(feature)
        elif FRAME_BOUNDARY in physical.extensions:  # of a layer, which need not report features
            extensions.add(FRAME_BOUNDARY)
    if features or extensions:  # most scenarios need neither
        from scenario_runner.vulkan.devices.dependencies import dependent_extensions, implied_features

        features = implied_features(physical, features)
        extensions |= {feature.extension for feature in features if feature.extension}
        extensions, problems = dependent_extensions(physical, extensions, disabled_extensions)
        if problems:
            raise errors.error_of(problems)
    if "VK_KHR_portability_subset" in physical.extensions:
        extensions.add("VK_KHR_portability_subset")  # a device that has it must be opened with it
    return Enabled(frozenset(features), frozenset(extensions), graphics=requirements.graphics is not None)


def with_graphics(physical: PhysicalDevice, needed: Enabled) -> Enabled:
    """The same with a queue that does graphics work. Raises UnsupportedError where the device has none."""
    if physical.queue_family(graphics=True) is None:
        message = f"captures need a queue family with graphics and compute, which {physical.name!r} lacks"
        help = "--list-devices shows the devices there are, --device chooses one"
        raise errors.error_of([Diagnostic("SR-FEATURE-004", "error", None, message, help)])
    return Enabled(needed.features, needed.extensions, graphics=True)


def _satisfy(physical: PhysicalDevice, alternative: tuple[Any, ...], disabled: Collection[str]) -> Enabled | None:
    """What to enable for one alternative of the registry, or None when the device lacks it."""
    kind = alternative[0]
    nothing: frozenset[Feature] = frozenset()
    if kind == "version":
        return Enabled(nothing, frozenset()) if physical.api_version >= alternative[1] else None
    if kind == "extension":
        name = alternative[1]
        usable = name in physical.extensions and name not in disabled
        return Enabled(nothing, frozenset({name})) if usable else None
    if kind == "feature":
        feature = physical.features.find(alternative[1], alternative[2])
        if feature is None or (feature.extension and feature.extension in disabled):
            return None
        return Enabled(frozenset({feature}), frozenset())
    return Enabled(nothing, frozenset()) if physical.has_property(*alternative[1:4]) else None


def _describe(alternative: tuple[Any, ...]) -> str:
    if alternative[0] == "version":
        return f"Vulkan {alternative[1] >> 22 & 0x7F}.{alternative[1] >> 12 & 0x3FF}"
    if alternative[0] == "extension":
        return f"the extension {alternative[1]}"
    return f"{alternative[2]} ({alternative[1]})"


def _robustness(physical: PhysicalDevice, disabled: Collection[str]) -> set[Feature]:
    """robustBufferAccess, and robustness2, image and pipeline robustness where the device has them."""
    wanted = [
        (CORE, "robustBufferAccess"),
        (_ROBUSTNESS2, "robustBufferAccess2"),
        (_ROBUSTNESS2, "robustImageAccess2"),
        ("VkPhysicalDeviceImageRobustnessFeatures", "robustImageAccess"),
        ("VkPhysicalDevicePipelineRobustnessFeatures", "pipelineRobustness"),
    ]
    found = (physical.features.find(structure, member) for structure, member in wanted)
    return {feature for feature in found if feature is not None and feature.extension not in disabled}


def lacks_capability(physical: PhysicalDevice, name: str) -> str:
    """What a device lacks for a capability of SPIR-V, in words; empty where it has the capability."""
    alternatives = CAPABILITIES.get(_RENAMED.get(name, name))
    if alternatives is None:
        return "no Vulkan version knows it"
    if any(_satisfy(physical, alternative, ()) is not None for alternative in alternatives):
        return ""
    return " and ".join(map(_describe, alternatives))


def known_features() -> frozenset[str]:
    """The names of all features that Vulkan has, in whatever structure."""
    return frozenset(CORE_FEATURES).union(*(members for _, _, _, members in FEATURES.values()))


def lacks_feature(physical: PhysicalDevice, member: str) -> bool:
    """Whether a device has no feature of this name, in any structure."""
    structures = [CORE] if member in CORE_FEATURES else []
    structures += [name for name, (_, _, _, members) in FEATURES.items() if member in members]
    return not any(physical.features.find(structure, member) for structure in structures)
