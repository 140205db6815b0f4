"""A scenario's shaders as SPIR-V: compiled side by side or read, then inspected for pipelines and requirements.

Source for cooperative matrices: SPV_KHR_cooperative_matrix; Vulkan specification, "Vulkan Environment for SPIR-V",
VUID-RuntimeSpirv-OpTypeCooperativeMatrixKHR-10163 and -OpCooperativeMatrixMulAddKHR-10060.
"""

import os
import re
import sys
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

from scenario_runner.checks.bindings import declared_size
from scenario_runner.checks.entry_points import (
    check_blocks,
    check_workgroup,
    find_entry_point,
    module_features,
    module_properties,
    specialize,
)
from scenario_runner.errors import ScenarioRunnerError, ShaderError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import SPIRV_SIGNATURES, Identity, SourceFile, recognized
from scenario_runner.plan.records import (
    CompilerOptions,
    LayoutBinding,
    MatrixUse,
    NeededFeature,
    PipelinePlan,
    ShaderStage,
    Specialization,
)
from scenario_runner.processes import progress
from scenario_runner.scenario import Scenario, Shader
from scenario_runner.scenario.inline_contents import ShaderText, file_of
from scenario_runner.scenario.scenario import Problems
from scenario_runner.shaders.compile import compile_each
from scenario_runner.shaders.compilers.search import Compiled
from scenario_runner.shaders.compilers.table import dxc_install_line
from scenario_runner.shaders.source import CompileRequest, options_of
from scenario_runner.shaders.spirv import EntryPoint, Interface, Module, read_module
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.constants import Literal
from scenario_runner.shaders.spirv.index import MAGIC
from scenario_runner.shaders.spirv.types import Scalar

# Parsed modules stay for the next plans: scenarios in a suite share shaders.
_read_module = lru_cache(32)(read_module)
# Pipelines with modules before this SPIR-V version must ask for full subgroups:
# VUID-RuntimeSpirv-OpTypeCooperativeMatrixKHR-10770.
_FULL_SUBGROUPS_SINCE = (1, 6)
_FULL_SUBGROUPS = ("VkPhysicalDeviceVulkan13Features", "computeFullSubgroups")


class LoadedShader(NamedTuple):
    """A shader resource with module and entry point.

    ``features`` are Vulkan features needed without a declared capability. ``includes`` are files that
    the source includes. The scenario gives ``push_constants_size``; ``block_size`` is the push constant block's
    size.
    """

    uid: str
    pointer: str
    code: bytes
    module: Module
    entry: EntryPoint
    interface: Interface
    specialization: Specialization
    features: tuple[NeededFeature, ...]
    includes: list[str]
    stage: ShaderStage
    push_constants_size: int
    block_size: int
    local_size: tuple[int, int, int]
    matrices: tuple[MatrixUse, ...]
    full_subgroups: bool = False

    def pipeline(self, set_layouts: tuple[tuple[LayoutBinding, ...], ...], push_constants_size: int) -> PipelinePlan:
        """Return the shader's compute pipeline, with push constants at least for the whole block."""
        return PipelinePlan(
            code=self.code,
            entry=self.entry.name,
            specialization=self.specialization,
            set_layouts=set_layouts,
            push_constants_size=max(push_constants_size, self.block_size),
            label=self.uid,
            pointer=self.pointer,
            local_size=self.local_size,
            workgroup_memory_bytes=self.interface.workgroup_memory_bytes,
            full_subgroups=self.full_subgroups or _needs_full_subgroups(self.matrices, self.module),
        )


def _needs_full_subgroups(matrices: tuple[MatrixUse, ...], module: Module) -> bool:
    return bool(matrices) and module.version < _FULL_SUBGROUPS_SINCE


def used_shaders(scenario: Scenario) -> list[Shader]:
    """List the commands' shaders; other files stay closed."""
    used: dict[str, Shader] = {}
    for command in scenario.commands:
        for uid in command.shaders():
            shader = scenario.resource(uid)
            if isinstance(shader, Shader):
                used[uid] = shader
    return list(used.values())


