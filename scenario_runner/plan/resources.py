"""Planning a scenario's resources: buffers, initial contents, and memory groups, which resources share.

Members in a group see defined content (Vulkan specification, "Memory Aliasing"): buffers, LINEAR tensors and LINEAR
images in the layout general interpret bytes alike, while the device alone places texels in OPTIMAL images. A tensor
with an image's shape [H, W, C] or [1, H, W, C], where C counts components, has the image's strides if both start at the
same offset. Any other tensor is packed; `vulkan.resources` refuses such a tensor if the device pads image rows.
"""

from __future__ import annotations

import os
import struct
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import isfinite, prod
from typing import Any, NamedTuple, NoReturn

from scenario_runner.errors import error_of
from scenario_runner.errors.diagnostic import error
from scenario_runner.files.input import ArrayLike
from scenario_runner.files.vk_formats import Format, find_format, format_help
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import ResourcePlan, span_of
from scenario_runner.plan.records import BufferPlan, overlap
from scenario_runner.plan.sources import ArraySource, GeneratedSource, NpySource
from scenario_runner.scenario import Buffer, Scenario
from scenario_runner.scenario.inline_contents import DEFAULT_DTYPE, STRUCT_CODES, flattened
from scenario_runner.scenario.scenario import Problems


class ResourceContext(NamedTuple):
    """The input for resource resolvers.

    ``inputs`` replace resources' data and ``src``. ``outputs`` are read back beside resources with a ``dst``.
    ``shapes`` has tensor shapes from graphs, and ``deferred`` tensors still waiting for a shape.
    """

    scenario: Scenario
    problems: Problems
    inputs: Mapping[str, ArrayLike]
    outputs: Collection[str]
    shapes: Mapping[str, tuple[int, ...]]
    deferred: frozenset[str]


class ResourceResolver:
    """Plans resources with a common kind. Planning makes a resolver for each scenario."""

    def __init__(self, context: ResourceContext) -> None:
        self.context = context

    @abstractmethod
    def resolve(self, resource: Any, pointer: str) -> ResourcePlan | None:
        """Return a resource's plan; None after noting an error. Raises ScenarioRunnerError."""

    @staticmethod
    @abstractmethod
    def replaced(planned: Any, scenario: Scenario, data: ArrayLike) -> ResourcePlan | None:
        """Replace the content of a planned resource outside of memory groups; None if a new plan is needed."""


class BufferResolver(ResourceResolver):
    """Resolves buffer resources."""

    def resolve(self, resource: Buffer, pointer: str) -> BufferPlan | None:
        source = source_of(self.context.scenario, resource, self.context.inputs)
        if source is not None and source.size_bytes != resource.size:
            self._refuse_size(resource, source, pointer)
            return None
        return BufferPlan(resource.uid, pointer, resource.size, source=source)

    def _refuse_size(self, buffer: Buffer, source: NpySource | ArraySource | GeneratedSource, pointer: str) -> None:
        """Note that a file or an array has another size than the buffer."""
        name = "the array given for it" if isinstance(source, ArraySource) else repr(getattr(source, "path", "src"))
        descr = source.header.descr if isinstance(source, NpySource) else source.descr
        message = f"buffer {buffer.uid!r} has {buffer.size} bytes, but {name} holds {source.size_bytes}"
        help = f'set "size": {source.size_bytes}'
        if descr == "<f8" and source.size_bytes == 2 * buffer.size:
            message += f" ({source.size_bytes // 8} float64)"
            help = f'save with .astype("float32"); only if the shader reads double, {help}'
        code = "SR-FILE-002" if isinstance(source, NpySource) else "SR-USAGE-001"
        self.context.problems.error(code, f"{pointer}/size", message, help)

    @staticmethod
    def replaced(planned: BufferPlan, scenario: Scenario, data: ArrayLike) -> BufferPlan | None:
        source = ArraySource(data, planned.uid)
        return planned._replace(source=source) if source.size_bytes == planned.size_bytes else None


def known_format(name: str, pointer: str, problems: Problems) -> Format | None:
    """Find the format ``name``; return None after noting an error in ``problems``."""
    format = find_format(name)
    if format is None:
        problems.error("SR-JSON-005", pointer, f"unknown format {name!r:.100}", format_help(name))
    return format


