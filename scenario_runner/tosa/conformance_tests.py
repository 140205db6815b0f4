"""TOSA's conformance tests as items of a suite.

::

    folder with desc.json ──▶ converter ───────▶ model.vgf, inputs, scenario.json ──▶ folder of the suite
                          └─▶ reference model ─▶ expected results, bounds, check.json ─┘

The converter belongs to Arm's package ai_ml_sdk_model_converter, the reference model to tosa-tools. The generator of
tosa-tools makes the folders.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple

import numpy
from pydantic import ConfigDict, Field, ValidationError

from scenario_runner.compare.tosa_rules import INSTALL, PACKAGE, DataType, ModeName, rule_problems
from scenario_runner.errors import FileError, MissingPackageError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.files.input import CHECK_FILE, SCENARIO_FILE
from scenario_runner.importers import item_folders
from scenario_runner.importers.item_folders import (
    RECORD,
    FoundTest,
    Imported,
    Outcome,
    Prepared,
    write_json,
    write_not_supported,
)
from scenario_runner.ml.model_scenario import COMMAND, scenario_for
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.ml.vgf_model import find_port
from scenario_runner.processes.programs import Program
from scenario_runner.scenario.json_model import ModelBase, findings
from scenario_runner.tosa.conversion import convert
from scenario_runner.tosa.model_converter import FAILED, NOT_LOWERED, find_converter
from scenario_runner.tosa.model_converter import PACKAGE as CONVERTER
from scenario_runner.validation import validate_file

DESCRIPTION: Final = "desc.json"
_MODEL: Final = "model.vgf"
_REFUSED_MODEL: Final = "test.tosa"
_WRITTEN: Final = frozenset({CHECK_FILE, _MODEL, RECORD, _REFUSED_MODEL, SCENARIO_FILE})
_VERSION: Final = 2  # of the files in these folders
_TIMEOUT_S: Final = 600.0
_LEVEL: Final = "EIGHTK"  # as in the official harness
_LONGEST_REASON: Final = 400
REFUSALS: Final = (NOT_LOWERED, FAILED)
"""Codes of errors if the converter refuses a model or crashes."""
_NO_REASON: Final = ("WARNING: Different TOSA spec", "Exiting")


class _Part(ModelBase):
    """A part of desc.json; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


class Compliance(_Part):
    """The compliance mode of an output; a key with the suffix ``_info`` has the mode's parameters."""

    model_config = ConfigDict(extra="allow")
    mode: ModeName
    data_type: DataType

    @property
    def parameters(self) -> dict[str, Json]:
        """The parameters of the mode."""
        extra = (self.model_extra or {}).items()
        return next((value for key, value in extra if key.endswith("_info") and isinstance(value, dict)), {})


class _Tensors(_Part):
    tensors: dict[str, Compliance] = Field(default={})


class _Meta(_Part):
    compliance: _Tensors = _Tensors()


class Description(_Part):
    """The used keys of desc.json. Each name has the file with the same index."""

    tosa_file: str
    ifm_name: list[str]
    ifm_file: list[str]
    ofm_name: list[str]
    ofm_file: list[str]
    expected_failure: bool = False
    expected_failure_desc: str = ""
    meta: _Meta = _Meta()


class References(NamedTuple):
    """The reference model's program and schema."""

    program: str
    schema: str


def find_reference() -> References:
    """Find the reference model. Raises MissingPackageError."""
    spec = find_spec("tosa_reference_model")
    for package in (spec and spec.submodule_search_locations) or ():
        folder = os.path.join(os.path.dirname(package), "bin")
        suffix = ".exe" if sys.platform == "win32" else ""
        reference = References(os.path.join(folder, f"tosa_reference_model{suffix}"), os.path.join(folder, "tosa.fbs"))
        if all(map(os.path.isfile, reference)):
            return reference
    message = f"TOSA's reference model (package {PACKAGE}) is not installed"
    raise MissingPackageError(message, help=INSTALL)


