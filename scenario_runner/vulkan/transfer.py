"""Getting bytes into buffers and out of them, in batches.

Where the device's memory is the host's (integrated and software devices), bytes are read straight into the buffer and
written straight out of it. Elsewhere they go through one staging buffer of two halves, kept by the device: while the
device copies from one half, the next bytes are read into the other. What fits in half of it is one submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.vulkan.api import ffi
from scenario_runner.vulkan.buffers import USAGE_TRANSFER_DST, USAGE_TRANSFER_SRC, WORD_SIZE_BYTES, Buffer, create_raw
from scenario_runner.vulkan.commands import CommandPool
from scenario_runner.vulkan.memory import HOST_CACHED, HOST_COHERENT, HOST_VISIBLE, align, allocate, choose_type
from scenario_runner.vulkan.recording import (
    ACCESS_HOST_READ,
    ACCESS_MEMORY_READ,
    ACCESS_MEMORY_WRITE,
    ACCESS_TRANSFER_WRITE,
    STAGE_ALL_COMMANDS,
    STAGE_HOST,
    STAGE_TRANSFER,
    memory_barrier,
)
from scenario_runner.vulkan.result import check
from scenario_runner.vulkan.submission import Submission

if TYPE_CHECKING:
    from scenario_runner.vulkan.device import Device

_HALF_SIZE_BYTES = 16 << 20
# Below this size the host clears mapped memory itself, sparing a submission.
_HOST_FILL_LIMIT_BYTES = 1 << 20
# From this many bytes on, sources are read side by side: reading releases the interpreter, and storage likes company.
_PARALLEL_READ_BYTES = 32 << 20


@dataclass(slots=True)
class Piece:
    """``size_bytes`` bytes of ``buffer`` from ``offset_bytes`` on, and where they lie in the staging buffer."""

    buffer: Buffer
    offset_bytes: int
    size_bytes: int
    staging_offset: int


class Transfer:
    """The device's way in and out. One user at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stack = ExitStack()
        self._pool = CommandPool(device, self._stack)
        self._commands = [self._pool.allocate(), self._pool.allocate()]
        self._submissions = [Submission(device), Submission(device)]
        for submission in self._submissions:
            self._stack.callback(submission.close)
        self._staging: tuple[Any, Any] | None = None

    def close(self) -> None:
        """Destroy the staging buffer and what belongs to it; calling it again does nothing."""
        self._stack.close()

    def fill(self, buffers: Sequence[Buffer], timeout_s: float | None = None) -> None:
        """Give every buffer its initial bytes: those of its source, or zeros. Raises FileError or DeviceError."""
        zeros = [buffer for buffer in buffers if buffer.plan.source is None and buffer.plan.zero_fill]
        sourced = [buffer for buffer in buffers if buffer.plan.source is not None]
        on_device = []
        for buffer in zeros:
            if buffer.host_writable and buffer.size_bytes <= _HOST_FILL_LIMIT_BYTES:
                buffer.view(0, buffer.size_bytes)[:] = bytes(buffer.size_bytes)
            else:
                on_device.append(buffer)
        if on_device:
            with self._pool.recording(self._commands[0]):
                for buffer in on_device:
                    size = align(buffer.size_bytes, WORD_SIZE_BYTES)
                    self._device.fn.vkCmdFillBuffer(self._commands[0], buffer.handle, 0, size, 0)
                self._release(self._commands[0])
            self._submissions[0].submit(self._commands[0])
        direct = [buffer for buffer in sourced if buffer.host_writable]
        _read_sources(direct)
        self._submissions[0].wait("clearing buffers", timeout_s)
        self._upload([buffer for buffer in sourced if not buffer.host_writable], timeout_s)

    def read(self, buffers: Iterable[Buffer], timeout_s: float | None = None) -> Iterator[tuple[Buffer, memoryview]]:
        """The bytes of every buffer, in order and in pieces; a piece is valid until the next one is asked for."""
        staged: list[Buffer] = []
        for buffer in buffers:
            if buffer.host_writable:
                yield from self._download(staged, timeout_s)
                staged = []
                yield buffer, buffer.view(0, buffer.size_bytes)
            else:
                staged.append(buffer)
        yield from self._download(staged, timeout_s)

    def _halves(self) -> tuple[Any, Any]:
        """The staging VkBuffer and its memory, made when first needed."""
        if self._staging is None:
            size = 2 * _HALF_SIZE_BYTES
            usage = USAGE_TRANSFER_SRC | USAGE_TRANSFER_DST
            handle, required, _, bits = create_raw(self._device, self._stack, size, usage, "staging")
            type_index = choose_type(self._device, bits, HOST_VISIBLE | HOST_COHERENT, HOST_CACHED)
            if type_index is None:
                raise errors.UnsupportedError(f"{self._device.physical.name!r} has no host-visible memory")
            allocation = allocate(self._device, self._stack, required, type_index, "staging", mapped=True)
            check(
                self._device.fn.vkBindBufferMemory(self._device.handle, handle, allocation.handle, 0),
                "vkBindBufferMemory",
            )
            self._staging = (handle, allocation)
        return self._staging

    def _upload(self, buffers: Sequence[Buffer], timeout_s: float | None) -> None:
        for turn, batch in enumerate(_batches(buffers)):
            staging, allocation = self._halves()
            half = turn % 2
            self._submissions[half].wait("uploading", timeout_s)
            base = half * _HALF_SIZE_BYTES
            for piece in batch:
                assert piece.buffer.plan.source is not None
                view = allocation.view(base + piece.staging_offset, piece.size_bytes)
                piece.buffer.plan.source.read_into(view, piece.offset_bytes)
            with self._pool.recording(self._commands[half]):
                for piece in batch:
                    region = _region(base + piece.staging_offset, piece.offset_bytes, piece.size_bytes)
                    self._device.fn.vkCmdCopyBuffer(self._commands[half], staging, piece.buffer.handle, 1, region)
                self._release(self._commands[half])
            self._submissions[half].submit(self._commands[half])
        for submission in self._submissions:
            submission.wait("uploading", timeout_s)

    def _download(self, buffers: Sequence[Buffer], timeout_s: float | None) -> Iterator[tuple[Buffer, memoryview]]:
        ready: tuple[int, list[Piece]] | None = None
        try:
            for turn, batch in enumerate(_batches(buffers)):
                half = turn % 2
                self._copy_out(half, batch)
                if ready is not None:
                    yield from self._pieces(*ready, timeout_s)
                ready = (half, batch)
            if ready is not None:
                yield from self._pieces(*ready, timeout_s)
                ready = None
        finally:
            for submission in self._submissions:
                if not self._device.abandoned:
                    submission.wait("reading back", timeout_s)

    def _copy_out(self, half: int, batch: Sequence[Piece]) -> None:
        staging, _ = self._halves()
        base = half * _HALF_SIZE_BYTES
        commands = self._commands[half]
        with self._pool.recording(commands):
            for piece in batch:
                region = _region(piece.offset_bytes, base + piece.staging_offset, piece.size_bytes)
                self._device.fn.vkCmdCopyBuffer(commands, piece.buffer.handle, staging, 1, region)
            barrier = memory_barrier(ACCESS_TRANSFER_WRITE, ACCESS_HOST_READ)
            self._device.fn.vkCmdPipelineBarrier(
                commands, STAGE_TRANSFER, STAGE_HOST, 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL
            )
        self._submissions[half].submit(commands)

    def _pieces(
        self, half: int, batch: Sequence[Piece], timeout_s: float | None
    ) -> Iterator[tuple[Buffer, memoryview]]:
        self._submissions[half].wait("reading back", timeout_s)
        _, allocation = self._halves()
        for piece in batch:
            yield piece.buffer, allocation.view(half * _HALF_SIZE_BYTES + piece.staging_offset, piece.size_bytes)

    def _release(self, command_buffer: Any) -> None:
        """Order what was transferred before everything that is submitted later."""
        barrier = memory_barrier(ACCESS_TRANSFER_WRITE, ACCESS_MEMORY_READ | ACCESS_MEMORY_WRITE)
        self._device.fn.vkCmdPipelineBarrier(
            command_buffer, STAGE_TRANSFER, STAGE_ALL_COMMANDS, 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL
        )


