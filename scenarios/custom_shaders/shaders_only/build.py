"""Builds this example's model and converts it; then runs the scenario and compares the results with NumPy's.

    python scenarios/custom_shaders/shaders_only/build.py

writes model.mlir (TOSA as MLIR text) and model.vgf beside this script. A model of nothing but shaders is converted
without Arm's model-converter.
"""

import json
import runpy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import scenario_runner
from scenario_runner.tosa.attribute_skeleton import attributes_of_shader

HERE = Path(__file__).resolve().parent
EXAMPLE: dict[str, Any] = runpy.run_path(str(HERE / "expected.py"))
COUNT = EXAMPLE["COUNT"]
NUMBERS, EXTREMES = f"tensor<{COUNT}xf32>", "tensor<2xf32>"


def shader(name: str, operands: str, types: str, workgroups: int) -> str:
    """Return the custom operation of the shader in NAME.comp, with attributes from the shader's interface."""
    found = attributes_of_shader(str(HERE / f"{name}.comp"), workgroups=(workgroups, 1, 1))
    text = json.dumps(json.dumps(found))  # JSON, in a string of MLIR's, which are quoted like JSON's
    return (
        f'tosa.custom {operands} {{domain_name = "com.arm.VulkanCustomShader", operator_name = "{name}",'
        f" implementation_attrs = {text}}} : {types}"
    )


def model() -> str:
    """Return the model as MLIR text. Both results are used outside, and one also by the second shader."""
    lines = [
        f"%extremes = {shader('extremes', '%numbers', f'({NUMBERS}) -> {EXTREMES}', 1)}",
        "%stretched = "
        + shader("stretch", "%numbers, %extremes", f"({NUMBERS}, {EXTREMES}) -> {NUMBERS}", -(-COUNT // 64)),
        f"return %extremes, %stretched : {EXTREMES}, {NUMBERS}",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @main(%numbers: {NUMBERS}) -> ({EXTREMES}, {NUMBERS}) {{\n{body}}}\n"


def main() -> None:
    """Build, convert, run, compare."""
    (HERE / "model.mlir").write_text(model(), encoding="utf-8")
    scenario_runner.convert(HERE / "model.mlir", HERE / "model.vgf")
    with scenario_runner.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        result = runner.run(HERE / "scenario.json", output_dir=folder)
    wanted = EXAMPLE["expected"](*(np.load(HERE / f"{name}.npy") for name in ("numbers", "limits")))
    for name, values in wanted.items():
        difference = np.abs(result.array(name, "float32") - values).max()
        print(f"{name}: largest difference from NumPy: {difference:g}")
        assert difference <= 1e-6


if __name__ == "__main__":
    main()
