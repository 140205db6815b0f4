"""The plan cache while files change: whenever a file is exchanged, no later run gets a plan of the other content."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioRunnerError
from tests.checks.test_hand_made_modules import compiled
from tests.gpu.ml_scenes import VGF, bindings
from tests.left_out import VGF_LIBRARY, needs
from tests.plan.test_kept_plans import settle
from tests.plan.test_plan_cache import ADD, AMOUNT, adding
from tests.scenes import Scene, glsl

_MOST_OPENINGS = 40


class Exchange:
    """Replaces a file just before its n-th opening. Python calls audit hooks before each opening; hooks stay until
    the process ends, so there is one."""

    def __init__(self) -> None:
        self.path = ""
        self.left = 0
        self.action: Callable[[], None] | None = None
        sys.addaudithook(self._hear)

    def arm(self, path: Path, number: int, action: Callable[[], None]) -> None:
        self.path, self.left, self.action = os.path.realpath(path), number, action

    def disarm(self) -> bool:
        """Whether the file was exchanged."""
        done, self.action = self.action is None, None
        return done

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self.action is None or not isinstance(arguments[0], str):
            return
        if os.path.realpath(arguments[0]) == self.path:
            self.left -= 1
            if self.left == 0:
                action, self.action = self.action, None
                action()


@pytest.fixture(scope="module")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


class Case(NamedTuple):
    """A scenario, one of its files, and other content for it with which the output is another one."""

    scenario: Path
    file: Path
    other: bytes


def text(scene: Scene) -> Case:
    path = adding(scene)
    content = json.loads(path.read_bytes())
    content["commands"][0]["dispatch_compute"]["rangeND"] = [2]
    return Case(path, path, json.dumps(content).encode())


def source(scene: Scene) -> Case:
    path = adding(scene)
    return Case(path, scene.folder / "add.comp", ADD.replace("+ pushed", "- pushed").encode())


def include(scene: Scene) -> Case:
    path = adding(scene)
    return Case(path, scene.folder / "amount.glsl", AMOUNT.replace("10", "30").encode())


def module(scene: Scene) -> Case:
    """A module that writes 7 into one number."""
    declared = "layout(set = 0, binding = 0) buffer C { int c[]; };"
    first, other = (compiled(glsl(f"c[0] = {number};", declared), scene.folder) for number in (7, 8))
    scene.module("store", first)
    scene.buffer("c", size=4).dispatch("store", ["c"])
    return Case(scene.write(), scene.folder / "store.spv", other)


def model(scene: Scene) -> Case:
    """The weights of a 3 x 3 convolution in a VGF file, followed by a clamp to 0 to 6."""
    scene.tensor("x", numpy.ones((1, 8, 8, 2), "f4")).tensor("c", dims=[1, 8, 8, 4])
    file = scene.folder / "model.vgf"
    content = (VGF / "conv.vgf").read_bytes()
    weights = numpy.array([(i * 7 % 11 - 5) / 8 for i in range(72)], "f4")
    file.write_bytes(content)
    scene.resource("graph", uid="g", src="model.vgf")
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(["x", "c"]))
    assert content.count(weights.tobytes()) == 1
    return Case(scene.write(), file, content.replace(weights.tobytes(), (weights / 2).tobytes()))


def outcome(case: Case, runner: Runner) -> list[float]:
    runner.run_to_files(case.scenario)
    values = numpy.load(case.scenario.parent / "c.out.npy")
    return list(values.view("<i4") if values.dtype.itemsize == 1 else values.ravel())


@needs(VGF_LIBRARY, "model")
@pytest.mark.parametrize("then", ["first", "other"])
@pytest.mark.parametrize("make", [text, source, include, module, model])
def test_a_file_that_is_exchanged_meanwhile(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    exchange: Exchange,
    runner: Runner,
    make: Callable[[Scene], Case],
    then: str,
) -> None:
    """A file exchanged at any opening gives later runs with its current content."""
    case = make(scene)
    first, other = scene.folder / "first", scene.folder / "other"
    os.link(case.file, first)  # the same file comes back, with its times
    other.write_bytes(case.other)
    later = [first, first, other] if then == "first" else [other, first, first]

    def put(content: Path) -> None:
        new = scene.folder / "new"
        os.link(content, new)
        os.replace(new, case.file)
        new.unlink(missing_ok=True)  # of two names of one file, nothing was renamed

    results = {}
    with Runner(use_cache=False) as uncached:
        for content in (other, first):
            put(content)
            results[content] = outcome(case, uncached)
    assert results[first] != results[other]
    for number in range(1, _MOST_OPENINGS):
        monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(scene.folder / f"cache{number}"))
        settle(scene.folder)
        exchange.arm(case.file, number, lambda: put(other))
        try:
            assert outcome(case, runner) in results.values(), number
        except ScenarioRunnerError:
            pass  # some of both
        exchanged = exchange.disarm()
        for content in later:
            put(content)
            assert outcome(case, runner) == results[content], number
        put(first)
        if not exchanged:
            break
    assert 1 < number < _MOST_OPENINGS - 1, "the file was opened, and an end of it was seen"
