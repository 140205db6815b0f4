"""What the supervisor tells workers about `evaluation`, whose imports it does without. Standard library only."""

from __future__ import annotations

from typing import NamedTuple


class EvaluationOptions(NamedTuple):
    """``results_folder`` gets files about outputs that fail, below the id of the item; None: none are written. Those of
    one item have no more than ``evidence_bytes_max`` bytes together."""

    results_folder: str | None = None
    evidence_bytes_max: int = 64 << 20
