"""The formats of expectations (version 1, of a ``check.json`` and the ``expect`` of a scenario) and of a
``suite.json``, and their JSON Schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from scenario_runner.compare import metrics
from scenario_runner.compare.metrics import Metric
from scenario_runner.compare.tosa_rules import DataType, ModeName
from scenario_runner.errors.text import Json, close_match
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.parameters import is_value
from scenario_runner.scenario.entries import RequiredPath, built, wrong
from scenario_runner.scenario.inline_contents import NO_NUMBER, numbers_in
from scenario_runner.scenario.json_model import ARRAY, OBJECT, ModelBase
from scenario_runner.scenario.kinds import without_null

VERSION: Final = 1
SOURCES: Final = ("file", "values", "sha256", "tosa", "equals")
"""The keys for the expected content of an output, which has one of them."""
TEXEL_KEYS: Final = ("rect", "lod", "channels", "normalized")
"""The keys about texels of an image."""

# PCI ids, and VkVendorId of the Vulkan registry.
VENDORS: Final = {
    "amd": 0x1002,
    "apple": 0x106B,
    "arm": 0x13B5,
    "broadcom": 0x14E4,
    "imagination": 0x1010,
    "intel": 0x8086,
    "mesa": 0x10005,
    "nvidia": 0x10DE,
    "qualcomm": 0x5143,
    "samsung": 0x144D,
}
_VENDOR = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in vendor) for vendor in VENDORS)
_VENDOR_ID = "0[xX][0-9a-fA-F]{1,8}"
_COMPARISON: Final = re.compile(r"(<=|>=|==|!=|<|>)\s*(\d+(?:\.\d+)*)\s*")
_MOST_VALUES: Final = 1 << 20  # more values belong in a file
_PARAMETERS: Final = {"type": "object", "additionalProperties": {"type": ["number", "boolean"]}}


def _code(code: str) -> str:
    from scenario_runner.errors.codes import CODES

    if code not in CODES:
        raise wrong(f"no error has the code {code!r:.60}{close_match(code, CODES)}; docs/codes.md lists them")
    return code


def _features(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of features: an unknown feature would make the item NotSupported on every device."""
    from scenario_runner.vulkan.capabilities import known_features

    known = known_features() if names else ()
    unknown = [f"{name!r:.100}{close_match(name, known)}" for name in names if name not in known]
    if unknown:
        raise wrong(f"no feature of Vulkan is called {' or '.join(unknown)}")
    return names


def _vendor(value: Json) -> int:
    """Return the id of a vendor. The value is a name or a hexadecimal number."""
    text = str(value).lower()
    id = int(text, 16) if re.fullmatch(_VENDOR_ID, text) else VENDORS.get(text)
    if id is None:
        names = f"an id such as 0x10de, or one of {', '.join(VENDORS)}"
        raise wrong(f"no vendor is called {value!r:.60}{close_match(text, VENDORS)}; expected {names}")
    return id


def _comparisons(value: Json) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Parse comparisons with a version such as '>=24.1 <25': signs and numbers."""
    if not re.fullmatch(rf"(?:{_COMPARISON.pattern})+", str(value).strip()):
        raise wrong("expected comparisons such as '>=24.1 <25'")
    return tuple((sign, tuple(map(int, version.split(".")))) for sign, version in _COMPARISON.findall(value))


def _values(values: object) -> object:
    if len(numbers_in(values)) > _MOST_VALUES:
        raise wrong(f"more than {_MOST_VALUES} values belong in a file: 'file'")
    return values


def _parameter_value(value: object) -> object:
    if not is_value(value):
        raise wrong("expected a number, true, false, a string or an array of these")
    return value


def _several(value: Json) -> object:
    return (value,) if isinstance(value, str) else value


def _or_one(schema: dict[str, object]) -> None:
    """Let the schema of an array of texts accept one text as well."""
    array = {key: schema.pop(key) for key in ("items", "minItems", "type") if key in schema}
    schema["anyOf"] = [array["items"], array]
    schema.pop("default", None)


def _or_capabilities(schema: dict[str, Json]) -> None:
    """Let the schema of needs accept capabilities alone: a name or an array of names."""
    name = {"minLength": 1, "type": "string"}
    schema["anyOf"] = [name, {"items": name, "type": "array"}, *schema["anyOf"]]


def _needs(value: object) -> object:
    return {"capabilities": value} if isinstance(value, str | list) else value


Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
# pydantic 2.7 refuses strict behind a validator.
Names = Annotated[tuple[Name, ...], Field(strict=False), BeforeValidator(_several), Field(json_schema_extra=_or_one)]
Codes = Annotated[
    tuple[Annotated[Name, AfterValidator(_code)], ...],
    Field(strict=False),
    BeforeValidator(_several),
    Field(json_schema_extra=_or_one),
]
Digests = Annotated[
    tuple[Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$"), AfterValidator(str.lower)], ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_several),
    Field(json_schema_extra=_or_one),
]
Dtype: TypeAlias = Literal[tuple(ELEMENTS)]  # type: ignore[valid-type]
Vendor = Annotated[
    int, BeforeValidator(_vendor), WithJsonSchema({"pattern": f"^({_VENDOR}|{_VENDOR_ID})$", "type": "string"})
]
Comparisons = Annotated[
    tuple[tuple[str, tuple[int, ...]], ...],
    BeforeValidator(_comparisons),
    WithJsonSchema({"pattern": r"^\s*((<=|>=|==|!=|<|>)\s*\d+(\.\d+)*\s*)+$", "type": "string"}),
]


ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z_0-9]*$")]
_VALUE: Final = {"type": ["array", "boolean", "number", "string"]}
ParameterValue = Annotated[Json, AfterValidator(_parameter_value), WithJsonSchema(_VALUE)]
ParameterValues = Annotated[tuple[ParameterValue, ...], Field(strict=False, min_length=1)]


class _Model(ModelBase):
    """A part of the format. The string below a key is the description in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Most(_Model):
    """Bounds of an error: above `warn` the result is a warning, above `max` a failure."""

    warn: Tolerance | None = None
    """The result is a warning above this value."""
    max: Tolerance | None = None
    """The result is a failure above this value."""


