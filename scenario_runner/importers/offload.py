"""Tests of LLVM's offload-test-suite (HLSL and YAML in files for lit) as items of a suite.

A file has sections with HLSL and YAML. RUN lines name the options of the compiler. REQUIRES, UNSUPPORTED and XFAIL have
conditions. They are decided for DXC, Vulkan and Linux, and words about a device become requirements of the item.

Source: docs/CommandGuide/lit.rst of github.com/llvm/llvm-project.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from scenario_runner.errors import FileError, UnsupportedError, log
from scenario_runner.importers import item_folders
from scenario_runner.importers.item_folders import (
    FoundTest,
    Imported,
    ItemWriter,
    JsonObject,
    Outcome,
    Prepared,
    decoded,
    file_error,
    read_source,
)
from scenario_runner.importers.offload_pipeline import read_pipeline
from scenario_runner.importers.offload_scenario import CompiledShader, PipelineItem

_VERSION: Final = b"2"  # of the files in these folders
_SECTION: Final = re.compile(r"(?://|[#;])--- (\S+)\s*")
_DIRECTIVE: Final = re.compile(r"\b(RUN|REQUIRES|UNSUPPORTED|XFAIL|CHECK(?:-NEXT|-LABEL|-SAME|-DAG)?):(.*)")
_IF: Final = re.compile(r"%if\s+(\S+)\s+%\{(.*?)%\}(?:\s*%else\s+%\{(.*?)%\})?")
_LOCAL: Final = re.compile(r"if '([\w-]+)' (not )?in config\.available_features:\s+config\.unsupported = True")
_WORD: Final = re.compile(r"\*|[-+=.\w]+|\{\{.*?\}\}")
_MOST_WORDS: Final = 12  # each pair may double the cases
_OPERATORS: Final = {"&&": " and ", "||": " or ", "!": " not "}
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
_DEVICES: Final[dict[str, JsonObject]] = {
    "Lavapipe": {"device": "llvmpipe*"},
    "NV": {"vendor": "nvidia"},
    "AMD": {"vendor": "amd"},
    "Intel": {"vendor": "intel"},
    "QC": {"vendor": "qualcomm"},
}
_CHECK_KEYS: Final = {"REQUIRES": "not_supported", "UNSUPPORTED": "not_supported", "XFAIL": "expected_fail"}
"""Directives with conditions, and the key that holds the reason."""
_Cases = frozenset[frozenset[tuple[str, bool]]]
"""A condition about a device: alternatives of words that must hold, or must not hold."""
_unknown_words: dict[str, object] = {}  # reported once


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
    data = read_source(found.path)
    local = b"".join(_local_settings(found))
    test = _Test(found.path, decoded(data).replace("\r\n", "\n"), decoded(local))
    return Prepared(hashlib.sha256(_VERSION + local + data).hexdigest(), test.write)


def _local_settings(found: FoundTest) -> Iterator[bytes]:
    """Yield the files lit.local.cfg beside the test and in the folders above, up to the named folder."""
    folder = os.path.dirname(found.path)
    for _ in found.name.split("/"):
        path = os.path.join(folder, "lit.local.cfg")
        if os.path.isfile(path):
            yield read_source(path)
        folder = os.path.dirname(folder)


class _Test:
    """The parts of a test."""

    def __init__(self, path: str, text: str, local: str) -> None:
        self._path = path
        self._local = local
        self._sections: dict[str, tuple[int, list[str]]] = {}
        lines: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            start = _SECTION.fullmatch(line)
            if start:
                lines = []
                self._sections[start[1]] = number + 1, lines
            else:
                lines.append(line)
        self._directives = [*_directives(text)]

    def write(self, folder: str) -> tuple[Outcome, str]:
        """Write the item into a folder, and return the outcome with the reason."""
        runs = [self._resolved(each) for each in self._directives if each.keyword == "RUN"]
        draws = [words for words in runs if "%offloader" in words]
        if not draws:
            raise file_error(self._path, "has no RUN line with %offloader", "name a test of the suite")
        check, must_fail = self._conditions(), draws[0][0] == "not"
        reason = str(check.get("not_supported", ""))
        if any("imgdiff" in words for words in runs):
            reason = reason or "comparison with a picture that the suite lacks"
        if len(draws) > 1:
            reason = reason or f"{len(draws)} runs of a pipeline"
        writer = None
        try:
            writer = None if reason else self._translated(runs, draws[0], folder)
        except UnsupportedError as error:
            reason = error.problems[0].message
        except FileError as error:
            if not must_fail:
                raise
            reason = f"an error, as the suite expects; {error.problems[0].message}"
        if writer is None:
            return item_folders.write_not_supported(folder, reason)
        if must_fail:
            check |= {"expected_fail": "the suite expects a failure"} if writer.outputs else {"any_error": True}
        writer.finish(check)
        return "imported", "" if must_fail or writer.outputs else "unchecked: no expected number was understood"

    def _translated(self, runs: Sequence[list[str]], draw: list[str], folder: str) -> ItemWriter:
        """Write the shaders and the content. Raises UnsupportedError, and FileError for a wrong pipeline."""
        files = [word for word in draw if word.startswith("%t")]
        line, text = self._section(next((word for word in files if word.endswith(".yaml")), ""))
        pipeline = read_pipeline(text, self._path, line)
        writer = ItemWriter(folder)
        outputs = dict(self._compiled(words, writer) for words in runs if "-Fo" in words)
        try:
            item = PipelineItem(pipeline, [outputs[word] for word in files if word in outputs], writer)
            if draw[0] != "not" and not pipeline.results:
                item.expect_printed([each.text for each in self._directives if each.keyword.startswith("CHECK")])
        except (ValueError, OverflowError) as error:
            raise file_error(self._path, f"the pipeline is wrong: {error}", line=line) from error
        return writer

    def _section(self, word: str) -> tuple[int, str]:
        name = word.removeprefix("%t/")
        if name not in self._sections:
            raise file_error(self._path, f"has no section called {name!r:.60}", "look at the RUN lines")
        line, lines = self._sections[name]
        return line, "\n".join([*lines, ""])

    def _resolved(self, run: _Directive) -> list[str]:
        """Split a RUN line into words, with conditions decided."""
        text = _IF.sub(lambda match: match[2 if _cases(match[1], self._path, run.line) else 3] or "", run.text)
        try:
            return shlex.split(text.partition("|")[0])
        except ValueError as error:
            raise file_error(self._path, f"the RUN line cannot be split: {error}", line=run.line) from error

    def _compiled(self, words: list[str], writer: ItemWriter) -> tuple[str, CompiledShader]:
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
        stem, extension = os.path.splitext(os.path.basename(section))
        file = writer.write(stem, extension, self._section(section)[1].encode())
        return module, CompiledShader(file, entry, shlex.join([*kept, "-fspv-target-env=vulkan1.3"]))

    def _conditions(self) -> JsonObject:
        """Return the keys of the check file for the directives about devices."""
        check: JsonObject = {}
        words: list[str] = []
        when: list[JsonObject] = []
        for word, negation in _LOCAL.findall(self._local):
            if bool(_cases(word, self._path, 1)) == (not negation):
                check["not_supported"] = f"lit.local.cfg: {'without ' if negation else ''}{word}"
        for each in sorted(self._directives, key=lambda each: each.keyword):
            if each.keyword not in _CHECK_KEYS:
                continue
            key, is_required = _CHECK_KEYS[each.keyword], each.keyword == "REQUIRES"
            reason = f"{each.keyword}: {each.text}" + (f"; {each.comment}" if each.comment else "")
            parts = [f"({part})" if "," in each.text else part for part in each.text.split(",")]
            cases = _cases((" && " if is_required else " || ").join(parts), self._path, each.line)
            if not cases if is_required else frozenset() in cases:
                check.setdefault(key, reason)
            if is_required:
                words += [name for name, holds in min(cases, key=len, default=frozenset()) if holds]
                continue
            devices = [name for case in cases for name, holds in case if holds and name in _DEVICES]
            when += [{**_DEVICES[name], key: reason} for name in devices]
            if each.keyword == "UNSUPPORTED":  # a device with each missing word supports the test
                words += [name for case in cases if len(case) == 1 for name, holds in case if not holds]
        features = sorted({_FEATURES[word] for word in words if word in _FEATURES})
        extensions = sorted({word for word in words if word.startswith("VK_")})
        if features or extensions:
            check["needs"] = {"features": features, "extensions": extensions, "at_least": True}
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


def _cases(text: str, path: str, line: int) -> _Cases:
    """Parse a condition of lit. Words about DXC, Vulkan and Linux are decided."""
    words = _WORD.findall(text)
    source = _WORD.sub(lambda match: f"({match[0]!r})", text)
    for operator, name in _OPERATORS.items():
        source = source.replace(operator, name)
    try:
        if len(words) <= _MOST_WORDS and len(text) < 1000:
            return _decided(ast.parse(source.strip(), mode="eval").body, False)
    except (SyntaxError, ValueError):
        pass
    raise file_error(path, f"the condition {text!r:.80} cannot be read", line=line)


def _decided(node: ast.expr, is_negated: bool) -> _Cases:
    """Decide an expression of words, "and", "or" and "not". Raises ValueError for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _decided(node.operand, not is_negated)
    if isinstance(node, ast.BoolOp):
        parts = [_decided(value, is_negated) for value in node.values]
        if isinstance(node.op, ast.And) == is_negated:
            return frozenset().union(*parts)
        return frozenset(frozenset().union(*cases) for cases in product(*parts))
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise ValueError(f"{node} is not a word")
    word = node.value
    if word in _FEATURES or word in _DEVICES or word.startswith("VK_"):
        return frozenset({frozenset({(word, not is_negated)})})
    holds = _TRUE.fullmatch(word) is not None
    if not holds and not _FALSE.fullmatch(word):
        asker = object()
        if _unknown_words.setdefault(word, asker) is asker:
            log.warning(__name__, "the condition %r is not known and counts as false", word)
    return frozenset({frozenset()}) if holds != is_negated else frozenset()
