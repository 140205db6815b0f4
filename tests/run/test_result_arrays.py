"""What a run hands back, as people meet it in a notebook."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner, from_dict
from tests.scenes import glsl

SQUARE = glsl(
    "b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] * a[gl_WorkGroupID.x];",
    "layout(binding = 0) buffer A { float a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n",
)


def scenario() -> Any:
    bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate(("values", "squares"))]
    return from_dict(
        {
            "resources": [
                {"shader": {"uid": "square", "source": SQUARE}},
                {"buffer": {"uid": "values", "data": numpy.float32([1, 2, 3]), "shader_access": "readonly"}},
                {"buffer": {"uid": "squares", "size": 12, "shader_access": "writeonly"}},
                {
                    "image": {
                        "uid": "picture",
                        "format": "VK_FORMAT_R8G8B8A8_UNORM",
                        "dims": [1, 5, 2, 1],
                        "shader_access": "readwrite",
                    }
                },
            ],
            "commands": [
                {"dispatch_compute": {"shader_ref": "square", "bindings": bindings, "rangeND": [3]}},
                {"mark_boundary": {"resources": ["squares"], "frame_id": 7}},
            ],
        }
    )


def test_a_result_shows_what_it_holds(runner: Runner) -> None:
    """The repr of a result and of a frame lists each array with its kind, type and shape."""
    result = runner.run(scenario())
    assert repr(result).splitlines() == [
        "Result of <scenario>: 2 arrays, 1 frame",
        "  'squares'  buffer                int8   (12,)",
        "  'picture'  image R8G8B8A8_UNORM  uint8  (2, 5, 4)",
    ]
    assert repr(result.frames[0]).splitlines() == [
        "Frame 7 of iteration 0: 1 array",
        "  'squares'  buffer  int8  (12,)",
    ]
    assert repr(runner.run(from_dict({"resources": [], "commands": []}))) == "Result of <scenario>: 0 arrays"


def test_keys_are_completed_and_unknown_ones_explained(runner: Runner) -> None:
    """IPython is given the uids; an unknown one is a KeyError that lists them, with the closest one."""
    result = runner.run(scenario())
    assert result._ipython_key_completions_() == ["squares", "picture"]
    for look in (result.__getitem__, result.array, result.level):
        with pytest.raises(KeyError) as caught:
            look("square_")
        assert caught.value.args == (
            "'square_' does not exist (did you mean 'squares'?); there are: 'squares', 'picture'",
        )
        with pytest.raises(KeyError) as caught:
            look("values")
        assert caught.value.args[0].startswith("'values' was not read back (outputs=[...] does)")
    with pytest.raises(KeyError, match="1: expected the uid of a resource"):
        result[1]  # type: ignore[index]
    assert "values" not in result
    assert result.get("values") is None


@pytest.mark.parametrize("outputs", ["values", ["values"], {"values"}])
def test_one_output_is_a_name(runner: Runner, outputs: Any) -> None:
    """``outputs`` may be one uid: its letters are not names."""
    assert list(runner.run(scenario(), outputs=outputs)) == ["values"]
    assert [output.uid for output in runner.plan(scenario(), outputs=outputs).outputs] == ["values"]


def test_a_runner_shows_its_device() -> None:
    """The repr of a Runner names the device once one is chosen, and opens none itself."""
    with Runner() as runner:
        for _ in range(2):
            assert repr(runner) == "<Runner, no device opened>"
        name = runner.physical_device.name
        assert repr(runner) == f"<Runner on {name!r}>"
    assert repr(runner) == "<Runner, no device opened>"