def find_tests(paths: Iterable[str]) -> Iterator[FoundTest | ScenarioRunnerError]:
    """Yield the test folders below each path, sorted by name, and an error for each unusable folder.

    Names are unique: a second test with the same name is an error.
    """
    names: dict[str, str] = {}
    for path in paths:
        root = os.path.abspath(path)
        count = len(names)
        for folder, below, files in os.walk(root):
            below.sort()
            if DESCRIPTION in files:
                below.clear()
                name = os.path.relpath(folder, root) if folder != root else os.path.basename(root)
                if name in names:
                    message = f"has the same name {name!r} as the test in {names[name]}"
                    yield _wrong(folder, message, "import it into another suite")
                else:
                    names[name] = folder
                    yield FoundTest(name.replace(os.sep, "/"), folder)
            elif RECORD in files:
                below.clear()  # a folder of the suite beside the tests
            elif any(file.endswith((".tosa", ".npy")) for file in files):
                below.clear()
                yield _wrong(folder, f"has no {DESCRIPTION}", "generate the test again")
                count = -1
        if count == len(names):
            message = f"has no test: no folder in it has a {DESCRIPTION}" if os.path.isdir(root) else "is not a folder"
            yield _wrong(path, message, "name folders that tosa_verif_conformance_generator wrote")


def import_tests(tests: Sequence[FoundTest], output: str, jobs: int) -> Iterator[Imported]:
    """Write a folder of the suite ``output`` for each test, and yield the outcomes as they come.

    An existing folder from the same programs and files is kept. Raises MissingPackageError if the
    converter or the reference model is missing.
    """
    reference, converter = find_reference(), find_converter()
    if converter is None or not os.path.isfile(converter):
        message = "the converter of machine-learning operations is not installed"
        raise MissingPackageError(message, help=f"pip install {CONVERTER}", code="SR-CUSTOM-031")
    status = os.stat(converter)
    programs = f"{_VERSION} {importlib.metadata.version(PACKAGE)} {status.st_size} {status.st_mtime_ns}"
    prepare = partial(_prepared, reference=reference, programs=programs)
    return item_folders.import_tests(tests, output, jobs, prepare, code="SR-TOSA-001")


def _prepared(test: FoundTest, reference: References, programs: str) -> Prepared:
    description = read_description(test.path)
    write = partial(_write, test.path, description, reference=reference)
    return Prepared(_digest(test.path, description, programs), write)


def read_description(folder: str) -> Description:
    """Read desc.json and look for the named files. Raises FileError for an unusable test."""
    path = os.path.join(folder, DESCRIPTION)
    try:
        with open(path, "rb") as file:
            description = Description.model_validate_json(file.read())
    except ValidationError as error:
        raise FileError([row._replace(code="SR-TOSA-001", path=path) for row in findings(Description, error)]) from None
    for names, files in (("ifm_name", "ifm_file"), ("ofm_name", "ofm_file")):
        counts = len(getattr(description, names)), len(getattr(description, files))
        if counts[0] != counts[1]:
            message = f"{names!r} and {files!r} have {counts[0]} and {counts[1]} entries, expected the same number"
            raise _wrong(path, message, "generate the test again")
    names_of_files = [*description.ifm_file, *description.ofm_file]
    for name in names_of_files:
        if name != os.path.basename(name) or name in _WRITTEN or names_of_files.count(name) > 1:
            raise _wrong(path, f"the file {name!r} must have a unique name without a folder", None)
    if description.tosa_file.endswith(".json"):
        help = "generate the tests with --output-type binary, or convert the model with tosa_json2fbbin"
        raise _wrong(path, f"the model {description.tosa_file!r} is JSON, expected a .tosa file", help)
    for name in (description.tosa_file, *description.ifm_file):
        if not os.path.isfile(os.path.join(folder, name)):
            help = "generate the tests without --lazy-data-generation"
            raise _wrong(path, f"the file {name!r} is missing", help)
    missing = set(description.ofm_name) - description.meta.compliance.tensors.keys()
    if missing and not description.expected_failure:
        raise _wrong(path, f"'meta' has no compliance for the output {min(missing)!r}", "generate the test again")
    return description


def _digest(folder: str, description: Description, programs: str) -> str:
    """Return the SHA-256 of all data that affects a test's import."""
    hash = hashlib.sha256(programs.encode())
    for name in (DESCRIPTION, description.tosa_file, *description.ifm_file):
        with open(os.path.join(folder, name), "rb") as file:
            hash.update(hashlib.file_digest(file, "sha256").digest())
    return hash.hexdigest()


