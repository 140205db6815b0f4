"""Models as items of a suite: inputs, problems, and the same handling as scenarios."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import ExpectationError
from scenario_runner.ml.vgf_file import parse_vgf
from scenario_runner.ml.vgf_model import PushConstantRange
from scenario_runner.suite.discovery import item_of
from scenario_runner.suite.evaluation import run_item
from scenario_runner.suite.expectations.outputs import load_model
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.hashes import inputs_of, item_hashes
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.update import update
from scenario_runner.suite.worker_task import Runners
from scenario_runner.validation import Options, validate_file
from tests.ml.vgf_samples import DIFFERENCE, STORAGE_BUFFER, encoded, model_of_two_inputs, one_segment, row
from tests.program import Program
from tests.suite.collected import found
from tests.tables import cases

PROGRAM = Path(__file__).resolve().parents[1] / "ml" / "programs" / "difference.pte"
X, H = numpy.float32([1, 2, 3, 4]), numpy.float32([10, 20, 30, 40])
Y = {"y": {"values": (X - H).tolist(), "dtype": "float32"}}
GIVEN = {"inputs": {"x": "x.npy", "1": "data/h.npy"}}


class Model:
    """A model 'net.vgf', y = x - h, with files beside it."""

    def __init__(self, folder: Path, runners: Runners) -> None:
        self.folder = folder
        self.path = model_of_two_inputs(folder / "net.vgf")
        self._runners = runners
        (folder / "data").mkdir()
        numpy.save(folder / "x.npy", X)
        numpy.save(folder / "data" / "h.npy", H)

    def check(self, **keys: Any) -> None:
        (self.folder / "net.check.json").write_text(json.dumps(keys))

    @property
    def item(self) -> Item:
        return item_of(str(self.path), "net.vgf")

    def run(self) -> Outcome:
        return run_item(self.item, self._runners)

    def refused(self) -> list[str]:
        """Return the problems of files beside the model, which make the item Missing before it runs."""
        problems = check(self.item)
        outcome = self.run()
        assert (outcome.status, outcome.diagnostics) == ("Missing", tuple(each.as_json() for each in problems))
        return [f"{problem.code} {problem}".replace(f"{self.folder}/", "") for problem in problems]


@pytest.fixture
def model(tmp_path: Path, runners: Runners) -> Model:
    return Model(tmp_path, runners)


def test_inputs_that_are_named(model: Model) -> None:
    """By the names of the model or by binding numbers."""
    model.check(**GIVEN, outputs=Y)
    assert check(model.item) == []
    assert (model.run().status, model.run().reason) == ("Pass", "")
    model.check(**GIVEN, outputs={"y": {"values": 0, "dtype": "float32"}})
    assert (
        model.run().reason
        == "y: 4 of 4 elements (100 %) are wrong at [3]: -36.0 (0xc2100000), expected 0.0 (0x00000000)"
    )


def test_inputs_in_the_folder(model: Model) -> None:
    """Inputs in the folder have the names of the model's inputs, and a file in the expectations replaces them."""
    folder = model.folder / "net.inputs"
    folder.mkdir()
    numpy.save(folder / "x.npy", H)
    numpy.save(folder / "h.npy", H)
    model.check(inputs={"x": "x.npy"}, outputs=Y)
    assert model.run().status == "Pass"
    model.check(outputs={"y": {"values": 0, "dtype": "float32"}})
    assert model.run().status == "Pass"


@pytest.mark.parametrize("row", cases(__file__, "cases.txt", "INPUTS OF MODELS"))
def test_inputs_that_do_not_fit(model: Model, row: list[str]) -> None:
    """Each problem has its place, and nothing runs."""
    keys, *problems = row
    if keys != "null":
        model.check(**json.loads(keys))
    assert sorted(model.refused()) == sorted(problems)


def test_what_to_write_for_a_missing_input(model: Model) -> None:
    """The help names both ways."""
    assert [problem.help for problem in check(model.item)] == [
        'write net.inputs/x.npy, or in net.check.json: "inputs": { "x": "FILE" }',
        'write net.inputs/h.npy, or in net.check.json: "inputs": { "h": "FILE" }',
    ]


def test_content_that_does_not_fit(model: Model) -> None:
    """As with the source of a scenario the run fails; the place is where the file is named, or the model."""
    numpy.save(model.folder / "x.npy", X[:3])
    model.check(**GIVEN)
    outcome = model.run()
    assert outcome.status == "Fail"
    assert outcome.reason.startswith(f"{model.folder}/net.check.json:1:18: /inputs/x: buffer 'x' has 16 bytes")
    (model.folder / "net.inputs").mkdir()
    shutil.move(model.folder / "x.npy", model.folder / "net.inputs")
    model.check(inputs={"h": "data/h.npy"})
    assert model.run().reason.startswith(f"{model.path}: buffer 'x' has 16 bytes")