def check_groups(
    groups: Mapping[str, list[ResourcePlan]], resources: dict[str, ResourcePlan], problems: Problems
) -> None:
    """Note errors in memory groups, and connect each tensor with the image in the tensor's memory."""
    for group, members in groups.items():
        for plan in members:
            _check_offset(plan, problems)
        if len(members) < 2:
            continue
        images: list[ImagePlan] = [plan for plan in members if plan.kind == "image"]
        if images:
            _check_images(group, members, images, problems)
        for image in images:
            resources[image.uid] = image._replace(aliased=True)
        _check_sources(group, members, problems)
        for tensor in members:
            if tensor.kind == "tensor":
                _join(tensor, images, group, resources, problems)


def _check_offset(plan: ResourcePlan, problems: Problems) -> None:
    """Note an offset no device allows.

    The device tells the alignment (VkMemoryRequirements::alignment). It is never below the item size, nor below four
    bytes, the unit for vkCmdFillBuffer and 32-bit storage.
    """
    item_size_bytes = 4
    if plan.format is not None and plan.format.numpy_dtype is not None:
        item_size_bytes = max(4, int(plan.format.numpy_dtype[2:]))
    if plan.offset_bytes % item_size_bytes:
        what = f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}"
        message = f"{what}, which no device allows: expected a multiple of {item_size_bytes}"
        help = "multiples of 256 suit nearly all devices; a run shows the alignment that its device needs"
        problems.error("SR-MEMORY-002", f"{plan.pointer}/memory_group/offset", message, help)


def _check_images(group: str, members: list[ResourcePlan], images: list[ImagePlan], problems: Problems) -> None:
    for image in images:
        if image.mips > 1:
            what = f"image {image.uid!r} has {image.mips} mip levels and shares the memory of group {group!r}"
            help = "images that share memory have one level"
            message = f"{what}; only the device knows where its levels lie"
            problems.error("SR-MEMORY-003", f"{image.pointer}/mips", message, help)
    optimal = [image for image in images if image.tiling == "OPTIMAL"]
    kinds = {plan.kind for plan in members}
    layouts = {(image.format, image.width, image.height, image.tiling, image.offset_bytes) for image in images}
    if kinds == {"image"} and len(layouts) == 1:
        return  # identical images have the same texels in the same places
    if optimal and (kinds != {"image", "tensor"} or len(images) > 1):  # `_join` checks tensors
        _refuse_tiling(optimal[0], group, "texels lie", problems)


def _refuse_tiling(plan: ImagePlan | TensorPlan, group: str, what: str, problems: Problems) -> None:
    shares = f"{plan.kind} {plan.uid!r} has OPTIMAL tiling and shares the memory of group {group!r}"
    message = f"{shares}; only the device knows where its {what}"
    problems.error("SR-MEMORY-004", f"{plan.pointer}/tiling", message, "leave tiling out, or use LINEAR")


def _collisions(plans: Iterable[ResourcePlan]) -> Iterator[tuple[ResourcePlan, ResourcePlan]]:
    """Yield overlapping members in pairs: a member, and the furthest member that begins before."""
    furthest: ResourcePlan | None = None
    for plan in sorted(plans, key=lambda plan: span_of(plan)[0]):
        if furthest is not None and overlap(span_of(plan), span_of(furthest)):
            yield plan, furthest
        if furthest is None or span_of(plan)[1] > span_of(furthest)[1]:
            furthest = plan


def _check_sources(group: str, members: list[ResourcePlan], problems: Problems) -> None:
    """Note two initial contents for the same bytes."""
    for plan, other in _collisions(plan for plan in members if plan.source is not None):
        paths = [getattr(resource.source, "path", None) for resource in (plan, other)]
        if paths[0] is None or paths[0] != paths[1] or plan.offset_bytes != other.offset_bytes:
            message = f"the initial contents of {plan.uid!r} and {other.uid!r} overlap in memory group {group!r}"
            problems.error("SR-MEMORY-001", f"{plan.pointer}/memory_group", message, "give one of them initial content")


