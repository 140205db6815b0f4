"""The conditions ``when`` and ``needs`` on a device: conditions that match it, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.suite.expectations.model import SOURCES, VENDORS, Check, Condition, Output
from scenario_runner.suite.records import Status
from scenario_runner.text import close_names, did_you_mean

if TYPE_CHECKING:
    from scenario_runner.plan.plan import Plan
    from scenario_runner.vulkan.physical_device import PhysicalDevice

_COMPARISON = re.compile(r"(<=|>=|==|!=|<|>)\s*(\d+(?:\.\d+)*)\s*")
_SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Device(NamedTuple):
    """A physical device as conditions see it; ``driver_version`` is the first such number in the text of its driver."""

    name: str
    type: str
    vendor_id: int
    driver: str
    driver_version: tuple[int, ...]

    @classmethod
    def of(cls, physical: Any) -> Device:
        """Describe a `PhysicalDevice`."""
        driver, version = physical.driver, int(physical.properties.driverVersion)
        match = _VERSION.search(driver)
        # without a text, the packing that Vulkan itself uses: 10 bits of major, 10 of minor, 12 of patch
        numbers = (
            (version >> 22, version >> 12 & 0x3FF, version & 0xFFF)
            if match is None
            else tuple(map(int, match.group().split(".")))
        )
        return cls(physical.name, physical.type, int(physical.properties.vendorID), driver, numbers)


def vendor_id(text: str) -> int | None:
    """The id of a vendor, given by name or as a hexadecimal number; None where there is no such vendor."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,8}", text):
        return int(text, 16)
    return VENDORS.get(text.lower())


def comparisons(text: str) -> list[tuple[str, tuple[int, ...]]] | None:
    """Parse comparisons such as '>=24.1 <25'; None where the text is something else."""
    if not re.fullmatch(rf"(?:{_COMPARISON.pattern})+", text.strip()):
        return None
    return [(sign, tuple(map(int, version.split(".")))) for sign, version in _COMPARISON.findall(text)]


def matches(condition: Condition, device: Device) -> bool:
    """Return whether a device meets all keys of a condition."""
    for pattern, name in ((condition.device, device.name), (condition.driver, device.driver)):
        if pattern is not None and not fnmatchcase(name.lower(), pattern.lower()):
            return False
    if condition.type is not None and condition.type != device.type:
        return False
    if condition.vendor is not None and vendor_id(condition.vendor) != device.vendor_id:
        return False
    versions = comparisons(condition.driver_version) if condition.driver_version is not None else None
    return all(_holds(sign, device.driver_version, version) for sign, version in versions or ())


def _holds(sign: str, version: tuple[int, ...], bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    padded, padded_bound = (numbers + (0,) * (length - len(numbers)) for numbers in (version, bound))
    return bool(_SIGNS[sign](padded, padded_bound))


def matching(check: Check, device: Device) -> int | None:
    """The index of the first entry of ``when`` that matches."""
    return next((at for at, condition in enumerate(check.when) if matches(condition, device)), None)


def merged(check: Check, condition: Condition) -> Check:
    """The expectations with what an entry of ``when`` changes."""
    outputs = dict(check.outputs)
    for name, changed in condition.outputs.items():
        outputs[name] = _merged(outputs.get(name), changed)
    timeout = check.timeout if condition.timeout is None else condition.timeout
    return check.model_copy(update={"outputs": outputs, "timeout": timeout})


def _merged(base: Output | None, changed: Output) -> Output:
    if base is None or changed.unchecked:
        return changed
    changes = {name: getattr(changed, name) for name in changed.model_fields_set}
    dropped: set[str] = set()
    if any(name in changes for name in SOURCES):  # another source takes the place of the one there was
        dropped = {name for name in SOURCES if name not in changes}
    if "sha256" in changes:
        return changed
    if "allowed_count" in changes or "allowed_share" in changes:
        dropped |= {"allowed_count", "allowed_share"} - changes.keys()
    kept = {name: getattr(base, name) for name in base.model_fields_set - dropped - {"unchecked"}}
    return type(base).model_construct(**{**kept, **changes})


def lacking(needs: Any, physical: Any) -> Iterator[str]:
    """The needs that a device lacks, in words."""
    from scenario_runner.vulkan.requirements import lacks_capability, lacks_feature

    for name in needs.capabilities:
        missing = lacks_capability(physical, name)
        if missing:
            yield f"the capability {name}: {missing}"
    for name in needs.features:
        if lacks_feature(physical, name):
            yield f"the feature {name}"
    for name in needs.extensions:
        if name not in physical.extensions:
            yield f"the extension {name}{_meant(name)}"


def _meant(extension: str) -> str:
    """Suggest another name for an extension that this program does not know; it may be newer."""
    from scenario_runner.vulkan._generated.extension_names import DEVICE_EXTENSIONS

    if extension in DEVICE_EXTENSIONS:
        return ""
    return did_you_mean(close_names(extension, DEVICE_EXTENSIONS, most=1, cutoff=0.8))


def refusal(check: Check, plan: Plan, physical: PhysicalDevice) -> tuple[Status, str] | None:
    """The reason why an item cannot run on a device, and its status then; None where it can."""
    needs = check.needs
    if needs is None:
        return None
    declared = plan.requirements.capabilities.keys() | plan.requirements.graph_capabilities.keys()
    for name in needs.capabilities:
        if name not in declared:
            return "Fail", f"'needs' names the capability {name}, which no shader declares"
    lacks = ", ".join(lacking(needs, physical))
    return ("NotSupported", f"{physical.name!r} lacks {lacks}") if lacks else None
