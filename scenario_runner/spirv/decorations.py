"""Decorations that this package asks about (SPIR-V specification, section "Decoration"): their numbers and operands."""

from __future__ import annotations

from typing import Final

SPEC_ID: Final = 1
BLOCK: Final = 2
BUFFER_BLOCK: Final = 3
ROW_MAJOR: Final = 4
COL_MAJOR: Final = 5
ARRAY_STRIDE: Final = 6
MATRIX_STRIDE: Final = 7
BUILT_IN: Final = 11
NO_PERSPECTIVE: Final = 13
FLAT: Final = 14
CENTROID: Final = 16
SAMPLE: Final = 17
NON_WRITABLE: Final = 24
NON_READABLE: Final = 25
LOCATION: Final = 30
COMPONENT: Final = 31
OUTPUT_INDEX: Final = 32
BINDING: Final = 33
DESCRIPTOR_SET: Final = 34
OFFSET: Final = 35
INPUT_ATTACHMENT_INDEX: Final = 43
PER_VERTEX: Final = 5285

# The words that an OpDecorate with this decoration has at least.
LEAST_WORDS: Final = {
    SPEC_ID: 4,
    BLOCK: 3,
    BUFFER_BLOCK: 3,
    ROW_MAJOR: 3,
    COL_MAJOR: 3,
    ARRAY_STRIDE: 4,
    MATRIX_STRIDE: 4,
    BUILT_IN: 4,
    NO_PERSPECTIVE: 3,
    FLAT: 3,
    CENTROID: 3,
    SAMPLE: 3,
    NON_WRITABLE: 3,
    NON_READABLE: 3,
    LOCATION: 4,
    COMPONENT: 4,
    OUTPUT_INDEX: 4,
    BINDING: 4,
    DESCRIPTOR_SET: 4,
    OFFSET: 4,
    INPUT_ATTACHMENT_INDEX: 4,
    PER_VERTEX: 3,
}