def load_shaders(
    scenario: Scenario,
    shaders: Sequence[Shader],
    options: CompilerOptions,
    problems: Problems,
    places: Mapping[str, str],
    *,
    thorough: bool = False,
) -> dict[str, LoadedShader]:
    """Compile or read shaders, and inspect them. ``places`` has pointers for shaders inside models.

    A shader with an error is noted in ``problems`` and missing from the result. After a failed compilation, raise all
    problems; ``thorough`` loads the other shaders instead.
    """
    sources: list[Shader] = []
    modules: list[Shader] = []
    pointers: dict[str, str] = {}
    for shader in shaders:
        pointers[shader.uid] = places.get(shader.uid) or scenario.resource_pointer(shader.uid)
        (modules if shader.type == "SPIR-V" else sources).append(shader)
    codes: dict[str, Compiled] = {}
    if sources:
        codes = _compiled(scenario, sources, pointers, options, problems)
        if not thorough and len(codes) < len(sources):
            problems.raise_if_any()
    if modules:
        codes |= _given(scenario, modules, pointers, options, problems)
    loaded = {}
    for shader in shaders:
        if shader.uid not in codes:
            continue
        try:
            inspected = _load(shader, pointers[shader.uid], codes[shader.uid], problems)
            if inspected is not None:
                loaded[shader.uid] = inspected
        except ScenarioRunnerError as error:
            problems.add_error(error, pointers[shader.uid])
    return loaded


def _given(
    scenario: Scenario,
    shaders: Sequence[Shader],
    pointers: Mapping[str, str],
    options: CompilerOptions,
    problems: Problems,
) -> dict[str, Compiled]:
    """Read shaders with the type SPIR-V and return modules by uid; note errors and leave such shaders out."""
    from scenario_runner.shaders.spirv_val import check_modules

    modules: dict[str, tuple[str, bytes]] = {}
    for shader in shaders:
        try:
            modules[shader.uid] = file_of(shader) or shader.uid, read_spirv(scenario, shader)[0]
        except ScenarioRunnerError as error:
            problems.add_error(error, pointers[shader.uid])
    complaints = check_modules(modules, cache_dir=options.cache_dir, use_cache=options.use_cache)
    for uid, complaint in complaints.items():
        problems.add_fallback(complaint, pointers[uid])
    return {uid: Compiled(code, []) for uid, (_, code) in modules.items()}


def _compiled(
    scenario: Scenario,
    shaders: Sequence[Shader],
    pointers: Mapping[str, str],
    options: CompilerOptions,
    problems: Problems,
) -> dict[str, Compiled]:
    """Compile shaders and return modules by uid; note an error for each failed shader."""
    codes = {}
    requests = list(map(partial(compile_request, scenario), shaders))
    with progress.phase("compile", "shaders"):
        compiler, cache_dir, use_cache = options
        results = compile_each(requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache)
    for shader, request, result in zip(shaders, requests, results, strict=True):
        uid = request.label
        if not isinstance(result, Compiled):
            if isinstance(shader.src, ShaderText) and isinstance(shader.src.text, tuple):
                _place_in_lines(result, request.name, shader.src.text, f"{pointers[uid]}/src/text", scenario)
            problems.add_error(result, pointers[uid])
            continue
        codes[uid] = result
        if request.language == "HLSL" and result.compiler is not None and result.compiler.hlsl_is_dated:
            message = f"HLSL is compiled by {result.compiler.path}, which does not know HLSL 2021"
            problems.warn("SR-SHADER-016", pointers[uid], message, f"dxc does: {dxc_install_line()}")
        if "-Gis" in request.build_options and "-Gis" in options_of(request).dxc_words:
            message = f"shader {uid!r} is compiled without -Gis, which dxc refuses for SPIR-V"
            problems.warn("SR-SHADER-017", f"{pointers[uid]}/build_options", message, "remove -Gis")
    return codes


def _place_in_lines(
    error: ScenarioRunnerError, name: str, text: Sequence[str], pointer: str, scenario: Scenario
) -> None:
    """Move a compiler's error from lines in the text ``name`` to the scenario's lines."""
    entries = [index for index, entry in enumerate(text) for _ in entry.split("\n")]

    def in_scenario(line: int) -> Diagnostic:
        place = f"{pointer}/{entries[line - 1]}" if 0 < line <= len(entries) else pointer
        return scenario.placed(Diagnostic("", "error", place, ""))

    def replaced(match: re.Match[str]) -> str:
        place = in_scenario(int(match[1]))
        return f"  {place.path or name}:{place.line or match[1]}:"

    further = re.compile(rf"^  {re.escape(name)}:(\d+):(?:\d+:)?", re.MULTILINE)

    def moved(problem: Diagnostic) -> Diagnostic:
        problem = problem._replace(message=further.sub(replaced, problem.message))
        if problem.path != name or not problem.line:  # the error is in an included file
            return problem
        return problem._replace(path=None, line=None, column=None, pointer=in_scenario(problem.line).pointer)

    error.problems = tuple(map(moved, error.problems))


