"""The cost of work, counted in calls: the same on slow and busy machines."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def calls_of(work: Callable[[], Result]) -> tuple[Result, int]:
    """Return the result of ``work`` and the number of function calls on this thread, C functions included."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return result, count
