"""Expectations written from a run."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner.errors import ExpectationError, FileError, ScenarioError, UnsupportedError
from scenario_runner.files.vk_formats import format_named
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.evaluation import run_item
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.update import Change, update
from scenario_runner.suite.worker_task import Runners
from tests.image_files import write_image
from tests.scenes import Scene, error_of, glsl
from tests.tables import cases

DOUBLE = glsl("x[gl_GlobalInvocationID.x] *= 2.0;", "layout(set=0,binding=0) buffer X { float x[]; };", local_size=4)
VALUES = np.float32([1, 2, 3, 4])
Update = Callable[..., list[Change]]


@pytest.fixture
def scene(scene: Scene) -> Scene:
    return scene.shader("double", DOUBLE).buffer("x", VALUES).dispatch("double", ["x"])


@pytest.fixture
def changed(scene: Scene, runners: Runners) -> Update:
    """Update the scene's item, first without writing; then it passes, and nothing more changes."""

    def changed(text: str | None = None, **given: Any) -> list[Change]:
        path = str(scene.write())
        if text is not None or given:
            scene.file("check.json", text or json.dumps(given))
        item = Item("i", path, expectations_file(path))
        before = sorted(scene.folder.rglob("*"))
        contents = [each.read_bytes() for each in before if each.is_file()]
        shown = update(item, runners, write=False)
        assert sorted(scene.folder.rglob("*")) == before
        assert [each.read_bytes() for each in before if each.is_file()] == contents
        assert update(item, runners) == shown
        assert update(item, runners) == []
        outcome = run_item(item, runners)
        assert (outcome.status, outcome.reason) == ("Pass", "")
        assert scene.leftovers() == []
        return [each._replace(path=Path(each.path).relative_to(scene.folder).as_posix()) for each in shown]

    return changed


def checked(scene: Scene, given: dict[str, Any]) -> Item:
    """The scene's item with these expectations."""
    return Item("i", str(scene.write()), str(scene.file("check.json", json.dumps(given))))


def test_new_expectations(scene: Scene, changed: Update) -> None:
    """Every output gets a file of the type that a run writes."""
    scene.resource(
        "image", uid="i", format="VK_FORMAT_R8_UNORM", dims=[1, 4, 4, 1], mips=3, shader_access="readwrite", dst="i.dds"
    )
    assert [each._replace(digest="") for each in changed()] == [
        Change("expected/x.npy", "x", "new", "the output 'x' has no expectation"),
        Change("expected/i.dds", "i", "new", "the output 'i' has no expectation"),
    ]
    array = np.load(scene.folder / "expected" / "x.npy")
    assert (array.dtype, array.view("f4").tolist()) == (np.int8, [2, 4, 6, 8])


def test_a_changed_file(scene: Scene, changed: Update) -> None:
    """A changed file keeps its type, and the message has the count of differing elements and the greatest error."""
    scene.npy("expected/x.npy", np.float32([2, 4, 6, 9]))
    (change,) = changed(outputs={"x": {"atol": 0.5}})
    assert change.digest == hashlib.sha256((VALUES * 2).tobytes()).hexdigest()
    assert change._replace(digest="") == Change(
        "expected/x.npy",
        "x",
        "changed",
        "1 of 4 elements (25 %) is wrong, the greatest error is 1 at [3]: 8.0 (0x41000000), expected 9.0 (0x41100000);"
        " allowed: atol 0.5",
    )
    assert np.load(scene.folder / "expected" / "x.npy").tolist() == [2, 4, 6, 8]


def test_what_is_right_stays(scene: Scene, changed: Update) -> None:
    """Outputs within their tolerance stay unchanged."""
    scene.npy("expected/x.npy", np.float32([2, 4, 6, 8.1]))
    assert changed(outputs={"x": {"atol": 0.5}}) == []
    assert np.load(scene.folder / "expected" / "x.npy").tolist() == pytest.approx([2, 4, 6, 8.1])


