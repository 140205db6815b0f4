"""The binding of expectations to the outputs of a scenario, and the check that they fit."""

import math
import os
from collections.abc import Iterator, Mapping

from scenario_runner.compare.planes import planes_of
from scenario_runner.compare.tosa_rules import DATA_TYPES, INSTALL, PACKAGE, judges, verifier_path
from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.errors import ExpectationError, FileError, ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import close_match, listed
from scenario_runner.files.codec_table import CODECS, is_known
from scenario_runner.files.elements import ELEMENTS, Element, element_of_format, encoded
from scenario_runner.files.input import is_model
from scenario_runner.files.npy import read_header
from scenario_runner.files.sandbox import around
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.records import BufferPlan, Source
from scenario_runner.plan.sources import ArraySource
from scenario_runner.scenario.inline_contents import flattened
from scenario_runner.scenario.loader import as_scenario
from scenario_runner.suite.expectations.format import METRICS, SOURCES, Tosa, all_rules, rules_in
from scenario_runner.suite.expectations.format import Output as Expected
from scenario_runner.suite.expectations.outputs import (
    MOST_CAPTURES,
    Output,
    Outputs,
    element_of_source,
    expected_files,
    outputs_of_scenario,
    scenario_of,
    source_of,
)
from scenario_runner.suite.expectations.reading import ALONE, Expectations, load
from scenario_runner.suite.expectations.rules import Bound, with_region
from scenario_runner.suite.outcomes import Item
from scenario_runner.view.contents import has_numbers, trimmed

_IN_DOUBT = ""
_MISFITS = ("SR-FILE-002", "SR-FILE-004")
_UNFIT = ("SR-EXPECT-008", "SR-EXPECT-009")  # the output has other numbers, or is no suitable picture
_BY_VALUE = frozenset({*Rule._fields, "metrics"})  # keys that compare numbers, not bytes


def bind(
    expectations: Expectations,
    outputs: Outputs,
    *,
    with_misfits: bool = False,
    known: dict[tuple[str, int], object] | None = None,
) -> dict[str, list[Bound]]:
    """Bind rules to outputs, and return them by name. Raises ExpectationError with all problems.

    ``with_misfits`` leaves problems of single outputs in ``Bound.misfits``, also missing expectations. ``known``
    collects bound expectations by name and identity: an expectation in it, from another device, is not bound again.
    """
    check = expectations.check

    def is_new(name: str) -> bool:
        key = name, id(expected := check.outputs.get(name))
        if known is None or key in known:
            return known is None
        known[key] = expected
        return True

    problems: list[Diagnostic] = []
    bounds: dict[str, list[Bound]] = {}
    if expectations.expects_failure:
        return bounds
    files = expected_files(expectations.expected_folder)
    if not check.outputs and not files and not with_misfits:
        return bounds
    stored = _stored(expectations, files, outputs, problems)
    for name in check.outputs:
        if name not in outputs and not outputs.leaves_out(name) and is_new(name):
            names = [output for output in outputs if ("/" in output) == ("/" in name)] or list(outputs)
            there = f"outputs: {listed(names[:20])}" if names else "the scenario has no resource with a dst"
            message = f"{name!r:.100} is not an output of the scenario{close_match(name, outputs)}"
            help = f"{there}; a resource with a 'dst' is an output"
            problems.append(expectations.problem("SR-EXPECT-004", expectations.pointer_to(name), message, help))
    if any(map(outputs.leaves_out, (*files, *check.outputs))):
        message = f"the iterations capture {outputs.left_out:,} resources, expected at most {MOST_CAPTURES:,}"
        help = "repeat it less often, or let the last iteration write an output with a 'dst'"
        problems.append(expectations.problem("SR-EXPECT-004", "/repeat", message, help))
    equal = {rule.equals for rule in all_rules(check.outputs) if rule.equals is not None}
    named = {*stored, *check.outputs, *equal}
    frames_count = any(outputs[name].is_frame for name in named if name in outputs)
    for name, output in outputs.items():
        counts = name in named or not output.is_frame or frames_count
        if counts and stored.get(name) != _IN_DOUBT and is_new(name):
            is_array = isinstance(check.outputs.get(name), tuple)
            numbers = range(len(rules_in(check.outputs, name))) if is_array else (None,)
            bounds[name] = [bind_output(expectations, output, stored.get(name), number) for number in numbers]
            for bound in bounds[name]:
                problems += () if with_misfits else bound.misfits
                problems += _unequal(bound, outputs)
    if problems:
        raise error_of(problems)
    return bounds


