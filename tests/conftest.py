"""Fixtures for all tests."""

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from scenario_runner import Runner
from scenario_runner.errors import log
from tests.devices import two_devices  # noqa: F401  (a fixture)
from tests.layers import layer_from
from tests.left_out import skip_without_packages
from tests.program import Program
from tests.scenes import Scene

# A slow or busy machine is not a failure, and examples may share a test's folder.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests send Ctrl-C to their children also where a shell started the tests in the background: it ignores it.

    In a job of GitHub the program annotates nothing but for tests of that. Each process of a whole run begins to
    collect at another place, so that one compiles a module whose code is not kept yet, and the others read it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ and config.args == ["tests"]:
        tests = Path(__file__).parent
        parts = sorted(map(str, [*tests.glob("*/"), *tests.glob("test_*.py")]))
        number, count = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first = len(parts) * number // count
        config.args = parts[first:] + parts[:first]
    os.environ.pop("GITHUB_ACTIONS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for garbage neither during the collection nor, later, among the collected tests.

    The search took a third of the time of a collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all processes the same order of files, and skip tests that need packages without wheels here.

    The tests of clusters come first: one of them takes longest, and no process waits for it at the end.
    """
    items.sort(key=lambda item: (item.path.parent.name != "cluster", item.path))
    for item in items:
        skip_without_packages(item)


@pytest.fixture(autouse=True)
def _log_of_its_own() -> Iterator[None]:
    """A command line that a test runs in this process sets up the log for that test alone."""
    yield
    log.before_first_record(lambda: None)
    logger = logging.getLogger("scenario_runner")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def device_name() -> str:
    """The name of the default device, read before a test changes the environment."""
    with Runner() as runner:
        return runner.physical_device.name


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """An empty scenario in a folder of its own."""
    return Scene(tmp_path)


@pytest.fixture(scope="session")
def shader_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of compiled shaders for this session, all its processes included: every text is compiled once."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the folders of the processes of one session lie in one
        folder = folder.parent
    folder /= "shader-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCENARIO_RUNNER_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def runner(shader_cache: Path) -> Iterator[Runner]:
    """A Runner for many tests; at its end no object is left."""
    with Runner(timeout_s=60) as runner:
        yield runner
    assert runner.live_objects
    assert not any(runner.live_objects.values())


@pytest.fixture
def program(shader_cache: Path, tmp_path: Path) -> Program:
    """Run the program in the test's folder."""
    return Program(tmp_path)


fault_layer = layer_from(Path(__file__).parent / "vulkan" / "fault_layer.c")
trouble_layer = layer_from(Path(__file__).parent / "processes" / "trouble_layer.c")
