"""The mark_boundary command."""

from typing import ClassVar

from pydantic import Field

from scenario_runner.scenario.model import Model, References


class MarkBoundary(Model):
    """Ends a frame: what came before is submitted and finished here."""

    kind: ClassVar[str] = "mark_boundary"

    resources: References = Field(description="uids of the resources whose content belongs to the frame.")
    frame_id: int | None = Field(
        default=None, ge=0, le=0xFFFF_FFFF_FFFF_FFFF, description="Number of the frame; by default they are counted."
    )
