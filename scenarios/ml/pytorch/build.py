"""Lowers a classifier of PyTorch to VGF in three ways, writes what PyTorch computes, runs the models and compares.

    python scenarios/ml/pytorch/build.py

docs/pytorch.md says what it needs, and shows its parts. It writes .pte and .vgf files beside itself, the quantisation
of inputs and outputs, the inputs, and the expected results.
"""

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.backends.arm.quantizer import VgfQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from scenario_runner import Runner

HERE = Path(__file__).resolve().parent
EXAMPLE: dict[str, Any] = runpy.run_path(str(HERE / "expected.py"))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 16)
        self.second = torch.nn.Linear(16, 10)

    def forward(self, picture):
        features = torch.relu(self.first(picture.flatten(1)))
        return self.second(features), features


def lower(model, inputs, path, profile):
    """Write ``model`` as the ExecuTorch program ``path`` with VGF models. Return the edge program."""
    program = torch.export.export(model, inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[VgfPartitioner(VgfCompileSpec(profile))])
    with open(path, "wb") as file:
        edge.to_executorch().write_to_file(file)
    return edge


def quantise(model, inputs, samples, profile):
    """Return ``model`` in int8, with the ranges of ``samples`` (tuples like ``inputs``)."""
    quantizer = VgfQuantizer(VgfCompileSpec(profile))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    for sample in samples:
        prepared(*sample)
    return convert_pt2e(prepared)


def quantisation(edge):
    """Return scale and zero point of each input and each output with quantisation outside of the VGF model."""
    graph = edge.exported_program().graph
    inputs = [node.args[1:3] for node in graph.nodes if "quantized_decomposed.quantize_" in str(node.target)]
    return inputs, [node.args[1:3] for node in graph.output_node().args[0]]


def compare(path, model, inputs, atol):
    """Run the program ``path`` with PyTorch's tensors and compare each output with what ``model`` returns."""
    with Runner() as runner, torch.no_grad():
        result = runner.run(path, *inputs)
        for index, expected in enumerate(model(*inputs)):
            got = torch.from_numpy(result[f"output_{index}"])
            torch.testing.assert_close(got, expected, atol=atol, rtol=0)
            print(f"{path.name}: output_{index}: largest difference {(got - expected).abs().max():.2g}")


def main():
    model = Classifier().eval()
    model.load_state_dict({name: torch.from_numpy(values) for name, values in EXAMPLE["weights"]().items()})
    inputs = (torch.from_numpy(EXAMPLE["picture"]()),)
    lower(model, inputs, HERE / "float.pte", "TOSA-1.0+FP")
    quantised = quantise(model, inputs, [inputs], "TOSA-1.0+INT+FP")
    lower(quantised, inputs, HERE / "int8_float.pte", "TOSA-1.0+INT+FP")
    edge = lower(quantised, inputs, HERE / "int8.pte", "TOSA-1.0+INT")
    for path in HERE.glob("*.pte"):
        subprocess.run(["scenario-runner", "vgf", "extract", path, "-o", path.with_suffix(".vgf")], check=True)

    (of_picture,), of_outputs = quantisation(edge)
    scales = dict(zip(("picture", "scores", "features"), (of_picture, *of_outputs), strict=True))
    (HERE / "quantisation.json").write_text(json.dumps(scales, indent=4) + "\n")
    for name, array in EXAMPLE["inputs"]().items():
        np.save(HERE / f"{name}.npy", array)
    with torch.no_grad():
        outputs = {"float": model(*inputs), "int8_float": quantised(*inputs)}
    outputs["int8"] = [
        torch.round(output / scale + zero_point).to(torch.int8)
        for output, (scale, zero_point) in zip(outputs["int8_float"], of_outputs, strict=True)
    ]
    (HERE / "expected").mkdir(exist_ok=True)
    for way, (scores, features) in outputs.items():
        np.save(HERE / "expected" / f"{way}_scores.npy", scores.numpy())
        np.save(HERE / "expected" / f"{way}_features.npy", features.numpy())

    compare(HERE / "float.pte", model, inputs, 1e-6)
    compare(HERE / "int8_float.pte", quantised, inputs, max(scale for scale, _ in of_outputs))


if __name__ == "__main__":
    main()
