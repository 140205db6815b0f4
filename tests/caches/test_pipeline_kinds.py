"""Pipelines of every kind go through the pipeline cache, in a dry run as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenario_runner import PipelineCaching, Runner


@pytest.mark.parametrize(
    "scenario, labels",
    [
        ("drawing/triangle", None),
        ("ml/mixed", None),
        ("ml/optical_flow", None),
        ("basics/add", ["add"]),
    ],
)
def test_kinds(checkout: Path, tmp_path: Path, shader_cache: Path, scenario: str, labels: list[str] | None) -> None:
    """The driver tells of each pipeline of a scenario, and the validated file is there after a dry run."""
    caching = PipelineCaching(tmp_path)
    with Runner(pipeline_cache=caching) as runner:
        path = checkout / "scenarios" / scenario / "scenario.json"
        plan = runner.plan(path)
        runner.run(path, dry_run=True)
        assert runner.live_objects["pipeline cache"] == 0
    pipelines = [*plan.pipelines, *plan.graph_pipelines]
    expected = {each.label for each in pipelines} | {each.fragment.label for each in plan.graphics_pipelines}
    assert {each.label for each in caching.creations} == (set(labels) if labels else expected)
    assert all(each.hit is not None for each in caching.creations)
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.cache"]
