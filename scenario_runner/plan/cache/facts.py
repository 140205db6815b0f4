"""What a plan was made of beyond the scenario's text, for the plan cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scenario_runner.plan.cache.plan_cache import Facts
from scenario_runner.plan.shaders import compile_request
from scenario_runner.plan.sources import NpySource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.files.source import Identity
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.plan.resolvers import PlanContext
    from scenario_runner.scenario import Shader


def facts_of(
    context: PlanContext, plan: Plan, shaders: Iterable[Shader], files: Iterable[tuple[str, Identity | None]]
) -> Facts | None:
    """The facts of a plan that was just made, from what was read while it was made: nothing is read again.

    ``shaders`` are all that the plan uses; ``files`` those that resolvers of commands read. None when the plan cannot
    be kept.
    """
    scenario, loaded = context.scenario, context.shaders
    models = []
    for path, identity in files:
        if identity is None or not identity.settled:
            return None
        models.append((path, tuple(identity)))
    # shaders of equal code may share a pipeline, so that not each has one of its own
    by_code = {code: index for index, code in enumerate(plan.shader_codes)}
    sources = []
    binaries = []
    for shader in shaders:
        code = loaded[shader.uid].code
        index = by_code.get(code, code)  # a pipeline may have another code than its shader, see `image_formats`
        if shader.type != "SPIR-V":
            sources.append((index, tuple(compile_request(scenario, shader))))
        elif shader.src is not None:  # what a model brings itself is as old as its file
            binaries.append((index, os.path.join(scenario.base_dir, shader.src)))
    contents = []
    for uid, source in context.raw_data.items():
        if not isinstance(source, NpySource):
            return None
        contents.append((source.path, tuple(source.header), context.push_constants.read.get(uid)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), tuple(models))
