"""An item that is run, and compared, in this process."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.evaluation import EvaluationOptions, run_item
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.worker_task import Runners
from tests.scenes import Scene


@pytest.fixture(scope="module")
def runners(shader_cache: Path) -> Iterator[Runners]:
    found = Runners({}, 60)
    yield found
    found.close()


@pytest.fixture
def run(scene: Scene, runners: Runners) -> Callable[..., Outcome]:
    """Run the scene's scenario with expectations; failures leave files in the folder ``results``."""

    def run(**given: Any) -> Outcome:
        path = str(scene.write())
        if given:
            scene.file("check.json", json.dumps(given))
        options = EvaluationOptions(str(scene.folder / "results"))
        outcome = run_item(Item("suite/item", path, expectations_file(path)), runners, options)
        assert outcome == Outcome.of_json(json.loads(json.dumps(outcome.as_json(), allow_nan=False)))
        assert outcome.seconds > 0
        return outcome._replace(seconds=0)

    return run
