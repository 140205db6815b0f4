"""The pipeline cache between processes: a file for each scenario, with the driver's cache data.

In the user's chosen folder, a file has the scenario's name, as in the reference runner. Scenarios with equal names
share a file. In the user's cache folder, the name includes the scenario's path. A run loads a file only if it is
whole (checksum), belongs to this user alone, and fits the device and the driver: a driver may crash on other data. Any
other file is ignored with a warning, and replaced.

File: the bytes from vkGetPipelineCacheData, which begin with a VkPipelineCacheHeaderVersionOne. If the driver kept more
than this header, a trailer follows: 8 bytes magic, and the u64 size and u32 CRC-32 of the driver's bytes (little
endian).

Scripts for the reference runner look for the log messages of this module.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from scenario_runner.errors import DeviceError, FileError, PipelineCacheMissError, UnsupportedError, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.files.cache_folder import (
    KINDS,
    default_cache_dir,
    enforce_limits,
    is_trusted,
    read_own,
    replace_own,
    touch,
)
from scenario_runner.files.sandbox import check_existing_folder
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.pipeline import Creation, DriverCache, feedback_required

# The default folder in the user's cache folder.
FOLDER = "pipelines"
_MAGIC = b"SRPIPES1"
_HEADER = struct.Struct("<4I16s")  # size, version, vendor, device, UUID: little endian by the specification
_HEADER_VERSION = 1
_TRAILER = struct.Struct("<8sQI")
_MOST_BYTES = 1 << 30
_MOST_NAME_BYTES = 100


class PipelineCaching:
    """Keeps pipelines in files below the existing ``folder``, by default in ``cache_dir`` or the user's cache folder.

    ``clear`` removes a scenario's file before its first run. With ``fail_on_miss``, a run that loaded a file raises
    PipelineCacheMissError if the file lacks a pipeline, and the file stays unchanged. A Runner creates each pipeline
    once; ``creations`` has the driver's feedback about the pipelines that the last run created.
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
        """Raise MissingFileError or FileError for a missing or unwritable folder."""
        if folder is not None:
            check_existing_folder(os.fspath(folder))
        self._root = cache_dir or default_cache_dir()
        self._is_chosen = folder is not None
        self._folder = os.path.join(self._root, FOLDER) if folder is None else os.fspath(folder)
        self._clear = clear
        self._fail_on_miss = fail_on_miss
        self._cleared: set[str] = set()
        self.creations: list[Creation] = []

    def path_of(self, plan: Plan) -> str:
        """Return a scenario's file, by name; the cache folder adds a hash from the scenario's path or shaders."""
        if os.path.isfile(plan.name):
            path = os.path.realpath(plan.name)
            name, key = os.path.splitext(os.path.basename(path))[0], os.fsencode(path)
        else:
            graphs = [
                repr(graph_pipeline).encode() if graph_pipeline.is_optical_flow else graph_pipeline.code
                for graph_pipeline in plan.graph_pipelines
            ]
            codes = [*plan.shader_codes, *graphs]
            name, key = "scenario", b"".join(hashlib.sha256(code).digest() for code in codes)
        name = os.fsdecode(os.fsencode(name)[:_MOST_NAME_BYTES])
        if not self._is_chosen:
            name += f"-{hashlib.sha256(key).hexdigest()[:16]}"
        return os.path.join(self._folder, name + KINDS[FOLDER].suffix)

    @contextmanager
    def around(self, device: Device, plan: Plan) -> Iterator[None]:
        """Let the driver load pipelines from the scenario's file during the block, and store new pipelines there."""
        path, physical = self.path_of(plan), device.physical
        progress.set_work("loading its pipeline cache")
        if self._clear and path not in self._cleared:
            self._cleared.add(path)
            _remove(path)
        folders = () if self._is_chosen else (self._root, self._folder)
        usable = all(map(is_trusted, folders))
        with progress.phase("pipelines", "load"):
            data = kept = _load(path, physical) if usable else b""

        def store(when: str) -> None:
            nonlocal kept
            with progress.phase("pipelines", when):
                kept = _store(path, cache, kept, folders, physical)

        def created(cache: DriverCache) -> None:
            self.creations = cache.creations
            for creation in self.creations:
                what = {True: "hit", False: "miss", None: "hit or miss is unknown"}[creation.hit]
                took = "" if creation.duration_ns is None else f" ({creation.duration_ns / 1e6:.2f} ms)"
                tell = log.info if creation.hit or not checks else log.error
                tell(__name__, "Pipeline cache %s for pipeline: %s%s", what, creation.label, took)
            if writes:
                store("store after setup")
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
                    f"{physical.name!r} does not tell pipeline cache hits from misses: it lacks"
                    " VK_EXT_pipeline_creation_feedback and Vulkan 1.3",
                    help="run without --fail-on-pipeline-cache-miss",
                )
            device.driver_cache = cache
            yield
            if writes:
                store("store")
                if not self._is_chosen:
                    enforce_limits(self._root, FOLDER)
        finally:
            device.driver_cache = None
            cache.close()