def _unequal(bound: Bound, outputs: Outputs) -> tuple[Diagnostic, ...]:
    """Return errors about another output that cannot have the same content."""
    name = bound.expected.equals
    if name is None:
        return ()
    if name not in outputs:
        message = f"{name!r:.100} is not an output of the scenario{close_match(name, outputs)}"
        return bound.error("SR-EXPECT-004", "/equals", message).problems
    one, other = (_described(output) for output in (bound.output, outputs[name]))
    if one == other or None in (one, other):
        return ()
    return bound.error("SR-EXPECT-008", "/equals", f"{name!r:.100} is {other}, but the output is {one}").problems


def _described(output: Output) -> str | None:
    """Describe kind, size and format of an output. Return None if they are unknown before a run."""
    resource = output.resource
    if resource is None:
        return None
    if isinstance(resource, BufferPlan):
        return f"a buffer of {output.size_bytes} bytes"
    shape = planes_of(resource, output.size_bytes, ELEMENTS["uint8"])[0].shape
    return f"{resource.kind} {resource.format.name} of shape {shape} with {output.size_bytes} bytes"


def _stored(
    expectations: Expectations, files: Mapping[str, list[str]], outputs: Outputs, problems: list[Diagnostic]
) -> dict[str, str]:
    """Find expected files that no key names, by output. An output with several files gets `_IN_DOUBT`."""
    check = expectations.written
    by_file = {output.file_name: output.name for output in outputs.values()}
    stored: dict[str, str] = {}
    named = expectations.named_files
    for stem, paths in files.items():
        name = by_file.get(stem)
        unnamed = [path for path in paths if path not in named and (name is not None or is_known(path))]
        if not unnamed or (name is None and (outputs.leaves_out(stem) or expectations.parameters)):
            continue
        path, help = unnamed[0], "keep one of the two"
        others = [repr(os.path.basename(other)) for other in unnamed[1:]]
        sources = [_sources_of(rule) for rule in rules_in(check.outputs, name or "")]
        others += (f"the key {key!r}" for key in sources[0] if all(sources))
        unknown = next((path for path in unnamed if not is_known(path)), None)
        if name is None:
            code, message = "SR-EXPECT-004", f"belongs to {stem!r:.100}, which is not an output of the scenario"
            message += close_match(stem, by_file)
            help = "a resource with a 'dst' is an output; captured frames are in folders such as 'frame_0'"
        elif unknown is not None:
            known = ", ".join(codec.extension for codec in CODECS)
            code, message = "SR-EXPECT-008", f"is named like the output {name!r}, but the extension is none of {known}"
            path, help = unknown, "convert it, or move it elsewhere"
        elif others:
            code, message = "SR-EXPECT-006", f"and {others[0]} are both expectations of {name!r}"
        else:
            stored[name] = path
            continue
        if name is not None:
            stored[name] = _IN_DOUBT
        problems.append(Diagnostic(code, "error", None, message, help, path=path))
    return stored


def _sources_of(rule: Expected) -> list[str]:
    return [key for key in SOURCES if getattr(rule, key) is not None]