def _batches(buffers: Sequence[Buffer]) -> Iterator[list[Piece]]:
    """Cut the buffers into pieces and the pieces into batches that fit in half of the staging buffer."""
    batch: list[Piece] = []
    used = 0
    for buffer in buffers:
        offset = 0
        while offset < buffer.size_bytes:
            if used >= _HALF_SIZE_BYTES:
                yield batch
                batch, used = [], 0
            size = min(buffer.size_bytes - offset, _HALF_SIZE_BYTES - used)
            batch.append(Piece(buffer, offset, size, used))
            used = align(used + size, 16)
            offset += size
    if batch:
        yield batch


def _read_sources(buffers: Sequence[Buffer]) -> None:
    """Read each source straight into its mapped buffer; large ones side by side."""
    if sum(buffer.size_bytes for buffer in buffers) < _PARALLEL_READ_BYTES or len(buffers) < 2:
        for buffer in buffers:
            _read_source(buffer)
        return
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for _ in pool.map(_read_source, buffers):
            pass


def _read_source(buffer: Buffer) -> None:
    assert buffer.plan.source is not None
    buffer.plan.source.read_into(buffer.view(0, buffer.size_bytes), 0)


def _region(source_offset: int, destination_offset: int, size: int) -> Any:
    region = ffi.new("VkBufferCopy*")
    region.srcOffset, region.dstOffset, region.size = source_offset, destination_offset, size
    return region
