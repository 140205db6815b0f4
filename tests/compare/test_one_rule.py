"""One rule for all: view, diff, test, the fixture and compare-layers find the same wrong elements."""

import json
import math
import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy
import pytest

from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.suite.pytest_plugin.items import ScenarioRunner
from scenario_runner.tosa.layer_comparison import judge
from scenario_runner.tosa.model_layers import Layer
from scenario_runner.view.contents import content_of
from tests.program import Program
from tests.scenes import Scene

FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1.0078125, 1.5, 1.25, 100.0, 60000.0, -60000.0]
BITS = [1, 2, 5, 16]  # denormals
VALUES: dict[str, list[Any]] = {
    "bool": [False, True],
    "int8": [-128, -127, -1, 0, 1, 2, 126, 127],
    "int64": [-(2**63), -(2**53) - 1, -(2**53), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 2, 2**63 - 1],
    "uint64": [0, 1, 2, 2**53, 2**53 + 1, 2**53 + 2, 2**63, 2**64 - 3, 2**64 - 2, 2**64 - 1],
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), FLOATS),
}
RULES: list[dict[str, Any]] = [
    *({}, {"atol": 0.5}, {"atol": 1.0}, {"rtol": 0.25}, {"atol": 0.25, "rtol": 0.25}, {"rtol": 2.0}),
    *({"ulp": 1}, {"ulp": 3}, {"atol": 1e300}, {"atol": float(2**53)}, {"atol": 0.5, "rtol": 2**-7, "ulp": 1}),
]


def pairs(name: str) -> tuple[Any, Any]:
    """All pairs of the values of a type: expected and actual ones."""
    type = numpy.dtype(getattr(ml_dtypes, name, None) or name)
    values = numpy.array(VALUES[name], type)
    if values.dtype.kind not in "biu":
        denormals = numpy.array(BITS, f"u{type.itemsize}").view(type)
        values = numpy.concatenate([values, denormals, [ml_dtypes.finfo(type).max.astype(type)]])
    first, second = numpy.meshgrid(values, values, indexing="ij")
    return first.reshape(-1).copy(), second.reshape(-1).copy()


def ordinal(value: Any) -> int:
    """The number of a float among all of its type; both zeros have one."""
    bits = int.from_bytes(value.tobytes(), "little")
    sign = 1 << 8 * value.dtype.itemsize - 1
    return -(bits - sign) if bits & sign else bits


def is_right(e: Any, a: Any, atol: float = 0.0, rtol: float = 0.0, ulp: int = 0) -> bool:
    """Return the verdict of exact arithmetic."""
    if e.dtype.kind in "biu":
        error = abs(int(a) - int(e))
        return error <= ulp or error <= Fraction(atol) + Fraction(rtol) * abs(int(e))
    x, y = float(e), float(a)
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    bound = Fraction(atol) + Fraction(rtol) * abs(Fraction(x))
    return abs(Fraction(y) - Fraction(x)) <= bound or abs(ordinal(a) - ordinal(e)) <= ulp


def scaled(rule: dict[str, Any], factor: float) -> dict[str, Any]:
    """The rule with slightly other bounds."""
    return {key: value if key == "ulp" else value * factor for key, value in rule.items()}


def wrong_count(name: str, rule: dict[str, Any]) -> int:
    return sum(not is_right(e, a, **rule) for e, a in zip(*pairs(name), strict=True))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_all_count_the_same_wrong_elements(program: Program, scene: Scene, rule: dict[str, Any]) -> None:
    """The count is that of exact arithmetic: of NaN, infinities, both zeros, denormals and the ends of each range."""
    options = [f"--{key}={value}" for key, value in rule.items()]
    other, typed = Scene(scene.folder), [f"--dtype={name}={name}" for name in VALUES]
    counts = dict[str, dict[str, int]]()
    (scene.folder / "expected").mkdir()
    for name in VALUES:
        expected, actual = pairs(name)
        scene.buffer(name, actual)
        other.resource("buffer", uid=name, size=expected.nbytes, shader_access="readwrite", src=f"expected/{name}.npy")
        numpy.save(scene.folder / "expected" / f"{name}.npy", expected)
        ended = program("view", "--diff", f"expected/{name}.npy", f"{name}.npy", *options)
        found = re.search(r"differ: (\d+) of", ended.out)
        contents = [content_of(name, array) for array in (actual, expected)]
        layer: Any = Layer(name, name, "ADD", None, (), ())  # type: ignore[arg-type]
        judged = judge(layer, contents[0], contents[1:], Rule(**rule, nan="equal"))
        counts[name] = {"view": int(found[1]) if found else 0, "compare-layers": judged.wrong or 0}
        if "ulp" not in rule:
            counts[name]["fixture"] = of_fixture(scene, name, expected, rule)
    other.write("other.json")
    scene.write()
    for file, folder in (("other.json", "a"), ("scenario.json", "b")):
        assert program(file, "--dump-all", folder, "--output", "out").code == 0
    different = json.loads(program("diff", "a", "b", "--json", *typed, *options).out)["different"]
    for name in VALUES:
        counts[name]["diff"] = sum(each["different"] for each in different if each["resource"] == name)
    wanted = {name: counts[name]["diff"] for name in VALUES}
    assert counts == {name: dict.fromkeys(counts[name], wanted[name]) for name in VALUES}
    for name in VALUES:  # bounds are rounded to doubles, so both verdicts hold for what lies on a bound
        least, most = (wrong_count(name, scaled(rule, factor)) for factor in (1 + 2**-50, 1 - 2**-50))
        assert least <= wanted[name] <= most, name
    for fewer, code in ((0, 0), (1, 1)):  # as many wrong elements may be there as are, and then one less
        outputs = {
            name: {"dtype": name, "nan": "equal", **rule, "allowed_count": max(0, count - fewer)}
            for name, count in wanted.items()
        }
        (scene.folder / "check.json").write_text(json.dumps({"outputs": outputs}))
        failing = sum(map(bool, wanted.values())) if fewer else 0
        ended = program("test", "scenario.json")
        assert ended.code == (code if failing else 0)
        assert failing < 2 or re.search(rf"\(and {failing - 1} more outputs?\)", ended.out), ended.out


def of_fixture(scene: Scene, name: str, expected: Any, rule: dict[str, Any]) -> int:
    """The wrong elements that the fixture of the pytest plugin counts."""
    tree = {"resources": [scene.resources[-1]], "commands": []}
    path = scene.file(f"{name}.json", json.dumps(tree))
    runner = ScenarioRunner()
    try:
        runner.check(path, expected={name: expected}, **rule)
    except AssertionError as error:
        return int(str(error).split(": ", 1)[1].split(" ", 1)[0])
    finally:
        runner.runner.close()
    return 0
