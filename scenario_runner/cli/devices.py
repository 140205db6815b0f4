"""``--list-devices``: the Vulkan devices, with what ``--device`` takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import NoDeviceError

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice


def list_devices() -> int:
    """Print index, name, type, UUID and driver of every device and return 0; the one that a run takes by itself is
    marked "default". Raises NoDeviceError when there is none."""
    from scenario_runner.cli.messages import is_terminal
    from scenario_runner.vulkan.devices.instance import Instance
    from scenario_runner.vulkan.devices.physical_device import choose

    instance = Instance()
    try:
        devices = instance.physical_devices
        if not devices:
            raise NoDeviceError("there are no Vulkan devices", help="'scenario-runner doctor' shows what is missing")
        try:
            default = choose(devices, None).index
        except NoDeviceError:
            default = None  # none of them is usable; each line says why
        rows = [_row(device, default) for device in devices]
    finally:
        instance.close()
    if is_terminal(sys.stdout):
        _show_table(rows)
    else:
        for row in rows:
            note = f" - {row['note']}" if row["note"] else ""
            print(
                f"{row['index']}: {row['name']} ({row['type']}, Vulkan {row['version']}, {row['driver']})"
                f" uuid {row['uuid']}{note}"
            )
    return 0


def _row(device: PhysicalDevice, default: int | None) -> dict[str, str]:
    from scenario_runner.vulkan.devices.instance import version_text

    reason = device.unusable_because()
    return {
        "index": str(device.index),
        "name": device.name,
        "type": device.type,
        "version": version_text(device.api_version),
        "driver": device.driver,
        "uuid": device.uuid,
        "note": f"not usable: {reason}" if reason else "default" if device.index == default else "",
    }


def _show_table(rows: list[dict[str, str]]) -> None:
    from rich.table import Table

    from scenario_runner.cli.messages import rich_console

    table: Any = Table(box=None, header_style="bold", pad_edge=False)
    for title, key in (("#", "index"), ("device", "name"), ("type", "type"), ("Vulkan", "version")):
        table.add_column(title, overflow="fold", no_wrap=key != "name")
    for title in ("driver", "UUID", ""):
        table.add_column(title, overflow="fold")
    from rich.text import Text

    for row in rows:
        cells = [Text(row[key]) for key in ("index", "name", "type", "version", "driver", "uuid")]
        table.add_row(*cells, Text(row["note"], "red" if row["note"].startswith("not") else "green"))
    rich_console(sys.stdout).print(table)