def _store(path: str, cache: DriverCache, kept: bytes, folders: Sequence[str], physical: PhysicalDevice) -> bytes:
    """Store the driver's cache if it has new data, and return the data in the file.

    Log a warning if the file cannot be written. If another process has replaced ``kept`` in the file, merge its data.
    """
    try:
        stored = b""
        with suppress(OSError, ValueError):
            stored = _read(path, physical)
        if stored not in (b"", kept):
            cache.merge(stored)
        data = cache.data()
        if data != stored:
            progress.set_work("storing its pipeline cache")
            for folder in folders:
                os.makedirs(folder, mode=0o700, exist_ok=True)
            # a driver without pipelines writes a header alone, which needs no checksum
            is_header = len(data) == _HEADER.size
            replace_own(path, data if is_header else data + _TRAILER.pack(_MAGIC, len(data), zlib.crc32(data)))
    except (OSError, ValueError) as error:
        log.warning(__name__, "Pipeline Cache not stored: %r cannot be written: %s", path, reason_of(error))
    except DeviceError as error:
        log.warning(__name__, "Pipeline Cache not stored: %s", error)
    else:
        log.info(__name__, "Pipeline Cache stored (%s, %d bytes)", path, len(data))
        return data
    return kept


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FileError(f"{path}: cannot be removed: {reason_of(error)}") from error
    log.info(__name__, "Pipeline Cache cleared (%s)", path)


def _load(path: str, physical: PhysicalDevice) -> bytes:
    """Read the file for this device; return nothing for a missing file, or after a warning about a bad file."""
    try:
        data = _read(path, physical)
    except FileNotFoundError:
        return b""
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else error
        log.warning(__name__, "Pipeline validation: %s", reason)
        log.warning(__name__, "Pipeline Cache skipped: failed to validate %r", path)
        return b""
    log.info(__name__, "Pipeline Cache loaded and validated. (%s, %d bytes)", path, len(data))
    return data


def _read(path: str, physical: PhysicalDevice) -> bytes:
    """Read the driver's data from a file, and mark the file as used. Raise OSError, or ValueError for bad data."""
    content, modified_s = read_own(path, _MOST_BYTES)
    touch(path, modified_s)
    if len(content) < _HEADER.size:
        raise ValueError(f"it has {len(content)} bytes, expected at least the {_HEADER.size} bytes of a header")
    size, version, vendor, number, uuid = _HEADER.unpack_from(content)
    properties = physical.properties
    for what, value, expected in (
        ("pipeline cache header size", str(size), str(_HEADER.size)),
        ("pipeline cache header version", str(version), str(_HEADER_VERSION)),
        ("vendor", hex(vendor), hex(properties.vendorID)),
        ("device", hex(number), hex(properties.deviceID)),
        ("pipeline cache UUID", uuid.hex(), bytes(properties.pipelineCacheUUID[0:16]).hex()),
    ):
        if value != expected:
            raise ValueError(f"Incorrect {what}: {value}, expected {expected}")
    if len(content) == _HEADER.size:
        return content
    data = content[: -_TRAILER.size]
    magic, size, checksum = _TRAILER.unpack_from(content, len(data)) if len(data) >= _HEADER.size else (b"", 0, 0)
    if magic != _MAGIC or size != len(data):
        raise ValueError("it was truncated, or not written by this program")
    if checksum != zlib.crc32(data):
        raise ValueError(f"Incorrect checksum: {zlib.crc32(data):#010x}, expected {checksum:#010x}")
    return data


def _missed(creations: list[Creation], path: str, size_bytes: int) -> PipelineCacheMissError:
    """Make the error for pipelines missing in the cache."""
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
