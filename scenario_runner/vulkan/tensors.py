"""A scenario's tensors (VK_ARM_tensors), and a device's tensor limits.

The ML emulation layers end the process if a tensor exceeds the limits. The limits are therefore checked first.

Source: VkPhysicalDeviceTensorPropertiesARM; valid usage of VkTensorDescriptionARM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.errors.diagnostic import Diagnostic, error
from scenario_runner.errors.text import counted
from scenario_runner.plan.graph_records import TensorDescription, TensorPlan
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import Descriptor
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.memory import Allocation, Needs, align, allocate_local, readable_size
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.resources import WORD_SIZE_BYTES, Piece, Resource, Rows, bind_buffer, create_buffer
from scenario_runner.vulkan.vulkan_api import check, new

if TYPE_CHECKING:
    from scenario_runner.vulkan.images import Image

USAGE_TRANSFER = vk.TENSOR_USAGE_TRANSFER_SRC_BIT_ARM | vk.TENSOR_USAGE_TRANSFER_DST_BIT_ARM


def format_features(physical: PhysicalDevice, format: int, *, linear: bool) -> int:
    """Return the supported tensor uses for a VkFormat (VkFormatFeatureFlagBits2); 0 if there are none."""
    tensor = physical.format_properties_of("VkTensorFormatPropertiesARM", format)
    return int(tensor.linearTilingTensorFeatures if linear else tensor.optimalTilingTensorFeatures)


def describe(description: TensorDescription, usage: int) -> Handle:
    """Return a VkTensorDescriptionARM."""
    return new(
        "VkTensorDescriptionARM",
        tiling=vk.TENSOR_TILING_LINEAR_ARM if description.linear else vk.TENSOR_TILING_OPTIMAL_ARM,
        format=description.format,
        dimensionCount=len(description.dims),
        pDimensions=list(description.dims),
        pStrides=None if description.strides is None else list(description.strides),
        usage=usage,
    )


class _TensorObject:
    """A VkTensorARM, and a VkBuffer over the same bytes for copies if the elements are packed."""

    def __init__(self, device: Device, stack: ExitStack, description: TensorDescription, usage: int, what: str) -> None:
        self._device = device
        self._what = what
        info = new("VkTensorCreateInfoARM", pDescription=describe(description, usage), sharingMode=0)
        self.handle = device.create(stack, "tensor", "TensorARM", info, what)
        needs = new("VkMemoryRequirements2")
        query = new("VkTensorMemoryRequirementsInfoARM", tensor=self.handle)
        device.fn.vkGetTensorMemoryRequirementsARM(device.handle, query, needs)
        requirements = needs.memoryRequirements
        self.needs = Needs(
            requirements.size, requirements.alignment, requirements.memoryTypeBits, linear=description.linear
        )

    def add_buffer(self, stack: ExitStack, size_bytes: int) -> Handle:
        """Create the buffer that shows the packed elements as bytes. The memory must then suit both.

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