def bind_output(
    expectations: Expectations,
    output: Output,
    stored: str | None = None,
    number: int | None = None,
    content: tuple[Source, Element] | None = None,
) -> Bound:
    """Bind a rule of an output to named content, or to the file ``stored`` in the folder of expected files.

    ``number`` counts the rules in an array. ``content`` replaces other content, and gives a default type. Tolerances of
    the suite count only if they fit the output.
    """
    source, element = content or (None, None)
    for expected in expectations.rules_with_defaults(output.name, number):
        path = stored if expected.file is None else expectations.path_to(expected.file)
        keys = expected.model_fields_set.intersection(Rule._fields)
        rule = Rule(**{"nan": "equal", **{name: getattr(expected, name) for name in keys}}) if keys else Rule()
        bound = Bound(expectations, output, expected, number, path, source, rule=rule)
        try:
            return _completed(bound, element)
        except ExpectationError as error:
            bound = bound._replace(misfits=error.problems)
        if all(problem.code not in _UNFIT for problem in bound.misfits):
            break
    return bound


def _completed(bound: Bound, source_element: Element | None) -> Bound:
    """Add source and element to a binding. Raises ExpectationError with all misfits."""
    name, expected, resource = bound.output.name, bound.expected, bound.output.resource
    for key, reason in ALONE.items():
        others = expected.model_fields_set - {key}
        if getattr(expected, key) is not None and others:  # an entry of 'when' has added a key
            message = f"{reason}, so {listed(sorted(others))} cannot count"
            raise bound.error("SR-EXPECT-006", f"/{key}", message)
    if expected.unchecked or expected.sha256 is not None:
        return bound
    if expected.tosa is not None:
        return bound if resource is None else _with_tosa(bound, expected.tosa)
    if bound.path is None and bound.source is None and expected.values is None and expected.equals is None:
        if name in bound.expectations.check.outputs:
            message = "has neither 'file', 'values' nor 'sha256', nor a file in 'expected'"
            raise bound.error("SR-EXPECT-005", "", message)
        file = f"{os.path.basename(bound.expectations.expected_folder)}/{bound.output.file_name}.npy"
        help = f"make {file!r} (--update does), or give it an entry in 'outputs': {{ \"unchecked\": true }}"
        message = f"the output {name!r:.100} has no expectation"
        raise ExpectationError(bound.expectations.problem("SR-EXPECT-005", "/outputs", message, help))
    if resource is None:
        return bound
    element = _declared_element(bound)
    if element is None and isinstance(resource, BufferPlan) and bound.path is None and bound.source is None:
        return bound  # only the plan of a run knows the type that shaders declare
    source = bound.source or _source(bound, element)
    if element is None and isinstance(resource, BufferPlan):
        element = source_element or element_of_source(source)
        _check_element(bound, element)
    bound = bound._replace(source=source, element=element or ELEMENTS["uint8"])
    bound = with_region(bound) if bound.needs_region else bound
    misfits = list(_misfits_of_numbers(bound))
    try:
        bound.ignored()
    except FileError as error:
        misfits[:0] = _file_problems(bound, error, "/mask")
    except ValueError as error:
        misfits[:0] = bound.error("SR-EXPECT-008", "/border" if expected.mask is None else "/mask", str(error)).problems
    if misfits:
        raise ExpectationError(misfits)
    return bound