def test_a_named_file_of_another_size(scene: Scene, changed: Update) -> None:
    """A named file of another size is written again with the type in the expectation."""
    scene.npy("good/x.npy", np.zeros(9, "f8"))
    (change,) = changed(outputs={"x": {"file": "good/x.npy", "dtype": "float32"}})
    assert (change.path, change.kind) == ("good/x.npy", "changed")
    assert "holds 72 bytes, but the output has 16 bytes" in change.message
    assert np.load(scene.folder / "good" / "x.npy").tolist() == [2, 4, 6, 8]


def test_values_and_digests_change_in_the_text(scene: Scene, changed: Update) -> None:
    """The rest of the file stays as it was written."""
    text = '{\n  "repeat": 1,   "outputs": {"x": {"values": [[1, 2],\n [3, 4]], "dtype":  "float32"}}\n}\n'
    (change,) = changed(text)
    assert (change.path, change.kind) == ("check.json", "changed")
    assert (scene.folder / "check.json").read_text() == (
        '{\n  "repeat": 1,   "outputs": {"x": {"values": [[2.0, 4.0], [6.0, 8.0]], "dtype":  "float32"}}\n}\n'
    )
    changed(outputs={"x": {"sha256": ["0" * 64, "1" * 64]}})
    digest = hashlib.sha256((VALUES * 2).tobytes()).hexdigest()
    assert json.loads((scene.folder / "check.json").read_text()) == {"outputs": {"x": {"sha256": digest}}}


@pytest.mark.parametrize("mark", ["\N{BYTE ORDER MARK}", ""])
def test_the_rest_of_the_text_stays(scene: Scene, changed: Update, mark: str) -> None:
    """Byte order mark, ends of lines and spaces are as before."""
    text = mark + '{ "outputs":\r\n\t{"x": { "dtype": "float32", "values": %s } } }\r\n'
    assert [change.kind for change in changed(text % 7)] == ["changed"]
    assert (scene.folder / "check.json").read_bytes().decode() == text % "[2.0, 4.0, 6.0, 8.0]"


def test_expectations_inside_the_scenario(scene: Scene, runners: Runners) -> None:
    """Expectations inside a scenario change in its file."""
    path = scene.write()
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, "expect": {"outputs": {"x": {"values": 0, "dtype": "float32"}}}}))
    (change,) = update(Item("i", str(path)), runners)
    assert change.path == str(path)
    changed = json.loads(path.read_text())
    assert changed.pop("expect") == {"outputs": {"x": {"values": [2, 4, 6, 8], "dtype": "float32"}}}
    assert changed == tree


def test_the_entry_that_counts_on_this_device(scene: Scene, changed: Update, runners: Runners) -> None:
    """Values of a condition change there."""
    here = {"type": runners.runner().physical_device.type, "outputs": {"x": {"values": 1}}}
    changed(outputs={"x": {"values": 3, "dtype": "float32"}}, when=[{"device": "no such"}, here])
    given = json.loads((scene.folder / "check.json").read_text())
    assert given["outputs"]["x"]["values"] == 3
    assert given["when"][1]["outputs"]["x"]["values"] == [2, 4, 6, 8]


def test_captured_frames(scene: Scene, changed: Update) -> None:
    """Captured frames get files for entries that ask for them."""
    scene.command("mark_boundary", resources=["x"])
    assert [change.path for change in changed()] == ["expected/x.npy"]
    (change,) = changed(outputs={"frame_0/x": {}})
    assert (change.path, change.kind) == ("expected/frame_0/x.npy", "new")


