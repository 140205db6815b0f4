"""The workloads by name, in the order of measurement."""

from benchmarks.workloads.dispatches import Dispatches
from benchmarks.workloads.drawings import Drawings, Fill
from benchmarks.workloads.graphs import GraphConstants, GraphDispatches
from benchmarks.workloads.images import FilterChain, ImageCopy
from benchmarks.workloads.large_buffers import LargeBuffers
from benchmarks.workloads.models import all_models
from benchmarks.workloads.pipelines import Pipelines
from benchmarks.workloads.shaders import Shaders
from benchmarks.workloads.small import Many, Small
from benchmarks.workloads.suites import all_suites
from benchmarks.workloads.workload import Changed, Workload

__all__ = ["Workload", "all_workloads"]


def all_workloads(suite_items: int | None = None) -> dict[str, Workload]:
    """Return every workload by name. ``suite_items`` replaces the number of items of each suite."""
    workloads: list[Workload] = [
        Small(),
        Changed(Small()),
        Small(spirv=True),
        Dispatches(),
        Changed(Dispatches()),
        Dispatches(varied=True),
        Drawings(),
        Fill(),
        LargeBuffers(),
        ImageCopy(),
        FilterChain(),
        GraphDispatches(),
        GraphDispatches(1000),
        GraphConstants(),
        *all_models(),
        Many(),
        Changed(Many()),
        Many(spirv=True),
        Shaders("validate", cold=True),
        Shaders("validate", cold=False),
        Shaders("run", cold=True),
        Shaders("run", cold=False),
        Pipelines("none"),
        Pipelines("cold"),
        Pipelines("warm"),
        Shaders("validate", cold=True, language="HLSL"),
        *all_suites(suite_items),
    ]
    return {workload.name: workload for workload in workloads}