def compile_request(scenario: Scenario, shader: Shader) -> CompileRequest:
    """Make the compiler request for a shader resource other than SPIR-V."""
    base = os.path.abspath(scenario.base_dir)
    source, path = shader.text, file_of(shader)
    return CompileRequest(
        language="HLSL" if shader.type == "HLSL" else "GLSL",
        path=os.path.join(scenario.base_dir, path) if path is not None and source is None else None,
        # the compiler tells where a character is not UTF-8
        source=source.decode(errors="replace") if isinstance(source, bytes) else source,
        name=shader.uid,
        entry=shader.entry
        if shader.type == "HLSL"
        else "main",  # the only name in GLSL; `find_entry_point` checks the name
        stage=shader.stage,
        build_options=shader.build_options,
        include_dirs=tuple(map(partial(os.path.join, base), shader.include_dirs)),
        base_dir=base,
        label=shader.uid,
    )


def read_spirv(scenario: Scenario, shader: Shader) -> tuple[bytes, Identity | None]:
    """Read a shader with the type SPIR-V in this machine's byte order, and return the file's identity, too.

    Raises FileError and ShaderError.
    """
    if shader.source is not None:
        if isinstance(shader.source, str):
            raise ShaderError(f"shader {shader.uid!r} has type 'SPIR-V', so its source must be bytes, not text")
        return _in_this_order(bytes(shader.source)), None

    assert isinstance(shader.src, str)
    with SourceFile(os.path.join(scenario.base_dir, shader.src)) as file:
        code = file.read(file.size_bytes)
        kind = None if code.startswith(SPIRV_SIGNATURES) else recognized(code, file.path)
        if kind is not None:
            language = "HLSL" if "HLSL" in kind[0] else "GLSL"
            help = f'write "type": "{language}"' if kind[0].endswith("shader") else None
            raise ShaderError(f'{shader.src} is {kind[0]}, but "type" is "SPIR-V"', help=help)
        return _in_this_order(code), file.identity


def _in_this_order(code: bytes) -> bytes:
    """Swap a module's bytes if they are in the other byte order: drivers take words (VkShaderModuleCreateInfo)."""
    if code[:4] != MAGIC.to_bytes(4, "big" if sys.byteorder == "little" else "little") or len(code) % 4:
        return code

    words = array("I", code)
    words.byteswap()
    return words.tobytes()


def _load(shader: Shader, pointer: str, compiled: Compiled, problems: Problems) -> LoadedShader | None:
    """Inspect a compiled shader; report findings, and return None if an error is among them."""
    name, constants = file_of(shader) or shader.uid, shader.specialization_constants
    values: dict[int, tuple[bytes, Literal]] = {}
    wrong: list[Diagnostic] = []
    if constants:
        module = _read_module(compiled.module, name=name)
        values, wrong = specialize(module, shader.uid, constants, f"{pointer}/specialization_constants")
    numbers = tuple([(number, value) for number, (_, value) in values.items()])
    inspected = _inspect(compiled.module, name, shader.uid, pointer, shader.entry, shader.stage, numbers)
    good = problems.report([*inspected.wrong_entry, *wrong])
    if not good or not problems.report(inspected.findings) or inspected.shader is None:
        return None
    features = inspected.shader.features
    if shader.full_subgroups:
        what = f"full_subgroups of shader {shader.uid!r}"
        features += (NeededFeature(*_FULL_SUBGROUPS, what, f"{pointer}/full_subgroups"),)
    entries: list[tuple[int, int, int]] = []
    data = b""
    for number, (encoded, _) in values.items():
        entries.append((number, len(data), len(encoded)))
        data += encoded
    return inspected.shader._replace(
        specialization=Specialization(tuple(entries), data),
        features=features,
        includes=compiled.includes,
        push_constants_size=shader.push_constants_size,
        full_subgroups=shader.full_subgroups,
    )


class _Inspection(NamedTuple):
    """A shader without include files, push_constants_size and constant bytes, which the scenario adds.

    ``shader`` is None if ``wrong_entry``, the error about a missing entry point, or ``findings`` has an error.
    """

    shader: LoadedShader | None
    wrong_entry: Sequence[Diagnostic] = ()
    findings: Sequence[Diagnostic] = ()


@lru_cache(32)
def _inspect(
    code: bytes,
    name: str,
    uid: str,
    pointer: str,
    entry_name: str,
    stage: ShaderStage,
    numbers: tuple[tuple[int, Literal], ...],
) -> _Inspection:
    """Find an entry point, specialize it with ``numbers``, and check it."""
    module = _read_module(code, name=name)
    entry, wrong = find_entry_point(module, uid, entry_name, stage, pointer)
    if entry is None:
        return _Inspection(None, wrong)
    interface = entry.specialized(dict(numbers)) if numbers else entry.interface
    findings, needs = check_blocks(interface, uid, pointer)
    findings = [*check_workgroup(interface, stage, uid, pointer), *findings]
    if any(finding.severity == "error" for finding in findings):
        return _Inspection(None, findings=findings)
    needs += module_features(entry, interface, uid)
    features = [NeededFeature(*need, pointer) for need in needs]
    features += [NeededFeature(*need, pointer, bits) for need, bits in module_properties(entry, uid)]
    matrices = matrix_uses(interface)
    if _needs_full_subgroups(matrices, module):
        what = f"the cooperative matrices of shader {uid!r}, a module older than SPIR-V 1.6,"
        features.append(NeededFeature(*_FULL_SUBGROUPS, what, pointer))
    loaded = LoadedShader(
        uid=uid,
        pointer=pointer,
        code=code,
        module=module,
        entry=entry,
        interface=interface,
        specialization=Specialization(),
        features=tuple(features),
        includes=[],
        stage=stage,
        push_constants_size=0,
        block_size=declared_size(interface),
        local_size=interface.local_size() or (1, 1, 1),
        matrices=matrices,
    )
    return _Inspection(loaded, findings=findings)


