"""Many small scenarios: a single process of our program, or a process for each in a program that takes one scenario."""

from pathlib import Path

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.small import check_small, write_small
from benchmarks.workloads.workload import Run, Workload

# Such a program starts so many processes, and their time is multiplied.
SAMPLE = 20


class Many(Workload):
    """200 small scenarios with separate inputs and outputs."""

    def __init__(self, *, spirv: bool = False) -> None:
        self._spirv = spirv
        self._count = 200
        self.name = "many-spirv" if spirv else "many"
        self.title = f"200 small scenarios, {'SPIR-V' if spirv else 'GLSL'} (reference: {SAMPLE} processes, time x 10)"
        # ten and forty times the throughput
        self.time_bound = None if spirv else Bound(must=1 / 10, aim=1 / 40)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._count = 3
        for number in range(self._count):
            write_small(folder, f"small{number}", spirv=self._spirv, seed=number)

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        files = [folder / f"small{number}.json" for number in range(self._count)]
        if program.runs_many:
            return Run([program.arguments(files, output)])
        sample = files[:SAMPLE]
        return Run([program.arguments([file], output) for file in sample], scale=len(files) / len(sample))

    def check(self, folder: Path, program: Program, output: Path) -> None:
        for number in range(self._count if program.runs_many else min(SAMPLE, self._count)):
            check_small(output, f"small{number}", seed=number)
