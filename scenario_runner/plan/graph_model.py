"""A graph resource that is a VGF file: its model, the modules of its segments, and its constants."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scenario_runner.plan.graph_module import GraphModule
from scenario_runner.plan.graph_plan import ConstantData
from scenario_runner.plan.kept_constants import place_in_model
from scenario_runner.vgf.port import input_ports, output_ports

if TYPE_CHECKING:
    from scenario_runner.scenario import Graph, Scenario
    from scenario_runner.vgf import Vgf


class VgfGraph:
    """One graph resource: the model of its file, and what its segments have in common over all dispatches."""

    def __init__(self, scenario: Scenario, graph: Graph) -> None:
        """Raises FileError, and UnsupportedError without the ``ml`` extra."""
        from scenario_runner.plan.model_files import read_model
        from scenario_runner.vgf import parse_vgf

        self.graph = graph
        self.pointer = scenario.resource_pointer(graph.uid)
        if graph.data is not None:
            from scenario_runner.plan.sources import plain_bytes

            self.path = f"<data of {graph.uid!r}>"
            self.vgf: Vgf = parse_vgf(plain_bytes(graph.data, graph.uid), name=self.path)
        else:
            self.path = os.path.join(scenario.base_dir, graph.src or "")
            self.vgf = read_model(self.path)
        self.inputs = input_ports(self.vgf)
        self.outputs = output_ports(self.vgf)
        self.is_open = any(min(row.shape, default=1) < 0 for row in self.vgf.resources)
        self._modules: dict[int, GraphModule] = {}
        self._constants: dict[int, ConstantData] = {}

    def module(self, index: int) -> GraphModule:
        """The SPIR-V of a graph segment's module. Raises SpirvError."""
        module = self._modules.get(index)
        if module is None:
            code = self.vgf.modules[index].code
            assert isinstance(code, bytes), "find_problems sees to it"
            module = GraphModule(code, f"{self.path}: module {self.vgf.modules[index].name!r}")
            self._modules[index] = module
        return module

    def constant(self, index: int) -> ConstantData:
        """The data of a constant: one object for one constant, so that its pipelines are found again."""
        data = self._constants.get(index)
        if data is None:
            view = self.vgf.constants[index].data
            place = None if self.graph.data is not None else place_in_model(view, index, self.path)
            data = self._constants[index] = _constant_data(view, place)
        return data

    def compute_names(self) -> list[str]:
        """The names of the modules that substitutions, push constants and specialization can be for."""
        used = dict.fromkeys(segment.module_index for segment in self.vgf.segments if segment.type == "compute")
        return [self.vgf.modules[index].name for index in used]


_shared: dict[int, tuple[memoryview, ConstantData]] = {}


def _constant_data(view: memoryview, place: tuple[str, int] | None) -> ConstantData:
    """The object for a constant of a kept model file."""
    found = _shared.get(id(view))
    if found is not None and found[0] is view:
        return found[1]
    while len(_shared) >= 1024:
        _shared.pop(next(iter(_shared)))
    data = ConstantData(view, place)
    _shared[id(view)] = (view, data)
    return data
