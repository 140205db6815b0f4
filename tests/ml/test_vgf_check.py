"""Contradictions between the parts of a file, and damage: whatever the bytes, an error of ours or a file that is sound.

The tables are decoded by a C++ library, so the mutants are read in a child process: a crash there is a failure here.
"""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vgf_samples import (
    FIXTURES,
    SAMPLED_IMAGE,
    SOUND_FILES,
    everything,
    fixture_bytes,
    legacy_constants,
    with_constants,
)

from scenario_runner.errors import FileError
from scenario_runner.ml.model_scenario import scenario_for
from scenario_runner.ml.vgf_check import find_problems, unwritten_inputs
from scenario_runner.ml.vgf_file import parse_vgf, read_vgf
from scenario_runner.ml.vgf_model import GraphConstant, Slot, Vgf, describe
from tests.tables import cases

SOUND = parse_vgf(everything())


def said(vgf: Vgf) -> list[str]:
    """The problems of a file as text."""
    return [str(problem) for problem in find_problems(vgf, "m.vgf")]


def changed(table: str, index: int, **changes: Any) -> Vgf:
    """The sound file with one entry of one of its tables changed."""
    items = list(getattr(SOUND, table))
    items[index] = items[index]._replace(**changes)
    return SOUND._replace(**{table: tuple(items)})


def test_sound_files_have_no_problems() -> None:
    """The encoded sample and a converted model have no problem."""
    assert said(SOUND) == []
    assert said(read_vgf(FIXTURES / "image.vgf")) == []


@pytest.mark.parametrize("part, index, fields, expected", cases(__file__, "contradictions.txt", "CHANGES"))
def test_a_contradiction_is_reported_once(part: str, index: str, fields: str, expected: str) -> None:
    """A changed entry is reported at the place with what was found and what was expected."""
    keys = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(fields).items()}
    assert said(changed(part, int(index), **keys)) == [f"m.vgf: {expected}"]


@pytest.mark.parametrize(
    "fields, expected",
    [
        (
            {"inputs": (Slot(0, 2**32 - 1),)},
            "inputs/0: the resource index is 4294967295, but the file has 8 of them",
        ),
        ({"constants": (GraphConstant(0, 2),)}, "constants/0: the constant index is 2, but the file has 2 of them"),
    ],
)
def test_a_wrong_index_of_a_segment(fields: dict[str, Any], expected: str) -> None:
    """An index beyond the end of a table is reported at the segment."""
    number = 3 if "inputs" in fields else 0
    assert said(changed("segments", number, **fields)) == [f"m.vgf: /segments/{number}/{expected}"]


def test_an_input_that_no_caller_can_supply_is_reported() -> None:
    """A shader that binds an input which the model does not list would read nothing."""
    assert said(SOUND._replace(inputs=())) == [
        f"m.vgf: {place}: uses resource {row}, an input that the model does not list as one"
        for place, row in (
            ("/segments/0/descriptor_sets/0/slots/0", 0),
            ("/segments/2/descriptor_sets/0/slots/0", 1),
            ("/segments/3/descriptor_sets/0/slots/0", 1),
        )
    ]


def test_segments_number_as_they_like() -> None:
    """Segments may have the port numbers of their shaders, since descriptor sets give the bindings."""
    for inputs in ((Slot(0, 0), Slot(0, 2)), (Slot(0, 0), Slot(1, 1))):
        assert said(changed("segments", 3, inputs=inputs)) == []


def test_segments_out_of_order_are_found() -> None:
    """A segment that reads a value written by a later segment is a problem."""
    first, second, *rest = SOUND.segments
    swapped = (second._replace(index=0), first._replace(index=1), *rest)
    model = SOUND._replace(segments=swapped)
    assert said(model) == []
    assert list(unwritten_inputs(model)) == [(swapped[0], Slot(1, 3))]
    assert list(unwritten_inputs(SOUND)) == []


def test_equal_slots_are_accepted() -> None:
    """The converter repeats a slot for a result that is returned twice; that is not a contradiction."""
    assert said(read_vgf(FIXTURES / "ends.vgf")) == []


def test_an_unknown_format_switches_size_checks_off() -> None:
    """A format that the converter did not know does not make the file invalid."""
    assert said(changed("resources", 6, format=-1)) == []
    assert said(changed("resources", 4, format=2**31 - 1, descriptor_type=SAMPLED_IMAGE)) == []


def test_at_most_twenty_problems_are_listed() -> None:
    """A file that is wrong all over is not answered with a flood."""
    assert len(said(SOUND._replace(inputs=tuple(Slot(i, 99) for i in range(1000))))) == 20


SEEDS = [
    *(fixture_bytes(name) for name in SOUND_FILES),
    everything(),
    legacy_constants(with_constants([b"abc", b"d"]), [(1, -1, b"xyz"), (2, 0, b"e")], (0, 3, 0)),
]
NUMBERS = (0, 1, 2, 4, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def mutant(seed: int) -> bytes:
    """One of the sample files with a few bytes or numbers changed, parts copied over others, or its end cut off."""
    dice = random.Random(seed)
    content = bytearray(dice.choice(SEEDS))
    start = 0 if dice.random() < 0.2 else 128
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(start, len(content) - 8)
        match dice.randrange(6):
            case 0:
                content[at] = dice.randrange(256)
            case 1:
                content[at] ^= 1 << dice.randrange(8)
            case 2:
                struct.pack_into("<I", content, at & ~3, dice.choice(NUMBERS) & 0xFFFFFFFF)
            case 3:
                struct.pack_into("<H", content, at & ~1, dice.choice((0, 4, 8, 12, 0xFFFF, dice.randrange(64))))
            case 4:
                struct.pack_into("<Q", content, at & ~7, dice.choice(NUMBERS))
            case 5:
                source = dice.randrange(start, len(content) - 8)
                content[at : at + 4] = content[source : source + 4]
    if dice.random() < 0.05:
        del content[dice.randrange(len(content)) :]
    return bytes(content)


def survey(first: int, last: int) -> None:
    """Read mutants; print how many were read and how many refused. Run in the child."""
    read = refused = 0
    for seed in range(first, last):
        try:
            vgf = parse_vgf(mutant(seed))
        except FileError:
            refused += 1
        else:
            # What passes the checks is safe to use: no index of it leads nowhere.
            describe(vgf)
            scenario_for(vgf, "model.vgf")
            read += 1
    print(read, refused)


@pytest.mark.parametrize("count", [4000, pytest.param(200_000, marks=pytest.mark.heavy)])
def test_mutants_are_read_or_refused(count: int) -> None:
    """No mutant crashes the process or raises anything but FileError, and both outcomes occur."""
    code = f"import test_vgf_check; test_vgf_check.survey(0, {count})"
    here = Path(__file__).parent
    child = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    read, refused = map(int, child.stdout.split())
    assert read + refused == count
    assert read > count // 10
    assert refused > count // 10
