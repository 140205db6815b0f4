"""Copies bytes into resources and out of them, in batches.

Integrated and software devices share the host's memory: bytes are read into the resource and written out of it in
place. Other devices use a staging buffer with two halves. While the device copies from a half, the next bytes are read
into the other half. Copies that fit into half of the buffer can join a frame's submission.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from itertools import groupby
from typing import Any

from scenario_runner import errors
from scenario_runner.plan.records import Source
from scenario_runner.processes import system_limits
from scenario_runner.vulkan import Handle
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import CommandPool, Device, Submission
from scenario_runner.vulkan.memory import Allocation, align, allocate, choose_type, populate
from scenario_runner.vulkan.resources import Buffer, Piece, Resource, bind_buffer, create_buffer

# Bounds for half the staging buffer.
_LARGEST_HALF_BYTES = 16 << 20
_SMALLEST_HALF_BYTES = 64 << 10
# A piece begins at a multiple of this in the staging buffer (enough for any format's texels).
_STAGING_ALIGNMENT = 48
_MANY_BYTES = 1 << 20
# From this many bytes on, resources are read and cleared in parallel, in pieces of at most this size.
_PARALLEL_BYTES = 32 << 20
_PIECE_BYTES = 8 << 20
# Stage and access of copies, for barriers.
_COPIED = vk.PIPELINE_STAGE_TRANSFER_BIT, vk.ACCESS_TRANSFER_WRITE_BIT


# Pieces of resources in order: (uid, bytes). A piece is valid until the next piece is requested.
Pieces = Generator[tuple[str, memoryview], None, None]


class Copies:
    """Command buffers for the copies of a run, and the recorded copies of buffers for further runs."""

    def __init__(self, pool: CommandPool) -> None:
        self.preparing, *self.halves = [pool.allocate() for _ in range(3)]
        self._staging: object = None
        self.upload: tuple[list[Handle], list[Piece]] | None = None
        self.readback: tuple[Sequence[Resource], list[Piece]] | None = None

    def check(self, staging: object) -> None:
        """Forget the recorded copies if they need another staging buffer."""
        if staging is not self._staging:
            self._staging, self.upload, self.readback = staging, None, None


class Transfer:
    """Copies between the host and the resources of a device, destroyed with ``stack``. One user at a time."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._pool = CommandPool(device, stack)
        self.copies = Copies(self._pool)
        """The copies of a run that leaves nothing to the next."""
        self._submissions = [Submission(device, stack), Submission(device, stack)]
        self._staging: tuple[Handle, Handle] = None, None  # the VkBuffer and its memory, after the first use
        self._staging_stack = stack.enter_context(ExitStack())
        self._half_size_bytes = 0

    def fill(
        self, resources: Iterable[Resource], timeout_s: float | None = None, joined: Copies | None = None
    ) -> list[Handle]:
        """Write the initial bytes of every resource: from the source, or zeros. Raises FileError or DeviceError.

        With ``joined`` copies, return command buffers that the caller must submit before the frame. Otherwise the list
        is empty.
        """
        copies = joined or self.copies
        copies.check(self._staging)
        if joined is not None and joined.upload is not None:
            recorded, pieces = joined.upload
            self._read_sources(pieces)
            return recorded
        preparing = copies.preparing
        resources = list(resources)
        sourced = [resource for resource in resources if resource.plan.source is not None]
        zeroed = [resource for resource in resources if resource.plan.source is None and resource.plan.zero_fill]
        to_prepare = [resource for resource in resources if resource.needs_preparation]
        to_clear = [resource for resource in zeroed if not resource.mapped]
        recorded, pieces = [], []
        if to_prepare or to_clear:
            with self._pool.recording(preparing):
                for resource in to_prepare:
                    resource.record_prepare(preparing)
                for resource in to_clear:
                    resource.record_clear(preparing)
                    if resource.plan.group is not None:  # other members share the bytes
                        self._device.barrier(preparing, _COPIED)
                self._device.barrier(preparing, _COPIED)
            recorded.append(preparing)
            if any(resource.mapped for resource in (*sourced, *zeroed)):  # the host writes after the preparation
                recorded = self._run(recorded, "preparing resources", timeout_s)
        populating = self._device.physical.type == "cpu"
        zeroed = [resource for resource in zeroed if resource.mapped]
        # members of groups first: the bytes of the others come into the same memory
        _fill_in_place([resource for resource in zeroed if resource.plan.group is not None], populating)
        alone = [resource for resource in zeroed if resource.plan.group is None]
        _fill_in_place([*alone, *(resource for resource in sourced if resource.mapped)], populating)
        staged = [resource for resource in sourced if not resource.mapped]
        if staged:
            recorded, pieces = self._upload(staged, recorded, copies.halves, timeout_s)
        if joined is None:
            return self._run(recorded, "filling resources", timeout_s)
        if recorded and self._can_repeat(joined, resources):
            joined.check(self._staging)
            joined.upload = recorded, pieces
        return recorded

    def _can_repeat(self, joined: Copies, resources: Iterable[Resource]) -> bool:
        """Return whether a further run can submit copies again: copies of buffers, which have no layouts."""
        are_buffers = all(isinstance(resource, Buffer) and not resource.mapped for resource in resources)
        return joined is not self.copies and are_buffers

    def _run(self, recorded: list[Handle], work: str, timeout_s: float | None) -> list[Handle]:
        """Submit command buffers and wait for them. Return an empty list."""
        if recorded:
            self._submissions[0].submit(*recorded)
            self._submissions[0].wait(work, timeout_s)
        return []

    def record_read(self, resources: Sequence[Resource], joined: Copies) -> tuple[Handle, Pieces] | None:
        """Record the readback of resources. Return the command buffer to submit after a frame, and the pieces.

        The pieces are valid after the frame has finished. Return None if the readback needs separate submissions.
        """
        commands, (staging, memory) = joined.halves[1], self._staging
        joined.check(self._staging)
        if joined.readback is not None and joined.readback[0] == resources:
            return commands, _views(memory, joined.readback[1])
        sizes, half = [resource.plan.size_bytes for resource in resources], self._half_size_bytes
        fits = sum(sizes) <= half and not any(resource.mapped for resource in resources)
        batches = [*_batches(resources, sizes, half)] if fits else []
        if len(batches) != 1:
            return None
        joined.readback = (resources, batches[0]) if self._can_repeat(joined, resources) else None
        return self._record_download(batches[0], staging, commands), _views(memory, batches[0])

    def read(self, resources: Iterable[Resource], timeout_s: float | None = None) -> Pieces:
        """Return the bytes of every resource, in order and in pieces."""
        for mapped, group in groupby(resources, lambda resource: resource.mapped):
            if mapped:
                for resource in group:
                    yield resource.plan.uid, resource.view(0, resource.plan.size_bytes)
            else:
                yield from self._download(list(group), timeout_s)

    def _provide(self, sizes_bytes: Sequence[int]) -> tuple[Handle, Handle]:
        """Return a staging VkBuffer for these sizes, and its memory. It is small: pinned memory is slow to allocate."""
        needed = sum(align(size, _STAGING_ALIGNMENT) for size in sizes_bytes)
        half = min(max(1 << (needed - 1).bit_length(), _SMALLEST_HALF_BYTES), _LARGEST_HALF_BYTES)
        half = align(half, _STAGING_ALIGNMENT)
        if half <= self._half_size_bytes:
            return self._staging
        self._staging_stack.close()
        stack, self._half_size_bytes = self._staging_stack, 0
        usage = vk.BUFFER_USAGE_TRANSFER_SRC_BIT | vk.BUFFER_USAGE_TRANSFER_DST_BIT
        handle, needs = create_buffer(self._device, stack, 2 * half, usage, "staging", kind="staging buffer")
        type_index = choose_type(
            self._device,
            needs.type_bits,
            vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT,
            vk.MEMORY_PROPERTY_HOST_CACHED_BIT,
        )
        if type_index is None:
            raise errors.UnsupportedError(f"{self._device.physical.name!r} has no host-visible memory")
        allocation = allocate(
            self._device, stack, needs.size_bytes, type_index, "staging memory", mapped=True, kind="staging memory"
        )
        bind_buffer(self._device, handle, allocation, 0, "staging")
        self._staging, self._half_size_bytes = (handle, allocation), half
        return self._staging

    def _read_sources(self, batch: Sequence[Piece]) -> None:
        """Read the sources of pieces into staging memory. Raises FileError."""
        _, memory = self._staging
        for piece in batch:
            source: Any = piece.resource.plan.source
            source.read_into(memory.view(piece.staging_offset, piece.size_bytes), piece.offset_bytes)

    def _upload(
        self, resources: Sequence[Resource], recorded: list[Handle], halves: Sequence[Handle], timeout_s: float | None
    ) -> tuple[list[Handle], list[Piece]]:
        """Copy the bytes of the sources through staging memory, after the commands recorded before.

        Several batches are submitted here. A single batch is not: return the command buffers and the pieces.
        """
        sources: list[Any] = [resource.plan.source for resource in resources]
        sizes = [source.size_bytes for source in sources]
        staging, _ = self._provide(sizes)
        batches = [*_batches(resources, sizes, self._half_size_bytes)]
        try:
            for turn, batch in enumerate(batches):
                half = turn % 2
                commands, submission = halves[half], self._submissions[half]
                submission.wait("uploading", timeout_s)
                self._read_sources(batch)
                with self._pool.recording(commands):
                    for piece in batch:
                        piece.resource.record_upload(commands, staging, piece)
                    # copies come before all commands that are submitted later
                    self._device.barrier(commands, _COPIED)
                recorded.append(commands)
                if len(batches) > 1:
                    submission.submit(*recorded)
                    recorded = []
        finally:
            self._settle("uploading", timeout_s)
        return recorded, batches[0]

    def _download(self, resources: Sequence[Resource], timeout_s: float | None) -> Pieces:
        sizes = [resource.plan.size_bytes for resource in resources]
        staging, memory = self._provide(sizes)
        ready: tuple[int, list[Piece]] | None = None
        try:
            for turn, batch in enumerate(_batches(resources, sizes, self._half_size_bytes)):
                half = turn % 2
                self._submissions[half].submit(self._record_download(batch, staging, self.copies.halves[half]))
                if ready is not None:
                    yield from self._pieces(memory, *ready, timeout_s)
                ready = (half, batch)
            if ready is not None:
                yield from self._pieces(memory, *ready, timeout_s)
        finally:
            self._settle("reading back", timeout_s)

    def _record_download(self, batch: Sequence[Piece], staging: Handle, commands: Handle) -> Handle:
        """Record copies of pieces into the staging buffer. Return the command buffer."""
        with self._pool.recording(commands):
            for piece in batch:
                piece.resource.record_download(commands, staging, piece)
            self._device.barrier(commands, _COPIED, (vk.PIPELINE_STAGE_HOST_BIT, vk.ACCESS_HOST_READ_BIT))
        return commands

    def _pieces(self, memory: Allocation, half: int, batch: Sequence[Piece], timeout_s: float | None) -> Pieces:
        self._submissions[half].wait("reading back", timeout_s)
        yield from _views(memory, batch)

    def _settle(self, what: str, timeout_s: float | None) -> None:
        """Wait for all submissions, unless the device is lost or abandoned."""
        for submission in self._submissions:
            if self._device.usable:
                submission.wait(what, timeout_s)


