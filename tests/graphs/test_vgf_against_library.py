"""Our dataclasses and the library that wrote the files agree on every field."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from vgf_library_view import library_view
from vgf_samples import SOUND, everything, fixture_bytes, legacy_constants, one_shader, with_constants

from scenario_runner.graphs import Vgf, parse_vgf

SAMPLES = {
    **{name: fixture_bytes(name) for name in SOUND},
    "everything": everything(),
    "one_shader": one_shader(),
    "with_constants": with_constants([b"abc", b"d", bytes(1000)]),
    "legacy_constants": legacy_constants(
        with_constants([b"abc", b"d", bytes(1000)]), [(1, -1, b"xyz"), (2, 0, b"e"), (3, -1, bytes(range(250)) * 4)],
        (0, 3, 0),
    ),
}  # fmt: skip


def our_view(vgf: Vgf) -> dict[str, Any]:
    """The same plain values that `library_view` gives."""

    def slots(found: Any) -> list[Any]:
        return [astuple(slot) for slot in found]

    return {
        "version": vgf.version,
        "modules": [(m.type, m.name, m.entry_point, m.code) for m in vgf.modules],
        "resources": [astuple(resource) for resource in vgf.resources],
        "segments": [
            (
                s.index, s.type, s.name, s.module_index, [(d.index, slots(d.slots)) for d in s.descriptor_sets],
                slots(s.inputs), slots(s.outputs), slots(s.constants), s.dispatch_shape, slots(s.push_constant_ranges),
            )
            for s in vgf.segments
        ],
        "constants": [(c.resource_index, c.sparsity_dimension, bytes(c.data or b"")) for c in vgf.constants],
        "inputs": slots(vgf.inputs),
        "outputs": slots(vgf.outputs),
        "input_names": list(vgf.input_names),
        "output_names": list(vgf.output_names),
    }  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_every_field_is_what_the_library_reads(name: str) -> None:
    """A file reads the same with us and with vgfpy."""
    assert our_view(parse_vgf(SAMPLES[name])) == library_view(SAMPLES[name])
