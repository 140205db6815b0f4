"""The classifier that `build.py` lowers: weights, input and PyTorch's results."""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def weights() -> dict[str, np.ndarray]:
    """The weights of two linear layers by PyTorch's names."""
    random = np.random.default_rng(22)
    shapes = {"first.weight": (16, 64), "first.bias": (16,), "second.weight": (10, 16), "second.bias": (10,)}
    return {name: random.uniform(-0.3, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def picture() -> np.ndarray:
    return np.random.default_rng(23).uniform(-1, 1, (1, 8, 8)).astype(np.float32)


def inputs() -> dict[str, np.ndarray]:
    """The picture as floats, and quantised as the model of integers alone takes it."""
    scale, zero_point = json.loads((HERE / "quantisation.json").read_text())["picture"]
    quantised = np.round(picture() / np.float32(scale)) + zero_point
    return {"picture": picture(), "picture_int8": quantised.clip(-128, 127).astype(np.int8)}


def classifier(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores and features, computed with NumPy in double precision."""
    exact = {name: values.astype(np.float64) for name, values in weights().items()}
    features = np.maximum(picture.reshape(1, 64) @ exact["first.weight"].T + exact["first.bias"], 0)
    return features @ exact["second.weight"].T + exact["second.bias"], features


def expected(picture: np.ndarray, picture_int8: np.ndarray) -> dict[str, np.ndarray]:
    """Return the results of PyTorch that `build.py` wrote, after a check: NumPy's are the same, or near to int8's."""
    values = {path.stem: np.load(path) for path in sorted((HERE / "expected").glob("*.npy"))}
    for name, exact in zip(("scores", "features"), classifier(picture), strict=True):
        scale, zero_point = json.loads((HERE / "quantisation.json").read_text())[name]
        np.testing.assert_allclose(values[f"float_{name}"], exact, atol=1e-6)
        np.testing.assert_allclose(values[f"int8_float_{name}"], exact, atol=3 * scale)
        steps = values[f"int8_{name}"].astype(np.float64) - zero_point
        np.testing.assert_allclose(steps * scale, values[f"int8_float_{name}"], rtol=1e-6)
    return values
