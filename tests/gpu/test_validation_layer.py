"""What the validation layer reports ends a run, unless it is asked to report only."""

import re
from pathlib import Path

import numpy as np
import pytest

from scenario_runner import Runner, convert
from scenario_runner.errors import FenceTimeoutError, ValidationLayerError
from tests.left_out import VGF_LIBRARY, needs
from tests.ml.make_fixtures import Graph, tensor
from tests.program import Program
from tests.scenes import Scene, glsl

# A hazard is an error to the layer, and the only one that a scenario can bring about, since everything else is refused
# before it reaches Vulkan.
PAIR = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"


@pytest.fixture
def hazard(scene: Scene, validation: bool) -> Path:
    """A scenario whose second dispatch reads what the first one writes, without a barrier."""
    assert validation, "this test needs the package vulkan-validationlayers"
    scene.shader("copy", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x];", PAIR))
    scene.buffer("x", np.array([1, 2, 3, 4], np.uint32), dst=None).buffer("y", size=16, dst=None)
    scene.buffer("z", size=16)
    scene.dispatch("copy", ["x", "y"], [4], implicit_barrier=False).dispatch("copy", ["y", "z"], [4])
    return scene.write()


@pytest.fixture
def clean(scene: Scene, hazard: Path) -> Path:
    """The same with the barrier."""
    scene.commands[0]["dispatch_compute"]["implicit_barrier"] = True
    return scene.write("clean.json")


def test_errors_of_the_layer_fail_the_run(scene: Scene, hazard: Path, clean: Path, program: Program) -> None:
    """The message is shown as an error with the command and the resource that caused it, the exit code is 13, nothing
    is written, and other scenarios still run."""
    before = sorted(path.name for path in scene.folder.iterdir())
    done = program("--validation-sync", hazard.name, clean.name, "--output", "out", "--folder-each")
    assert done.code == 13
    assert re.search(r"^error: validation layer: /commands/1: .*'y'.*READ.AFTER.WRITE", done.err, re.MULTILINE)
    place = r"^error: scenario.json:\d+:\d+: /commands/1: the validation layer reported an error: "
    end = r".*(?:prior_usage: |hazard detected.* command\. $)"  # of the layer of 2022, and of that of 2025
    assert re.search(place + end, done.err, re.MULTILINE), "the message is whole"
    assert "help: --validation-report" in done.err
    assert [line.partition(": ")[0] for line in done.out.splitlines()] == ["clean.json"]
    assert program("--validation-sync", hazard.name).code == 13
    assert sorted(path.name for path in scene.folder.iterdir()) == sorted([*before, "out"])
    assert [path.name for path in (scene.folder / "out").iterdir()] == ["clean"]


def test_hazards_are_looked_for_on_request(hazard: Path, clean: Path, program: Program) -> None:
    """--validation-sync finds the hazard that --validation does not look for; with --validation-report the messages are
    the same and the run succeeds."""
    assert program("--validation", hazard.name).code == 0
    assert program("--validation-sync", clean.name).code == 0
    done = program("--validation-sync", "--validation-report", hazard.name)
    assert done.code == 0
    assert re.search(r"READ.AFTER.WRITE", done.err)
    assert done.out.startswith("scenario.json: ok: ")


def test_runner_raises_for_every_run(hazard: Path, clean: Path) -> None:
    """In Python each run raises, however often the layer has said so before; a clean run between them succeeds."""
    with Runner(validation=True, sync_validation=True) as runner:
        for _ in range(12):  # the layer repeats a message ten times in the life of an instance
            with pytest.raises(ValidationLayerError, match=r"READ.AFTER.WRITE"):
                runner.run(hazard, write_files=False)
        assert runner.run(clean, write_files=False)["z"].view(np.uint32).tolist() == [1, 2, 3, 4]
    assert not any(runner.live_objects.values())


def test_runner_that_reports_keeps_the_messages(hazard: Path) -> None:
    """With validation="report" the result is returned and validation_messages holds what was said."""
    with Runner(validation="report", sync_validation=True) as runner:
        runner.run(hazard, write_files=False)
        assert any("READ_AFTER_WRITE" in message for message in runner.validation_messages)


def test_errors_before_a_loss_fail_no_later_run(hazard: Path, clean: Path) -> None:
    """A message of the layer before a timeout is not raised by the next run, which opens the device again."""
    with Runner(validation=True, sync_validation=True, timeout_s=0) as runner:
        with pytest.raises((FenceTimeoutError, ValidationLayerError)):  # the latter where the device was as fast
            runner.run(hazard, write_files=False)
        runner.timeout_s = None
        assert runner.run(clean, write_files=False)["z"].view(np.uint32).tolist() == [1, 2, 3, 4]


@needs(VGF_LIBRARY)
def test_messages_about_the_emulation_layers(tmp_path: Path, validation: bool) -> None:
    """Their pipeline layout of a transpose is wrong, about which a scenario can do nothing."""
    graph = Graph()
    graph.add("transpose", [graph.input((2, 3), "f32")], tensor((3, 2), "f32"), "perms = array<i32: 1, 0>")
    (tmp_path / "model.mlir").write_text(graph.text())
    convert(tmp_path / "model.mlir", tmp_path / "model.vgf")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with Runner(validation=validation, timeout_s=60) as runner:
        assert (runner.run(tmp_path / "model.vgf", x)["r0"] == x.T).all()
        assert runner.validation_messages == []
