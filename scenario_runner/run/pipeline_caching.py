"""Pipelines kept between processes: one file for each scenario, with what the driver's pipeline cache held.

In a folder that the user chose a file is named after its scenario, as the reference runner names it: scenarios of one
name share one. In the user's cache folder the path of the scenario is part of the name. A file is believed
only where it is whole (checksum), this user's alone, and from a device and a driver like this one: a driver that is
given anything else may crash. Whatever is wrong with it, it is ignored with a warning and replaced.

File: the bytes of vkGetPipelineCacheData, which begin with a VkPipelineCacheHeaderVersionOne; where the driver kept
more than this header, 8 bytes magic, and u64 size and u32 CRC-32 of these bytes (little endian).

The messages are those that scripts written for the reference runner look for.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scenario_runner import log, progress
from scenario_runner.content_cache import KINDS, bound, default_cache_dir, is_trusted, read_own, replace_own, touch
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import DeviceError, FileError, PipelineCacheMissError, UnsupportedError
from scenario_runner.files.source import check_existing_folder, reason_of
from scenario_runner.plan.plan import Plan
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.driver_cache import Creation, DriverCache, feedback_required
from scenario_runner.vulkan.physical_device import PhysicalDevice

FOLDER = "pipelines"
"""Where the files are by default, in the user's cache folder."""
_MAGIC = b"SRPIPES1"
_HEADER = struct.Struct("<4I16s")  # size, version, vendor, device, UUID: little endian by the specification
_HEADER_VERSION = 1
_TRAILER = struct.Struct("<8sQI")
_MOST_BYTES = 1 << 30
_MOST_NAME_BYTES = 100
# Of the user's cache folder; in a folder that the user chose nothing is removed.


class PipelineCaching:
    """Keeps pipelines in files below ``folder``, which must exist; by default in the user's cache folder, or in
    ``cache_dir`` in place of that.

    ``clear`` removes a scenario's file before it is used for the first time. With ``fail_on_miss`` a run whose file was
    loaded raises PipelineCacheMissError for each pipeline that did not come from it, and files are not written.
    ``creations`` is what the driver told of the pipelines that the last run made; those that an earlier run of the same
    Runner made are not made again.
    """

    required = staticmethod(feedback_required)

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        clear: bool = False,
        fail_on_miss: bool = False,
        cache_dir: str | None = None,
    ) -> None:
        """Raises MissingFileError or FileError for a folder that does not exist or that cannot be written to."""
        if folder is not None:
            check_existing_folder(os.fspath(folder))
        self._root = cache_dir
        self._chosen = None if folder is None else os.fspath(folder)
        self._clear = clear
        self._fail_on_miss = fail_on_miss
        self._cleared: set[str] = set()
        self.creations: list[Creation] = []

    def path_of(self, plan: Plan) -> str:
        """The file of a scenario: by its name in a chosen folder, else by its path, or its shaders without a file."""
        if os.path.isfile(plan.name):
            path = os.path.realpath(plan.name)
            name, key = os.path.splitext(os.path.basename(path))[0], os.fsencode(path)
        else:
            graphs = [
                graph_pipeline.code if graph_pipeline.kind == "graph" else repr(graph_pipeline).encode()
                for graph_pipeline in plan.graph_pipelines
            ]
            codes = [*plan.shader_codes, *graphs]
            name, key = "scenario", b"".join(hashlib.sha256(code).digest() for code in codes)
        name = os.fsdecode(os.fsencode(name)[:_MOST_NAME_BYTES])
        if self._chosen is None:
            name += f"-{hashlib.sha256(key).hexdigest()[:16]}"
        return os.path.join(self._folder(), name + KINDS[FOLDER].suffix)

    @contextmanager
    def used(self, device: Device, plan: Plan) -> Iterator[None]:
        """Let what the block makes on ``device`` come from the scenario's file and go into it."""
        path = self.path_of(plan)
        progress.doing("loading its pipeline cache")
        if self._clear and path not in self._cleared:
            self._cleared.add(path)
            _remove(path)
        folders = (self._cache_root(), self._folder()) if self._chosen is None else ()
        usable = all(map(is_trusted, folders))
        with progress.phase("pipelines", "load"):
            data = _load(path, device.physical) if usable else b""
        kept = _Kept(path, data, folders, device.physical)

        def created(cache: DriverCache) -> None:
            self.creations = cache.creations
            for creation in self.creations:
                what = {True: "hit", False: "miss", None: "hit or miss is unknown"}[creation.hit]
                took = "" if creation.duration_ns is None else f" ({creation.duration_ns / 1e6:.2f} ms)"
                tell = log.info if creation.hit or not checks else log.error
                tell(__name__, "Pipeline cache %s for pipeline: %s%s", what, creation.label, took)
            if writes:
                with progress.phase("pipelines", "store after setup"):
                    kept.store(cache)
            elif checks and any(not creation.hit for creation in self.creations):
                raise _missed(self.creations, path, len(data))

        checks = self._fail_on_miss and bool(data)
        cache = DriverCache(device, path, data, created, asks_for_misses=checks)
        writes = usable and not checks
        try:
            if self._fail_on_miss and not data:
                log.warning(__name__, "pipeline cache misses are not checked: no pipeline cache was loaded")
            elif checks and not cache.tells_hits:
                raise UnsupportedError(
                    f"{device.physical.name!r} does not tell pipeline cache hits from misses: it lacks"
                    " VK_EXT_pipeline_creation_feedback and Vulkan 1.3",
                    help="run without --fail-on-pipeline-cache-miss",
                )
            device.driver_cache = cache
            yield
            if writes:
                with progress.phase("pipelines", "store"):
                    kept.store(cache)
                if self._chosen is None:
                    bound(self._cache_root(), FOLDER)
        finally:
            device.driver_cache = None
            cache.close()

    def _folder(self) -> str:
        return self._chosen or os.path.join(self._cache_root(), FOLDER)

    def _cache_root(self) -> str:
        return self._root or default_cache_dir()


