"""What a scenario binds, as the checks see it."""

from typing import NamedTuple

from scenario_runner.formats import Format


class Bound(NamedTuple):
    """What can be bound: a "buffer" of ``size_bytes``, an "image" of a ``format``, a "tensor" with its ``dims`` too.

    Dimensions of 0 or less are not known. ``readonly`` tells what the scenario says of it.
    """

    uid: str
    kind: str
    size_bytes: int = 0
    format: Format | None = None
    dims: tuple[int, ...] = ()
    readonly: bool = False
