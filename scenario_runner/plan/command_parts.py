"""Shared parts for all command resolvers: context, the plan's tables, descriptors and push constants.

The resolvers check a command's bindings and push constants against the declarations in shaders.

Source: Vulkan specification, "Shader Interfaces", sections "DescriptorSet and Binding Assignment" and "Push Constant
Interface".
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.checks.bindings import (
    MOST_BYTES,
    RESOURCE_OF,
    TEXEL_BUFFERS,
    Slot,
    Slots,
    called,
    check_array,
    check_doubles,
    check_image,
    check_tensor,
    check_texels,
    check_type,
    check_writes,
    described,
    format_of,
    slots_of,
)
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.plan import FramePlan, Operation, ResourcePlan
from scenario_runner.plan.records import (
    Descriptor,
    DescriptorKind,
    ImageLayout,
    LayoutBinding,
    NeededFeature,
    Source,
)
from scenario_runner.plan.resources import known_format
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.plan.sources import NpySource, content_of
from scenario_runner.scenario import Binding, BoundResource, Scenario
from scenario_runner.scenario.scenario import Problems
from scenario_runner.shaders.spirv import Module
from scenario_runner.shaders.spirv.interface import push_constants_read

if TYPE_CHECKING:
    from scenario_runner.plan.graph_files import GraphFiles
    from scenario_runner.plan.image_layouts import LayoutTracker
    from scenario_runner.plan.images import ImageUses


class Entries(list[Any]):
    """A table of a plan. Entries with equal content share an index, and an index never changes."""

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Hashable, int] = {}

    def add(self, entry: Any) -> int:
        """Add an entry unless the table has one with equal `content`, and return the index."""
        index = self._indices.setdefault(getattr(entry, "content", entry), len(self))
        if index == len(self):
            self.append(entry)
        return index


class Tables:
    """A plan's tables in the making: resources by uid, all pipelines, descriptor lists and frames.

    ``operations`` belong to the unfinished frame. ``made`` has uids for resources inside graphs, which the
    scenario does not declare. ``graph_modules`` has each graph's SPIR-V module by label, with a pointer to the entry
    that names the module. ``names`` becomes `Plan.names`. ``features`` are the commands' device features beyond
    the features for shaders.
    """

    def __init__(self, resources: dict[str, ResourcePlan]) -> None:
        self.resources = resources
        self.made: set[str] = set()
        self.pipelines = Entries()
        self.graph_pipelines = Entries()
        self.graphics_pipelines = Entries()
        self.lists = Entries()
        self.frames: list[FramePlan] = []
        self.operations: list[Operation] = []
        self.graph_modules: dict[str, tuple[Module, str]] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.features: dict[NeededFeature, None] = {}

    def need(self, structure: str, member: str, what: str, pointer: str) -> None:
        """Note a device feature that ``what`` needs."""
        self.features[NeededFeature(structure, member, what, pointer)] = None

    def end_frame(
        self, captures: tuple[str, ...], frame_id: int, boundary: bool, pointer: str, images: LayoutTracker | None
    ) -> None:
        """Make a frame from ``operations``; see `FramePlan`."""
        layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = ()
        if images is not None:
            self.operations += images.at_end(self.operations)
            layouts = images.differing()
        self.frames.append(FramePlan(tuple(self.operations), captures, frame_id, boundary, pointer, layouts))
        self.operations.clear()


def note_texel_buffers(tables: Tables) -> None:
    """Note the usage of texel buffers in the buffers."""
    for descriptor in (descriptor for sets in tables.lists for descriptor in sets.descriptors):
        buffer = tables.resources[descriptor.uid]
        if descriptor.format is not None and buffer.kind == "buffer":
            tables.resources[buffer.uid] = buffer._replace(usage=buffer.usage | {descriptor.kind})


class PushConstants(NamedTuple):
    """Reads each raw_data once, when the first command uses it, and notes errors in ``problems``.

    ``sources`` has every raw_data and graph constant by uid, ``read`` the bytes read so far.
    """

    scenario: Scenario
    problems: Problems
    sources: Mapping[str, Source]
    read: dict[str, bytes]

    def bytes_for(
        self, shaders: Sequence[LoadedShader], uid: str | None, pointer: str, place: str, size: int = 0
    ) -> bytes | None:
        """Return a command's push constants at ``pointer``; zeros without raw_data, None after an error.

        ``place`` names the raw_data ``uid``. ``size`` is the command's push_constants_size. 0 takes the size from each
        shader, and a shader without a size takes the block's size.
        """
        if not size and any(map(attrgetter("push_constants_size"), shaders)):
            size = max([shader.push_constants_size or shader.block_size for shader in shaders])
        before = len(self.problems.errors)
        for shader in shaders:
            self._check_size(shader, size)
        if len(self.problems.errors) > before:
            return None
        declared = max(map(attrgetter("block_size"), shaders))
        if uid is None:
            for shader in shaders:
                if shader.block_size:
                    message = f"shader {shader.uid!r} reads push constants, but the command gives it none"
                    self.problems.warn("SR-PUSH-003", pointer, f"{message}; zeros are used")
            return bytes(max(size, declared))
        source = self.sources.get(uid)
        if source is None:
            return None  # planning the raw_data has reported its error
        names = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(shader.uid) for shader in shaders)
        most, has = size or declared, f"raw_data {uid!r} holds {source.size_bytes} bytes"
        # a shader must not read beyond the data
        read = max(push_constants_read(shader.interface) for shader in shaders) if source.size_bytes < declared else 0
        if not most:
            message = f"no push constants are declared by {names}, but the command has raw_data {uid!r} for them"
            self.problems.error("SR-PUSH-005", place, message, "remove push_data_ref")
        elif source.size_bytes > most:
            takes = f"the push_constants_size of {names} is" if size else f"the push constants of {names} have"
            size = -(-source.size_bytes // 4) * 4
            help = f'give at most {most} bytes, or write "push_constants_size": {size} in the shader'
            self.problems.error("SR-PUSH-002", place, f"{has}, but {takes} {most}", help)
        elif source.size_bytes < read:
            message = f"{has}, but {read} bytes of push constants are read by {names}"
            self.problems.error("SR-PUSH-002", place, message, f"give at least {read} bytes")
        else:
            data = self._content(uid, source)
            return data + bytes(-len(data) % 4)  # vkCmdPushConstants takes multiples of 4 bytes
        return None

    def _check_size(self, shader: LoadedShader, size: int) -> None:
        """Note an error for a push_constants_size (0: the block's size) below a shader's reads."""
        place, most = f"{shader.pointer}/push_constants_size", max(size, shader.block_size)
        if most > MOST_BYTES:
            message = f"push_constants_size is {most}; no device takes more than {MOST_BYTES}"
            self.problems.error("SR-PUSH-004", place, message)
            return
        read = push_constants_read(shader.interface) if 0 < size < shader.block_size else 0
        if read > size:
            message = f"shader {shader.uid!r} reads {read} bytes of push constants, but push_constants_size is {size}"
            help = f"set push_constants_size to {shader.block_size}, or leave it out"
            self.problems.error("SR-PUSH-001", place, message, help)

    def _content(self, uid: str, source: Source) -> bytes:
        """Return a raw_data's bytes; zeros after noting an error."""
        if uid not in self.read:
            try:
                self.read[uid] = content_of(source)
            except ScenarioRunnerError as error:
                self.problems.add_error(error, f"{self.scenario.resource_pointer(uid)}/src")
                self.read[uid] = bytes(source.size_bytes)
        return self.read[uid]


class CommandContext(NamedTuple):
    """The input for command resolvers.

    ``shaders`` are the loaded shaders by uid. ``readonly`` has uids with the shader_access 'readonly',
    ``outputs`` uids that a run reads back beside those with a ``dst``.
    ``layouts`` and ``image_uses`` are None without images, ``graphs`` is None without graph commands.
    """

    scenario: Scenario
    problems: Problems
    tables: Tables
    shaders: Mapping[str, LoadedShader]
    push_constants: PushConstants
    readonly: frozenset[str]
    outputs: frozenset[str]
    layouts: LayoutTracker | None
    image_uses: ImageUses | None
    graphs: GraphFiles | None


class CommandResolver:
    """Plans commands with one or several kinds. Planning makes a resolver for each scenario."""

    def __init__(self, context: CommandContext) -> None:
        self.context = context

    @abstractmethod
    def resolve(self, command: Any, index: int) -> Iterable[Operation]:
        """Return the operations for command number ``index`` in order; note errors in the context's problems."""


Layouts = tuple[tuple[LayoutBinding, ...], ...]
_PARTIALLY_BOUND = "VkPhysicalDeviceVulkan12Features", "descriptorBindingPartiallyBound"


class Declared(NamedTuple):
    """The bindings for shaders running together.

    ``layouts`` are their descriptor set layouts from set 0 on, with exactly the descriptors that they use; a gap is an
    empty set. It is None after an error in the declarations.
    """

    uids: tuple[str, ...]
    slots: Slots
    layouts: Layouts | None

    def layouts_for(self, bound: Sequence[Descriptor], tables: Tables, pointer: str) -> Layouts:
        """Return the layouts for the descriptors of a command, and note the feature for arrays with gaps."""
        layouts = self.layouts or ()
        if all(slot.descriptor_count == 1 for slot in self.slots.values()):
            return layouts
        places = Counter((descriptor.set, descriptor.binding) for descriptor in bound)
        ends = {(descriptor.set, descriptor.binding): descriptor.element + 1 for descriptor in bound}
        fitted: list[list[LayoutBinding]] = []
        for number, bindings in enumerate(layouts):
            fitted.append([])
            for binding in bindings:
                place = number, binding.binding
                count = binding.descriptor_count or max(1, ends.get(place, 0))
                partial = places[place] < count
                fitted[-1].append(binding._replace(descriptor_count=count, partial=partial))
                if partial:
                    what = f"the array at set {number}, binding {binding.binding}, which is not bound as a whole,"
                    tables.need(*_PARTIALLY_BOUND, what, pointer)
        return tuple(map(tuple, fitted))


def declared_by(shaders: Sequence[LoadedShader], pointer: str, problems: Problems) -> Declared:
    """Collect the shaders' bindings, and note errors in the declarations at ``pointer``."""
    slots, findings = slots_of(list(map(attrgetter("uid", "interface"), shaders)), pointer)
    stages = dict(map(attrgetter("uid", "stage"), shaders))
    if not problems.report(findings):
        return Declared(tuple(stages), slots, None)
    layouts: list[list[LayoutBinding]] = []
    for slot in slots.values():  # by set and binding
        if slot.has_place:
            kind: DescriptorKind = slot.kind  # type: ignore[assignment]
            seen_by = tuple(sorted({stages[uid] for uid, _ in slot.variables}))
            while len(layouts) <= slot.set:
                layouts.append([])
            layouts[slot.set].append(LayoutBinding(slot.binding, kind, seen_by, slot.descriptor_count))
    return Declared(tuple(stages), slots, tuple(map(tuple, layouts)))


content_of_binding = attrgetter(
    "set", "id", "resource_ref", "lod", "offset", "size", "format", "descriptor_type", "resource_refs"
)
"""Returns every field in which two bindings may differ."""


_DOUBLES = ("<f8", ">f8")


class BindingPlanner:
    """Plans the descriptors for a command at ``pointer``, and notes errors.

    ``resources`` lacks resources with errors. ``readonly`` has the uids of readonly resources.
    """

    def __init__(
        self,
        declared: Declared,
        resources: Mapping[str, ResourcePlan],
        pointer: str,
        problems: Problems,
        readonly: Collection[str] = (),
    ) -> None:
        self._declared = declared
        self._resources = resources
        self._pointer = pointer
        self._problems = problems
        self._readonly = readonly

    def plan(self, bindings: Sequence[Binding]) -> tuple[Descriptor, ...]:
        """Return the descriptors; none after noting errors in bindings."""
        problems, slots = self._problems, self._declared.slots
        before = len(problems.errors)
        bound = set(map(attrgetter("set", "id"), bindings))
        missing = [slot for key, slot in slots.items() if slot.used and key not in bound]
        planned = []
        for index, binding in enumerate(bindings):
            slot, place = slots.get((binding.set, binding.id)), f"{self._pointer}/bindings/{index}"
            if slot is None:
                self._note_unused(binding, missing, place)
                continue
            if slot.kind not in RESOURCE_OF:
                continue  # the shader has an error
            problems.report(check_array(slot, binding, place))
            format = self._texel_format(slot, binding, place)
            for inside, element, part in binding.parts():
                resource, place_of_part = self._resources.get(part.resource_ref), f"{place}{inside}"
                if resource is not None:
                    descriptor = self._descriptor(slot, part, resource, format, place_of_part)
                    self._check(slot, binding, descriptor, resource, place_of_part)
                    if slot.has_place:
                        planned.append(descriptor._replace(element=element))
        for slot in missing:
            message = f"nothing is bound to {described(slot.variable)}, which shader {slot.shader!r} uses"
            help = f'add {{"set": {slot.set}, "id": {slot.binding}, "resource_ref": "…"}}'
            problems.error("SR-BIND-001", f"{self._pointer}/bindings", message, help)
        return tuple(planned) if len(problems.errors) == before else ()

    def _texel_format(self, slot: Slot, binding: Binding, place: str) -> Format | None:
        """Return the format of the texels at a binding; None for other variables and after an error."""
        if slot.kind not in TEXEL_BUFFERS:
            if binding.format is not None:
                message = f"a format has no meaning for {called(slot)}"
                help = "remove it: only texel buffers need one"
                self._problems.error("SR-BIND-011", f"{place}/format", message, help)
            return None
        images = [variable.image for _, variable in slot.variables if variable.image is not None]
        format = next((known for image in images if (known := format_of(image.format)) is not None), None)
        if binding.format is not None:
            format = known_format(binding.format, f"{place}/format", self._problems)
            if format is None:
                return None
        findings = [check_texels(variable, shader, format, place) for shader, variable in slot.variables]
        return format if self._problems.report(chain.from_iterable(findings)) else None

    def _descriptor(
        self, slot: Slot, part: Binding | BoundResource, resource: ResourcePlan, format: Format | None, place: str
    ) -> Descriptor:
        """Return the descriptor for a bound part at the pointer ``place``. A texel buffer is cut to whole texels."""
        kind: DescriptorKind = slot.kind  # type: ignore[assignment]
        descriptor = Descriptor(slot.set, slot.binding, kind, part.resource_ref)
        if resource.kind == "image":
            level = part.lod
            if kind == "sampler":
                level = None  # all levels, as for sampled images without ``lod``
            elif resource.mips == 1 or (level is None and kind == "storage_image"):
                level = 0
            return descriptor._replace(level=level)
        if resource.kind != "buffer":
            return descriptor
        descriptor = descriptor._replace(offset_bytes=part.offset, size_bytes=part.size)
        if format is None:
            return descriptor
        bound_bytes = descriptor.bound_bytes(resource)
        rest = bound_bytes % format.block_size_bytes
        if rest:
            has = f"{bound_bytes} bytes of buffer {resource.uid!r}"
            message = f"{has} are not a whole number of texels of {format.name}"
            if part.size is not None or rest == bound_bytes:
                help = f"use a multiple of {format.block_size_bytes}"
                self._problems.error("SR-BIND-011", f"{place}/size" if part.size else place, message, help)
            else:
                self._problems.warn("SR-BIND-013", place, f"{message}; the last {rest} are not bound")
            descriptor = descriptor._replace(size_bytes=bound_bytes - rest)
        is_atomic = any(variable.has_atomic_texels for _, variable in slot.variables)
        return descriptor._replace(format=format, atomic_texels=is_atomic)

    def _note_unused(self, binding: Binding, missing: list[Slot], place: str) -> None:
        """Warn of a binding that no shader declares, or note an error if it probably means a ``missing`` slot."""
        uids = self._declared.uids
        names = " and ".join(map(repr, uids))
        shaders = f"shader {names} does" if len(uids) == 1 else f"the shaders {names} do"
        uid = next((part.resource_ref for _, _, part in binding.parts()), "")
        what = f"resource {uid!r} is bound to set {binding.set}, binding {binding.id}, which {shaders} not use"
        slot = _meant(binding, missing, self._resources.get(uid))
        if slot is None:
            self._problems.warn("SR-BIND-002", place, what, "no result of the command can depend on it")
            return
        missing.remove(slot)
        key, wrong, right = "id", binding.id, slot.binding
        if slot.set != binding.set:
            key, wrong, right = "set", binding.set, slot.set
        message = f"{what}, and nothing is bound to {described(slot.variable)}, which shader {slot.shader!r} uses"
        help = f"if {uid!r} is meant for it, write {right} instead of {wrong}"
        self._problems.error("SR-BIND-001", f"{place}/{key}", message, help)

    def _check(self, slot: Slot, binding: Binding, descriptor: Descriptor, resource: Any, place: str) -> None:
        """Compare a resource's kind, size and format with the declarations for the slot."""
        uid, expected_kind, problems = descriptor.uid, RESOURCE_OF[slot.kind], self._problems
        if resource.kind != expected_kind:
            article = "an" if expected_kind[0] in "aeiou" else "a"
            message = f"{resource.kind} {uid!r} is bound to {called(slot)}, which needs {article} {expected_kind}"
            problems.error("SR-BIND-003", place if binding.resource_refs else f"{place}/resource_ref", message)
            return
        problems.report(check_type(slot, binding.descriptor_type, place))
        if uid in self._readonly and not binding.resource_refs:  # which entry of an array a shader writes is unknown
            problems.report(check_writes(slot, uid, place))
        block = slot.variable.block
        if expected_kind == "buffer" and block is not None and block.size_bytes > descriptor.bound_bytes(resource):
            has = f"buffer {uid!r} has {descriptor.bound_bytes(resource)} bytes"
            has += f" from offset {descriptor.offset_bytes} on" if descriptor.offset_bytes else ""
            message = f"{has}; {called(slot)} declares {block.size_bytes}"
            help = "a shader that goes beyond the buffer reads or writes other memory"
            problems.warn("SR-BIND-005", place, message, help)
        source = resource.source
        if expected_kind == "buffer" and isinstance(source, NpySource) and source.header.descr in _DOUBLES:
            problems.report(check_doubles(slot, uid, source.path, place))
        for shader, declared in slot.variables:
            if expected_kind == "image":
                problems.report(check_image(declared, shader, uid, resource.format, place))
            elif declared.tensor is not None:
                what = f"{described(declared)} in shader {shader!r}"
                problems.report(check_tensor(declared.tensor, what, uid, resource.dims, resource.format, place))


def _meant(binding: Binding, missing: Iterable[Slot], resource: ResourcePlan | None) -> Slot | None:
    """Find the missing slot that a binding probably means: a neighbour in the set, or the same number in another set.

    The slot must take the resource's kind.
    """
    for slot in missing:
        near = abs(slot.binding - binding.id) == 1 if slot.set == binding.set else slot.binding == binding.id
        if near and (resource is None or RESOURCE_OF.get(slot.kind) == resource.kind):
            return slot
    return None
