"""Another machine's device, from a report by ``scenario-runner doctor --json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from scenario_runner.errors import FileError, UnsupportedError, UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, json_reason, reason_of
from scenario_runner.files.input import read_file
from scenario_runner.plan.limits import LENGTHS, NAMES, SUBGROUP_SIZE, exceeded_limits
from scenario_runner.plan.plan import Plan
from scenario_runner.vulkan.capabilities import enabled_for
from scenario_runner.vulkan.physical_device import FeatureTable, MatrixSizes

_HELP = "write it with: scenario-runner doctor --json > doctor.json"
_VULKAN_11 = "VkPhysicalDeviceVulkan11Properties"


def read_device(path: str, choice: str | None = None) -> ReportedDevice:
    """Read a report's default device, or a device by index, UUID or partial name.

    Raises FileError for a file other than a report, and UsageError for an unknown device.
    """
    try:
        report = json.loads(read_file(path))
        return ReportedDevice(_chosen(report["devices"], choice, path))
    except OSError as error:
        problem = f"cannot read the report: {reason_of(error)}"
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"the report is not JSON: {json_reason(error)}"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"the file is not a report of the doctor: {type(error).__name__}: {error}"
    raise FileError(Diagnostic("SR-FILE-001", "error", None, problem, _HELP, path=path))


def _chosen(devices: list[dict[str, object]], wanted: str | None, path: str) -> dict[str, object]:
    if wanted is None:
        matches = [device for device in devices if device.get("default")] or devices[:1]
    else:
        matches = [
            device
            for device in devices
            if wanted in (str(device["index"]), device["uuid"]) or wanted.lower() in str(device["name"]).lower()
        ]
    if len(matches) == 1:
        return matches[0]
    if not devices:
        help = "'scenario-runner doctor' says why there are none"
        raise UsageError(f"{path}: the report lists no devices", help=help)
    there_are = ", ".join(repr(device.get("name")) for device in devices) or "none"
    raise UsageError(f"{path}: {'several devices match' if matches else 'no device is called'} {wanted!r}: {there_are}")


def _limits_of(reported: Mapping[str, Json]) -> dict[str, Json]:
    """Check the reported limits. Raise TypeError for a limit other than a number."""
    limits = {name: tuple(value) if isinstance(value, list) else value for name, value in reported.items()}
    for name in NAMES:
        value = limits.get(name, 0)
        numbers = value if isinstance(value, tuple) and len(value) == LENGTHS.get(name) else (value,)
        if not all(type(number) is int or (type(number) is float and isinstance(value, tuple)) for number in numbers):
            raise TypeError(f"limits/{name} is {reported[name]!r:.80}")
    return limits


def _matrices_of(reported: list[dict[str, Json]] | None) -> list[MatrixSizes] | None:
    """Read a report's cooperative matrices; None without a list. Raises TypeError, KeyError or ValueError."""
    if reported is None:
        return None
    rows = [MatrixSizes(**{name: row[name] for name in MatrixSizes._fields}) for row in reported]
    for row in rows:
        if not all(type(number) is int and number > 0 for number in row.sizes):
            raise TypeError(f"cooperative_matrices has the sizes {row.sizes!r:.80}")
    return rows


class _ReportedFeatures(FeatureTable):
    """The features listed in a report."""

    def __init__(self, device: ReportedDevice, features: Mapping[str, Mapping[str, bool]]) -> None:
        super().__init__(None, None, device.api_version, device.extensions)
        self._reported = features

    def _query(self, structure: str) -> frozenset[str]:
        return frozenset(member for member, has in self._reported.get(structure, {}).items() if has)


class ReportedDevice:
    """A device from a doctor report, with the members of a physical device that `vulkan.capabilities` reads."""

    def __init__(self, report: dict[str, Json]) -> None:
        self.name = str(report["name"])
        major, minor, patch = (int(part) for part in [*str(report["api_version"]).split("."), "0", "0"][:3])
        self.api_version = major << 22 | minor << 12 | patch
        self.extensions: dict[str, int] = dict(report["extensions"])
        features: dict[str, Json] = dict(report["features"])
        # extensions by the ML emulation layers count: a run loads these layers if it needs them
        self._emulated = report["ml"]["path"] == "emulation"
        if self._emulated:
            self.extensions |= report["ml"]["extensions"]
            features |= report["ml"]["features"]
        self.features = _ReportedFeatures(self, features)
        self.matrices = _matrices_of(report.get("cooperative_matrices"))
        self._limits = _limits_of(dict(report["limits"]))
        self._properties: dict[str, dict[str, Json]] = dict(report["properties"])
        self._limits[SUBGROUP_SIZE] = self._properties.get(_VULKAN_11, {}).get(SUBGROUP_SIZE)
        self._queue_flags = [
            frozenset(family["flags"] if family["count"] else ()) for family in report["queue_families"]
        ]

    def has_property(self, structure: str, member: str, bits: int) -> bool:
        """Return whether a property has all ``bits``."""
        if member == "supportedOperations":
            structure, member = _VULKAN_11, "subgroupSupportedOperations"
        value = self._properties.get(structure, {}).get(member, 0)
        return isinstance(value, int) and value & bits == bits

    def queue_family(self, *, graphics: bool = False) -> int | None:
        """Return the first queue family with compute, and with graphics if wanted; or None."""
        wanted = {"compute", "graphics"} if graphics else {"compute"}
        return next((index for index, flags in enumerate(self._queue_flags) if wanted <= flags), None)

    def findings(self, plan: Plan) -> Iterator[Diagnostic]:
        """Yield a plan's requirements this device does not meet."""
        yield from exceeded_limits(plan, self._limits, self.name)
        try:
            enabled_for(self, plan.requirements, emulated=self._emulated)  # type: ignore[arg-type]
        except UnsupportedError as unsupported:
            for problem in unsupported.problems:
                yield problem._replace(pointer=problem.pointer or "/resources")
