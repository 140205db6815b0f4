"""One Runner for all tests on a device, with the validation layer where it is installed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scenario_runner import Result, Runner
from scenario_runner.vulkan.layers import VALIDATION_LAYER, available_layers
from tests.scenes import hazards_of


@pytest.fixture(scope="session")
def validation() -> bool:
    """Whether the Khronos validation layer is installed."""
    return VALIDATION_LAYER in [name for name, _, _ in available_layers()]


@pytest.fixture
def check_hazards(validation: bool, shader_cache: Path) -> Callable[[Path, list[str]], Result]:
    """A function that checks which hazards validate finds, and that the validation layer agrees."""
    assert validation, "this test needs the package vulkan-validationlayers"

    def check(path: Path, codes: list[str]) -> Result:
        assert hazards_of(path) == codes
        with Runner(validation="report", sync_validation=True) as runner:
            result = runner.run(path)
            assert bool(runner.validation_messages) == bool(codes)
        return result

    return check


@contextmanager
def shared(validation: bool, timeout_s: float, staging: bool = False) -> Iterator[Runner]:
    """A Runner for many tests; at its end the validation layer must have nothing to say, and no object may be left."""
    runner = Runner(validation=validation, timeout_s=timeout_s, staging=staging)
    with runner:
        yield runner
        messages = runner.validation_messages  # filled until the instance is gone
    assert messages == []
    assert not any(runner.live_objects.values())


@pytest.fixture(scope="session")
def shared_runner(validation: bool, shader_cache: Path) -> Iterator[Runner]:
    with shared(validation, 60) as runner:
        yield runner


@pytest.fixture
def runner(shared_runner: Runner) -> Iterator[Runner]:
    """A Runner; the test fails if the validation layer reports anything."""
    before = len(shared_runner.validation_messages)
    yield shared_runner
    assert shared_runner.validation_messages[before:] == []


@pytest.fixture(scope="session")
def shared_staging_runner(validation: bool, shader_cache: Path) -> Iterator[Runner]:
    with shared(validation, 60, staging=True) as runner:
        yield runner


@pytest.fixture(params=["in place", "staged"])
def both(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A Runner with resources read and written in place, then a Runner with staging. The test fails if the validation
    layer reports anything."""
    name = "shared_runner" if request.param == "in place" else "shared_staging_runner"
    runner: Runner = request.getfixturevalue(name)
    before = len(runner.validation_messages)
    yield runner
    assert runner.validation_messages[before:] == []


@pytest.fixture(scope="session", params=["in place", "staged"])
def shared_ml_runner(request: pytest.FixtureRequest, validation: bool, shader_cache: Path) -> Iterator[Runner]:
    with shared(validation, 120, staging=request.param == "staged") as runner:
        yield runner


@pytest.fixture
def ml(shared_ml_runner: Runner) -> Iterator[Runner]:
    """A Runner for tensors and graphs, with the ML emulation layers where the device needs them, in place and with
    staging. The test fails if the validation layer reports anything."""
    before = len(shared_ml_runner.validation_messages)
    yield shared_ml_runner
    assert shared_ml_runner.validation_messages[before:] == []