def _with_tosa(bound: Bound, tosa: Tosa) -> Bound:
    """Complete the binding of an output with a rule of TOSA. Raises ExpectationError with all misfits."""
    resource = bound.resource
    if verifier_path() is None:
        raise bound.error("SR-EXPECT-010", "/tosa", f"needs the package {PACKAGE!r}, which is not installed", INSTALL)
    known = element_of_format(resource.format) if isinstance(resource, TensorPlan) else None
    # the unsigned sides of RESCALE have the bits of signed ones
    names = [name for name, (_, type) in DATA_TYPES.items() if known is None or known.name.removeprefix("u") == type]
    name = tosa.data_type or (names[0] if known is not None and names else "")
    if resource.is_image or name not in names:
        message = f"the output is of kind {resource.kind}" if known is None else f"the tensor is {known.name!r}"
        message += f", not {name}" * bool(name)
        raise bound.error("SR-EXPECT-008", "/tosa", message, "expected a tensor, or a buffer with a 'data_type'")
    if not judges(tosa.mode, name):
        raise bound.error("SR-EXPECT-008", "/tosa/mode", f"{tosa.mode} cannot judge {name}", "EXACT judges all types")
    element = known or ELEMENTS[DATA_TYPES[name][1]]
    bound = bound._replace(data_type=name, element=element)
    (shape,) = (plane.shape for plane in bound.planes)
    descrs = ("f8",) if element.is_float else [f"{kind}{element.size_bytes}" for kind in "biu"]
    misfits: list[Diagnostic] = []
    for key in ("expected", "bounds"):
        if (file := getattr(tosa, key)) is None:
            continue
        try:
            header = read_header(bound.expectations.path_to(file))
        except FileError as error:
            misfits += _file_problems(bound, error, f"/tosa/{key}")
            continue
        has_size = math.prod(header.shape) * element.size_bytes == bound.output.size_bytes
        has_shape = known is None or trimmed(header.shape) == trimmed(shape)
        if f"{header.kind}{header.item_size_bytes}" not in descrs or not has_size or not has_shape:
            type = "float64 (precise mode)" if element.is_float else element.name
            message = f"holds {header.descr!r} of shape {header.shape}, expected {type} of shape {shape}"
            misfits += bound.error("SR-EXPECT-008", f"/tosa/{key}", f"{file}: {message}").problems
    if misfits:
        raise ExpectationError(misfits)
    return bound


def _declared_element(bound: Bound) -> Element | None:
    """Return the type of an output's elements, from the resource, ``dtype`` or the shaders, if any gives it.

    Raises ExpectationError if resource and ``dtype`` disagree, and for ``values`` of an image that has no such type.
    """
    resource, dtype, size = bound.resource, bound.expected.dtype, bound.output.size_bytes
    element = None if dtype is None else ELEMENTS[dtype]
    message = ""
    if resource.is_image:
        planes = planes_of(resource, size, ELEMENTS["uint8"])
        message = f"an image has the type of its format, {resource.format.name}" if dtype else ""
        element = planes[0].element if len(planes) == 1 else None
    elif isinstance(resource, TensorPlan):
        element = element_of_format(resource.format)
        message = f"is {dtype!r}, but the tensor is {element.name!r}" if dtype not in (None, element.name) else ""
    elif element is not None and size % element.size_bytes:
        message = f"the output has {size} bytes, not a whole number of {dtype}"
    if message:
        raise bound.error("SR-EXPECT-008", "/dtype", message)
    is_file = bound.expected.values is None and bound.expected.equals is None
    if element is not None or is_file or (resource.is_image and bound.needs_region):
        return element
    if resource.is_image and bound.expected.values is not None:
        message = f"values of {resource.format.name} cannot be written as numbers"
        raise bound.error("SR-EXPECT-008", "/values", message, "give a 'file', or the 'channels' in 'values'")
    return element if resource.is_image else _shaders_element(bound)


def _shaders_element(bound: Bound) -> Element | None:
    """Return the type that shaders declare for a buffer, or bytes where another output is expected.

    It is None before there is a plan. Raises ExpectationError for keys that need a type.
    """
    output, keys = bound.output, bound.expected.model_fields_set & (_BY_VALUE | {"values"})
    if output.types is None or output.shader_element is not None:
        return output.shader_element
    if keys:
        name = min(keys, key=lambda key: key != "values")
        message = f'"{name}" of {bound.resource.kind} {bound.resource.uid!r} need{"s" * (name != "values")} "dtype"'
        raise bound.error("SR-EXPECT-003", f"/{name}", message, 'such as "dtype": "float32"')
    return ELEMENTS["int8"]


