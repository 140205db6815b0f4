"""What all resources have in common: a Vulkan object that needs memory, and bytes that go in and come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.records import Descriptor
    from scenario_runner.vulkan.memory.allocation import Allocation


class Needs(NamedTuple):
    """What a Vulkan object asks of its memory (VkMemoryRequirements).

    Memory that is not ``linear`` (that of OPTIMAL images) must keep a distance from memory that is.
    """

    size_bytes: int
    alignment: int
    type_bits: int
    linear: bool = True

    def also(self, other: Needs) -> Needs:
        """What this object and another one over the same bytes ask for together."""
        return Needs(
            max(self.size_bytes, other.size_bytes),
            max(self.alignment, other.alignment),  # powers of two
            self.type_bits & other.type_bits,
            self.linear,
        )


class Resource(Protocol):
    """A resource of a scenario on the device.

    Its bytes are those of its file: ``plan.source.size_bytes`` on the way in and ``plan.size_bytes`` on the way out,
    tightly packed, whatever the layout on the device. Life cycle: created (the object exists, and says what it
    `needs`), `bind`-ed to memory, prepared where it ``needs_preparation``, filled, used, read back. All resources are
    prepared before the first is filled, because those that share memory may see each other's bytes.
    """

    @property
    def needs_preparation(self) -> bool:
        """Whether it may be filled and used only after `record_prepare` was carried out."""

    @property
    def plan(self) -> ResourcePlan: ...

    @property
    def needs(self) -> Needs: ...

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        """Give the object its memory."""

    @property
    def mapped(self) -> bool:
        """Whether `view` shows the resource's own bytes, so that nothing has to be copied through staging memory."""

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Bytes of the resource as the host sees them; only where ``mapped``."""

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """How many bytes from ``offset_bytes`` on to move at once, given room for ``room_bytes``; 0: too little."""

    def record_prepare(self, commands: Any) -> None:
        """Record what must happen before the initial bytes are written, by the host or by the device."""

    def record_clear(self, commands: Any) -> None:
        """Record setting all bytes to zero."""

    def record_upload(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion from a staging buffer, with the layout changes that it needs."""

    def record_download(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion into a staging buffer."""

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        """Point a VkWriteDescriptorSet at the resource; returns what must stay alive until the sets are updated."""
