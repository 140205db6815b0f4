"""Memory for the resources of one run after the other.

A driver of a GPU takes a lock of the whole system for every allocation: a small scenario takes longer for that than for
its work, and scenarios on several GPUs wait for each other. So small blocks are kept, mapped as they are.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from scenario_runner.vulkan.memory.allocation import Allocation, allocate

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device

# A larger block is freed after its run.
_LARGEST_BYTES: Final = 4 << 20
# No more than this waits for the next run: drivers allow few allocations (often 4096).
_KEPT_BYTES: Final = 16 << 20
_KEPT: Final = 64
# A block is used for what needs at least one part in so many of it; a small one for anything that fits.
_FITTING: Final = 4
_SMALL_BYTES: Final = 64 << 10


class MemoryBlocks:
    """The blocks of a device. What an earlier run left in them is still there: resources are filled before their use.

    Life cycle: made with the device; `take` for each run; `close` between runs.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: list[tuple[Allocation, ExitStack]] = []  # in the order in which they were given back

    def take(self, stack: ExitStack, size_bytes: int, type_index: int, purpose: str) -> Allocation:
        """At least ``size_bytes`` of memory, mapped where the host uses the type in place, until ``stack`` is closed.

        Raises what `allocate` does.
        """
        device, mapped = self._device, self._device.maps(type_index)
        if size_bytes > _LARGEST_BYTES:
            return allocate(device, stack, size_bytes, type_index, purpose, mapped=mapped)
        most_bytes = max(_FITTING * size_bytes, _SMALL_BYTES)
        fitting = (
            index
            for index, (each, _) in enumerate(self._free)
            if each.type_index == type_index and size_bytes <= each.size_bytes <= most_bytes
        )
        index = min(fitting, key=lambda index: self._free[index][0].size_bytes, default=None)
        if index is not None:
            block = self._free.pop(index)
        else:
            with ExitStack() as owner:
                allocation = allocate(
                    device, owner, size_bytes, type_index, purpose, mapped=mapped, kind="memory block"
                )
                block = allocation, owner.pop_all()
        stack.callback(self._give_back, block)
        return block[0]

    def _give_back(self, block: tuple[Allocation, ExitStack]) -> None:
        self._free.append(block)
        while len(self._free) > _KEPT or sum(each.size_bytes for each, _ in self._free) > _KEPT_BYTES:
            self._free.pop(0)[1].close()

    def close(self) -> None:
        """Free all that is not in use; calling it again does nothing."""
        while self._free:
            self._free.pop()[1].close()