def _join(
    tensor: TensorPlan, images: list[ImagePlan], group: str, resources: dict[str, ResourcePlan], problems: Problems
) -> None:
    """Connect a tensor and the image in the same memory, or note why they cannot share."""
    shown = next((image for image in images if image.offset_bytes == tensor.offset_bytes), None)
    unlike = next((image for image in images if tensor.linear == (image.tiling == "OPTIMAL")), None)
    if unlike is not None:
        of_image = unlike.tiling or "LINEAR (the default of images that share memory)"
        of_tensor = (
            f"tensor {tensor.uid!r} in the same memory group {group!r} has {'LINEAR' if tensor.linear else 'OPTIMAL'}"
        )
        message = f"image {unlike.uid!r} has the tiling {of_image}, and {of_tensor}"
        place = f"{(unlike if tensor.linear else tensor).pointer}/tiling"
        problems.error("SR-MEMORY-009", place, message, "give both the same tiling")
    elif tensor.linear:
        for image in images:
            if not overlap(span_of(tensor), span_of(image)):
                continue
            if len(image.format.aspects) > 1:
                _report_mismatch(tensor, image, "where its depths and stencils lie is up to the device", problems)
            elif image.offset_bytes == tensor.offset_bytes and _mismatch(tensor, image) is None:
                resources[tensor.uid] = tensor._replace(image=image.uid)
    elif shown is None or len(images) > 1:
        _refuse_tiling(tensor, group, "elements lie", problems)
    elif mismatch := _mismatch(tensor, shown):
        _report_mismatch(tensor, shown, mismatch, problems)
    else:
        # With OPTIMAL tiling, the tensor's elements are the image's texels, in the same order. The image gets the
        # initial content from either.
        resources[tensor.uid] = tensor._replace(image=shown.uid, source=None, zero_fill=False)
        current: Any = resources[shown.uid]
        if tensor.source is not None:
            current = current._replace(source=tensor.source, source_levels=1)
        resources[shown.uid] = current._replace(usage=current.usage | {"tensor_aliasing"})


def _mismatch(tensor: TensorPlan, image: ImagePlan) -> str | None:
    """Explain why a tensor's elements differ from the components of an image's texels; None if they agree."""
    texel = image.format
    shape = tensor.dims
    expected = [image.height, image.width, texel.components]
    if texel.is_packed or texel.is_compressed or len(texel.aspects) > 1:
        return f"its texels of {texel.name} are not made of whole numbers side by side"
    if tensor.format.block_size_bytes * texel.components != texel.block_size_bytes:
        return f"a texel of {texel.name} has {texel.components} components of {texel.channel_bits[0]} bits"
    if len(shape) not in (3, 4) or list(shape[-3:]) != expected or (len(shape) == 4 and shape[0] != 1):
        return f"its shape must be {expected} or {[1, *expected]}: height, width, components of a texel"
    return None


def _report_mismatch(tensor: TensorPlan, image: ImagePlan, why: str, problems: Problems) -> None:
    shown = f"image {image.uid!r} of {image.width} x {image.height} texels"
    what = f"tensor {tensor.uid!r} of the shape {list(tensor.shape)} and {tensor.format.name}"
    problems.error("SR-MEMORY-006", f"{tensor.pointer}/memory_group", f"{what} cannot show {shown}: {why}")


_KEPT_BYTES = 64 << 10  # content up to this size is computed while planning: runs with the kept plan need no NumPy
_PACKED = ("bool", "bfloat16", "float8_e4m3", "float8_e5m2")  # `struct` cannot pack these types


def source_of(
    scenario: Scenario,
    resource: Any,
    inputs: Mapping[str, ArrayLike],
    shape: tuple[int, ...] | None = None,
    format: Format | None = None,
) -> NpySource | ArraySource | GeneratedSource | None:
    """Return a resource's source from ``inputs``, else ``data``, else ``src``; None for zeros.

    ``shape`` and ``format`` describe the array, where known. An object in ``src`` needs them.
    """
    if resource.uid in inputs:
        return ArraySource(inputs[resource.uid], resource.uid)
    if resource.data is not None:
        return ArraySource(resource.data, resource.uid)
    if resource.src is not None and not isinstance(resource.src, str):
        return content_source(scenario, resource, shape, format)
    if resource.src is not None:
        return NpySource(os.path.join(scenario.base_dir, resource.src))
    return None