def _write(folder: str, description: Description, target: str, reference: References) -> tuple[Outcome, str]:
    """Write the item of a test. Return the outcome, and the reason for a refusal."""
    try:
        bodies = write_scenario(folder, description, target)
    except ScenarioRunnerError as error:
        code, reason = error.problems[0].code, error.problems[0].message
        if code not in REFUSALS:
            raise
        if not description.expected_failure:
            return write_not_supported(target, reason)
        write_json(target, SCENARIO_FILE, {"resources": [], "commands": []})
        shutil.copyfile(os.path.join(folder, description.tosa_file), os.path.join(target, _REFUSED_MODEL))
        write_json(target, CHECK_FILE, {"convert": _REFUSED_MODEL, "any_error": True})
        return "expected error", reason
    if description.expected_failure:
        if validate_file(os.path.join(target, SCENARIO_FILE)).exit_code:
            write_json(target, CHECK_FILE, {"any_error": True})
            return "expected error", "the converter takes it, and the checks before a run refuse it"
        # a driver may do anything with it: Vulkan specification, "Valid Usage"
        reason = f"neither the converter nor the checks before a run refuse it: {description.expected_failure_desc}"
        return write_not_supported(target, reason)
    run_reference(folder, target, reference)
    outputs = {}
    for name, file_name in zip(description.ofm_name, description.ofm_file, strict=True):
        compliance = description.meta.compliance.tensors[name]
        mode, parameters, bounds = compliance.mode, compliance.parameters, f"bounds_{file_name}"
        rule = {"mode": mode, "parameters": parameters, "data_type": compliance.data_type, "expected": file_name}
        if os.path.exists(os.path.join(target, bounds)):
            rule["bounds"] = bounds
        for problem in rule_problems(mode, parameters, has_bounds="bounds" in rule):
            place = f"/meta/compliance/tensors/{name}"
            raise _wrong(os.path.join(folder, DESCRIPTION), f"{place}: {problem.message}", "generate the test again")
        outputs[bodies[name]["uid"]] = {"tosa": rule}
    write_json(target, CHECK_FILE, {"outputs": outputs})
    return "imported", ""


def write_scenario(folder: str, description: Description, target: str) -> dict[str, dict[str, Json]]:
    """Convert the model of a test, and write it with the inputs and a scenario into ``target``.

    Return the resources of the outputs by the names in the test. Raises UnsupportedError and FileError if the converter
    refuses the model.
    """
    model = os.path.join(folder, description.tosa_file)
    content = convert(model).content
    with open(os.path.join(target, _MODEL), "wb") as file:
        file.write(content)
    vgf = parse_vgf(content, name=model)
    scenario = scenario_for(vgf, _MODEL)
    bindings = {row["id"]: row["resource_ref"] for row in scenario["commands"][0][COMMAND]["bindings"]}
    bodies = {body["uid"]: body for resource in scenario["resources"] for body in resource.values()}
    read = {name for port in vgf.input_ports for name in port.names}
    for name, file_name in zip(description.ifm_name, description.ifm_file, strict=True):
        if name not in read:
            continue  # the converter leaves out unused inputs
        body = bodies[bindings[find_port(vgf.input_ports, name).binding]]
        body["src"] = os.path.basename(file_name)
        copy_array(os.path.join(folder, file_name), os.path.join(target, body["src"]), body["format"], "u")
    write_json(target, SCENARIO_FILE, scenario)
    return {
        name: bodies[bindings[find_port(vgf.output_ports, name, "output").binding]] for name in description.ofm_name
    }


def copy_array(source: str, target: str, format: str, kind: Literal["i", "u"]) -> None:
    """Copy a .npy file. For an unsigned tensor the copy has signed ("i") or unsigned ("u") numbers.

    The files of TOSA's tests hold signed numbers with the same bits.
    """
    if not format.endswith("_UINT"):
        shutil.copyfile(source, target)  # NumPy cannot write bfloat16 and float8 as it reads them
        return
    array = numpy.load(source)
    numpy.save(target, array.view(f"{kind}{array.itemsize}"))


def run_reference(folder: str, target: str, reference: References) -> None:
    """Let the reference model write precise results of a test, and bounds, into ``target``. Raises FileError."""
    argv = [reference.program, "--operator_fbs", reference.schema, "--test_desc", os.path.join(folder, DESCRIPTION)]
    argv += ["--precise_mode", "1", "--tosa_level", _LEVEL, "--output_dir", target]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with Program(argv, _TIMEOUT_S, **pipes) as program:
        assert program.stdout is not None
        lines = program.stdout.read().decode(errors="replace").splitlines()
        program.wait()
    if program.failure or program.returncode:
        lines = [line for line in map(str.strip, lines) if line and not line.startswith(_NO_REASON)]
        reason = "; ".join(lines[-2:])[:_LONGEST_REASON] or f"exit code {program.returncode}"
        how = f"the reference model {program.failure or 'refuses the test'}: {reason}"
        raise FileError(Diagnostic("SR-TOSA-002", "error", None, how, "generate the test again", path=folder))


def _wrong(path: str, message: str, help: str | None) -> FileError:
    return FileError(Diagnostic("SR-TOSA-001", "error", None, message, help, path=path))
