"""``python -m benchmarks.conversion``: converting a model of 200 operations with 20 shaders, against model-converter.

Four ways run in turns: the command of the package ai_ml_sdk_model_converter, `scenario_runner.convert` in this process,
``scenario-runner convert``, and the same command without the check of shaders. All shaders differ, and are cached.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bounds import Bound, ratio
from benchmarks.turns import Ways, in_turns, judged, shown
from scenario_runner import convert

TYPE = "tensor<64x64xf32>"
SHADER = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = x[i] / (1.0 + exp(-x[i])) + NUMBER.0;
}
"""
BOUND = Bound(must=2.0)
EXISTING = "model-converter"


def main(argv: list[str] | None = None) -> int:
    """Return 0. A missed bound is reported, but is no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversion", description=__doc__)
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="measured runs (default 15)")
    parser.add_argument("--operations", type=int, default=200, metavar="N", help="operations (default 200)")
    options = parser.parse_args(argv)
    existing = shutil.which(EXISTING, path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if existing is None:
        parser.error("model-converter is not on PATH: pip install ai_ml_sdk_model_converter")
    with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as root:
        model, made = Path(root, "model.mlir"), Path(root, "model.vgf")
        model.write_text(model_text(options.operations))
        ours = [sys.executable, "-m", "scenario_runner", "convert", str(model), "-o", str(made)]
        ways: Ways = {
            EXISTING: lambda: _run([existing, "-i", str(model), "-o", str(made)]),
            "convert in Python": lambda: convert(model, made),
            "scenario-runner convert": lambda: _run(ours),
            "scenario-runner convert --no-check": lambda: _run([*ours, "--no-check"]),
        }
        times = in_turns(ways, options.runs)
    for name, measured in times.items():
        line = f"{name}: {shown(measured)}"
        if name != EXISTING:
            line += f", / {EXISTING}: {judged(ratio(measured, times[EXISTING]).median, BOUND)}"
        print(line)
    return 0


def model_text(operations: int) -> str:
    """Write a chain of operations; every tenth operation is a shader."""
    lines = []
    for number in range(operations):
        value = f"%v{number - 1}" if number else "%x"
        if number % 10 == 9:
            text = json.dumps(json.dumps(_attributes(number)))
            lines.append(
                f'%v{number} = tosa.custom {value} {{domain_name = "com.arm.VulkanCustomShader", operator_name = '
                f'"swish_{number}", implementation_attrs = {text}}} : ({TYPE}) -> {TYPE}'
            )
        elif number % 10 == 4:
            lines.append(f'%c{number} = "tosa.const"() {{values = dense<{number}.5> : {TYPE}}} : () -> {TYPE}')
            lines.append(f"%v{number} = tosa.add {value}, %c{number} : ({TYPE}, {TYPE}) -> {TYPE}")
        else:
            operation = ("tanh", "sigmoid", "abs", "exp")[number % 4]
            lines.append(f"%v{number} = tosa.{operation} {value} : ({TYPE}) -> {TYPE}")
    body = "\n  ".join([*lines, f"return %v{operations - 1} : {TYPE}"])
    return f"func.func @main(%x: {TYPE}) -> {TYPE} {{\n  {body}\n}}\n"


def _attributes(number: int) -> dict[str, object]:
    found: dict[str, object] = {"entry_point": "main", "workgroup_sizes": [64, 1, 1], "shader_language": "GLSL"}
    found["shader_code"] = SHADER.replace("NUMBER", str(number))
    for binding, name in enumerate(("input_0", "output_0")):
        found[f"{name}_vkformat"] = "VK_FORMAT_R32_SFLOAT"
        found[f"{name}_vkdescriptortype"] = "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER"
        found[f"{name}_descriptorset"] = 0
        found[f"{name}_binding"] = binding
    return found


def _run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    sys.exit(main())
