"""The parser of AmberScript.

A statement is a line, or a line with a block up to END. Each statement has a method in a table: at the top of a script,
or in a pipeline.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Final, get_args

import numpy

from scenario_runner.errors import FileError, UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.files.vk_formats import BorderColor
from scenario_runner.importers.amber_commands import UNSUPPORTED, CommandParser
from scenario_runner.importers.item_folders import read_source
from scenario_runner.importers.memory_layouts import SCALARS, Element, Number, Structs, element_of, struct_of
from scenario_runner.importers.script import (
    COMPARE_OPS,
    DEPTH_TEST,
    POLYGON_MODES,
    RAY_TRACING,
    UNSUPPORTED_STAGES,
    Attached,
    Bound,
    Buffer,
    Pipeline,
    Script,
    Shader,
    VertexData,
    module_of,
    passthrough,
)
from scenario_runner.importers.statements import MOST_BYTES, MOST_LEVELS, Lines, Statement, words_of

FIRST_LINE: Final = "#!amber"
_ADDRESS_MODES: Final = {
    "repeat": "REPEAT",
    "mirrored_repeat": "MIRRORED_REPEAT",
    "clamp_to_edge": "CLAMP_EDGE",
    "clamp_to_border": "CLAMP_BORDER",
}
_AFTER_NAMES: Final = ("", "AS", "SAMPLER", "DESCRIPTOR_SET", "KERNEL")
_BUFFERS: Final = ("uniform", "storage", "uniform_dynamic", "storage_dynamic", "uniform_texel_buffer")
_DESCRIPTORS: Final = (*_BUFFERS, "storage_texel_buffer", "storage_image", "sampled_image", "combined_image_sampler")
_WHOLE_SIZE: Final = -1
_MOST_FILE_BYTES: Final = 64 << 20
_MOST_IN_SERIES: Final = 1 << 22


def parse_amber_script(path: str, text: str) -> Script:
    """Parse a script. Raises FileError for a syntax error, and UnsupportedError if scenarios lack a feature."""
    return _Parser(path, text).script


class _Parser:
    def __init__(self, path: str, text: str) -> None:
        self.script = Script(path)
        self._lines = Lines(path, text)
        self._structs: Structs = {}
        table: dict[str, Callable[[Statement], object]] = {
            **CommandParser(self.script, self._lines).table,
            "BUFFER": self._buffer,
            "DERIVE_PIPELINE": self._derive_pipeline,
            "DEVICE_EXTENSION": lambda row: self.script.extensions.add(row.word("the name")),
            "DEVICE_FEATURE": self._feature,
            "DEVICE_PROPERTY": Statement.rest,  # the capabilities of a module say the same
            "IMAGE": lambda row: self._buffer(row, is_image=True),
            "INSTANCE_EXTENSION": Statement.rest,
            "PIPELINE": self._pipeline,
            "SAMPLER": self._sampler,
            "SET": Statement.rest,  # settings of Amber's engine
            "SHADER": self._shader,
            "STRUCT": self._struct,
            "VIRTUAL_FILE": self._virtual_file,
        }
        for row in self._lines.statements:
            row.run(table, UNSUPPORTED)

    def _feature(self, row: Statement) -> None:
        struct, _, name = row.word("the name of a feature").rpartition(".")
        if not struct.startswith("SubgroupSupported"):  # the capabilities of a module say the same
            self.script.features.add(name)

    def _virtual_file(self, row: Statement) -> None:
        path = row.word("the path")
        self.script.virtual_files[path] = self._lines.text_before_end(row)

    def _shader(self, row: Statement) -> None:
        stage, name = row.word("the stage"), row.word("the name of the shader")
        language = row.word("the format of the shader")
        if language == "PASSTHROUGH":
            self.script.shaders[name] = passthrough(name)
            return
        target_env = row.word("the environment") if row.has("TARGET_ENV") else ""
        path = ""
        if row.has("VIRTUAL_FILE"):
            path = row.word("the path")
            text: str | bytes | None = self.script.virtual_files.get(path)
            if text is None:
                raise row.wrong(f"there is no virtual file {path!r}")
        elif row.has("FILE"):
            path = row.word("the path")
            text = self._read(row, path)
        else:
            row.end()
            text = self._lines.text_before_end(row)
        if stage in UNSUPPORTED_STAGES:
            raise UnsupportedError(UNSUPPORTED_STAGES[stage])
        if stage not in ("vertex", "fragment", "compute", "multi"):
            raise row.wrong(f"unknown stage {stage!r}")
        if language == "OPENCL-C":
            raise UnsupportedError("OpenCL C shaders")
        if isinstance(text, bytes) and language != "SPIRV-BIN":
            text = text.decode(errors="replace")
        if language == "SPIRV-HEX":
            text = module_of(row, str(text).split())
        if language in ("SPIRV-HEX", "SPIRV-BIN"):
            self.script.shaders[name] = Shader(name, stage, "SPIRV", text)
        elif language in ("GLSL", "HLSL", "SPIRV-ASM"):
            self.script.shaders[name] = Shader(name, stage, language, text, target_env, path)
        else:
            raise row.wrong(f"unknown format {language!r} of a shader")

    def _read(self, row: Statement, name: str) -> bytes:
        path = os.path.join(os.path.dirname(self.script.path), name)
        if not os.path.exists(path):
            raise row.wrong(f"the file {name!r} does not exist")
        try:
            self.script.sources.append(read_source(path, _MOST_FILE_BYTES))
        except FileError as error:
            raise row.wrong(f"the file {name!r} {error.problems[0].message}") from None
        return self.script.sources[-1]

    def _struct(self, row: Statement) -> None:
        name = row.word("the name of the struct")
        stride = row.integer("the stride") if row.has("STRIDE") else None
        members: list[tuple[str, int | None]] = []
        for member in self._lines.block(row):
            type = member.word("the type")
            member.word("the name of the member")
            number = partial(member.integer, "a number of bytes")
            numbers = member.options(dict.fromkeys(("OFFSET", "ARRAY_STRIDE", "MATRIX_STRIDE"), number))
            if numbers.keys() - {"OFFSET"}:
                raise UnsupportedError("strides of members")
            members.append((type, numbers.get("OFFSET")))
        try:
            self._structs[name] = {
                "std140": struct_of(members, stride, "std140", self._structs),
                "std430": struct_of(members, stride, "std430", self._structs),
            }
        except ValueError as error:
            raise row.wrong(str(error)) from None

    def _element(self, row: Statement) -> Element:
        name = row.word("the type")
        layout = row.word("the layout") if row.peek() in ("STD140", "STD430") else ""
        element = element_of(name, "std140" if layout == "STD140" else "std430", self._structs)
        if element is None:
            raise row.wrong(f"unknown or impossible type {name!r}")
        return element

    def _buffer(self, row: Statement, *, is_image: bool = False) -> None:
        name = row.word("the name")
        row.expect("DATA_TYPE", "FORMAT")
        buffer = self.script.buffers[name] = Buffer(name, self._element(row), is_image=is_image)
        size = {"WIDTH": 0, "HEIGHT": 1, "DEPTH": 1}
        dimensions = "DIM_2D"
        while row.peek():
            if row.peek() in size:
                keyword = row.word("a size")
                size[keyword] = row.integer("a size", 1)
            elif row.peek().startswith("DIM_"):
                dimensions = row.expect("DIM_1D", "DIM_2D", "DIM_3D")
            elif row.has("MIP_LEVELS"):
                buffer.mips = row.integer("the number of levels", 1, MOST_LEVELS)
            elif row.has("SAMPLES"):
                if row.integer("the number of samples") > 1:
                    raise UnsupportedError("multisampling")
            elif row.has("SIZE"):
                buffer.count = row.integer("the number of elements")
            else:
                buffer.count = buffer.count or size["WIDTH"] * size["HEIGHT"] * size["DEPTH"]
                self._content(row, buffer)
        if size["WIDTH"]:
            buffer.size = size["WIDTH"], size["HEIGHT"]
        if dimensions != "DIM_2D":
            raise UnsupportedError(f"{dimensions[-2]}D images")

    def _content(self, row: Statement, buffer: Buffer) -> None:
        element, count = buffer.element, buffer.count

        def value(meaning: str) -> Number:
            return row.value(row.word(meaning), element.numbers[0][1])

        keyword = row.expect("DATA", "FILL", "SERIES_FROM", "FILE")
        if count * element.size_bytes > MOST_BYTES:
            raise row.wrong(f"{buffer.name!r} has {count} elements, which is more than an import can hold")
        if keyword == "DATA":
            buffer.data = row.packed(self._lines.words_before_end(row), element)
        elif keyword == "FILL":
            buffer.data = element.fill(count, value("the value"))
        elif keyword == "SERIES_FROM":
            if count > _MOST_IN_SERIES:
                raise row.wrong(f"{buffer.name!r} has {count} elements, which is more than an import can count")
            start = value("the first value")
            row.expect("INC_BY")
            step = value("the step")
            buffer.data = element.pack([start + step * index for index in range(count)])
        else:
            kind = row.expect("TEXT", "BINARY", "PNG")
            content = self._read(row, row.word("the name of the file"))
            if kind == "PNG":
                buffer.picture = content
                buffer.size = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
                return
            if kind == "TEXT":
                buffer.data = row.packed(words_of(content.decode(errors="replace")), element)
            elif len(content) % element.size_bytes:
                raise row.wrong(f"the file has {len(content)} bytes, and elements have {element.size_bytes} bytes")
            else:
                buffer.data = numpy.frombuffer(content, numpy.uint8)
        buffer.count = len(buffer.data) // element.size_bytes
        if buffer.is_image and buffer.count != count:
            raise row.wrong(f"{buffer.name!r} has {buffer.count} texels, expected {count}")

    def _sampler(self, row: Statement) -> None:
        name = row.word("the name of the sampler")
        mode = partial(row.word, "the address mode")
        settings: dict[str, Callable[[], Json]] = {
            **dict.fromkeys(("ADDRESS_MODE_U", "ADDRESS_MODE_V", "ADDRESS_MODE_W"), mode),
            **dict.fromkeys(("COMPARE", "COMPARE_OP", "UNNORMALIZED_COORDS"), _no_comparison),
            **dict.fromkeys(("MAG_FILTER", "MIN_FILTER"), partial(row.expect, "nearest", "linear")),
            **dict.fromkeys(("MAX_LOD", "MIN_LOD"), partial(row.number, "the level")),
            "BORDER_COLOR": partial(row.expect, *map(str.lower, get_args(BorderColor))),
            "NORMALIZED_COORDS": lambda: True,
        }
        keys = row.options(settings)
        modes = {str(keys.get(f"ADDRESS_MODE_{axis}", "repeat")) for axis in "UV"}
        if len(modes) > 1:
            raise UnsupportedError("samplers with different address modes")
        if keys.get("MIN_LOD"):
            raise UnsupportedError("samplers with a least level")
        if not modes <= _ADDRESS_MODES.keys():
            raise UnsupportedError(f"the address mode {modes.pop()}")
        sampler: dict[str, Json] = {"max_lod": keys.get("MAX_LOD", 1.0)}
        names = ("MAG_FILTER", "MIN_FILTER", "BORDER_COLOR")
        sampler |= {keyword.lower(): str(value).upper() for keyword, value in keys.items() if keyword in names}
        self.script.samplers[name] = sampler | {"border_address_mode": _ADDRESS_MODES[modes.pop()]}

    def _pipeline(self, row: Statement) -> None:
        kind, name = row.expect("compute", "graphics", "ray_tracing"), row.word("the name of the pipeline")
        if kind == "ray_tracing":
            raise UnsupportedError(RAY_TRACING)
        self._fill_pipeline(row, Pipeline(name, kind))

    def _derive_pipeline(self, row: Statement) -> None:
        name = row.word("the name of the pipeline")
        row.expect("FROM")
        pipeline = deepcopy(self.script.pipeline(row))
        pipeline.name = name
        self._fill_pipeline(row, pipeline)

    def _fill_pipeline(self, row: Statement, pipeline: Pipeline) -> None:
        self.script.pipelines[pipeline.name] = pipeline
        table: dict[str, Callable[[Statement], object]] = {
            "ATTACH": lambda row: self._attach(row, pipeline),
            "BIND": lambda row: self._bind(row, pipeline),
            "DEPTH": lambda row: self._depth(row, pipeline),
            "FRAMEBUFFER_SIZE": lambda row: self._size(row, pipeline),
            "INDEX_DATA": lambda row: setattr(pipeline, "indices", self.script.buffer_name(row)),
            "POLYGON_MODE": lambda row: pipeline.state.update(
                polygon_mode=row.expect(*map(str.lower, POLYGON_MODES)).upper()
            ),
            "SUBGROUP": lambda row: self._subgroup(row, pipeline),
            "VERTEX_DATA": lambda row: self._vertex_data(row, pipeline),
            "VIEWPORT": lambda row: self._viewport(row, pipeline),
        }
        for member in self._lines.block(row):
            member.run(table, UNSUPPORTED)

    def _size(self, row: Statement, pipeline: Pipeline) -> None:
        pipeline.size = row.integer("the width", 1), row.integer("the height", 1)

    def _attach(self, row: Statement, pipeline: Pipeline) -> None:
        shader = self.script.shaders[row.known(self.script.shaders, "shader")]
        stage = row.word("the stage") if row.has("TYPE") else shader.stage
        entry = row.word("the entry point") if row.has("ENTRY_POINT") else "main"
        constants = []
        while row.has("SPECIALIZE"):
            id = row.integer("the id of the constant")
            row.expect("AS")
            dtype = SCALARS[row.expect("uint32", "int32", "float")]
            constants.append((id, row.value(row.word("the value"), dtype)))
        pipeline.shaders[stage] = Attached(shader, entry, tuple(constants))

    def _bind(self, row: Statement, pipeline: Pipeline) -> None:
        what = row.expect("BUFFER", "BUFFER_ARRAY", "SAMPLER", "SAMPLER_ARRAY", "ACCELERATION_STRUCTURE")
        if what == "ACCELERATION_STRUCTURE":
            raise UnsupportedError(RAY_TRACING)
        is_array = what.endswith("_ARRAY")
        if what.startswith("SAMPLER"):
            names, kind = self._names(row, self.script.samplers, "sampler"), "sampler"
        else:
            names = self._names(row, self.script.buffers, "buffer")
            kind = row.word("the kind") if row.has("AS") else ""
        if row.has("KERNEL"):
            raise UnsupportedError("OpenCL C shaders")
        if kind == "resolve":
            raise UnsupportedError("multisampling")
        if kind == "color":
            row.expect("LOCATION")
            location = row.integer("the location")
            pipeline.colors[location] = (
                names[0],
                row.integer("the level", most=MOST_LEVELS) if row.has("BASE_MIP_LEVEL") else 0,
            )
        elif kind == "depth_stencil":
            pipeline.depth = names[0]
        elif kind == "push_constant":
            pipeline.push_constants = names[0]
        elif kind in (*_DESCRIPTORS, "sampler"):
            samplers = self._names(row, self.script.samplers, "sampler") if row.has("SAMPLER") else []
            bound = self._descriptor(row, Bound(kind, names, is_array, samplers))
            kept = [other for other in pipeline.bindings if (other.set, other.binding) != (bound.set, bound.binding)]
            pipeline.bindings = [*kept, bound]  # a derived pipeline replaces bindings
        else:
            raise row.wrong(f"unknown kind {kind!r} of a descriptor")

    def _descriptor(self, row: Statement, bound: Bound) -> Bound:
        """Read the place of a descriptor, and the part of each buffer."""
        row.expect("DESCRIPTOR_SET")
        set = row.integer("the descriptor set")
        row.expect("BINDING")
        bound = bound._replace(set=set, binding=row.integer("the binding"))

        def numbers() -> list[int]:
            return [row.integer("a number of bytes", _WHOLE_SIZE) for _ in bound.names]

        parts = row.options(
            {
                "BASE_MIP_LEVEL": lambda: [row.integer("the level", most=MOST_LEVELS)],
                "DESCRIPTOR_OFFSET": numbers,
                "DESCRIPTOR_RANGE": numbers,
                "OFFSET": numbers,
            }
        )
        nothing = [0] * len(bound.names)
        offsets = zip(parts.get("OFFSET", nothing), parts.get("DESCRIPTOR_OFFSET", nothing), strict=True)
        sizes = parts.get("DESCRIPTOR_RANGE", [])
        lod = parts["BASE_MIP_LEVEL"][0] if "BASE_MIP_LEVEL" in parts else None
        return bound._replace(lod=lod, offsets=[*map(sum, offsets)], sizes=sizes)

    def _depth(self, row: Statement, pipeline: Pipeline) -> None:
        keys: dict[str, Json] = {"TEST": False, **DEPTH_TEST}
        for setting in self._lines.block(row):
            keyword = setting.expect("TEST", "WRITE", "CLAMP", "COMPARE_OP", "BOUNDS", "BIAS")
            if keyword == "TEST":
                keys["TEST"] = setting.switch()
            elif keyword in ("WRITE", "CLAMP"):
                keys[keyword.lower()] = setting.switch()
            elif keyword == "COMPARE_OP":
                keys["compare_op"] = setting.expect(*map(str.lower, COMPARE_OPS)).upper()
            else:
                names = ("min", "max") if keyword == "BOUNDS" else ("constant", "clamp", "slope")
                numbers = {setting.expect(*names): setting.number("a number") for _ in names}
                if keyword == "BIAS":
                    keys["bias"] = numbers
                elif numbers != {"min": 0, "max": 1}:
                    raise UnsupportedError("bounds of depths")
            setting.end()
        pipeline.depth_test = keys if keys.pop("TEST") else None

    def _subgroup(self, row: Statement, pipeline: Pipeline) -> None:
        shader = row.known(self.script.shaders, "shader")
        for setting in self._lines.block(row):
            keyword = setting.expect("FULLY_POPULATED", "VARYING_SIZE", "REQUIRED_SIZE")
            is_on = keyword == "REQUIRED_SIZE" or setting.switch()
            if is_on and keyword != "FULLY_POPULATED":
                raise UnsupportedError("sizes of subgroups")
            if is_on:
                pipeline.full_subgroups.add(shader)

    def _vertex_data(self, row: Statement, pipeline: Pipeline) -> None:
        buffer = self.script.buffers[self.script.buffer_name(row)]
        row.expect("LOCATION")
        location = row.integer("the location")
        element = buffer.element
        keys: dict[str, Json] = {}
        while row.peek():
            keyword = row.expect("RATE", "FORMAT", "OFFSET", "STRIDE")
            if keyword == "RATE":
                keys["input_rate"] = row.expect("vertex", "instance").upper()
            elif keyword == "FORMAT":
                element = self._element(row)
            else:
                keys[keyword.lower()] = row.integer("a number of bytes")
        if element.format is None:
            raise row.wrong(f"a vertex attribute cannot have the type of {buffer.name!r}")
        keys = {"format": element.format.name, "stride": element.size_bytes} | keys
        pipeline.vertex_data.append(VertexData(location, buffer.name, keys))

    def _viewport(self, row: Statement, pipeline: Pipeline) -> None:
        viewport: dict[str, Json] = {"x": row.number("x"), "y": row.number("y")}
        row.expect("SIZE")
        viewport |= {"width": row.number("the width"), "height": row.number("the height")}
        depth = partial(row.number, "a depth")
        depths = row.options({"MIN_DEPTH": depth, "MAX_DEPTH": depth})
        pipeline.state["viewport"] = viewport | {keyword.lower(): number for keyword, number in depths.items()}

    def _names(self, row: Statement, table: Mapping[str, object], kind: str) -> list[str]:
        """Read the names before the next keyword."""
        names = [row.known(table, kind)]
        while row.peek() not in _AFTER_NAMES:
            names.append(row.known(table, kind))
        return names


def _no_comparison() -> str:
    raise UnsupportedError("samplers that compare, or with coordinates in texels")
