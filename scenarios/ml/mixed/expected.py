"""A model of graphs and compute shaders, with an activation function in GLSL inside the VGF file."""

import runpy
from pathlib import Path

import numpy as np

MAKER = runpy.run_path(str(Path(__file__).resolve().parents[3] / "tools" / "make_models.py"))
MODEL = MAKER["MODELS"]["mixed"]()


def inputs() -> dict[str, np.ndarray]:
    return {name: value.data for name, value in MODEL.inputs.items()}


def expected(picture: np.ndarray) -> dict[str, np.ndarray]:
    assert (picture == MODEL.inputs["picture"].data).all()
    found = {name: MODEL.outputs[name] for name in ["features", "scores"]}
    return {name: value.data.astype(MAKER["DTYPES"][value.kind]) for name, value in found.items()}
