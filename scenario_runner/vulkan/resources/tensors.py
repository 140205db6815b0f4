"""Tensors of a scenario (VK_ARM_tensors)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.plan.model.records import Descriptor
from scenario_runner.plan.model.resources import TensorDescription, TensorPlan
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import check
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.resources.buffers import WORD_SIZE_BYTES, Rows, bind_buffer, create_buffer
from scenario_runner.vulkan.resources.memory import Allocation, Needs, align, allocate, choose_type, readable_size

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice
    from scenario_runner.vulkan.resources.images import Image

USAGE_TRANSFER = vk.TENSOR_USAGE_TRANSFER_SRC_BIT_ARM | vk.TENSOR_USAGE_TRANSFER_DST_BIT_ARM


def format_features(physical: PhysicalDevice, format: int, *, linear: bool) -> int:
    """What tensors of a VkFormat can be used for (VkFormatFeatureFlagBits2); 0 where the device has none of them."""
    tensor = new("VkTensorFormatPropertiesARM")
    properties = chain(new("VkFormatProperties2"), tensor)
    physical.fn.vkGetPhysicalDeviceFormatProperties2(physical.handle, format, properties)
    return int(tensor.linearTilingTensorFeatures if linear else tensor.optimalTilingTensorFeatures)


def describe(description: TensorDescription, usage: int) -> Any:
    """A VkTensorDescriptionARM."""
    return new(
        "VkTensorDescriptionARM",
        tiling=vk.TENSOR_TILING_LINEAR_ARM if description.linear else vk.TENSOR_TILING_OPTIMAL_ARM,
        format=description.format,
        dimensionCount=len(description.dims),
        pDimensions=list(description.dims),
        pStrides=None if description.strides is None else list(description.strides),
        usage=usage,
    )


class _Object:
    """A VkTensorARM and, where its elements lie one after the other, a VkBuffer over the same bytes to copy with."""

    def __init__(self, device: Device, stack: ExitStack, description: TensorDescription, usage: int, what: str) -> None:
        self._device = device
        self._what = what
        info = new("VkTensorCreateInfoARM", pDescription=describe(description, usage), sharingMode=0)
        self.handle = device.create(stack, "tensor", "TensorARM", info, what)
        needs = new("VkMemoryRequirements2")
        query = new("VkTensorMemoryRequirementsInfoARM", tensor=self.handle)
        device.fn.vkGetTensorMemoryRequirementsARM(device.handle, query, needs)
        found = needs.memoryRequirements
        self.needs = Needs(found.size, found.alignment, found.memoryTypeBits, linear=description.linear)

    def add_buffer(self, stack: ExitStack, size_bytes: int) -> Any:
        """The buffer that shows the packed elements as bytes; both want to be satisfied by the memory then.

        Linear tensors and buffers interpret memory alike (Vulkan specification, "Memory Aliasing").
        """
        usage = vk.BUFFER_USAGE_TRANSFER_SRC_BIT | vk.BUFFER_USAGE_TRANSFER_DST_BIT
        size = align(size_bytes, WORD_SIZE_BYTES)
        buffer, needs = create_buffer(self._device, stack, size, usage, self._what)
        self.needs = self.needs.also(needs)
        return buffer

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        info = new("VkBindTensorMemoryInfoARM", tensor=self.handle, memory=allocation.handle, memoryOffset=offset_bytes)
        code = self._device.fn.vkBindTensorMemoryARM(self._device.handle, 1, info)
        check(code, "vkBindTensorMemoryARM", self._what)


class Tensor:
    """A VkTensorARM with its view; see `Resource`.

    Where it is LINEAR, its bytes are copied through a buffer over the same memory, row by row where they are not
    packed. Where only the device knows how elements lie, they go through a packed tensor beside it, its shadow; those
    of a tensor that shares the memory of an OPTIMAL image are the texels of the image, and are read through it.
    """

    needs_preparation = False

    def __init__(
        self,
        device: Device,
        stack: ExitStack,
        plan: TensorPlan,
        description: TensorDescription,
        start_bytes: int,
        image: Image | None = None,
    ) -> None:
        """``description`` is the plan's, with the strides of an image that shares the memory from ``start_bytes`` on.
        ``image`` is the one whose memory a tensor of OPTIMAL tiling shares.

        Raises UnsupportedError for a format that the device has no tensors of, OutOfMemoryError, with the place.
        """
        self._device = device
        self._stack = stack
        self.plan = plan
        self._allocation: Allocation | None = None
        self._offset_bytes = 0
        self._view: Any = None
        self._shadow: _Object | None = None
        self._start_bytes = start_bytes
        self._image = image
        self._packed = description.linear and description.strides is None
        what = f"tensor {plan.uid!r} of {plan.format.name}, {readable_size(plan.size_bytes)}"
        try:
            usage = self._usage(description)
            self._object = _Object(device, stack, description, usage, what)
            self._rows = Rows(description.dims, description.strides, plan.size_bytes)
            if image is not None:
                self._buffer = None
            elif description.linear:
                self._buffer = self._object.add_buffer(stack, self._rows.end_bytes)
            else:
                plain = TensorDescription(description.format, description.dims)
                self._shadow = _Object(device, stack, plain, USAGE_TRANSFER, f"the copy of {what}")
                self._buffer = self._shadow.add_buffer(stack, plan.size_bytes)
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=plan.pointer) from None
        self.handle: Any = self._object.handle
        needs = self._object.needs
        self.needs = needs._replace(size_bytes=start_bytes + needs.size_bytes)

    def __repr__(self) -> str:
        return f"<Tensor {self.plan.uid!r} {list(self.plan.shape)} {self.plan.format.name}>"

    def _usage(self, description: TensorDescription) -> int:
        features = format_features(self._device.physical, description.format, linear=description.linear)
        usage = USAGE_TRANSFER
        usage |= vk.TENSOR_USAGE_SHADER_BIT_ARM if features & vk.FORMAT_FEATURE_2_TENSOR_SHADER_BIT_ARM else 0
        usage |= vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM if features & vk.FORMAT_FEATURE_2_TENSOR_DATA_GRAPH_BIT_ARM else 0
        usage |= vk.TENSOR_USAGE_IMAGE_ALIASING_BIT_ARM if self._image is not None else 0
        if usage == USAGE_TRANSFER:
            tiling = "LINEAR" if description.linear else "OPTIMAL"
            raise errors.UnsupportedError(
                f"{self._device.physical.name!r} has no tensors of {self.plan.format.name} with {tiling} tiling",
                code="SR-FEATURE-003",
            )
        return usage

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        offset_bytes += self._start_bytes
        self._allocation, self._offset_bytes = allocation, offset_bytes
        self._object.bind(allocation, offset_bytes)
        if self._image is not None:
            return
        what = f"tensor {self.plan.uid!r}"
        if self._shadow is None:
            bind_buffer(self._device, self._buffer, allocation, offset_bytes, what)
            return
        needs = self._shadow.needs
        index = choose_type(self._device, needs.type_bits, 0, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
        assert index is not None, "a buffer has memory"
        memory = allocate(self._device, self._stack, needs.size_bytes, index, f"the copy of {what}", mapped=False)
        self._shadow.bind(memory, 0)
        bind_buffer(self._device, self._buffer, memory, 0, what)

    @property
    def mapped(self) -> bool:
        return self._packed and self._allocation is not None and self._allocation.mapped is not None

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        assert self._allocation is not None, "bound before it is used"
        return self._allocation.view(self._offset_bytes + offset_bytes, size_bytes)

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        if self._image is not None:
            return self._image.portion(offset_bytes, room_bytes)
        return self._rows.portion(offset_bytes, room_bytes)

    def record_prepare(self, commands: Any) -> None:
        """Tensors need none."""

    def record_clear(self, commands: Any) -> None:
        size = align(self._rows.end_bytes, WORD_SIZE_BYTES)
        self._device.fn.vkCmdFillBuffer(commands, self._buffer, 0, size, 0)
        self._from_shadow(commands)

    def record_upload(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        regions = self._rows.regions(staging_offset, offset_bytes, size, into_staging=False)
        self._device.fn.vkCmdCopyBuffer(commands, staging, self._buffer, len(regions), regions)
        if offset_bytes + size == self.plan.size_bytes:
            self._from_shadow(commands)

    def record_download(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        if self._image is not None:
            self._image.record_download(commands, staging, staging_offset, offset_bytes, size)
            return
        if self._shadow is not None and offset_bytes == 0:
            self._copy(commands, self.handle, self._shadow.handle)
        regions = self._rows.regions(staging_offset, offset_bytes, size, into_staging=True)
        self._device.fn.vkCmdCopyBuffer(commands, self._buffer, staging, len(regions), regions)

    def _from_shadow(self, commands: Any) -> None:
        """Spread what the shadow holds."""
        if self._shadow is not None:
            self._copy(commands, self._shadow.handle, self.handle)

    def _copy(self, commands: Any, source: Any, destination: Any) -> None:
        """Copy a whole tensor, after what came before and before what comes after."""
        self._device.barrier(commands)
        region = new("VkTensorCopyARM", dimensionCount=len(self.plan.dims))
        info = new("VkCopyTensorInfoARM", srcTensor=source, dstTensor=destination, pRegions=[region])
        self._device.fn.vkCmdCopyTensorARM(commands, info)
        self._device.barrier(commands)

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        """The view is made after the memory is bound, because emulation looks the address up here."""
        if self._view is None:
            info = new("VkTensorViewCreateInfoARM", tensor=self.handle, format=self.plan.format.value)
            what = f"tensor {self.plan.uid!r}"
            self._view = self._device.create(self._stack, "tensor view", "TensorViewARM", info, what)
        info = new("VkWriteDescriptorSetTensorARM", pTensorViews=[self._view])
        write.pNext = ffi.cast("void*", info)
        return info


def create_tensors(
    device: Device,
    stack: ExitStack,
    plans: Iterable[TensorPlan],
    others: Mapping[str, Any],
) -> dict[str, Tensor]:
    """Every tensor of a scenario by its uid; ``others`` has the images. Raises what `Tensor` raises."""
    made = {}
    for plan in device.instance.watched(plans):
        image = None if plan.image is None else others[plan.image]
        start = 0 if image is None else image.start_bytes
        shared = None if plan.linear else image
        made[plan.uid] = Tensor(device, stack, plan, settled(plan.description, others), start, shared)
    return made


def settled(description: TensorDescription, resources: Mapping[str, Any]) -> TensorDescription:
    """A description with its strides, those of the rows of an image included."""
    if description.image is None:
        return description
    image = resources[description.image]
    part = image.plan.parts[0]
    if not image.has_padded_rows:
        return description._replace(image=None)
    *outer, _height, width, components = description.dims
    texel = part.row_size_bytes // width
    strides = [image.row_pitch_bytes, texel, texel // components]
    strides[:0] = [image.row_pitch_bytes * part.row_count] * len(outer)  # dimensions of 1
    return description._replace(strides=tuple(strides), image=None)
