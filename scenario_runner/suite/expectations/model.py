"""The format of expectations, version 1, of a ``check.json`` and the ``expect`` of a scenario, and its JSON Schema."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import numpy
from pydantic import AfterValidator, BeforeValidator, Field

from scenario_runner.scenario.model import wrong
from scenario_runner.scenario.model_base import ModelBase
from scenario_runner.suite.tolerance.metrics import METRICS
from scenario_runner.viewing.content import ELEMENTS

VERSION: Final = 1
_MOST_VALUES: Final = 1 << 20  # of values in the text; more of them belong in a file
_BITS: Final = frozenset("0123456789abcdef")

SOURCES: Final = ("file", "values", "sha256")
"""The keys of an output of which one has the expected content."""


def _checked(is_right: Callable[[Any], bool], expected: str) -> AfterValidator:
    """A validator that refuses other values than those for which ``is_right``."""

    def check(value: Any) -> Any:
        if not is_right(value):
            raise wrong(f"expected {expected}")
        return value

    return AfterValidator(check)


def _digest(text: str) -> str:
    if len(text) != 64 or not _BITS.issuperset(text.lower()):
        raise wrong("expected a SHA-256 of 64 hexadecimal digits")
    return text.lower()


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _or_one(schema: dict[str, Any]) -> None:
    """Let the schema of an array of texts accept one text as well."""
    array = {key: schema.pop(key) for key in ("items", "minItems", "type") if key in schema}
    schema["anyOf"] = [array["items"], array]
    schema.pop("default", None)


def _needs(value: Any) -> Any:
    if isinstance(value, str):
        return {"capabilities": (value,)}
    return {"capabilities": value} if isinstance(value, list) else value


def _values(value: Any) -> Any:
    """Check that values are numbers, or texts that stand for some, in nested arrays of equal lengths."""
    shape_of(value)
    return value


def shape_of(values: Any) -> tuple[int, ...]:
    """The lengths of nested arrays; () of a single number. Raises the error of a validator."""
    array = numpy.array(values, object)  # holds lists where their lengths differ
    if array.size > _MOST_VALUES:
        raise wrong(f"more than {_MOST_VALUES} values belong in a file: 'file'")
    for entry in array.reshape(-1):  # its own iterator has no more than 32 axes
        if isinstance(entry, str):
            if entry not in ("nan", "inf", "-inf") and not (entry.startswith("0x") and _is_hexadecimal(entry[2:])):
                raise wrong("expected a number, 'nan', 'inf', '-inf' or bits such as '0x7fc00000'")
        elif not isinstance(entry, int | float):
            raise wrong("expected a number or arrays of one length, of numbers")
    return array.shape


def _is_hexadecimal(digits: str) -> bool:
    return 0 < len(digits) <= 16 and _BITS.issuperset(digits.lower())


_not_negative = _checked(lambda number: 0 <= number < math.inf, "a finite number of at least 0")
_positive = _checked(lambda number: 0 < number < math.inf, "a finite number above 0")
_share = _checked(lambda number: 0 <= number <= 1, "a number from 0 to 1")
_path = _checked(lambda text: text and "\0" not in text, "the path of a file")
_dtype = _checked(lambda name: name in ELEMENTS, f"one of {', '.join(map(repr, ELEMENTS))}")
_version = _checked(lambda number: number == VERSION, f"{VERSION}: another program knows this version of the format")

Tolerance = Annotated[float, _not_negative, Field(json_schema_extra={"minimum": 0})]
Seconds = Annotated[float, _positive, Field(json_schema_extra={"exclusiveMinimum": 0})]
Share = Annotated[float, _share, Field(json_schema_extra={"minimum": 0, "maximum": 1})]
Finite = Annotated[float, _checked(math.isfinite, "a finite number")]
Path = Annotated[str, _path, Field(json_schema_extra={"minLength": 1})]
Digest = Annotated[str, AfterValidator(_digest), Field(json_schema_extra={"pattern": "^[0-9a-fA-F]{64}$"})]
Names = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    BeforeValidator(_several),
    Field(strict=False, json_schema_extra=_or_one),
]
Digests = Annotated[
    tuple[Digest, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_several),
    Field(json_schema_extra=_or_one),
]
Dtype = Annotated[str, _dtype, Field(json_schema_extra={"enum": list(ELEMENTS)})]


class Most(ModelBase):
    """Bounds of an error: above `warn` the result is a warning, above `max` a failure."""

    warn: Tolerance | None = Field(default=None, description="The result is a warning above this value.")
    max: Tolerance | None = Field(default=None, description="The result is a failure above this value.")


class Least(ModelBase):
    """Bounds of a likeness: below `warn` the result is a warning, below `min` a failure."""

    warn: Finite | None = Field(default=None, description="The result is a warning below this value.")
    min: Finite | None = Field(default=None, description="The result is a failure below this value.")


class Metrics(ModelBase):
    """Errors of an output as a whole, each with its bounds."""

    rmse: Most | None = Field(default=None, description="Root of the mean squared error, in units of the values.")
    psnr: Least | None = Field(default=None, description="Peak signal-to-noise ratio in dB.")
    ssim: Least | None = Field(default=None, description="Structural similarity of images, 1 where they are equal.")
    histogram_emd: Most | None = Field(
        default=None,
        description="Earth mover's distance between histograms of 256 bins, of the worst channel; 0 to 1.",
    )
    flip: Most | None = Field(
        default=None, description="Mean of NVIDIA's FLIP, 0 to 1; needs the package flip-evaluator."
    )
    rel_l2: Most | None = Field(
        default=None, description="Norm of the error relative to that of the expected values. {} means the defaults."
    )
    cosine: Least | None = Field(default=None, description="Cosine between both as vectors. {} means the defaults.")
    scale_error: Most | None = Field(
        default=None, description="How far the best common factor is from 1. {} means the defaults."
    )
    wasserstein_rel: Most | None = Field(
        default=None, description="Distance of the sorted values, relative. {} means the defaults."
    )
    atol_p999: Most | None = Field(
        default=None, description="99.9th percentile of the absolute errors. {} means the defaults."
    )


class Output(ModelBase):
    """The expectation on one output, or one captured frame of it. Without a tolerance, every byte must be equal."""

    file: Path | None = Field(
        default=None,
        description=(
            "The .npy, .dds or .png file with the expected content, relative to the folder of the scenario. Without "
            "`file`, `values` and `sha256` it is the one with the name of the output in the folder `expected`."
        ),
    )
    values: Annotated[Any, AfterValidator(_values)] = Field(
        default=None,
        description=(
            "The expected values: one number for all elements, or arrays of numbers in C order. 'nan', 'inf', '-inf' "
            "and bits ('0x7fc00000') stand for values that JSON cannot write."
        ),
    )
    sha256: Digests | None = Field(
        default=None, description="SHA-256 of the bytes of the content, or of each of several accepted ones."
    )
    dtype: Dtype | None = Field(
        default=None,
        description="What the bytes of a buffer are. By default that of the file; tensors and images know it.",
    )
    atol: Tolerance | None = Field(default=None, description="Error that is allowed: atol + rtol * |expected|.")
    rtol: Tolerance | None = Field(default=None, description="Error that is allowed, relative to the expected value.")
    ulp: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="How many representable values may lie between: an alternative to atol and rtol."
    )
    zero: Tolerance | None = Field(
        default=None,
        description="For expected values of at most this magnitude: the error that is allowed in place of ulp.",
    )
    denormals: Literal["exact", "any"] | None = Field(
        default=None, description="`any`: a zero of the same sign may stand for a denormal value. Default: `exact`."
    )
    nan: Literal["equal", "any", "error"] | None = Field(
        default=None,
        description=(
            "`equal` (default): NaN is right where NaN is expected. `any`: where NaN is expected, every value is "
            "right. `error`: NaN is never right."
        ),
    )
    allowed_count: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Number of elements that may be wrong."
    )
    allowed_share: Share | None = Field(default=None, description="Share of the elements that may be wrong, 0 to 1.")
    mask: Path | None = Field(
        default=None,
        description="A .npy or .png file that is not zero at elements, or texels, that do not count.",
    )
    border: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Width of the border, in rows and columns, that does not count."
    )
    metrics: Metrics | None = Field(
        default=None, description="Bounds for errors of the output as a whole, in place of single elements or besides."
    )
    unchecked: bool = Field(default=False, description="Whether any content is right.")


class Needs(ModelBase):
    """Requirements on a device; on one that lacks any of it, the result is NotSupported."""

    capabilities: Names = Field(default=(), description="Capabilities of SPIR-V that the shaders declare.")
    features: Names = Field(default=(), description="Members of Vulkan's feature structures, such as shaderFloat16.")
    extensions: Names = Field(default=(), description="Device extensions of Vulkan.")


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


class Condition(ModelBase):
    """A device or driver, and what is expected differently of it. All keys that are given must match."""

    device: str | None = Field(default=None, description="Pattern of the device's name: `*` stands for any text.")
    driver: str | None = Field(default=None, description="Pattern of the driver's name.")
    driver_version: str | None = Field(
        default=None,
        description="Comparisons with the driver's version, all of which must hold: `>=24.1 <25`.",
        json_schema_extra={"pattern": r"^\s*((<=|>=|==|!=|<|>)\s*\d+(\.\d+)*\s*)+$"},
    )
    type: Literal["discrete", "integrated", "virtual", "cpu", "other"] | None = Field(
        default=None, description="Type of the device."
    )
    vendor: str | None = Field(
        default=None,
        description="Vendor of the device: a name or an id such as 0x10de.",
        json_schema_extra={"pattern": f"^({_VENDOR}|0[xX][0-9a-fA-F]{{1,8}})$"},
    )
    timeout: Seconds | None = Field(default=None, description="Seconds, in place of those outside.")
    outputs: dict[str, Output] = Field(
        default={}, description="Keys for outputs, in place of the same keys outside. Other keys stay."
    )


class Check(ModelBase):
    """The expectations of a scenario."""

    version: Annotated[int, _version, Field(json_schema_extra={"const": VERSION})] = Field(
        default=VERSION, description="Version of this format."
    )
    repeat: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        default=1, description="How often all commands run, as `--repeat`."
    )
    keep_state: bool = Field(default=False, description="Whether an iteration goes on from the last one.")
    robustness: bool = Field(
        default=False, description="Whether the device is opened with robust access, as --enable-robustness-features."
    )
    needs: Annotated[Needs | None, BeforeValidator(_needs)] = Field(
        default=None,
        description="What a device must have; a name or an array of names are capabilities.",
    )
    timeout: Seconds | None = Field(
        default=None, description="Seconds that a run may take, in place of the limit of the suite."
    )
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = Field(
        default=None, description="What `scenario-runner run` must end with, for scenarios that are wrong on purpose."
    )
    codes: Names | None = Field(
        default=None, description="The codes of all errors that the run must end with, each named once."
    )
    outputs: dict[str, Output] = Field(
        default={}, description="By the uid of the resource, or for captured frames `frame_<id>/<uid>`."
    )
    when: Annotated[tuple[Condition, ...], Field(strict=False)] = Field(
        default=(), description="Other expectations on some devices and drivers: the first entry that matches counts."
    )


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) as JSON data. It leaves to `validation.check` which outputs there are."""
    names = "#/$defs/{model}"
    generated = Check.model_json_schema(ref_template=names)
    parts = {name: _part(part) for name, part in generated.pop("$defs").items()}
    whole = _part(generated)
    capabilities = parts["Needs"]["properties"]["capabilities"]["anyOf"]
    needs = whole["properties"]["needs"]
    whole["properties"]["needs"] = {
        "anyOf": [*capabilities, {"$ref": needs["$ref"]}],
        "description": needs["description"],
    }
    for name, metric in METRICS.items():
        if metric.defaults is None:
            parts["Metrics"]["properties"][name]["minProperties"] = 1
    values = {"$ref": names.format(model="Values")}
    parts["Output"]["properties"]["values"] = values | parts["Output"]["properties"]["values"]
    parts["Values"] = {
        "description": "A number, a text that stands for one, or an array of such values.",
        "anyOf": [
            {"type": ["number", "boolean"]},
            {"type": "string", "pattern": "^(nan|-?inf|0x[0-9a-fA-F]{1,16})$"},
            {"type": "array", "items": values},
        ],
    }
    schema = {"type": "string", "description": "Path or URL of this schema, for editors; not used by a run."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Expectations",
        **whole,
        "properties": {"$schema": schema, **whole["properties"]},
        "$defs": dict(sorted(parts.items())),
    }


def _part(definition: dict[str, Any]) -> dict[str, Any]:
    """A model's schema as pydantic makes it, less null and what repeats the names of the keys."""
    from scenario_runner.scenario.schema import without_null

    cleaned: dict[str, Any] = without_null(definition)
    cleaned.pop("title", None)
    for part in cleaned["properties"].values():
        part.pop("title", None)
    return cleaned