def _source(bound: Bound, element: Element | None) -> Source | None:
    """Open the expected content: a file, or values. Another output, and values in a region, come later."""
    if bound.expected.equals is not None or (bound.needs_region and bound.expected.values is not None):
        return None
    if element is None or bound.expected.values is None:
        assert bound.path is not None
        try:
            return source_of(bound.path, bound.resource, bound.output.size_bytes)
        except FileError as error:
            raise ExpectationError(_file_problems(bound, error, "/file")) from None
    try:
        values = bound.expected.values
        values = flattened(values)[1] if isinstance(values, list) else values
        data = encoded(values, element, bound.output.size_bytes // element.size_bytes)
    except ValueError as error:
        raise bound.error("SR-EXPECT-008", "/values", str(error)) from None
    return ArraySource(data, bound.output.name)


def _file_problems(bound: Bound, error: FileError, key: str) -> Iterator[Diagnostic]:
    for problem in error.problems:
        code = "SR-EXPECT-008" if problem.code in _MISFITS else "SR-EXPECT-007"
        if key == "/file" and bound.expected.file is None:  # no key names the file
            yield problem._replace(code=code)
        else:
            yield from bound.error(code, key, f"{problem.path}: {problem.message}", problem.help).problems


def _check_element(bound: Bound, element: Element | None) -> None:
    """Check that keys about numbers fit the elements in a file of a buffer without ``dtype``."""
    fields = bound.expected.model_fields_set
    message = help = ""
    if element is None and fields - {"file"}:
        message, help = "has elements that are not numbers", "give the type of the elements as 'dtype'"
    elif element is not None and element.name == "int8" and fields & _BY_VALUE:
        key = min(fields & _BY_VALUE)
        message = f"has no 'dtype': {key!r} would compare single bytes (int8)"
        help = "give the type of the elements as 'dtype', such as 'float32', or 'int8' for bytes"
    if message:
        raise bound.error("SR-EXPECT-008", "", message, help)


def _misfits_of_numbers(bound: Bound) -> Iterator[Diagnostic]:
    """Yield errors about keys and metrics that need other numbers than the output has."""
    resource, expected = bound.resource, bound.expected
    if bound.needs_numbers and resource.is_image and not has_numbers(resource.format):
        keys = listed(key for key in Expected.model_fields if key in expected.model_fields_set)
        message = f"blocks of {resource.format.name} cannot be decoded to numbers, but {keys} need numbers"
        help = "let a shader copy them into an uncompressed image"
        yield from bound.error("SR-EXPECT-009", "", message, help).problems
    for name in expected.metrics.model_fields_set if expected.metrics is not None else ():
        for code, message, advice in METRICS[name].misfits(bound.planes):
            yield from bound.error(code, f"/metrics/{name}", message, advice).problems


def check(item: Item) -> list[Diagnostic]:
    """Return all problems of an item's expectations, alone and together with the scenario.

    Only the headers of expected files are read. The run reports problems of the scenario itself.
    """
    with around(item.path, *item.defaults):
        return _check(item)


def _check(item: Item) -> list[Diagnostic]:
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        return list(error.problems)
    written = expectations.written
    names = () if "parameters" in expectations.defaults else written.parameters
    unused = [_unused(expectations, name) for name in names if name not in item.parameters]
    has_some = written.outputs or written.when or os.path.lexists(expectations.expected_folder)
    if expectations.expects_failure or not (has_some or is_model(item.path)):
        return unused
    try:
        outputs = outputs_of_scenario(as_scenario(scenario_of(item, expectations)), written.repeat)
    except ExpectationError as error:
        return list(error.problems)
    except ScenarioRunnerError:
        return unused
    problems: dict[tuple[str, str], Diagnostic] = {}
    known: dict[tuple[str, int], object] = {}
    for condition in (None, *range(len(written.when))):
        try:
            bind(expectations.with_condition(condition), outputs, known=known)
        except ScenarioRunnerError as error:
            for problem in error.problems:
                problems.setdefault((problem.code, problem.message), problem)
    return [*unused, *problems.values()]


def _unused(expectations: Expectations, name: str) -> Diagnostic:
    message = f"the parameter {name!r} is used nowhere"
    help = f'write "${{{name}}}" in the scenario or its expectations, or remove it'
    problem = expectations._replace(parameters={}).problem("SR-EXPECT-014", f"/parameters/{name}", message, help)
    return problem._replace(severity="warning")
