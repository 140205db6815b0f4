"""What plans the resources and the commands of one kind: the bases of the classes that the registry of kinds names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.plan.problems import Problems
from scenario_runner.plan.push_constants import PushConstants
from scenario_runner.plan.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scenario_runner.files.source import Identity
    from scenario_runner.plan.layouts import LayoutTracker
    from scenario_runner.plan.model.plan import Operation, ResourcePlan
    from scenario_runner.plan.model.records import NeededFeature, Source
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario, Shader


class PlanContext:
    """What all resolvers of one plan share; it grows while the plan is made.

    ``inputs`` goes before the data and the ``src`` of a resource. All of a resource in ``shown`` is read back, also
    what the file of its ``dst`` does not hold. ``shapes`` are those that graphs give to tensors, and ``deferred`` the
    tensors that lack one which a graph should give. When the first command is resolved, ``tables.resources``,
    ``raw_data`` (sources by uid), ``shaders`` (those that could be loaded, by uid) and ``layouts`` (None without
    images) are complete.
    """

    def __init__(self, scenario: Scenario, inputs: Mapping[str, Any], shown: Collection[str]) -> None:
        self.scenario = scenario
        self.inputs = inputs
        self.shown = shown
        self.problems = Problems(scenario)
        self.tables = Tables()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.deferred: frozenset[str] = frozenset()
        self.raw_data: dict[str, Source] = {}
        self.push_constants = PushConstants(scenario, self.raw_data, self.problems)
        self.shaders: dict[str, LoadedShader] = {}
        self.layouts: LayoutTracker | None = None


class ResourceResolver:
    """Plans the resources of one kind; one is made for each plan that has such resources."""

    def __init__(self, context: PlanContext) -> None:
        self.context = context

    def resolve(self, resource: Any, pointer: str) -> ResourcePlan | None:
        """The plan of a resource; None where something is wrong, which is noted or raised, or where it needs none."""
        raise NotImplementedError

    @staticmethod
    def replaced(planned: Any, scenario: Scenario, data: Any) -> ResourcePlan | None:
        """A planned resource without a memory group, with other content; None where that takes a new plan."""
        raise NotImplementedError


class CommandResolver:
    """Plans the commands of one kind, or of several; one is made for each plan that has such commands.

    Its methods are called in the order in which they stand here. What is wrong is noted in the problems of the context.
    """

    def __init__(self, context: PlanContext) -> None:
        """May read the files that the commands name."""
        self.context = context

    def files(self) -> Iterable[tuple[str, Identity | None]]:
        """Files that were read, with what each was then (None: not in a file), for the plan cache."""
        return ()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of tensors that leave some dimension to the commands."""
        return {}

    def deferred(self) -> frozenset[str]:
        """The tensors without a shape that some command writes."""
        return frozenset()

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add shaders beyond those that the models name; returns the pointers of those that are not resources."""
        return {}

    def resolve(self, command: Any, index: int) -> Iterable[Operation]:
        """What the command number ``index`` does, in order."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last command."""

    def features(self) -> tuple[NeededFeature, ...]:
        """What the commands need of a device, beyond what their shaders say."""
        return ()