class Least(_Model):
    """Bounds of a likeness: below `warn` the result is a warning, below `min` a failure."""

    warn: Finite | None = None
    """The result is a warning below this value."""
    min: Finite | None = None
    """The result is a failure below this value."""


class Metrics(_Model):
    """Bounds for errors of a whole output."""

    rmse: Annotated[Most | None, Metric(metrics.rmse)] = None
    """Root of the mean squared error, in units of the values."""
    psnr: Annotated[Least | None, Metric(metrics.psnr, is_likeness=True)] = None
    """Peak signal-to-noise ratio in dB."""
    ssim: Annotated[Least | None, Metric(metrics.ssim, is_likeness=True, images=True, least_side=11)] = None
    """Structural similarity of images, 1 for equal images."""
    histogram_emd: Annotated[Most | None, Metric(metrics.histogram_emd)] = None
    """Earth mover's distance between histograms of 256 bins, of the worst channel; 0 to 1."""
    flip: Annotated[Most | None, Metric(metrics.flip, images=True, package="flip-evaluator")] = None
    """Mean of NVIDIA's FLIP, 0 to 1; needs the package flip-evaluator."""
    rel_l2: Annotated[Most | None, Metric(metrics.rel_l2, defaults=(3e-6, 1.5e-5))] = None
    """Norm of the error divided by the norm of the expected values. {} means the defaults."""
    cosine: Annotated[Least | None, Metric(metrics.cosine, is_likeness=True, defaults=(0.999999, 0.999995))] = None
    """Cosine between both as vectors. {} means the defaults."""
    scale_error: Annotated[Most | None, Metric(metrics.scale_error, defaults=(2e-6, 1e-5))] = None
    """Distance of the best common factor from 1. {} means the defaults."""
    wasserstein_rel: Annotated[Most | None, Metric(metrics.wasserstein_rel, defaults=(2e-7, 1e-6))] = None
    """Distance of the sorted values, relative. {} means the defaults."""
    atol_p999: Annotated[Most | None, Metric(metrics.atol_p999, defaults=(3e-6, 1e-5))] = None
    """99.9th percentile of the absolute errors. {} means the defaults."""


METRICS: Final[dict[str, Metric]] = {name: field.metadata[0] for name, field in Metrics.model_fields.items()}


class Tosa(_Model):
    """A compliance mode of TOSA, judged by the verifier of the package tosa-tools, and the reference model's result."""

    mode: ModeName
    """The compliance mode."""
    parameters: Annotated[dict[str, Json], WithJsonSchema(_PARAMETERS)] = Field(default={})
    """Parameters of the mode, as the `…_info` of a test's `meta.compliance` has them."""
    data_type: DataType | None = None
    """TOSA's type of the output. Tensors know it, but for INT4."""
    expected: RequiredPath
    """A .npy file with the result in precise mode (float64 for floats), relative to the folder of the scenario."""
    bounds: RequiredPath | None = None
    """A .npy file with the bounds, for ABS_ERROR, PRECOMPUTED, RESCALE_INEXACT, DOT_PRODUCT and FP_SPECIAL."""


