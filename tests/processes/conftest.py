"""Scenarios that succeed or end their process, and workers that run them."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.processes.jobs import WorkerOptions
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.suite_workers import ONCE, SuiteWork, suite_options
from scenario_runner.suite.verdicts_and_retries import RetryRules
from tests.crash import crash_shader
from tests.scenes import ADD, Scene, glsl

DATA = "layout(binding = 0) buffer B { uint a[]; };\n"
# Work for days.
ENDLESS = glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i;", DATA)

# The numbers of trouble_layer.c.
TROUBLES = (
    *("none", "exits", "aborts", "sleeps", "garbage", "leaks_files", "leaves_a_child", "loses_the_device"),
    *("is_killed", "floods", "crashes_later", "grows", "closes_files"),
)


@pytest.fixture(autouse=True)
def _compiled_once(shader_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep compiled shaders and Python code for workers in the session's folder."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(shader_cache / "python"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture
def trouble(trouble_layer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this test load the layer."""
    for name, value in trouble_layer.items():
        monkeypatch.setenv(name, value)


class Folder:
    """Makes items in a folder."""

    def __init__(self, path: Path, device_name: str) -> None:
        self.path = path
        self._device_name = device_name

    def item(self, name: str, shader: str = ADD, groups: tuple[int, ...] = (4,), size: int | None = None) -> Item:
        folder = self.path / name
        folder.mkdir()
        scene = Scene(folder).shader("x", shader)
        content = None if size else numpy.full(4, 1, numpy.uint32)
        scene.buffer("a", content, size=size).dispatch("x", ["a"], groups)
        return Item(name, str(scene.write()))

    def good(self, name: str = "good") -> Item:
        return self.item(name)

    def crashing(self, name: str = "crash") -> Item:
        # of one group, so of one thread of the driver: a second one that crashes ends what writes the Python stack
        return self.item(name, crash_shader(self._device_name), (1,))

    def endless(self, name: str = "endless") -> Item:
        return self.item(name, ENDLESS, (65535, 65535, 64))

    def troubled(self, what: str) -> Item:
        """An item for the layer."""
        return self.item(what, size=7000 + 4 * TROUBLES.index(what))

    def result(self, item: Item) -> list[int]:
        """Return the values that an item wrote."""
        content: list[int] = numpy.load(Path(item.path).with_name("a.out.npy")).view("u4")[:4].tolist()
        return content


@pytest.fixture
def folder(tmp_path: Path, device_name: str) -> Folder:
    return Folder(tmp_path, device_name)


TWICE = RetryRules(retries=1)
"""Rules by which an item that fails runs again."""


def options(task: str = "run", task_options: Any = None, rules: RetryRules = ONCE, **values: Any) -> WorkerOptions:
    """Two workers that run scenarios as a function of tests/processes/tasks.py does."""
    work = SuiteWork(f"tests.processes.tasks:{task}", task_options)
    return suite_options(work, rules, **{"jobs": 2, "timeout_s": 120.0, **values})
