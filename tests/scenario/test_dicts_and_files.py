"""Scenarios from dictionaries, files and models made in Python."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, Scenario, ScenarioRunnerError, from_dict, load, loads, scenario
from scenario_runner.errors import ScenarioError
from scenario_runner.scenario import Buffer, Image, RawData, Shader, Tensor
from scenario_runner.scenario.entries import Model
from scenario_runner.scenario.kinds import json_schema
from tests.scenes import assemble, error_of, glsl

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((CHECKOUT / "scenarios").glob("*/*/scenario.json"))
ADD = glsl(
    "b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] + STEP;",
    "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n",
)


def add(**content: Any) -> dict[str, Any]:
    bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate("xy")]
    return {
        "resources": [
            {"shader": {"uid": "add", "source": ADD, "build_options": "-DSTEP=3u"}},
            {"buffer": {"uid": "x", "shader_access": "readonly", **(content or {"data": numpy.uint32([1, 2, 5])})}},
            {"buffer": {"uid": "y", "shader_access": "writeonly", "size": 12, "dst": "y.npy"}},
        ],
        "commands": [{"dispatch_compute": {"shader_ref": "add", "bindings": bindings, "rangeND": (3,)}}],
    }


def test_a_dict_is_a_scenario(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dict of the shape of the JSON is accepted wherever a scenario is, with content given in code."""
    monkeypatch.chdir(tmp_path)
    assert runner.run(add(), write_files=False).array("y", "u4").tolist() == [4, 5, 8]
    assert runner.prepare(add()).run(write_files=False).array("y", "u4").tolist() == [4, 5, 8]
    assert [output.uid for output in runner.plan(add()).outputs] == ["y"]
    runner.run_to_files(add(), output_dir=tmp_path / "out")
    assert numpy.load(tmp_path / "out" / "y.npy").view("u4").tolist() == [4, 5, 8]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_as_data_and_as_text(path: Path) -> None:
    """The data of an example is the scenario that its text is, and so is the text that the scenario gives."""
    scenario = load(path)
    data = from_dict(json.loads(path.read_text()))
    again = loads(scenario.to_json(), base_dir=scenario.base_dir)
    for other in (data, again):
        assert (other.resources, other.commands) == (scenario.resources, scenario.commands)
    assert again.to_json() == scenario.to_json()


