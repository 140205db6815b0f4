"""What the fixture ``scenario_runner`` gives to tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from scenario_runner.errors import UnsupportedError
from scenario_runner.runner import Runner

if TYPE_CHECKING:
    import numpy

    from scenario_runner.run.given_scenario import AnyScenario
    from scenario_runner.run.result import Result


class ScenarioRunner:
    """One `Runner` for all tests of a run of pytest, in this process: ``runner``, if more of it is needed.

    A scenario that needs what the device lacks skips the test that runs it.
    """

    def __init__(self, device: str | None = None) -> None:
        self.runner = Runner(device)

    def __enter__(self) -> ScenarioRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    def run(self, scenario: AnyScenario, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
        """Run a scenario, and return what it wrote: see `Runner.run`, whose options can be given. No file is written
        unless ``write_files=True``.

        Raises what `Runner.run` raises.
        """
        try:
            return self.runner.run(scenario, inputs, **{"write_files": False, **options})
        except UnsupportedError as error:
            pytest.skip(str(error))

    def check(
        self,
        scenario: AnyScenario,
        inputs: Mapping[str, Any] | None = None,
        *,
        expected: Mapping[str, Any],
        atol: float = 0.0,
        rtol: float = 0.0,
        **options: Any,
    ) -> Result:
        """Run a scenario, and compare what it wrote with ``expected``, arrays by uid.

        The content of a buffer is taken as items of the type of its array. An element may differ by ``atol`` plus
        ``rtol`` times the expected value; NaN equals NaN. Raises AssertionError that shows the first elements that
        differ.
        """
        __tracebackhide__ = True
        import numpy

        result = self.run(scenario, inputs, outputs=list(expected), **options)
        for uid, given in expected.items():
            wanted = numpy.asarray(given)
            actual = _like(result, uid, wanted)
            assert actual.size == wanted.size, f"{uid!r} has {actual.size} elements, expected {wanted.size}"
            numpy.testing.assert_allclose(
                actual.reshape(wanted.shape), wanted, rtol=rtol, atol=atol, err_msg=f"output {uid!r}"
            )
        return result


def _like(result: Result, uid: str, wanted: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """An output; the bytes of a buffer as items of the type that is expected."""
    array = result[uid]
    is_buffer = array.ndim == 1 and array.dtype == "int8"
    if is_buffer and array.nbytes % wanted.dtype.itemsize == 0:
        return result.array(uid, wanted.dtype)
    return array