def test_a_model_without_inputs(model: Model) -> None:
    """A model without inputs needs no file."""
    code = (
        "#version 450\nlayout(set = 0, binding = 0) buffer Y { float y[4]; };\nvoid main() { y[gl_WorkGroupID.x] = 7; }"
    )
    rows = [row("output", 4, type=STORAGE_BUFFER)]
    model.path.write_bytes(one_segment(rows, range(1), {}, {0: 0}, code=code, groups=(4, 1, 1)))
    model.check(outputs={"y": {"values": 7, "dtype": "float32"}})
    assert (model.run().status, model.run().reason) == ("Pass", "")


def test_a_broken_model(model: Model) -> None:
    """A broken model fails like a scenario with it, and a missing model is Missing."""
    model.check(**GIVEN)
    model.path.write_bytes(model.path.read_bytes()[:100])
    assert (model.run().status, check(model.item)) == ("Fail", [])
    model.path.unlink()
    assert model.run().status == "Missing"


def test_shaders_of_a_model(model: Model) -> None:
    """Placeholders take a shader with its push constants, and missing ones are reported."""
    rows = [row(category, 4, type=STORAGE_BUFFER) for category in ("input", "input", "output")]
    vgf = parse_vgf(one_segment(rows, range(3), {0: 0, 1: 1}, {2: 2}, groups=(4, 1, 1)))
    segment = vgf.segments[0]._replace(push_constant_ranges=(PushConstantRange(0x20, 0, 4),))
    model.path.write_bytes(encoded(vgf._replace(segments=(segment,))))
    source = DIFFERENCE.replace("void main", "layout(push_constant) uniform P { float f; };\nvoid main")
    (model.folder / "scaled.comp").write_text(source.replace("x[i] - h[i]", "f * (x[i] - h[i])"))
    numpy.save(model.folder / "factor.npy", numpy.float32([2]))
    model.check(**GIVEN)
    assert model.refused() == [
        "SR-EXPECT-013 net.vgf: the model has no code for the shader 'shader'",
        "SR-EXPECT-013 net.vgf: the shader 'shader' takes push constants",
    ]
    files = {"shaders": {"shader": "scaled.comp"}, "push_constants": {"shader": "factor.npy"}}
    output = {"values": (2 * (X - H)).tolist(), "dtype": "float32"}
    model.check(**GIVEN, **files, outputs={"y": output})
    assert (model.run().status, model.run().reason) == ("Pass", "")


def test_keys_of_models_in_a_scenario(tmp_path: Path) -> None:
    """A scenario names its files itself."""
    path = tmp_path / "scenario.json"
    path.write_text('{"resources": [], "commands": []}')
    (tmp_path / "check.json").write_text('{"inputs": {"x": "x.npy"}}')
    (problem,) = check(item_of(str(path), "i"))
    message = "/inputs: is only for models: a scenario names its files itself"
    assert (problem.code, str(problem)) == ("SR-EXPECT-006", f"{tmp_path}/check.json:1:12: {message}")
    (tmp_path / "check.json").unlink()
    path.write_text('{"expect": {"shaders": {}}, "resources": [], "commands": []}')
    (problem,) = check(item_of(str(path), "i"))
    assert (problem.code, problem.pointer) == ("SR-EXPECT-006", "/expect/shaders")


def test_models_of_a_folder(tmp_path: Path) -> None:
    """A model is an item with expectations of its own, and where it is named; not one that a scenario uses."""
    names = (
        "a.vgf a.check.json b.pte b.expected/y.npy c.vgf c.inputs/x.npy d.vgf d.check.json d.json e.tosa e.check.json"
    )
    names += " scenario.vgf scenario.json check.json expected/y.npy suite.json suite.check.json"
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    message = "these expectations belong to no scenario: there is no e.json beside them"
    orphan = f"SR-SUITE-018 {tmp_path}/e.check.json: {message}"
    assert found(tmp_path, ".", problems=[orphan]) == ["a.vgf", "b.pte", "d.json", "scenario.json"]
    assert found(tmp_path, "c.vgf", "scenario.vgf") == ["c.vgf", "scenario.vgf"]
    assert item_of(str(tmp_path / "scenario.vgf"), "").expectations is None


def test_a_program_and_its_model_share_a_check_file(model: Model, program: Program) -> None:
    """Two models of one name are two items with the same expectations and inputs."""
    shutil.copy(PROGRAM, model.folder / "net.pte")
    assert program("vgf", "extract", "net.pte").code == 0
    for name in ("x.npy", "data/h.npy"):
        numpy.save(model.folder / name, numpy.zeros((2, 4), "f4"))
    zeros = {"values": 0}
    model.check(inputs={"0": "x.npy", "1": "data/h.npy"}, outputs={"output_0": zeros, "output_1": zeros})
    assert found(model.folder, ".") == ["net.pte", "net.vgf"]
    assert [check(item_of(str(model.folder / name), name)) for name in ("net.pte", "net.vgf")] == [[], []]


