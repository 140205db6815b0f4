"""A file with shaders as described modules: SPIR-V as it is, sources after compiling, of a model each module."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.files.source import SourceFile
from scenario_runner.spirv import read_module
from scenario_runner.spirv.describe import describe

MAX_FILE_BYTES = 1 << 30
_STAGES = {".vert": "vertex", ".frag": "fragment"}
_MAGIC = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


def modules_of(
    path: str,
    *,
    entry: str = "main",
    stage: str | None = None,
    defines: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    compiler: str | None = None,
    use_cache: bool = True,
) -> list[dict[str, Any]]:
    """What `spirv.describe.describe` says of each module of a file; modules without code keep their name and note.

    Raises FileError, SpirvError and what compiling raises.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension == ".vgf":
        return _modules_of_model(path, compiler, use_cache)
    content = _content(path)
    if extension == ".spv" or content[:4] in _MAGIC:
        return [describe(read_module(content, name=path))]
    language = "HLSL" if extension == ".hlsl" else "GLSL"
    stage = stage or _STAGES.get(extension, "compute")
    options = " ".join(_quoted(f"-D{define}") for define in defines)
    code = _compile(language, entry, stage, options, include_dirs, compiler, use_cache, path=path)
    return [describe(read_module(code, name=path))]


def _content(path: str) -> bytes:
    with SourceFile(path) as file:
        if file.size_bytes > MAX_FILE_BYTES:
            raise FileError(Diagnostic("SR-FILE-001", "error", None, "the file is too large for a shader", path=path))
        return file.read(file.size_bytes)


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _compile(
    language: str,
    entry: str,
    stage: str,
    options: str,
    include_dirs: Sequence[str],
    compiler: str | None,
    use_cache: bool,
    *,
    path: str | None = None,
    source: str | None = None,
) -> bytes:
    from scenario_runner.shaders import CompileRequest, compile_all

    request = CompileRequest(
        language=language,  # type: ignore[arg-type]
        path=path,
        source=source,
        entry=entry,
        stage=stage,  # type: ignore[arg-type]
        build_options=options,
        include_dirs=tuple(os.path.abspath(folder) for folder in include_dirs),
        base_dir=os.getcwd(),
    )
    return compile_all([request], compiler=compiler, use_cache=use_cache)[0]


def _modules_of_model(path: str, compiler: str | None, use_cache: bool) -> list[dict[str, Any]]:
    from scenario_runner.graphs import read_vgf

    found: list[dict[str, Any]] = []
    for number, module in enumerate(read_vgf(path).modules):
        label = f"{path}: module {number} {module.name!r}"
        if module.code is None or module.language is None:
            found.append({"name": label, "note": "a placeholder: the file holds no code for it"})
            continue
        code = module.code
        if isinstance(code, str):
            code = _compile(module.language, "main", "compute", "", (), compiler, use_cache, source=code)
        found.append(describe(read_module(code, name=label)))
    return found