def buffer(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["resources"][1]["buffer"]  # type: ignore[no-any-return]


NO_ACCESS = "expected one of 'readonly', 'writeonly', 'readwrite', 'image_read', got 'none'"
SISE = "/resources/1/buffer/sise: unknown key 'sise' (did you mean 'size'?)"
NO_UID = "/commands/0/dispatch_compute/shader_ref: no resource has the uid 'ad'"
NO_KIND = "/resources/3/bufer: unknown kind of resource: 'bufer' (did you mean 'buffer'?)"


@pytest.mark.parametrize(
    "change, messages",
    [
        (lambda tree: buffer(tree).update(sise=3, shader_access="none"), [f"/shader_access: {NO_ACCESS}", SISE]),
        (
            lambda tree: buffer(tree).update(data=[1]),
            ["1/buffer: Buffer.data: expected a NumPy array or bytes, got list"],
        ),
        (lambda tree: tree["resources"].append({"bufer": {}}), [NO_KIND]),
        (lambda tree: tree["commands"][0]["dispatch_compute"].update(shader_ref="ad"), [NO_UID]),
        (lambda tree: tree["resources"][0]["shader"].update({3: 4}), ["/resources/0/shader"]),
        (lambda tree: tree.update({1: 2}), ["unknown key"]),
    ],
)
def test_wrong_dicts(change: Any, messages: list[str]) -> None:
    """A wrong dict has the same problems as a file, each with its pointer."""
    tree = add()
    change(tree)
    for line, message in zip(str(error_of(ScenarioError, from_dict, tree)).splitlines(), messages, strict=True):
        assert message in line


def test_json_holds_no_arrays() -> None:
    """to_json refuses content from code, and names the method that writes such content."""
    with pytest.raises(ScenarioError, match=r"^the source of shader 'add' was given in code, and JSON cannot hold it"):
        from_dict(add()).to_json()


def test_saved_scenarios_run(runner: Runner, tmp_path: Path) -> None:
    """`save` writes content given in code beside the scenario; the program then runs it from there."""
    from_dict(add()).save(tmp_path / "new" / "sum.json")
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["sum.json", "sum_add.comp", "sum_x.npy"]
    assert runner.run(tmp_path / "new" / "sum.json").array("y", "u4").tolist() == [4, 5, 8]
    assert (tmp_path / "new" / "y.npy").exists()


def test_saved_elsewhere(runner: Runner, tmp_path: Path) -> None:
    """Files that are read are found from another folder, also folders of includes; outputs go beside the new file."""
    for folder in ("from", "from/one", "from/two words"):
        (tmp_path / folder).mkdir()
    (tmp_path / "from" / "one" / "one.glsl").write_text("#define ONE 1u\n")
    (tmp_path / "from" / "two words" / "two.glsl").write_text("#define TWO 2u\n")
    source = ADD.replace("#version 450", '#version 450\n#include "one.glsl"\n#include "two.glsl"\n')
    (tmp_path / "from" / "add.comp").write_text(source)
    numpy.save(tmp_path / "from" / "x.npy", numpy.uint32([1, 2, 5]))
    tree = add(src="x.npy", size=12)
    tree["resources"][0]["shader"] = {
        "uid": "add",
        "src": "add.comp",
        "include_dirs": ["one"],
        "build_options": "-DSTEP=(ONE+TWO) -I 'two words'",
    }
    (tmp_path / "from" / "a.json").write_text(json.dumps(tree))
    load(tmp_path / "from" / "a.json").save(tmp_path / "to" / "deeper" / "b.json")
    assert runner.run(tmp_path / "to" / "deeper" / "b.json").array("y", "u4").tolist() == [4, 5, 8]
    assert [path.name for path in sorted((tmp_path / "to" / "deeper").iterdir())] == ["b.json", "y.npy"]


def test_content_of_every_kind(runner: Runner, tmp_path: Path) -> None:
    """Arrays and bytes of each kind of resource come back from their files as they were."""
    rng = numpy.random.default_rng(5)
    texels = rng.integers(0, 256, (3, 5, 4)).astype("u1")
    blocks = rng.integers(0, 256, (2, 2, 8)).astype("u1")
    floats = rng.standard_normal((2, 3)).astype(">f4")
    code = assemble("OpCapability Shader\nOpMemoryModel Logical GLSL450\n")
    access: Any = {"shader_access": "readwrite"}
    rgba: Any = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": (1, 5, 3, 1), **access}
    real: Any = {"format": "VK_FORMAT_R32_SFLOAT", "dims": (2, 3), **access}
    scenario = Scenario(
        resources=[
            Buffer(uid="a/b", data=floats.T, **access),
            Buffer(uid="a_b", data=b"bytes", **access),
            Image(uid="image", data=texels, **rgba),
            Image(uid="image bytes", data=texels.tobytes(), **rgba),
            Image(uid="blocks", format="VK_FORMAT_BC1_RGB_UNORM_BLOCK", dims=(1, 8, 8, 1), data=blocks, **access),
            Tensor(uid="tensor", data=floats, **real),
            Tensor(uid="tensor bytes", data=floats.astype("<f4").tobytes(), **real),
            RawData(uid="raw", data=numpy.float32(2.5)),
            Shader(uid="spirv", source=code),
            Shader(uid="hlsl", source="// nothing", type="HLSL"),
            Shader(uid="fragment", source="// nothing", stage="fragment"),
        ]
    )
    scenario.save(tmp_path / "s.json")
    saved = load(tmp_path / "s.json")
    names = {each.uid: each.src for each in saved.resources}  # type: ignore[union-attr]
    assert names == {
        "a/b": "s_a_b.npy",
        "a_b": "s_a_b~2.npy",
        "image": "s_image.npy",
        "image bytes": "s_image_bytes.npy",
        "blocks": "s_blocks.dds",
        "tensor": "s_tensor.npy",
        "tensor bytes": "s_tensor_bytes.npy",
        "raw": "s_raw.npy",
        "spirv": "s_spirv.spv",
        "hlsl": "s_hlsl.hlsl",
        "fragment": "s_fragment.frag",
    }
    assert (tmp_path / "s_spirv.spv").read_bytes() == code
    assert numpy.load(tmp_path / "s_raw.npy") == numpy.float32(2.5)
    uids = [uid for uid, name in names.items() if not name.endswith((".spv", ".hlsl", ".frag", "raw.npy"))]
    one = runner.run(scenario, outputs=uids)
    other = runner.run(saved, outputs=uids)
    for uid in uids:
        assert one[uid].tobytes() == other[uid].tobytes()
    assert other.array("a/b", "f4").reshape(3, 2).tolist() == floats.T.tolist()
    assert (other["image bytes"] == texels).all()


def test_names_that_the_scenario_uses_are_left_alone(tmp_path: Path) -> None:
    """A file for content never takes the name of a file that the scenario reads or writes."""
    scenario = Scenario(
        resources=[
            Buffer(uid="x", data=b"1234", shader_access="readonly"),
            Buffer(uid="y", size=4, shader_access="writeonly", dst="s_x.npy"),
        ]
    )
    scenario.save(tmp_path / "s.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.json", "s_x~2.npy"]


@pytest.mark.parametrize("data", [numpy.array([None]), "text", [1, 2]])
def test_data_that_no_file_holds(tmp_path: Path, data: Any) -> None:
    """Data that is not an array of numbers is an error, and nothing is written."""
    scenario = Scenario(
        resources=[
            Buffer(uid="good", data=b"1234", shader_access="readonly"),
            Buffer(uid="bad", size=4, data=data, shader_access="readonly"),
        ]
    )
    with pytest.raises(ScenarioError, match="the data of buffer 'bad'"):
        scenario.save(tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []


def test_saving_where_no_file_can_be(tmp_path: Path) -> None:
    """A folder in the way is a FileError."""
    (tmp_path / "s.json").mkdir()
    with pytest.raises(ScenarioRunnerError, match="is a folder"):
        from_dict(add()).save(tmp_path / "s.json")


MODELS = [
    value
    for value in (getattr(scenario, name) for name in scenario.__all__)
    if inspect.isclass(value) and issubclass(value, Model) and value is not Model
]
SIGNATURES = """
import inspect, json
from scenario_runner import scenario
from scenario_runner.scenario.entries import Model
found = {}
for name in scenario.__all__:
    value = getattr(scenario, name)
    if inspect.isclass(value) and issubclass(value, Model) and value is not Model:
        assert not value.__pydantic_complete__, name
        found[name] = str(inspect.signature(value))
print(json.dumps(found))
"""


def test_signatures_before_first_use() -> None:
    """``inspect.signature`` shows the fields of every model before pydantic has built it, and the same afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )
    before = json.loads(done.stdout)
    assert sorted(before) == sorted(model.__name__ for model in MODELS)
    binding = before["Binding"].replace("Optional[int]", "int | None")  # as Python before 3.14 writes it
    assert binding.startswith("(*, set: int, id: int, resource_ref: str = '', lod: int | None = None, descrip")
    for model in MODELS:
        model.model_rebuild()
        assert str(inspect.signature(model)) == before[model.__name__]
        parameters = inspect.signature(model).parameters
        assert list(parameters) == list(model.model_fields)
        for name, parameter in parameters.items():
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert (parameter.default is inspect.Parameter.empty) == model.model_fields[name].is_required()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_docstrings_name_the_fields(model: type[Model]) -> None:
    """The docstring of a model ends with a line for each field; its JSON Schema has the first part alone."""
    summary, _, fields = (inspect.getdoc(model) or "").partition("\n\nFields:\n")
    assert summary
    lines = [line.strip().partition(": ") for line in fields.splitlines()]
    assert [name for name, _, _ in lines] == list(model.model_fields)
    assert all(text for _, _, text in lines)
    described = json_schema()["$defs"]
    if model.__name__ in described:
        assert described[model.__name__]["description"] == summary


WRONG = """
from pathlib import Path
from scenario_runner import Runner
from scenario_runner.scenario import Binding, Buffer

good = Buffer(uid="a", data=b"1234", shader_access="readonly")
size: int = good.size
Buffer(uid=1, size=4, shader_access="readonly")
Buffer(uid="a", size=4, shader_access="never")
Buffer(uid="a", sise=4, shader_access="readonly")
Binding(set=0, resource_ref="a")
Runner(no_such_option=True)
with Runner() as runner:
    reveal_type(runner.run(Path("scenario.json")))
    runner.run(5)
"""
# Right uses of the Python API, without a complaint by a strict checker.
RIGHT = """
import numpy as np
import numpy.typing as npt
import scenario_runner
from scenario_runner.scenario import Binding, Buffer, DispatchCompute, Scenario, Shader

numbers: npt.NDArray[np.float32] = np.arange(4, dtype=np.float32)
indexes: list[int] = [device.index for device in scenario_runner.devices()]
codes: list[str] = [finding.code for finding in scenario_runner.validate("test.json").findings]
suite = scenario_runner.test("suite", jobs=4, junit="r.xml")
verdicts: dict[str, str] = {name: result.verdict for name, result in suite.results.items()}
bound = Binding(set=0, id=0, resource_ref="a")
scenario = Scenario(
    resources=[Shader(uid="s", src="s.comp"), Buffer(uid="a", data=numbers, shader_access="readwrite")],
    commands=(
        DispatchCompute(shader_ref="s", rangeND=[1, 1, 1], bindings=[bound]),
        DispatchCompute(shader_ref="s", rangeND=(1, 1, 1), bindings=(bound,)),
    ),
)
with scenario_runner.Runner(device=0, timeout_s=5, validation=True) as runner:
    result = runner.run(scenario, {"a": numbers, "b": [1.0, 2.0], "c": b"1234"}, outputs=["a"])
    total: float = float(result["a"].sum()) + float(result.array("a", np.float32)[0])
    shapes = [array.shape for array in runner.prepare("model.vgf", numbers).run([numbers, [1, 2]]).values()]
    count: int = runner.run_to_files("test.json", output_dir="out").dispatch_count
"""
# The lines that are wrong, or ask for a type, and a part of what is said of each.
SAID = {
    "8": '"uid"',
    "9": '"shader_access"',
    "10": '"sise"',
    "11": '"id"',
    "12": 'Unexpected keyword argument "no_such_option" for "Runner"',
    "14": 'Revealed type is "scenario_runner.run.result.Result"',
    "15": 'Argument 1 to "run" of "Runner" has incompatible type "int"',
}


@pytest.mark.heavy
def test_a_type_checker_sees_the_types(tmp_path: Path) -> None:
    """mypy knows the names and types of the fields, which are required, and the types of the functions and results."""
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "right.py").write_text(RIGHT)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--hide-error-context"]
    command += ["--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [*command, "wrong.py", "right.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(CHECKOUT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    said = [line.split(":", 2)[1:] for line in done.stdout.splitlines() if " defined in " not in line]
    assert [line for line, _ in said] == list(SAID), done.stdout
    for line, text in said:
        assert SAID[line] in text


@pytest.mark.parametrize(
    "data, size",
    [
        (numpy.zeros((3, 5), "f8"), 120),
        (numpy.zeros((4, 4), "u2")[:, ::2], 16),
        (b"12345", 5),
        (memoryview(numpy.zeros(3, "u4")), 12),
    ],
)
def test_data_gives_the_size_of_a_buffer(data: Any, size: int) -> None:
    """A buffer with data takes its size from the data."""
    assert Buffer(uid="b", data=data, shader_access="readonly").size == size
    assert Buffer(uid="b", data=data, size=64, shader_access="readonly").size == 64  # the run says that they differ
