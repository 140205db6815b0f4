"""``scenario-runner [run] FILE…``: run scenarios, one after the other, on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner import __version__, log, progress
from scenario_runner.cli import supervisor
from scenario_runner.cli.messages import set_up_logging, show_error
from scenario_runner.errors import DeviceError, NoDeviceError, UsageError

if TYPE_CHECKING:
    from scenario_runner.run.crash import Crash
    from scenario_runner.run.driver_start import InstanceStart

# With one of these nothing is run.
_WITHOUT_DRIVER = frozenset({"-h", "--help", "-v", "--version", "--list-devices"})
# With one of these a capture tool comes before the driver.
_CAPTURING = ("--capture-frame", "--gfxr")
_DEPENDENCIES = ("vulkan", "cffi", "numpy", "pydantic", "imageio", "rich")


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first scenario that failed.

    After a crash of the process before this one, it says so and goes on with what is left (see `supervisor`).
    """
    crash = supervisor.crash
    starting = _start_driver(argv) if crash is None else None
    # The imports from here on run while the driver starts.
    from scenario_runner.cli.run_options import parse

    options = parse(argv)
    if options.version:
        return _show_version()
    if options.list_devices:
        if crash is not None:
            raise _crashed(crash, None)
        return _list_devices()
    files = [*options.scenario, *options.files]
    if not files:
        raise UsageError("no scenario file was given", help="scenario-runner test.json, or --help for all options")
    set_up_logging(options.log_level, lines=True)
    from scenario_runner.cli.run_files import announce, run_files
    from scenario_runner.cli.run_outputs import RunOutputs, read_streams
    from scenario_runner.run.given_scenario import is_model

    model = next(filter(is_model, files), None)
    if model is not None:
        if crash is not None:
            raise _crashed(crash, model)
        from scenario_runner.cli.model import run_model

        return run_model(model, files, options, starting)
    if options.input or options.shader or options.push_constants:
        raise UsageError(
            "--input, --shader and --push-constants are for models, and no model was given",
            help="scenario-runner MODEL.vgf --input NAME=FILE",
        )
    streams = read_streams(files)
    outputs = RunOutputs(
        files,
        streams,
        output=options.output,
        capture_dir=options.capture_dir,
        folder_each=options.folder_each,
        frame_captures=options.capture_frame is not None,
    )
    if crash is None:
        outputs.refuse_collisions()
        progress.files(len(files))
        announce(options)
        return run_files(files, streams, outputs, options, starting)
    show_error(_crashed(crash, files[crash.file] if crash.file < len(files) else None))
    if crash.stack:
        log.debug(__name__, "%s", crash.stack)
    return run_files(files, streams, outputs, options, None, crash.file + 1)


def _crashed(crash: Crash, file: str | None) -> DeviceError:
    from scenario_runner.run.crash import crash_error

    return crash_error(crash, file)


def _start_driver(argv: Sequence[str]) -> InstanceStart | None:
    """Start the driver before anything else is imported: it takes as long as the rest, and mostly beside it."""
    if not argv or not _WITHOUT_DRIVER.isdisjoint(argv) or any(each.startswith(_CAPTURING) for each in argv):
        return None
    if any(argument.startswith("--emulation-layer-profiling") for argument in argv):
        return None  # the layers read the environment, which is changed for them, when they are loaded
    from scenario_runner.run.driver_start import InstanceStart

    validation = "--validation" in argv or "--validation-report" in argv
    labels = "--debug-labels" in argv or "--enable-gpu-debug-markers" in argv
    return InstanceStart(validation="sync" if "--validation-sync" in argv else validation, labels=labels)


def _list_devices() -> int:
    """Print index, name, type, UUID and driver of every device and return 0; the one that a run takes by itself is
    marked "default". Raises NoDeviceError when there is none."""
    from scenario_runner.vulkan.device import Instance
    from scenario_runner.vulkan.loader import version_text
    from scenario_runner.vulkan.physical_device import choose

    instance = Instance()
    try:
        devices = instance.physical_devices
        if not devices:
            raise NoDeviceError("there are no Vulkan devices", help="'scenario-runner doctor' shows what is missing")
        try:
            default = choose(devices, None).index
        except NoDeviceError:
            default = None  # none of them is usable; each line says why
        for device in devices:
            reason = device.unusable_because()
            note = f" - not usable: {reason}" if reason else " - default" if device.index == default else ""
            version = version_text(device.api_version)
            print(
                f"{device.index}: {device.name} ({device.type}, Vulkan {version}, {device.driver})"
                f" uuid {device.uuid}{note}"
            )
    finally:
        instance.close()
    return 0


def _show_version() -> int:
    """Print the versions of this program and what it stands on, as JSON with the reference runner's keys; return 0."""
    import json
    from importlib.metadata import PackageNotFoundError, version

    dependencies: list[dict[str, str | None]] = []
    for name in _DEPENDENCIES:
        try:
            dependencies.append({"name": name, "version": version(name)})
        except PackageNotFoundError:
            dependencies.append({"name": name, "version": None})
    print(json.dumps({"version": __version__, "revision": f"v{__version__}", "dependencies": dependencies}, indent=2))
    return 0
