"""``scenario-runner validate FILE…``: all checks without a GPU; ``schema``: the JSON Schemas of our files."""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from scenario_runner.cli.arguments import compiler_arguments
from scenario_runner.cli.console import write_finding
from scenario_runner.cli.watch import Files, check_watchable, watch
from scenario_runner.errors import UsageError, file_error
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import ParameterizedFile, is_model, is_stream
from scenario_runner.files.output import check_destination
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.scenario import Scenario, load
from scenario_runner.suite.combinations import FILES_KEPT, file_text, values_of_scenario, variants
from scenario_runner.suite.discovery import Discovery, item_at
from scenario_runner.suite.hashes import dependencies, file_hash, sources_of
from scenario_runner.suite.outcomes import Item, SuiteProblems
from scenario_runner.suite.reports.sarif import sarif, write_file
from scenario_runner.validation import SCHEMA, Options, Validation, validate_file

_SCHEMAS = Path(__file__).parents[1] / "schemas"
_FILES = {
    "scenario": ["scenario.json", "*.scenario.json"],
    "expectations": ["check.json", "*.check.json"],
    "suite": ["suite.json"],
}
"""The files for each schema, in settings of an editor."""


def main(options: argparse.Namespace) -> int:
    """Validate files. Return 0, or the exit code of the first invalid file."""
    options.files = list(_files_in(options.files))
    if options.sarif is not None:
        if os.path.realpath(options.sarif) in map(os.path.realpath, options.files):
            raise UsageError(f"--sarif: {options.sarif} is a scenario", help="choose another file")
        check_destination(options.sarif)
    if options.watch:

        def reads() -> Files:
            files = {options.against: file_hash(options.against)} if options.against is not None else {}
            for file in options.files:
                for item in _items(file, options):
                    if is_model(file):
                        files.update(dependencies(item))
                        continue
                    # these files set parameters
                    files.update((path, file_hash(path)) for path in (item.expectations, *item.defaults) if path)
                    files.update(sources_of(file, (), item.parameters))
            return files

        check_watchable(options.files)
        watch(lambda: _validate(options), reads)
    return _validate(options)


def _validate(options: argparse.Namespace) -> int:
    device = None
    if options.against is not None:
        from scenario_runner.run.reported_device import read_device  # imports vulkan/

        device = read_device(options.against, options.device)
    compiler = CompilerOptions(**compiler_arguments(options))
    settings = Options(compiler, options.hazards, device, options.output, options.sandbox, options.strict)
    validations, values = [], []
    for file in options.files:
        read = lru_cache(FILES_KEPT)(file_text)
        for item in _items(file, options):
            validation = validate_file(file, settings, partial(_load, item, read))
            validations.append(validation)
            values.append({"parameters": item.parameters} if item.parameters else {})
            if options.format == "text":
                _show(validation, item.variant, quiet=options.quiet)
    findings = [
        finding._replace(path=finding.path or validation.file)
        for validation in validations
        for finding in validation.findings
    ]
    if options.format == "json":
        files = [validation.as_json() | more for validation, more in zip(validations, values, strict=True)]
        print(json.dumps({"schema": SCHEMA, "files": files}, indent=2))
    elif options.format == "sarif":
        print(json.dumps(sarif(findings, own_version()), indent=2))
    if options.annotations is not None:
        for finding in findings:
            options.annotations.add(finding)
        valid = sum(not validation.exit_code for validation in validations)
        options.annotations.result = f"{valid} of {counted(len(validations), 'file')} valid"
    if options.sarif is not None:
        write_file(options.sarif, findings, own_version())
    return next((validation.exit_code for validation in validations if validation.exit_code), 0)


def _files_in(paths: Sequence[str]) -> Iterator[str]:
    """Yield files, and the scenarios in folders. Raises FileError for a folder without scenarios."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        items = Discovery(os.curdir, SuiteProblems(write_finding)).items([path])
        files = dict.fromkeys(os.path.relpath(item.path) for item in items)
        if not files:
            raise file_error(path, "has no scenario")
        yield from files


def _items(file: str, options: argparse.Namespace) -> list[Item]:
    """Return the item of a file with --set, or an item for each combination of parameters in the expectations."""
    item = item_at(file)
    return [item._replace(parameters=dict(options.set))] if options.set else variants(item)


def _load(item: Item, read: Callable[[str | None], str], file: str) -> Scenario:
    """Load a model, or a file with an item's parameters. ``read`` caches texts for all items in the file."""
    if is_model(file):
        from scenario_runner.suite.expectations.outputs import load_model

        return load_model(file)
    values = item.parameters
    if not is_stream(file):
        values = values_of_scenario(item._replace(id=file), values, read=read)
    return load(ParameterizedFile(file, values) if values else file)


def _show(validation: Validation, variant: str, *, quiet: bool) -> None:
    for finding in validation.findings:
        write_finding(finding)
    if not validation.exit_code and not quiet:
        counts = [counted(validation.resources, "resource"), counted(validation.commands, "command")]
        warnings = validation.count("warning")
        if warnings:
            counts.append(counted(warnings, "warning"))
        print(f"{one_line(validation.file + variant)}: valid: {', '.join(counts)}")


def schema(options: argparse.Namespace) -> None:
    """Print a JSON Schema, or settings for Visual Studio Code."""
    if not options.vscode:
        print(_schema_file(options.format or "scenario").read_text(encoding="utf-8"), end="")
        return
    if options.format is not None:
        raise UsageError(f"--vscode is for all schemas, but {options.format!r} is given", help="leave one of them out")
    settings = [{"fileMatch": files, "url": _address(_schema_file(name))} for name, files in _FILES.items()]
    print(json.dumps({"json.schemas": settings}, indent=2))


def _schema_file(name: str) -> Path:
    return _SCHEMAS / f"{name}.schema.json"


def _address(path: Path) -> str:
    """Return the path of a file relative to the current folder, or a URL for a file outside."""
    folder = Path.cwd()
    return f"./{path.relative_to(folder).as_posix()}" if path.is_relative_to(folder) else path.as_uri()