def _views(memory: Allocation, batch: Sequence[Piece]) -> Pieces:
    """Return the pieces of a batch in staging memory."""
    for piece in batch:
        yield piece.resource.plan.uid, memory.view(piece.staging_offset, piece.size_bytes)


def _batches(resources: Sequence[Resource], sizes_bytes: Sequence[int], half_size_bytes: int) -> Iterator[list[Piece]]:
    """Cut resources into pieces, in batches that take turns in the halves of the staging buffer."""
    batch: list[Piece] = []
    start = used = 0
    for resource, size_bytes in zip(resources, sizes_bytes, strict=True):
        offset = 0
        while offset < size_bytes:
            size = resource.portion(offset, half_size_bytes - used)
            if not size:
                assert batch, "half of the staging buffer holds a portion of any resource"
                yield batch
                batch, start, used = [], half_size_bytes - start, 0
                continue
            batch.append(Piece(resource, offset, size, start + used))
            used = min(align(used + size, _STAGING_ALIGNMENT), half_size_bytes)
            offset += size
    if batch:
        yield batch


def _fill_in_place(resources: Sequence[Resource], populating: bool) -> None:
    """Read sources into their mapped resources and clear the other resources; many bytes in parallel.

    Reading and clearing release the interpreter. On a software device, most time goes into touching pages for the first
    time, on every core. ``populating`` means that the pages belong to this process, which can get them faster at once.
    """
    jobs: list[Callable[[], None]] = []
    total = 0
    for resource in resources:
        source, size = resource.plan.source, resource.plan.size_bytes
        step = _PIECE_BYTES if source is None or getattr(source, "divisible", False) else size
        for start in range(0, max(size, 1), max(step, 1)):  # an empty resource is a single piece
            piece = resource.view(start, min(step, size - start))
            jobs.append(partial(_fill, source, piece, start, populating))
        total += size
    if len(jobs) < 2 or total < _PARALLEL_BYTES:
        for job in jobs:
            job()
        return
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        try:
            started = [pool.submit(copy_context().run, job) for job in jobs]
        except RuntimeError as error:  # a thread that could not be started
            raise system_limits.refusal("thread") from error
        for done in started:
            done.result()


def _fill(source: Source | None, piece: memoryview, offset_bytes: int, populating: bool) -> None:
    """Read bytes of a source from ``offset_bytes`` on, or set them to zero. The interpreter is released for many
    bytes."""
    many = piece.nbytes >= _MANY_BYTES
    if populating and many:
        populate(piece)
    if source is not None:
        source.read_into(piece, offset_bytes)
    elif many:
        import ctypes

        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(piece)), 0, piece.nbytes)
    else:
        piece[:] = bytes(piece.nbytes)