_A, _B = 0, 1  # SPIR-V's Cooperative Matrix Use; 2 is an accumulator
_WORKGROUP = 2  # SPIR-V's Scope
_SATURATING = 16  # bit of SPIR-V's Cooperative Matrix Operands, after the sign bits of the four matrices
_ANY: frozenset[str] = frozenset()


class _Matrix(NamedTuple):
    component: Scalar
    scope: int
    rows: int
    columns: int
    use: int

    def as_use(self) -> MatrixUse:
        """Return the device's requirement for this type, without the other operands. Integers may have any sign."""
        names = self.names(None)
        rows, columns = self.rows, self.columns
        words = f"{rows} x {columns} {self.component}" + (" of a workgroup" if self.scope == _WORKGROUP else "")
        if self.use == _A:
            return MatrixUse(f"A of {words}", self.scope, (rows, None, columns), ((names, _ANY, _ANY, _ANY),))
        if self.use == _B:
            return MatrixUse(f"B of {words}", self.scope, (None, columns, rows), ((_ANY, names, _ANY, _ANY),))
        either = ((_ANY, _ANY, names, _ANY), (_ANY, _ANY, _ANY, names))
        return MatrixUse(f"an accumulator of {words}", self.scope, (rows, columns, None), either)

    def names(self, signed: bool | None) -> frozenset[str]:
        """Return the component type's names; None stands for both integer signs."""
        if self.component.is_float:
            return frozenset({str(self.component)})
        kinds = {True: ["int"], False: ["uint"], None: ["int", "uint"]}[signed]
        return frozenset(f"{kind}{self.component.width_bits}" for kind in kinds)


def matrix_uses(interface: Interface) -> tuple[MatrixUse, ...]:
    """List the matrix types and products in a shader's module under a specialization.

    Raises `SpirvError` if the scope, a size or a type's use is not a constant.
    """
    declarations, index = interface.declarations, interface.declarations.index
    words = index.words
    types: dict[int, _Matrix] = {}
    for at in index.offsets[op.TYPE_COOPERATIVE_MATRIX]:
        what = f"an operand of the cooperative matrix type {words[at + 1]}"
        scope, rows, columns, use = (declarations.integer(id, at, what) for id in words[at + 3 : at + 7])
        component = declarations.type(words[at + 2], at)
        if isinstance(component, Scalar):
            types[words[at + 1]] = _Matrix(component, scope, rows, columns, use)
    if not types:
        return ()
    uses = dict.fromkeys(matrix.as_use() for matrix in types.values())
    values: dict[int, _Matrix] = {}  # an instruction that makes a value has the value's type as first operand
    for at in index.instructions():
        count = words[at] >> 16
        matrix = types.get(words[at + 1]) if count > 2 else None
        if matrix is not None:
            values[words[at + 2]] = matrix
            if words[at] & 0xFFFF == op.COOPERATIVE_MATRIX_MUL_ADD and count > 5:
                operands = [values[id] for id in words[at + 3 : at + 6] if id in values]
                if len(operands) == 3:
                    uses[_product([*operands, matrix], words[at + 6] if count > 6 else 0)] = None
    invocations = prod(interface.local_size() or ())
    return tuple(use._replace(invocations=invocations) for use in uses)


def _product(matrices: list[_Matrix], bits: int) -> MatrixUse:
    """Return the need for a product: types A, B, C and result. ``bits`` are the matrix operands."""
    a, b = matrices[:2]
    names = [matrix.names(bool(bits >> place & 1)) for place, matrix in enumerate(matrices)]
    shown = ", ".join(min(each) for each in names)
    words = f"a product of {a.rows} x {b.columns} x {a.columns} ({shown})"
    saturating = bool(bits & _SATURATING)
    components = (names[0], names[1], names[2], names[3])
    return MatrixUse(words, a.scope, (a.rows, b.columns, a.columns), (components,), saturating)
