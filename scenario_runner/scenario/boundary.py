"""The mark_boundary command."""

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from scenario_runner.scenario.entry import STORAGE, Command, Use, each_of
from scenario_runner.scenario.model import References


class MarkBoundary(Command):
    """Ends a frame: all commands before it are submitted and finished before the next command starts."""

    kind: ClassVar[str] = "mark_boundary"

    resources: References = Field(
        description=(
            "uids of the buffers, images and tensors whose content at this point can be captured: `--capture-dir` "
            "writes them to files, `result.frames` has them in Python."
        )
    )
    frame_id: int | None = Field(
        default=None,
        ge=0,
        le=0xFFFF_FFFF_FFFF_FFFF,
        description=(
            "Number of the frame, which names the folder of its captures, `frame_<id>`. By default the number "
            "of frames before it, so the first frame is 0."
        ),
    )

    def references(self) -> Iterable[Use]:
        return each_of("resources", self.resources, STORAGE)

    def shown(self) -> tuple[str, ...]:
        return self.resources