class _Kept:
    """The file of one scenario, as far as it has to be written."""

    def __init__(self, path: str, data: bytes, folders: Sequence[str], physical: PhysicalDevice) -> None:
        """``data`` is what the file has; ``folders`` are made where they do not exist."""
        self._path = path
        self._folders = folders
        self._physical = physical
        self._data = data

    def store(self, cache: DriverCache) -> None:
        """Write what the cache holds, unless the file has it already, together with what another process stored there
        meanwhile. A file that cannot be written is a warning."""
        try:
            stored, _ = _read(self._path, self._physical)
            if stored not in (b"", self._data):
                cache.merge(stored)
            data = cache.data()
            if data != stored:
                progress.doing("storing its pipeline cache")
                for folder in self._folders:
                    os.makedirs(folder, mode=0o700, exist_ok=True)
                replace_own(self._path, _content(data))
            self._data = data
        except (OSError, ValueError) as error:
            log.warning(__name__, "Pipeline Cache not stored: %r cannot be written: %s", self._path, reason_of(error))
        except DeviceError as error:
            log.warning(__name__, "Pipeline Cache not stored: %s", error)
        else:
            log.info(__name__, "Pipeline Cache stored (%s, %d bytes)", self._path, len(data))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FileError(f"{path}: cannot be removed: {reason_of(error)}") from error
    log.info(__name__, "Pipeline Cache cleared (%s)", path)


def _load(path: str, physical: PhysicalDevice) -> bytes:
    """Read what the file keeps for this device; nothing where it is not to be used, with a warning where it is
    there."""
    data, problem = _read(path, physical)
    if problem:
        log.warning(__name__, "Pipeline validation: %s", problem)
        log.warning(__name__, "Pipeline Cache skipped: failed to validate %r", path)
    elif data:
        log.info(__name__, "Pipeline Cache loaded and validated. (%s, %d bytes)", path, len(data))
    return data


def _read(path: str, physical: PhysicalDevice) -> tuple[bytes, str]:
    """The driver's part of a file, and what is wrong with the file (then there is no such part); neither without one.

    The file is marked as used."""
    try:
        content = read_own(path, _MOST_BYTES)
    except FileNotFoundError:
        return b"", ""
    except (OSError, ValueError) as error:
        return b"", reason_of(error)
    if isinstance(content, str):
        return b"", content
    touch(path, content[1])
    return _validated(content[0], physical)


def _content(data: bytes) -> bytes:
    """A file with the driver's part. A driver that keeps no pipelines has a header, which needs no checksum."""
    return data if len(data) == _HEADER.size else data + _TRAILER.pack(_MAGIC, len(data), zlib.crc32(data))


def _validated(content: bytes, physical: PhysicalDevice) -> tuple[bytes, str]:
    """The driver's part of a file, and what is wrong with the file (then there is no such part)."""
    if len(content) < _HEADER.size:
        return b"", f"it has {len(content)} bytes, expected a header of {_HEADER.size} at least"
    size, version, vendor, number, uuid = _HEADER.unpack_from(content)
    properties = physical.properties
    own_uuid = bytes(properties.pipelineCacheUUID[0:16])
    for what, value, expected in (
        ("pipeline cache header size", str(size), str(_HEADER.size)),
        ("pipeline cache header version", str(version), str(_HEADER_VERSION)),
        ("vendor", hex(vendor), hex(properties.vendorID)),
        ("device", hex(number), hex(properties.deviceID)),
    ):
        if value != expected:
            return b"", f"Incorrect {what}: {value}, expected {expected}"
    if uuid != own_uuid:
        return b"", f"Incorrect pipeline cache UUID: {uuid.hex()}, expected {own_uuid.hex()} (another driver version?)"
    if len(content) == _HEADER.size:
        return content, ""
    data = content[: -_TRAILER.size]
    magic, size, checksum = _TRAILER.unpack_from(content, len(data)) if len(data) >= _HEADER.size else (b"", 0, 0)
    if magic != _MAGIC or size != len(data):
        return b"", "it was truncated, or not written by this program"
    if checksum != zlib.crc32(data):
        return b"", f"Incorrect checksum: {zlib.crc32(data):#010x}, expected {checksum:#010x}"
    return data, ""


def _missed(creations: list[Creation], path: str, size_bytes: int) -> PipelineCacheMissError:
    help = f"run once without --fail-on-pipeline-cache-miss, which adds it to {path}"
    if size_bytes <= _HEADER.size:
        help = f"{path} has no pipelines: this driver keeps none in its pipeline cache"
    return PipelineCacheMissError(
        Diagnostic(
            PipelineCacheMissError.code,
            "error",
            creation.pointer,
            f"pipeline {creation.label!r} is not in the pipeline cache {path}"
            + ("" if creation.hit is not None else " (the driver did not tell whether it was a hit)"),
            help,
        )
        for creation in creations
        if not creation.hit
    )