def test_exit_codes_and_codes(scene: Scene, changed: Update, runners: Runners) -> None:
    """An update changes exit codes and codes of intended errors."""
    scene.dispatch("dubble", ["x"])
    (code,) = changed(exit_code=4)
    assert code == Change("check.json", "", "changed", "4 becomes 3")
    (codes,) = changed('{ "codes": "SR-REF-002" }')
    assert codes.message == "SR-REF-002 becomes SR-REF-001"
    assert json.loads((scene.folder / "check.json").read_text()) == {"codes": ["SR-REF-001"]}
    (scene.folder / "check.json").unlink()
    with pytest.raises(ScenarioError, match="dubble"):
        update(Item("i", str(scene.folder / "scenario.json")), runners)


@pytest.mark.parametrize("given, message", cases(__file__, "cases.txt", "UPDATES"))
def test_what_no_run_can_put_right(scene: Scene, runners: Runners, given: str, message: str) -> None:
    """A mistake that no run can mend is an error, and nothing is written."""
    scene.npy("expected/x.npy", np.zeros(3))
    item = checked(scene, json.loads(given))
    with pytest.raises(ExpectationError, match=message):
        update(item, runners)
    assert (scene.folder / "check.json").read_text() == given
    assert np.load(scene.folder / "expected" / "x.npy").shape == (3,)


@pytest.mark.parametrize("expects_failure", [False, True])
def test_a_device_that_lacks_what_is_needed(scene: Scene, runners: Runners, expects_failure: bool) -> None:
    """An update on a device without the needed feature writes nothing."""
    given: dict[str, Any] = {"needs": {"extensions": "VK_KHR_nothing"}} | ({"exit_code": 3} if expects_failure else {})
    with pytest.raises(UnsupportedError, match="lacks the extension VK_KHR_nothing"):
        update(checked(scene, given), runners)
    with pytest.raises(ExpectationError, match="the capability Int64, which no shader declares"):
        update(checked(scene, {"needs": "Int64"}), runners)
    assert not (scene.folder / "expected").exists()


def picture(height: int) -> Any:
    return np.zeros((height, 6, 4), "u1")


def test_a_picture_of_another_size(scene: Scene, changed: Update) -> None:
    """The file changes in its place, whatever kind it is, so that there is one."""
    image = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 6, 5, 1], "shader_access": "readonly"}
    scene.resource("image", uid="i", dst="i.npy", **image)
    scene.npy("expected/x.npy", VALUES * 2)
    write_image(scene.file("expected/i.png", b""), format_named(image["format"]), 6, 4, [picture(4).tobytes()])
    (change,) = changed()
    assert (change.path, change.kind) == ("expected/i.png", "changed")


@pytest.mark.parametrize("keys", [{}, {"file": "expected/i.png"}])
def test_a_picture_that_cannot_hold_the_output(scene: Scene, runners: Runners, keys: dict[str, Any]) -> None:
    """A picture that cannot hold the output stays, and no second file appears beside it."""
    image = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 6, 5, 1], "shader_access": "readonly", "mips": 2}
    scene.resource("image", uid="i", dst="i.dds", **image)
    write_image(
        scene.file("expected/i.png", b""), format_named("VK_FORMAT_R8G8B8A8_UNORM"), 6, 5, [picture(5).tobytes()]
    )
    with pytest.raises(ExpectationError, match=r"i\.png: cannot hold the output 'i'") as caught:
        update(checked(scene, {"outputs": {"x": {"unchecked": True}, "i": keys}}), runners)
    assert "expect a .dds file" in str(caught.value.problems[0].help)
    assert [each.name for each in (scene.folder / "expected").iterdir()] == ["i.png"]


@pytest.mark.parametrize("outputs", [{}, {"x": {"file": "expected/x.png"}}])
def test_a_picture_of_a_buffer(scene: Scene, runners: Runners, outputs: dict[str, Any]) -> None:
    """A picture of a buffer is not replaced by an array, which no run would read from it."""
    picture = scene.file("expected/x.png", b"a picture")
    with pytest.raises(FileError, match=r"x\.png: has the extension '\.png', expected '\.npy' for a buffer"):
        update(checked(scene, {"outputs": outputs}), runners)
    assert picture.read_bytes() == b"a picture"