class Tensor(Resource):
    """A VkTensorARM with a view.

    The bytes of a LINEAR tensor are copied through a buffer over the same memory, row by row unless they are packed.
    Only the device knows the order of elements in an OPTIMAL tensor. Such a tensor is copied through a packed tensor,
    the shadow. A tensor in an OPTIMAL image's memory has the image's texels, and is read through the image.
    """

    plan: TensorPlan

    def __init__(
        self,
        device: Device,
        stack: ExitStack,
        plan: TensorPlan,
        description: TensorDescription,
        start_bytes: int,
        image: Image | None = None,
    ) -> None:
        """Create the tensor, and a shadow if needed.

        ``description`` is the plan's, with the strides of an image that shares the memory from ``start_bytes`` on.
        ``image`` is the image that shares the memory of a tensor with OPTIMAL tiling. Raises UnsupportedError if the
        device has no tensors of the format, and OutOfMemoryError.
        """
        super().__init__(device, plan)
        self._stack = stack
        self._view: Handle = None
        self._shadow: _TensorObject | None = None
        self._start_bytes = start_bytes
        self._image = image
        self._packed = description.linear and description.strides is None
        what = f"tensor {plan.uid!r} of {plan.format.name}, {readable_size(plan.size_bytes)}"
        self._object = _TensorObject(device, stack, description, self._usage(description), what)
        self._rows = Rows(description.dims, description.strides, plan.size_bytes)
        if image is not None:
            self._buffer = None
        elif description.linear:
            self._buffer = self._object.add_buffer(stack, self._rows.end_bytes)
        else:
            plain = TensorDescription(description.format, description.dims)
            self._shadow = _TensorObject(device, stack, plain, USAGE_TRANSFER, f"the copy of {what}")
            self._buffer = self._shadow.add_buffer(stack, plan.size_bytes)
        self.handle: Handle = self._object.handle
        needs = self._object.needs
        self.needs = needs._replace(size_bytes=start_bytes + needs.size_bytes)

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
        super().bind(allocation, offset_bytes)
        self.mapped = self.mapped and self._packed
        self._object.bind(allocation, offset_bytes)
        if self._image is not None:
            return
        what = f"tensor {self.plan.uid!r}"
        if self._shadow is None:
            bind_buffer(self._device, self._buffer, allocation, offset_bytes, what)
            return
        memory = allocate_local(self._device, self._stack, self._shadow.needs, f"the copy of {what}")
        self._shadow.bind(memory, 0)
        bind_buffer(self._device, self._buffer, memory, 0, what)

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        if self._image is not None:
            return self._image.portion(offset_bytes, room_bytes)
        return self._rows.portion(offset_bytes, room_bytes)

    def record_clear(self, commands: Handle) -> None:
        size = align(self._rows.end_bytes, WORD_SIZE_BYTES)
        self._device.fn.vkCmdFillBuffer(commands, self._buffer, 0, size, 0)
        self._from_shadow(commands)

    def record_upload(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        regions = self._rows.regions(piece, into_staging=False)
        self._device.fn.vkCmdCopyBuffer(commands, staging, self._buffer, len(regions), regions)
        if piece.offset_bytes + piece.size_bytes == self.plan.size_bytes:
            self._from_shadow(commands)

    def record_download(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        if self._image is not None:
            self._image.record_download(commands, staging, piece)
            return
        if self._shadow is not None and piece.offset_bytes == 0:
            self._copy(commands, self.handle, self._shadow.handle)
        regions = self._rows.regions(piece, into_staging=True)
        self._device.fn.vkCmdCopyBuffer(commands, self._buffer, staging, len(regions), regions)

    def _from_shadow(self, commands: Handle) -> None:
        """Copy the shadow into the tensor."""
        if self._shadow is not None:
            self._copy(commands, self._shadow.handle, self.handle)

    def _copy(self, commands: Handle, source: Handle, destination: Handle) -> None:
        """Copy a whole tensor between barriers."""
        self._device.barrier(commands)
        region = new("VkTensorCopyARM", dimensionCount=len(self.plan.dims))
        info = new("VkCopyTensorInfoARM", srcTensor=source, dstTensor=destination, pRegions=[region])
        self._device.fn.vkCmdCopyTensorARM(commands, info)
        self._device.barrier(commands)

    def write_descriptor(self, write: Handle, descriptor: Descriptor) -> Handle:
        """Create the view on first use, after the memory is bound: emulation looks the address up here."""
        if self._view is None:
            info = new("VkTensorViewCreateInfoARM", tensor=self.handle, format=self.plan.format.value)
            what = f"tensor {self.plan.uid!r}"
            self._view = self._device.create(self._stack, "tensor view", "TensorViewARM", info, what)
        info = new("VkWriteDescriptorSetTensorARM", pTensorViews=[self._view])
        write.pNext = ffi.cast("void*", info)
        return info


def create_tensors(
    device: Device, stack: ExitStack, plans: Iterable[TensorPlan], images: Mapping[str, Image]
) -> list[Tensor]:
    """Create every tensor of a scenario. Raises the errors of `Tensor`."""

    def create(plan: TensorPlan) -> Tensor:
        image = None if plan.image is None else images[plan.image]
        start = 0 if image is None else image.start_bytes
        shared = None if plan.linear else image
        return Tensor(device, stack, plan, with_strides(plan.description, images), start, shared)

    return device.instance.create_each(plans, create)


def with_strides(description: TensorDescription, resources: Mapping[str, Any]) -> TensorDescription:
    """Return a description with strides, such as the strides of an image's rows."""
    if description.image is None:
        return description
    image = resources[description.image]
    part = image.plan.parts[0]
    if not image.has_padded_rows:
        return description._replace(image=None)
    *outer, _height, width, components = description.dims
    texel = part.row_size_bytes // width
    strides = [image.row_pitch_bytes, texel, texel // components]
    strides[:0] = [image.row_pitch_bytes * part.row_count] * len(outer)  # these dimensions are 1
    return description._replace(strides=tuple(strides), image=None)


# Format features that each kind of operation needs for tensors.
_USES = {
    "dispatch": ("shaders", vk.FORMAT_FEATURE_2_TENSOR_SHADER_BIT_ARM),
    "graph_dispatch": ("graphs", vk.FORMAT_FEATURE_2_TENSOR_DATA_GRAPH_BIT_ARM),
}


def exceeded_tensor_limits(plan: Plan, physical: PhysicalDevice, *, emulated: bool = False) -> list[Diagnostic]:
    """List all problems of the plan's tensors on ``physical``, which must have VK_ARM_tensors.

    If graphs are ``emulated``, values between their operators are tensors as well.
    """
    tensors = [resource for resource in plan.resources.values() if isinstance(resource, TensorPlan)]
    if not tensors:
        return []
    limits = physical.properties_of("VkPhysicalDeviceTensorPropertiesARM")
    users = _users(plan)
    problems: list[Diagnostic] = []
    for tensor in tensors:
        problems += _beyond(tensor, limits, physical.name)
        problems += _format_problems(tensor, users, physical, emulated=emulated)
    if emulated:
        problems += _beyond_inside(plan, physical, limits)
        problems += _over_images(plan, tensors, physical)
    most = int(limits.maxPerStageDescriptorSetStorageTensors)
    for pipeline in plan.pipelines:
        count = sum(binding.kind == "tensor" for bindings in pipeline.set_layouts for binding in bindings)
        if count > most:
            message = f"shader {pipeline.label!r} uses {count} tensors; maxPerStageDescriptorSetStorageTensors of"
            problems.append(error("SR-LIMIT-006", pipeline.pointer, f"{message} {physical.name!r} is {most}"))
    return problems


def _format_problems(
    tensor: TensorPlan, users: Mapping[tuple[str, str], str], physical: PhysicalDevice, *, emulated: bool
) -> Iterator[Diagnostic]:
    """Find tensor uses that the device does not support for the tensor's format."""
    features = format_features(physical, tensor.format.value, linear=tensor.linear)
    for kind, (use, bit) in _USES.items():
        user = users.get((tensor.uid, kind))
        if user is not None and not features & bit:
            what = f"{physical.name!r} has no {tensor.format.name} tensors for {use}"
            yield error("SR-FEATURE-003", f"{tensor.pointer}/format", f"{user} uses tensor {tensor.uid!r}; {what}")
    # the emulation layers let an image and a tensor share memory, and do not report it
    can_alias = emulated or features & vk.FORMAT_FEATURE_2_TENSOR_IMAGE_ALIASING_BIT_ARM
    if not (can_alias or tensor.linear or tensor.image is None):
        message = (
            f"tensor {tensor.uid!r} shares the memory of image {tensor.image!r}, both of OPTIMAL tiling;"
            f" {physical.name!r} lacks VK_FORMAT_FEATURE_2_TENSOR_IMAGE_ALIASING_BIT_ARM for {tensor.format.name}"
        )
        yield error("SR-FEATURE-003", f"{tensor.pointer}/memory_group", message, "give both the tiling LINEAR")


def _beyond(tensor: TensorPlan, limits: object, device: str) -> Iterator[Diagnostic]:
    """Find the first limit exceeded by a tensor. With too many dimensions, the other numbers mean nothing."""
    dims = tensor.dims
    stride = max(tensor.strides or (), default=0)
    for name, value, what in (
        ("maxTensorDimensionCount", len(dims), f"has {len(dims)} dimensions"),
        ("maxTensorElements", prod(dims), f"has {prod(dims)} elements"),
        ("maxPerDimensionTensorElements", max(dims), f"has a dimension of {max(dims)}"),
        ("maxTensorStride", stride, f"has a stride of {stride} bytes"),
        ("maxTensorSize", tensor.size_bytes, f"has {tensor.size_bytes} bytes"),
    ):
        limit = int(getattr(limits, name))
        if value > limit:
            message = f"tensor {tensor.uid!r} {what}; {name} of {device!r} is {limit}"
            yield error("SR-LIMIT-011", tensor.pointer, message)
            return


def _beyond_inside(plan: Plan, physical: PhysicalDevice, limits: Handle) -> Iterator[Diagnostic]:
    """Find parts of graphs that the emulation layers cannot build."""
    for graph in plan.graph_pipelines:
        if graph.kind != "graph":
            continue
        reason, help = graph.unbuildable
        if reason:
            message = f"{graph.label}: {reason.replace('{device}', repr(physical.name))}"
            yield error("SR-FEATURE-002", graph.pointer, message, help)
        what, shape = graph.largest
        count, limit = prod(shape), int(limits.maxTensorElements)
        if count > limit:
            message = f"{graph.label}: {what} has {count} elements (shape {list(shape)}); maxTensorElements of"
            yield error("SR-LIMIT-011", graph.pointer, f"{message} {physical.name!r} is {limit}")


def _over_images(plan: Plan, tensors: list[TensorPlan], physical: PhysicalDevice) -> Iterator[Diagnostic]:
    """Find tensors at the beginning of an image that make the emulation layers end the process."""
    images: dict[tuple[str | None, int], str] = {
        (resource.group, resource.offset_bytes): resource.uid
        for resource in plan.resources.values()
        if resource.kind == "image" and resource.group is not None
    }
    for tensor in tensors:
        image = images.get((tensor.group, tensor.offset_bytes))
        if image is not None and not 2 <= len(tensor.dims) <= 4:
            message = (
                f"tensor {tensor.uid!r} has {counted(len(tensor.dims), 'dimension')} and begins at the start of image"
                f" {image!r}; the ML emulation layers of {physical.name!r} end the process unless it has 2 to 4"
            )
            yield error("SR-FEATURE-002", f"{tensor.pointer}/dims", message, "add dimensions of 1")


def _users(plan: Plan) -> dict[tuple[str, str], str]:
    """Return each tensor's first user, by the tensor's uid and the kind of operation."""
    used = dict.fromkeys(
        (operation.kind, operation.pipeline, operation.descriptors)
        for frame in plan.frames
        for operation in frame.operations
        if operation.kind == "dispatch" or operation.kind == "graph_dispatch"  # no other operation binds tensors
    )
    users: dict[tuple[str, str], str] = {}
    for kind, pipeline, descriptors in used:
        user = (
            f"shader {plan.pipelines[pipeline].label!r}" if kind == "dispatch" else plan.graph_pipelines[pipeline].label
        )
        for descriptor in plan.descriptor_lists[descriptors].descriptors:
            if descriptor.kind == "tensor":
                users.setdefault((descriptor.uid, kind), user)
    return users
