"""Tests of LLVM's offload-test-suite (HLSL and YAML in files for lit) as items of a suite.

A file has sections with HLSL and YAML. RUN lines name the options of the compiler. REQUIRES, UNSUPPORTED and XFAIL have
conditions. They are decided for DXC, Vulkan and Linux, and words about a device become requirements of the item.

Source: docs/CommandGuide/lit.rst of github.com/llvm/llvm-project.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from scenario_runner.errors import FileError, log
from scenario_runner.errors.text import Json
from scenario_runner.files.input import SourceFile
from scenario_runner.importers import item_folders
from scenario_runner.importers.item_folders import (
    CHECK,
    SCENARIO,
    FoundTest,
    Imported,
    Outcome,
    Prepared,
    file_error,
    write_file,
    write_json,
    write_not_supported,
)
from scenario_runner.importers.offload_pipeline import read_pipeline
from scenario_runner.importers.offload_scenario import CompiledShader, ScenarioWriter, why_not

_VERSION: Final = b"1"  # of the files in these folders
_MOST_BYTES: Final = 4 << 20
_SECTION: Final = re.compile(r"^(?://|[#;])? ?--- (\S+)[ \t]*$", re.M)
_DIRECTIVE: Final = re.compile(r"\b(RUN|REQUIRES|UNSUPPORTED|XFAIL|CHECK|CHECK-NEXT|CHECK-LABEL|CHECK-SAME):(.*)")
_IF: Final = re.compile(r"%if\s+(\S+)\s+%\{(.*?)%\}(?:\s*%else\s+%\{(.*?)%\})?")
_LOCAL: Final = re.compile(r"if '([\w-]+)' (not )?in config\.available_features:\s+config\.unsupported = True")
_TOKEN: Final = re.compile(r"&&|\|\||[!()]|\*|[-+=.\w]+|\{\{.*?\}\}")
_MOST_TOKENS: Final = 40
_TRUE: Final = re.compile(r"DXC|Vulkan|Linux|SM_6_\d|\*")
_FALSE: Final = re.compile(
    r"Clang|DirectX|Metal|Darwin|Windows|WARP|MoltenVK|KosmicKrisp|goldenimage|acceleration-structure|AVX512|x86|x64|arm64|"
    r"raytracing-pipeline|MeshShader|DerivativesInCompute|WaveSize_\d+|(AppleM|Intel-|metal-|host-|Clang-).*"
)
_FEATURES: Final = {
    "Half": "shaderFloat16",
    "Int16": "shaderInt16",
    "Int64": "shaderInt64",
    "Double": "shaderFloat64",
    "Int64GroupSharedAtomics": "shaderSharedInt64Atomics",
    "VulkanInt64BufferAtomics": "shaderBufferInt64Atomics",
    "Int64TypedResourceAtomics": "shaderImageInt64Atomics",
}
_DEVICES: Final[dict[str, dict[str, Json]]] = {
    "Lavapipe": {"device": "llvmpipe*"},
    "NV": {"vendor": "nvidia"},
    "AMD": {"vendor": "amd"},
    "Intel": {"vendor": "intel"},
    "QC": {"vendor": "qualcomm"},
}
_Cases = frozenset[frozenset[tuple[str, bool]]]
"""A condition about a device: alternatives of words that must hold, or must not hold."""
_unknown_words: dict[str, object] = {}  # reported once
_ALWAYS: Final[_Cases] = frozenset({frozenset()})
_NEVER: Final[_Cases] = frozenset()


class _Directive(NamedTuple):
    line: int
    keyword: str
    text: str
    comment: str


def find_tests(paths: Iterable[str]) -> Iterator[FoundTest | FileError]:
    """Yield the tests in files and folders. Hidden folders and folders called Inputs are left out."""
    for found in item_folders.find_files(paths, (".test", ".yaml")):
        folders = found.name.split("/")[:-1] if isinstance(found, FoundTest) else ()
        if not any(folder.startswith(".") or folder == "Inputs" for folder in folders):
            yield found


def import_tests(tests: Sequence[FoundTest], output: str, jobs: int) -> Iterator[Imported]:
    """Write a folder of the suite ``output`` for each test, and yield the outcomes as they come."""
    return item_folders.import_tests(tests, output, jobs, _prepare)


def _prepare(found: FoundTest) -> Prepared:
    with SourceFile(found.path) as file:
        if file.size_bytes > _MOST_BYTES:
            raise file_error(found.path, f"a test of more than {_MOST_BYTES >> 20} MiB is not read")
        data = file.read(file.size_bytes)
    local = b"".join(_local_settings(found))
    test = _Test(found.path, data.decode("utf-8", "replace").replace("\r\n", "\n"), local.decode("utf-8", "replace"))
    return Prepared(hashlib.sha256(_VERSION + local + data).hexdigest(), test.write)


def _local_settings(found: FoundTest) -> Iterator[bytes]:
    """Yield the files lit.local.cfg beside the test and in the folders above, up to the named folder."""
    folder = os.path.dirname(found.path)
    for _ in found.name.split("/"):
        path = os.path.join(folder, "lit.local.cfg")
        if os.path.isfile(path):
            with SourceFile(path) as file:
                yield file.read(min(file.size_bytes, _MOST_BYTES))
        folder = os.path.dirname(folder)


class _Test:
    """The parts of a test."""

    def __init__(self, path: str, text: str, local: str) -> None:
        self._path = path
        self._local = local
        self._sections: dict[str, tuple[int, str]] = {}
        starts = [*_SECTION.finditer(text)]
        for start, end in zip(starts, [match.start() for match in starts[1:]] + [len(text)], strict=False):
            self._sections[start[1]] = text.count("\n", 0, start.end()) + 2, text[start.end() + 1 : end]
        self._directives = [*_directives(text)]

    def write(self, folder: str) -> tuple[Outcome, str]:
        """Write the item into a folder, and return the outcome with the reason."""
        runs = [self._resolved(each) for each in self._directives if each.keyword == "RUN"]
        if not runs:
            raise file_error(self._path, "has no RUN line", "name a test of the suite")
        check = self._conditions()
        if "not_supported" in check:
            return write_not_supported(folder, str(check["not_supported"]))
        draws = [words for words in runs if "%offloader" in words]
        if any("imgdiff" in words for words in runs):
            return write_not_supported(folder, "comparison with a picture that the suite lacks")
        if len(draws) != 1:
            return write_not_supported(folder, f"{len(draws)} runs of a pipeline")
        (words,) = draws
        files = [word for word in words if word.startswith("%t")]
        line, yaml = self._section(next((word for word in files if word.endswith(".yaml")), ""))
        must_fail = words[0] == "not"
        try:
            pipeline = read_pipeline(yaml, self._path, line)
        except FileError as error:
            if must_fail:
                return write_not_supported(folder, f"an error, as the suite expects; {error.problems[0].message}")
            raise
        reason = why_not(pipeline)
        if reason:
            return write_not_supported(folder, reason)
        outputs = dict(self._compiled(words, folder) for words in runs if "-Fo" in words)
        shaders = [outputs[word] for word in files if word in outputs]
        if len(shaders) != len(pipeline.shaders):
            message = f"compiles {len(shaders)} shaders for {len(pipeline.shaders)} stages"
            if must_fail:
                return write_not_supported(folder, f"an error, as the suite expects; {message}")
            raise file_error(self._path, message, line=line)
        try:
            writer = ScenarioWriter(pipeline, shaders, folder)
            if pipeline.results:
                writer.expect_results()
            elif not must_fail:
                writer.expect_printed([each.text for each in self._directives if each.keyword.startswith("CHECK")])
        except (ValueError, OverflowError) as error:
            raise file_error(self._path, f"the pipeline is wrong: {error}", line=line) from error
        if must_fail:
            check |= {"expected_fail": "the suite expects a failure"} if pipeline.results else {"any_error": True}
        write_json(folder, SCENARIO, writer.scenario())
        write_json(folder, CHECK, {**check, "outputs": writer.outputs})
        return "imported", "unchecked: no expected number was understood" if writer.is_unchecked else ""

    def _section(self, word: str) -> tuple[int, str]:
        name = word.removeprefix("%t/")
        if name not in self._sections:
            raise file_error(self._path, f"has no section called {name!r:.60}", "look at the RUN lines")
        return self._sections[name]

    def _resolved(self, run: _Directive) -> list[str]:
        """Split a RUN line into words, with conditions decided."""
        text = _IF.sub(lambda match: match[2 if _cases(match[1], self._path) else 3] or "", run.text)
        try:
            return shlex.split(text.partition("|")[0])
        except ValueError as error:
            raise file_error(self._path, f"the RUN line cannot be split: {error}", line=run.line) from error

    def _compiled(self, words: list[str], folder: str) -> tuple[str, CompiledShader]:
        """Write the source that a RUN line compiles. Return the name of the module, and the shader."""
        *options, section = words[1:]
        entry, module = "main", ""
        kept: list[str] = []
        rest = iter(options)
        for word in rest:
            if word == "-Fo":
                module = next(rest, "")
            elif word == "-E":
                entry = next(rest, "")
            else:
                kept.append(word)
        file = re.sub(r"[^\w.-]", "_", os.path.basename(section))
        write_file(folder, file, self._section(section)[1].encode())
        return module, CompiledShader(file, entry, shlex.join([*kept, "-fspv-target-env=vulkan1.3"]))

    def _conditions(self) -> dict[str, Json]:
        """Return the keys of the check file for the directives about devices."""
        check: dict[str, Json] = {}
        features, extensions = set[str](), set[str]()
        when: list[dict[str, Json]] = []
        for word, negation in _LOCAL.findall(self._local):
            if bool(_cases(word, self._path)) == (not negation):
                check["not_supported"] = f"lit.local.cfg: {'without ' if negation else ''}{word}"
        for keyword, key in (("REQUIRES", ""), ("UNSUPPORTED", "not_supported"), ("XFAIL", "expected_fail")):
            for each in self._directives:
                if each.keyword != keyword:
                    continue
                reason = f"{keyword}: {each.text}" + (f"; {each.comment}" if each.comment else "")
                if keyword == "REQUIRES":
                    cases = _cases(f"({each.text.replace(',', ') && (')})", self._path)
                    if not cases:
                        check.setdefault("not_supported", reason)
                    words = [name for name, holds in min(cases, key=len, default=frozenset()) if holds]
                else:
                    cases = _cases(each.text.replace(",", " || "), self._path)
                    if frozenset() in cases:
                        check.setdefault(key, reason)
                    devices = [name for case in cases for name, holds in case if holds and name in _DEVICES]
                    when += [{**_DEVICES[name], key: reason} for name in devices]
                    # The test is supported on devices that have each missing word.
                    negated = [sorted(case) for case in cases if keyword == "UNSUPPORTED" and len(case) == 1]
                    words = [name for ((name, holds),) in negated if not holds]
                features |= {_FEATURES[word] for word in words if word in _FEATURES}
                extensions |= {word for word in words if word.startswith("VK_")}
        if features or extensions:
            check["needs"] = {"features": sorted(features), "extensions": sorted(extensions), "at_least": True}
        return check | ({"when": when} if when else {})


def _directives(text: str) -> Iterator[_Directive]:
    """Yield the lines for lit and FileCheck. The comment is the text of the lines above without a directive."""
    comment: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.search(line)
        if match:
            yield _Directive(number, match[1], match[2].strip(), " ".join(comment))
            comment = []
        elif re.match(r"\s*#[^-]", line):
            comment.append(line.strip("# \t"))
        else:
            comment = []


def _cases(text: str, path: str) -> _Cases:
    """Parse a condition of lit. Words about DXC, Vulkan and Linux are decided."""
    tokens = _TOKEN.findall(text)
    if not tokens or len(tokens) > _MOST_TOKENS:
        raise file_error(path, f"the condition {text!r:.80} has {len(tokens)} words, expected 1 to {_MOST_TOKENS}")
    tokens.append("")
    try:
        cases = _either(tokens, False)
    except IndexError:
        cases = None
    if cases is None or tokens != [""]:
        raise file_error(path, f"the condition {text!r:.80} cannot be read")
    return cases


def _either(tokens: list[str], is_negated: bool) -> _Cases:
    result = _both(tokens, is_negated)
    while tokens[0] == "||":
        del tokens[0]
        result = _joined(result, _both(tokens, is_negated), is_negated)
    return result


def _both(tokens: list[str], is_negated: bool) -> _Cases:
    result = _word(tokens, is_negated)
    while tokens[0] == "&&":
        del tokens[0]
        result = _joined(result, _word(tokens, is_negated), not is_negated)
    return result


def _joined(left: _Cases, right: _Cases, is_and: bool) -> _Cases:
    return frozenset(one | other for one in left for other in right) if is_and else left | right


def _word(tokens: list[str], is_negated: bool) -> _Cases:
    token = tokens.pop(0)
    if token == "!":
        return _word(tokens, not is_negated)
    if token == "(":
        inner = _either(tokens, is_negated)
        if tokens.pop(0) != ")":
            raise IndexError
        return inner
    if token in ("", ")", "&&", "||"):
        raise IndexError
    if token in _FEATURES or token in _DEVICES or token.startswith("VK_"):
        return frozenset({frozenset({(token, not is_negated)})})
    holds = _TRUE.fullmatch(token) is not None
    if not holds and not _FALSE.fullmatch(token):
        asker = object()
        if _unknown_words.setdefault(token, asker) is asker:
            log.warning(__name__, "the condition %r is not known and counts as false", token)
    return _ALWAYS if holds != is_negated else _NEVER
