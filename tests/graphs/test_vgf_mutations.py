"""Damaged files: whatever the bytes, an error of ours or a file that is sound, soon, and never a crash.

The tables are decoded by a C++ library, so the mutants are read in a child process: a crash there is a failure here.
"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from vgf_samples import SOUND, everything, fixture_bytes, legacy_constants, with_constants

from scenario_runner.errors import FileError
from scenario_runner.graphs import parse_vgf
from scenario_runner.graphs.describe import describe
from scenario_runner.graphs.scenario_template import scenario_for

SEEDS = [
    *(fixture_bytes(name) for name in SOUND),
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
    code = f"import test_vgf_mutations; test_vgf_mutations.survey(0, {count})"
    here = Path(__file__).parent
    child = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    read, refused = map(int, child.stdout.split())
    assert read + refused == count
    assert read > count // 10
    assert refused > count // 10