class Tolerances(_Model):
    """Allowed errors of an output."""

    atol: Tolerance | None = None
    """Allowed absolute error. The sum atol + rtol * |expected| counts."""
    rtol: Tolerance | None = None
    """Allowed error relative to the expected value."""
    ulp: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """Allowed distance in representable values: an alternative to atol and rtol."""
    zero: Tolerance | None = None
    """Allowed error for expected values of at most this magnitude, instead of ulp."""
    denormals: Literal["exact", "any"] | None = None
    """`any`: a zero of the same sign may stand for a denormal value. Default: `exact`."""
    nan: Literal["equal", "any", "error"] | None = None
    """`equal` (default): an expected NaN accepts NaN. `any`: it accepts every value. `error`: NaN is never right."""
    allowed_count: Annotated[int, Field(ge=0)] | None = None
    """Number of elements that may be wrong."""
    allowed_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the elements that may be wrong, 0 to 1."""
    metrics: Metrics | None = None
    """Bounds for errors of the whole output, instead of or besides errors of single elements."""


class Output(Tolerances):
    """A rule for one output, or one captured frame of it. Without a tolerance, every byte must be equal."""

    file: RequiredPath | None = None
    """A .npy, .dds or .png file, relative to the folder of the scenario. Default: a file in the folder `expected`."""
    values: Annotated[Json, AfterValidator(_values)] = None
    """One number for all elements, or arrays in C order; 'nan', 'inf', '-inf' and bits ('0x7fc00000') are numbers."""
    sha256: Digests | None = None
    """SHA-256 of the bytes of the content, or of each of several accepted ones."""
    tosa: Tosa | None = None
    """A compliance mode of TOSA, with a result of the reference model. The mode decides which elements are right."""
    equals: Name | None = None
    """Name of another output, which must have the same content."""
    dtype: Dtype | None = None
    """Type of the elements of a buffer. Default: the type in the file, or the type that all shaders declare. Tensors
    and images have their own type."""
    at: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """First byte of the buffer that the rule is about. The number of `values` and `dtype` give the end."""
    rect: Annotated[tuple[U32, ...], Field(strict=False, min_length=4, max_length=4)] | None = None
    """Texels of the image that the rule is about: x, y, width, height."""
    lod: U32 | None = None
    """Mip level of the image that the rule is about. Default: 0."""
    channels: Annotated[str, Field(pattern="^[RGBADS]{1,4}$")] | None = None
    """Channels of the image that the rule is about, in the order of `values`. Default: all, in memory order."""
    normalized: bool = False
    """True if values and tolerances of UNORM and SRGB (linear) count from 0 to 1, those of SNORM from -1 to 1."""
    mask: RequiredPath | None = None
    """A .npy or .png file. Elements or texels with a value other than zero are not compared."""
    border: Annotated[int, Field(ge=0)] | None = None
    """Number of rows and columns at each border that are not compared."""
    unchecked: bool = False
    """True if any content is right."""
    note: Name | None = None
    """Sentence that reports add if the rule is broken."""


def _form_of(value: object) -> str:
    return ARRAY if isinstance(value, list | tuple) else OBJECT


def _by_form(schema: dict[str, Json]) -> None:
    """Let validators choose a form by the type, so that their errors name keys."""
    one, array = schema.pop("oneOf")
    schema |= {"if": {"type": "array"}, "then": array, "else": one}


_Array = Annotated[tuple[Output, ...], Field(strict=False, min_length=1, max_length=10_000)]
Rules = Annotated[
    Annotated[Output, Tag(OBJECT)] | Annotated[_Array, Tag(ARRAY)],
    Discriminator(_form_of),
    Field(json_schema_extra=_by_form),
]
"""The rule of an output, or an array of rules. An output must obey all of them."""


def rules_in(outputs: Mapping[str, Rules], name: str) -> tuple[Output, ...]:
    """Return the rules of an output. An output without a rule gets a plain rule."""
    rules = outputs.get(name, _PLAIN)
    return rules if isinstance(rules, tuple) else (rules,)


def all_rules(outputs: Mapping[str, Rules]) -> list[Output]:
    """Return the rules of all outputs."""
    return [rule for rules in outputs.values() for rule in (rules if isinstance(rules, tuple) else (rules,))]


_PLAIN: Final = built(Output)()


class Needs(_Model):
    """Requirements on a device. An item is NotSupported on a device that lacks any."""

    capabilities: Names = ()
    """Capabilities of SPIR-V that the shaders declare."""
    features: Annotated[Names, AfterValidator(_features)] = ()
    """Members of Vulkan's feature structures, such as shaderFloat16."""
    extensions: Names = ()
    """Device extensions of Vulkan."""
    at_least: bool = False
    """True if a run may need more: any other refusal is NotSupported too. The run enables features and extensions."""