def test_a_result_depends_on_the_files_of_a_model(model: Model) -> None:
    """The model, its inputs, their folder, its shaders and its expectations."""
    (model.folder / "net.inputs").mkdir()
    model.check(**GIVEN, shaders={"shader": "scaled.comp"})
    for name in ("net.inputs/z.npy", "scaled.comp", "included.glsl"):
        (model.folder / name).write_text('#include "included.glsl"')
    before = item_hashes(model.item, "")
    changed = {}
    names = "x.npy data/h.npy net.inputs/z.npy scaled.comp included.glsl net.vgf net.check.json"
    for name in names.split():
        with (model.folder / name).open("ab") as file:
            file.write(b" ")
        after = item_hashes(model.item, "")
        changed[name] = [key for key in before._fields if getattr(after, key) != getattr(before, key)]
        before = after
    inputs = {name: ["inputs"] for name in names.split()[:5]}
    assert changed == {**inputs, "net.vgf": ["scenario"], "net.check.json": ["expectations"]}
    read = {Path(path).relative_to(model.folder).as_posix() for path in inputs_of(model.item)}
    assert read == {"x.npy", "data/h.npy", "net.inputs/z.npy", "scaled.comp"}


def test_an_update_writes_expected_files(model: Model, runners: Runners) -> None:
    """An update writes expected files to the folder beside the model, and never overwrites an input."""
    model.check(**GIVEN)
    (change,) = update(model.item, runners)
    assert (change.path, change.kind) == (str(model.folder / "net.expected" / "y.npy"), "new")
    assert numpy.load(change.path).view("f4").tolist() == (X - H).tolist()
    assert model.run().status == "Pass"
    model.check(**GIVEN, outputs={"y": {"file": "x.npy"}})
    shutil.rmtree(model.folder / "net.expected")
    with pytest.raises(ExpectationError, match=r"is an input of 'net\.vgf', and would be overwritten"):
        update(model.item, runners)


def test_the_whole_program(model: Model, program: Program) -> None:
    """Models are listed, run, resumed, validated and reported like scenarios."""
    model.check(**GIVEN, outputs=Y)
    (model.folder / "bad").mkdir()
    shutil.copy(model.path, model.folder / "bad" / "other.vgf")
    (model.folder / "bad" / "other.check.json").write_text("{}")
    assert program("test", ".", "--list").out == "bad/other.vgf\nnet.vgf\n"
    ended = program("test", ".", "--results", "results", "--quiet")
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "suite failed: 1 of 2 items unexpected")
    missing = "error: bad/other.vgf: no file is given for the input 'x' (binding 0) [SR-EXPECT-013]\n"
    assert ended.err.startswith(missing)
    assert "scenario-runner test bad/other.vgf\n" in ended.out
    ended = program("test", ".", "--results", "results", "--resume", "--quiet")
    assert "1 result kept from the run before\n" in ended.out
    ended = program("validate", "net.vgf", "bad/other.vgf")
    assert (ended.code, ended.out) == (3, "net.vgf: valid: 4 resources, 1 command\n")
    assert "other.vgf: no file is given for the input 'h' (binding 1) [SR-EXPECT-013]" in ended.err


def test_evidence_of_a_model(model: Model, program: Program) -> None:
    """Files about a wrong output are in a folder with the model's name."""
    model.check(**GIVEN, outputs={"y": {"values": 0, "dtype": "float32"}})
    assert program("test", "net.vgf", "--results", "results", "--retries", "0", "--sandbox").code == 1
    actual = numpy.load(model.folder / "results" / "net.vgf" / "y.actual.npy")
    assert actual.tolist() == (X - H).tolist()


def test_the_sandbox_of_a_validation(model: Model) -> None:
    """The sandbox of a model is the folder of its files, and defaults may lie in a folder above."""
    folder = model.folder / "below"
    shutil.copytree(model.folder, folder)
    (model.folder / "suite.json").write_text('{"timeout": 9}')
    path = folder / "net.vgf"
    (folder / "net.check.json").write_text(json.dumps(GIVEN))
    assert validate_file(path, Options(sandbox=True), load_model).exit_code == 0
    (folder / "net.check.json").write_text(json.dumps({"inputs": {"x": "x.npy", "h": "../data/h.npy"}}))
    (finding,) = validate_file(path, Options(sandbox=True), load_model).findings
    assert (finding.code, finding.pointer) == ("SR-SANDBOX-001", "/inputs/h")
