"""Push constants: what shaders declare, what the scenario says of their size, and the data that it gives.

Source: Vulkan specification, "Shader Interfaces", section "Push Constant Interface".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, error, warning

if TYPE_CHECKING:
    from scenario_runner.spirv import Interface

MOST_BYTES = 1 << 16
"""Far above the maxPushConstantsSize of any device; keeps a wrong size or file from being taken into memory."""


def check_size(uid: str, interface: Interface, size: int, pointer: str) -> list[Diagnostic]:
    """A shader's push_constants_size, ``size``, against what it declares; ``pointer`` is the shader's."""
    place = f"{pointer}/push_constants_size"
    if size > MOST_BYTES:
        message = f"push_constants_size is {size}; no device takes more than {MOST_BYTES}"
        return [error("SR-PUSH-004", place, message)]
    block = interface.push_constants
    if block is not None and block.size_bytes > size:
        needed = -(-block.size_bytes // 4) * 4
        declares = f"shader {uid!r} declares {block.size_bytes} bytes of push constants"
        if not size:
            help = f'add "push_constants_size": {needed} to the shader'
            return [error("SR-PUSH-001", pointer, f"{declares}, but has no push_constants_size", help)]
        help = f"set push_constants_size to {needed}"
        return [error("SR-PUSH-001", place, f"{declares}, but push_constants_size is {size}", help)]
    return []


def check_data(shaders: str, size: int, data: str, data_size: int, pointer: str) -> list[Diagnostic]:
    """The ``data_size`` bytes of the raw_data ``data`` against the push_constants_size of ``shaders``."""
    if data_size == size:
        return []
    return [
        error(
            "SR-PUSH-002",
            f"{pointer}/push_data_ref",
            f"raw_data {data!r} holds {data_size} bytes, but the push_constants_size of {shaders} is {size}",
            "both must be equal",
        )
    ]


def check_missing_data(uid: str, interface: Interface, pointer: str) -> list[Diagnostic]:
    """A command without push_data_ref whose shader reads push constants."""
    if interface.push_constants is None:
        return []
    message = f"shader {uid!r} reads push constants, but the command has no push_data_ref; zeros are used"
    return [warning("SR-PUSH-003", pointer, message)]
