"""What a scenario is expected to give: where that is said, reading it, and checking it against the scenario."""

from __future__ import annotations