def content_source(
    scenario: Scenario, resource: Any, shape: tuple[int, ...] | None = None, format: Format | None = None
) -> GeneratedSource:
    """Return a resource's content with an object in ``src``. Raise ScenarioError with the place.

    ``shape`` and ``format`` describe the array, where the resource has them.
    """
    content, place = resource.src, f"{scenario.resource_pointer(resource.uid)}/src"

    def fail(code: str, key: str, message: str, help: str | None = None) -> NoReturn:
        raise error_of([error(code, f"{place}{key}", f"{resource.kind} {resource.uid!r:.100} {message}", help)])

    dtype = content.dtype or DEFAULT_DTYPE
    descr = ""
    if format is not None:
        dtype, descr = _type_of(format, fail), format.numpy_dtype or ""
        if content.dtype not in (None, dtype):
            message = f"of {format.name} has items of {dtype}, not {content.dtype}"
            fail("SR-DATA-002", "/dtype", message, "leave out 'dtype'")
    item_size = struct.calcsize(STRUCT_CODES[dtype])
    shape = _shape(resource, shape, item_size, dtype, fail)
    count = prod(shape)

    def encoded(values: list[float], key: str) -> bytes:
        try:
            return _encoded(values, dtype)
        except ValueError as reason:
            fail("SR-DATA-002", key, f"has a wrong value: {reason}")

    size_bytes = count * item_size
    source = GeneratedSource(dtype, descr, shape, size_bytes, size_bytes)
    if content.values is not None:
        return source._replace(pattern=encoded(flattened(content.values)[1], "/values"))
    if content.fill is not None:
        _, repeated = flattened(content.fill if isinstance(content.fill, list) else [content.fill])
        if count % len(repeated):
            fail("SR-DATA-001", "/fill", f"has {count} items, not a multiple of the {len(repeated)} repeated ones")
        return source._replace(pattern=encoded(repeated, "/fill"))
    convert = float if "float" in dtype else lambda value: int(value) if value == int(value) else value
    if content.series is not None:
        start, step = map(convert, content.series)
        encoded([start, start + step * (count - 1)], "/series")
        if "float" not in dtype and isinstance(step, float):
            fail("SR-DATA-002", "/series", f"has items of {dtype}, got the step {step!r}")
        source = source._replace(rule=("series", start, step))
    else:
        low, high = map(convert, content.range or _whole_range(dtype))
        encoded([low, high], "/range")
        if not isfinite(high - low):
            fail("SR-DATA-002", "/range", f"has items of {dtype}: no number is as large as the range")
        source = source._replace(rule=("random", content.random, low, high))
    return source.kept() if size_bytes <= _KEPT_BYTES else source


def _shape(
    resource: Any, shape: tuple[int, ...] | None, item_size: int, dtype: str, fail: Callable[..., NoReturn]
) -> tuple[int, ...]:
    """Return a content's shape: ``shape``, or the shape by the size, the values or the count."""
    content = resource.src
    given, flat = flattened(content.values) if content.values is not None else (None, [])
    if shape is None and resource.kind == "buffer":
        shape = (resource.size // item_size,)
        if resource.size % item_size:
            fail("SR-DATA-001", "", f"has {resource.size} bytes: not a whole number of items of {dtype}")
    if shape is None:
        shape = given or (() if content.count is None else (content.count,))
        if not shape:
            fail("SR-DATA-003", "", "has no size: 'src' does not give the number of items", "add 'count' to 'src'")
    count, held = prod(shape), content.count if given is None else len(flat)
    if held not in (None, count):
        key = "/count" if given is None else "/values"
        fail("SR-DATA-001", key, f"has {count} items of {dtype}, got {held}", "both numbers must be equal")
    if given is not None and len(given) > 1 and resource.kind != "buffer" and _trimmed(given) != _trimmed(shape):
        fail("SR-DATA-001", "/values", f"has items of the shape {list(shape)}, got {list(given)}")
    return shape


def _type_of(format: Format, fail: Callable[..., NoReturn]) -> str:
    """Return the dtype for a format's items; fail for a format with blocks."""
    from scenario_runner.files.elements import element_of_format

    if format.numpy_dtype is None:
        help = "use a .dds file"
        fail("SR-DATA-004", "", f"has the block-compressed format {format.name}, so numbers cannot fill it", help)
    return element_of_format(format).name


def _trimmed(shape: tuple[int, ...]) -> list[int]:
    """Drop axes with length 1, which do not change the item order."""
    return [length for length in shape if length != 1]


def _whole_range(dtype: str) -> tuple[float, float]:
    """Return the default range for random numbers: 0 to 1 for floats, every value for integers."""
    if "float" in dtype:
        return 0.0, 1.0
    bits = 1 if dtype == "bool" else 8 * struct.calcsize(STRUCT_CODES[dtype])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def _encoded(values: list[float], dtype: str) -> bytes:
    """Encode numbers, each rounded to the nearest value. Raise ValueError for a number out of range."""
    data = None
    if dtype not in _PACKED:
        try:
            if all(map(isfinite, values)):
                data = struct.pack(f"<{len(values)}{STRUCT_CODES[dtype]}", *values)
        except (struct.error, TypeError, OverflowError):
            pass  # `encoded` takes texts, and has a message for the rest
    if data is None:
        from scenario_runner.files.elements import ELEMENTS, encoded

        return encoded(values, ELEMENTS[dtype], len(values))
    if "float" in dtype:
        for value, rounded in zip(values, struct.unpack(f"<{len(values)}{STRUCT_CODES[dtype]}", data), strict=True):
            if type(value) is int and value != rounded:
                raise ValueError(f"the nearest float to {value} is {int(rounded)}")
    return data