@pytest.mark.parametrize("write", [False, True])
def test_a_folder_in_the_place_of_a_file(scene: Scene, runners: Runners, write: bool) -> None:
    """A dry run promises nothing if a folder is in the place of a file."""
    scene.file("expected/x.npy/other", b"")
    with pytest.raises(FileError, match=r"x\.npy: is a folder, expected the name of a file to write"):
        update(Item("i", str(scene.write())), runners, write=write)


def test_one_file_for_two_outputs(scene: Scene, runners: Runners) -> None:
    """One file for two outputs is written once for equal outputs, and is an error for different ones."""
    scene.buffer("y", VALUES).buffer("z", VALUES * 2)
    scene.npy("shared.npy", VALUES * 0)
    given = {"outputs": {name: {"file": "shared.npy"} for name in "xz"} | {"y": {"unchecked": True}}}
    item = checked(scene, given)
    assert [change.output for change in update(item, runners)] == ["x", "z"]
    assert update(item, runners) == []
    scene.npy("shared.npy", VALUES * 0)
    checked(scene, {"outputs": {name: {"file": "shared.npy"} for name in "xyz"}})
    with pytest.raises(ExpectationError, match=r"is expected by '[xz]' of 'i' and 'y' of 'i', but their results"):
        update(item, runners)
    assert np.load(scene.folder / "shared.npy").tolist() == [0, 0, 0, 0]
    scene.npy("shared.npy", VALUES * 2)  # what is right for x is overwritten for no other
    with pytest.raises(ExpectationError, match=r"is expected by '[xz]' of 'i' and 'y' of 'i', but their results"):
        update(item, runners)
    assert np.load(scene.folder / "shared.npy").tolist() == [2, 4, 6, 8]


def test_values_without_a_type(scene: Scene, runners: Runners) -> None:
    """Values without a type cannot be updated, since no shader declares a type."""
    scene.commands.clear()
    with pytest.raises(ExpectationError, match='need "dtype"'):
        update(checked(scene, {"outputs": {"x": {"values": 1}}}), runners)


def test_an_input_is_not_overwritten(scene: Scene, runners: Runners) -> None:
    """An expected file that the scenario reads stays."""
    error = error_of(ExpectationError, update, checked(scene, {"outputs": {"x": {"file": "x.npy"}}}), runners)
    (problem,) = error.problems
    assert (problem.code, problem.path) == ("SR-EXPECT-011", str(scene.folder / "x.npy"))
    assert problem.message == "is an input of 'i', and would be overwritten"
    assert np.load(scene.folder / "x.npy").tolist() == VALUES.tolist()


def test_nan_that_are_an_error(scene: Scene, runners: Runners) -> None:
    """No expectation of them can pass."""
    scene.buffer("n", np.full(4, np.nan, "f4"))
    given = {"x": {"unchecked": True}, "n": {"dtype": "float32", "nan": "error"}}
    (problem,) = error_of(ExpectationError, update, checked(scene, {"outputs": given}), runners).problems
    assert (problem.code, problem.pointer) == ("SR-EXPECT-012", "/outputs/n")
    assert problem.message.startswith("this run fails even if its own content is expected: 4 of 4 elements")


def test_nothing_is_half_written(scene: Scene, runners: Runners) -> None:
    """One failed write leaves all files unchanged."""
    scene.buffer("y", VALUES)
    scene.npy("expected/x.npy", np.zeros(3))
    (scene.folder / "expected" / "y.npy").mkdir()
    given = {"x": {"file": "expected/x.npy"}, "y": {"file": "expected/y.npy"}}
    with pytest.raises(Exception, match="is a folder"):
        update(checked(scene, {"outputs": given}), runners)
    assert np.load(scene.folder / "expected" / "x.npy").shape == (3,)
    assert scene.leftovers() == []