class Condition(_Model):
    """Other expectations for a device or driver. All given keys must match."""

    device: str | None = None
    """Pattern of the device's name: `*` stands for any text."""
    driver: str | None = None
    """Pattern of the driver's name."""
    driver_version: Comparisons | None = None
    """Comparisons with the driver's version, such as `>=24.1 <25`. All must hold."""
    type: Literal["discrete", "integrated", "virtual", "cpu", "other"] | None = None
    """Type of the device."""
    vendor: Vendor | None = None
    """Vendor of the device: a name or an id such as 0x10de."""
    timeout: Seconds | None = None
    """Time limit in seconds, which replaces the outer one."""
    not_supported: Name | None = None
    """Why the item cannot run there; it is NotSupported with this reason."""
    expected_fail: Name | None = None
    """Why the item fails there; a Fail becomes ExpectedFail."""
    outputs: dict[str, Rules] = Field(default={})
    """Keys for outputs, which replace the same keys of all outer rules. An array replaces all rules."""


class Parameters(_Model):
    """Parameters of scenarios. Each combination of values is an item."""

    parameters: dict[ParameterName, ParameterValues] = Field(default={})
    """Values by name. `${name}` in a string of the scenario or of the expectations stands for a value."""
    exclude: Annotated[tuple[dict[ParameterName, ParameterValue], ...], Field(strict=False)] = ()
    """Combinations, or parts of combinations, to leave out."""


class Defaults(Parameters):
    """Keys about the run of an item. A `suite.json` may have them for all items."""

    version: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION
    """Version of this format."""
    repeat: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    """Number of times that all commands run, like `--repeat`."""
    robustness: bool = False
    """True if the device is opened with robust access, like `--enable-robustness-features`."""
    needs: Annotated[Needs | None, BeforeValidator(_needs)] = Field(default=None, json_schema_extra=_or_capabilities)
    """Requirements on the device; a name or an array of names are capabilities."""
    timeout: Seconds | None = None
    """Time limit of a run in seconds, which replaces the limit of the suite."""


class Suite(Defaults):
    """A `suite.json`: defaults for the items in the same folder and below."""

    tolerances: Tolerances | None = None
    """Tolerances of outputs that are compared with a file or with values, and have no other tolerances."""


class Check(Defaults):
    """The expectations of a scenario or a model."""

    keep_state: bool = False
    """True if an iteration continues with the state of the last one."""
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    """Exit code that `scenario-runner run` must end with, for scenarios that are wrong on purpose."""
    codes: Codes | None = None
    """The codes of all errors that the run must end with, each named once."""
    any_error: bool = False
    """True if the run must end with an error of any code."""
    convert: RequiredPath | None = None
    """A TOSA model that is converted before the run, for models that are wrong on purpose."""
    not_supported: Name | None = None
    """Why the item cannot run anywhere; it is NotSupported with this reason."""
    expected_fail: Name | None = None
    """Why the item fails: a Fail becomes ExpectedFail, a Pass becomes UnexpectedImprovement(Pass)."""
    inputs: dict[str, RequiredPath] = Field(default={})
    """For a model: files for inputs, by name or binding number."""
    shaders: dict[str, RequiredPath] = Field(default={})
    """For a model: shaders for placeholders, like `--shader`."""
    push_constants: dict[str, RequiredPath] = Field(default={})
    """For a model: push constants of shaders, like `--push-constants`."""
    outputs: dict[str, Rules] = Field(default={})
    """By the uid of the resource, or for captured frames `frame_<id>/<uid>`."""
    when: Annotated[tuple[Condition, ...], Field(strict=False)] = ()
    """Other expectations on some devices and drivers: the first entry that matches counts."""

    @property
    def expects_failure(self) -> bool:
        """Return whether the run must end with an error."""
        return bool(self.exit_code or self.codes or self.any_error)


def json_schema() -> dict[str, object]:
    """Return the schema (draft 2020-12) as JSON data. The schema does not know the names of outputs."""
    schema = _schema(Check, "Expectations")
    values = {"$ref": "#/$defs/Values"}
    parts = schema["$defs"]
    parts["Output"]["properties"]["values"] |= values
    parts["Values"] = {
        "description": "A number, a text that stands for one, or an array of such values.",
        "anyOf": [
            {"type": ["number", "boolean"]},
            {"type": "string", "pattern": f"^({NO_NUMBER})$"},
            {"type": "array", "items": values},
        ],
    }
    return schema


def suite_schema() -> dict[str, object]:
    """Return the schema of a `suite.json`."""
    return _schema(Suite, "Defaults of a suite")


def _schema(model: type[_Model], title: str) -> dict[str, Json]:
    whole = without_null(model.model_json_schema(ref_template="#/$defs/{model}"))
    parts = whole.pop("$defs")
    for name, metric in METRICS.items():
        if metric.defaults is None:
            parts["Metrics"]["properties"][name]["minProperties"] = 1
    schema = {"type": "string", "description": "Path or URL of this schema, for editors; not used by a run."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **whole,
        "properties": {"$schema": schema, **whole["properties"]},
        "$defs": dict(sorted(parts.items())),
    }
