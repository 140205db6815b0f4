"""Recording optical flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.execution.graph_recording import GraphRecorder
from scenario_runner.vulkan.pipelines.optical_flow import dispatch_info

if TYPE_CHECKING:
    from scenario_runner.plan.model.optical_flow import OpticalFlowDispatch


class OpticalFlowRecorder(GraphRecorder):
    """Records the optical flows of one frame: dispatches of graphs with flags and a hint of their own."""

    def _info(self, operation: OpticalFlowDispatch) -> Any:
        return dispatch_info(operation)
