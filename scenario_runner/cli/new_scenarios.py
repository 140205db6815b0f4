"""Commands that write new scenarios: ``init`` for a shader, ``import`` for the tests of other programs.

``scenario-runner init SHADER`` writes a scenario for a compute shader, from the shader's interface.
``scenario-runner import KIND PATH… --output SUITE`` writes a suite.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from operator import attrgetter
from typing import Final

from scenario_runner.checks.bindings import TEXEL_BUFFERS, Slot, check_image, declared_size, slots_of
from scenario_runner.checks.entry_points import MODELS, find_entry_point, refuse_errors
from scenario_runner.cli.arguments import parse
from scenario_runner.cli.console import live, show, write_finding
from scenario_runner.cli.shader import is_module, module_of, read_shader, request_for
from scenario_runner.cli.suites import test
from scenario_runner.errors import ScenarioRunnerError, UsageError, file_error
from scenario_runner.errors.text import Json, Span, counted, one_line
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.output import OutputFile
from scenario_runner.files.vk_formats import format_named
from scenario_runner.importers.item_folders import FoundTest, Imported, find_files
from scenario_runner.processes.system_limits import processors
from scenario_runner.scenario.writing import Uids, compact
from scenario_runner.shaders.source import BuildOptions, assemble
from scenario_runner.shaders.spirv import EntryPoint, Module
from scenario_runner.shaders.spirv.types import Struct, scalars
from scenario_runner.tosa.attribute_skeleton import format_name

_LEAST_EXTENT: Final = 16
"""The least invocations along an axis that a shader uses. Arrays and images without a size get the same extent."""
_ONE: Final = "0x3f800000"  # 1.0 in single precision


def main(options: argparse.Namespace) -> int:
    """Write a scenario, and with --expect the expectations from a run.

    Raises FileError for an existing file, UsageError for other stages, and the errors of reading a shader.
    """
    stem = os.path.splitext(options.output or os.path.basename(options.file))[0]
    scenario, check = options.output or f"{stem}.json", f"{stem}.check.json"
    if options.file.lower().endswith(".json"):
        raise file_error(options.file, "is a .json file, expected a shader", help="init writes a scenario for a shader")
    for path in (scenario, check) if options.expect else (scenario,):
        if os.path.lexists(path):
            raise file_error(path, "exists, and init overwrites no file", help="name another file with -o")
    resources, command = _entries(options, os.path.dirname(os.path.abspath(scenario)))
    _write(scenario, {"resources": resources, "commands": [{"dispatch_compute": command}]})
    if not options.expect:
        print(f"wrote {one_line(scenario)}: run it with scenario-runner {one_line(scenario)}")
        return 0
    _write(check, {"outputs": _expectations(resources, f"{os.path.basename(stem)}.expected")})
    print(f"wrote {one_line(scenario)} and {one_line(check)}: check the expected files below", flush=True)
    return test.main(parse(["test", scenario, "--update"]))


def _write(path: str, tree: Json) -> None:
    with OutputFile(path) as file:
        file.write(f"{compact(tree)}\n".encode())


def _expectations(resources: Sequence[Json], folder: str) -> dict[str, Json]:
    """Return an expectation for each output: a file in ``folder``, and the type of a buffer's numbers."""
    outputs = {}
    for kind, body in (pair for entry in resources for pair in entry.items() if "dst" in pair[1]):
        outputs[body["uid"]] = {"file": f"{folder}/{os.path.basename(body['dst'])}"}
        if kind == "buffer" and "src" in body:
            outputs[body["uid"]]["dtype"] = body["src"]["dtype"]
    return outputs


def _entries(options: argparse.Namespace, folder: str) -> tuple[list[Json], dict[str, Json]]:
    """Return the resources, and the body of a dispatch. Paths start from ``folder``."""
    content = read_shader(options.file)
    if options.entry is None and not is_module(options.file, content):
        # the first entry point of an HLSL file without main
        assembled = assemble(request_for(options, content), BuildOptions())
        options.entry = next(iter(assembled.other_entry_points()), None)
    module = module_of(options, content)
    entry = _entry_point(module, options)
    uids = Uids()
    shader = _shader(options, content, module, entry, folder)
    shader["uid"] = uids.make(shader["uid"])
    slots, findings = slots_of([(shader["uid"], entry.interface)], "")
    refuse_errors(findings, options.file)
    used = [slot for slot in slots.values() if slot.has_place]
    local_size = entry.interface.local_size() or (1, 1, 1)
    has_images = any(slot.variable.image is not None for slot in used)
    groups = options.workgroups or [
        -(-_LEAST_EXTENT // size) if axis == 0 or size > 1 or (has_images and axis == 1) else 1
        for axis, size in enumerate(local_size)
    ]
    extent = [size * count for size, count in zip(local_size, groups, strict=True)]
    resources: list[Json] = [{"shader": shader}]
    bindings = []
    texture = ""
    for slot in sorted(used, key=attrgetter("is_sampler")):
        uid = texture
        if not slot.is_sampler or not texture:
            uid = uids.make(slot.variable.name or f"binding_{slot.binding}")
            resources.append(_resource(slot, uid, extent, options.file))
        texture = uid if slot.kind == "sampled_image" else texture
        binding: dict[str, Json] = {"set": slot.set, "id": slot.binding, "resource_ref": uid}
        if slot.descriptor_count != 1:  # an array, or one of any length
            binding["resource_refs"] = [binding.pop("resource_ref")] * max(1, slot.descriptor_count)
        if slot.kind in TEXEL_BUFFERS:
            binding["format"] = format_name(slot.variable)
        bindings.append(binding)
    command: dict[str, Json] = {"shader_ref": shader["uid"], "rangeND": groups, "bindings": bindings}
    if entry.interface.push_constants is not None:
        command["push_data_ref"] = uids.make("push_constants")
        source = _push_constants(entry.interface.push_constants, declared_size(entry.interface))
        resources.append({"raw_data": {"uid": command["push_data_ref"], "src": source}})
    return resources, command


def _entry_point(module: Module, options: argparse.Namespace) -> EntryPoint:
    """Return the named entry point, else ``main`` or the first one of the stage. Raises UsageError and ShaderError."""
    names = [entry.name for entry in module.entry_points if entry.execution_model == MODELS["compute"]]
    if not names:
        message = f"{options.file} has no compute shader"
        raise UsageError(message, help="init writes scenarios for compute shaders; docs/drawings.md has drawings")
    name = options.entry or ("main" if "main" in names else names[0])
    entry, errors = find_entry_point(module, os.path.basename(options.file), name, "compute", "")
    refuse_errors(errors, options.file)
    assert entry is not None
    return entry


def _shader(
    options: argparse.Namespace, content: bytes, module: Module, entry: EntryPoint, folder: str
) -> dict[str, Json]:
    """Return the body of the shader, with the default values of specialization constants."""
    name, extension = os.path.splitext(os.path.basename(options.file))
    body: dict[str, Json] = {"uid": name, "src": os.path.relpath(options.file, folder).replace(os.sep, "/")}
    if extension.lower() != ".spv" and is_module(options.file, content):
        body["type"] = "SPIR-V"
    if entry.name != "main":
        body["entry"] = entry.name
    request = request_for(options, content)
    if request.build_options:
        body["build_options"] = request.build_options
    if request.include_dirs:
        body["include_dirs"] = [os.path.relpath(path, folder).replace(os.sep, "/") for path in request.include_dirs]
    if module.spec_constants:
        body["specialization_constants"] = [{"id": one.id, "value": one.default} for one in module.spec_constants]
    return body


def _resource(slot: Slot, uid: str, extent: Sequence[int], path: str) -> dict[str, Json]:
    """Return the resource for a binding, with contents if the shader reads it, and a file if the shader writes it."""
    variable = slot.variable
    reads = any(each.reads for _, each in slot.variables)
    writes = any(each.writes for _, each in slot.variables)
    body: dict[str, Json] = {"uid": uid, "shader_access": "readonly"}
    kind, source = "buffer", {"random": 1}
    if variable.tensor is not None:
        kind, shape = "tensor", variable.tensor.shape or (-1,) * (variable.tensor.rank or 1)
        body |= {"dims": [_LEAST_EXTENT if length < 1 else length for length in shape], "format": format_name(variable)}
    elif slot.kind in TEXEL_BUFFERS:
        body["size"] = prod(extent) * format_named(format_name(variable)).block_size_bytes
    elif variable.block is None:
        kind, name = "image", format_name(variable)
        refuse_errors(check_image(variable, slot.shader, uid, format_named(name), ""), path)
        body |= {"dims": [1, *extent[:2], 1], "format": name}
    else:
        body["size"] = variable.block.size_bytes + (variable.block.runtime_stride_bytes or 0) * prod(extent)
        source = _numbers(variable.block)
    if writes:
        body["shader_access"] = "readwrite" if reads else "writeonly"
    if reads or not writes:
        body["src"] = source
    if writes:
        body["dst"] = f"out/{uid}.npy"
    return {kind: body}


def _numbers(block: Struct) -> dict[str, Json]:
    """Return contents for a block: the numbers 0, 1, 2, … if all members have one type, else random bytes."""
    name = _only_type(block)
    if name not in ELEMENTS or ELEMENTS[name].size_bytes == 1:
        return {"random": 1, "dtype": name if name in ELEMENTS else "uint8"}
    return {"series": [0, 1], "dtype": name}


def _push_constants(block: Struct, size_bytes: int) -> dict[str, Json]:
    """Return contents for push constants: the number 1 for each member of 32 bits."""
    name = _only_type(block)
    if name in ("float32", "int32", "uint32"):
        return {"values": [1] * (size_bytes // 4), "dtype": name}
    words: list[Json] = [1] * (size_bytes // 4)
    for member in block.members:
        first, last = (member.offset_bytes or 0) // 4, ((member.offset_bytes or 0) + member.size_bytes) // 4
        if {str(scalar) for scalar in scalars(member.type)} == {"float32"}:
            words[first:last] = [_ONE] * (last - first)
    return {"values": words, "dtype": "uint32"}


def _only_type(block: Struct) -> str:
    """Return the type of all numbers in a block, or "" for several types."""
    types = set(scalars(block))
    return str(types.pop()) if len(types) == 1 else ""


Importer = Callable[[Sequence[FoundTest], str, int], Iterable[Imported]]
"""A function that writes tests into a suite, a number of them at a time."""
_MOST_ERRORS = 50
_REASON_END = re.compile(r"\n|; | that was |: %")  # ends the reason in a message of TOSA's converter


def tosa(options: argparse.Namespace) -> int:
    """Import TOSA's conformance tests. Return 0, or the exit code of the first error."""
    from scenario_runner.tosa.conformance_tests import find_tests, import_tests

    return _import(options, find_tests(options.folders), import_tests)


def amber(options: argparse.Namespace) -> int:
    """Import scripts of Amber. Return 0, or the exit code of the first error."""
    from scenario_runner.importers.amber import EXTENSIONS, import_scripts

    return _import(options, find_files(options.paths, EXTENSIONS), import_scripts)


def offload(options: argparse.Namespace) -> int:
    """Import tests of LLVM's offload-test-suite. Return 0, or the exit code of the first error."""
    from scenario_runner.importers.offload import find_tests, import_tests

    return _import(options, find_tests(options.paths), import_tests)


def _import(options: argparse.Namespace, found: Iterable[FoundTest | ScenarioRunnerError], importer: Importer) -> int:
    start = time.monotonic()
    found = list(found)
    tests = [each for each in found if isinstance(each, FoundTest)]
    errors = [each for each in found if isinstance(each, ScenarioRunnerError)]
    outcomes: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    kept = 0

    def rows() -> Iterator[list[Span]]:
        done = sum(outcomes.values())
        yield [f"{done} of {counted(len(tests), 'test')}", f", {time.monotonic() - start:.0f} s"]

    with live(sys.stderr, rows):
        for result in importer(tests, options.output, options.jobs or processors()) if tests else ():
            outcomes[result.outcome] += 1
            kept += result.kept
            if result.error is not None:
                errors.append(result.error)
            elif result.reason:
                reasons[result.outcome, _kind(result)] += 1
    for error in errors[:_MOST_ERRORS]:
        for problem in error.problems:
            write_finding(problem)
    _show_end(options.output, outcomes, reasons, kept, len(errors), time.monotonic() - start)
    return errors[0].exit_code if errors else 0


def _kind(result: Imported) -> str:
    """Shorten a test's reason, so that similar tests share a text. For an expected error, keep only the first part."""
    reason = _REASON_END.split(result.reason)[0]
    return one_line(reason.partition(":")[0] if result.outcome == "expected error" else reason, 150)


def _show_end(
    output: str, outcomes: Counter[str], reasons: Counter[tuple[str, str]], kept: int, errors: int, seconds: float
) -> None:
    for (outcome, reason), count in sorted(reasons.items(), key=lambda row: (row[0][0], -row[1], row[0][1])):
        show(f"{outcome}: {count}: {reason}")
    if errors > _MOST_ERRORS:
        show(f"and {errors - _MOST_ERRORS} more errors")
    parts = [f"{outcomes['imported']} imported", f"{outcomes['not supported']} not supported"]
    parts += [f"{outcomes['expected error']} expected to fail", counted(errors, "error")]
    parts += [f"{kept} of them unchanged"] if kept else []
    show(f"{', '.join(parts)} in {seconds:.1f} s: {one_line(output)}")
