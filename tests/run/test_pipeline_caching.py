"""--pipeline-caching: hits and misses, files, and their faults. A layer over the real loader counts the hits, since
software drivers keep no pipelines."""

import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from scenario_runner import PipelineCaching, Runner
from scenario_runner.errors import FileError, MissingFileError
from tests.gpu.ml_scenes import mixed_model
from tests.layers import layer_from
from tests.left_out import VGF_LIBRARY, needs
from tests.program import COMMAND, Ended, run_program
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
Run = Callable[..., Ended]
CACHING = ("--pipeline-caching", "--cache-path", "kept")
cache_layer = layer_from(Path(__file__).with_name("pipeline_cache_layer.c"))


@pytest.fixture
def run(scene: Scene, cache_layer: dict[str, str], shader_cache: Path) -> Run:
    """``run(*arguments, **environment)`` runs the program beside the scenario, with the layer."""
    (scene.folder / "kept").mkdir()

    def start(*arguments: str | Path, **environment: str) -> Ended:
        return run_program(scene.folder, *arguments, env={**cache_layer, **environment})

    return start


@pytest.fixture
def drawing(scene: Scene) -> Scene:
    """Two shaders, in a file of its own."""
    two_shaders(scene).write()
    return scene


def two_shaders(scene: Scene, step: int = 2) -> Scene:
    scene.shader("one", glsl("data[0] += 1;", DATA)).shader("two", glsl(f"data[1] += {step};", DATA))
    scene.buffer("x", numpy.zeros(4, "uint32"))
    return scene.dispatch("one", ["x"]).dispatch("two", ["x"])


LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \[Scenario-Runner\] (INFO|WARNING): (.*)")


def told(ended: Ended) -> list[str]:
    """Return the log about caches, without paths, sizes and times."""
    lines = [match[2] for match in map(LINE.fullmatch, ended.out.splitlines()) if match]
    return [re.sub(r" \(.*\)$", "", line) for line in lines if not line.startswith("Dispatch ")]


def files(scene: Scene, folder: str = "kept") -> list[Path]:
    return sorted((scene.folder / folder).iterdir())


MISSES = ["Pipeline cache miss for pipeline: one", "Pipeline cache miss for pipeline: two"]
HITS = ["Pipeline cache hit for pipeline: one", "Pipeline cache hit for pipeline: two"]
LOADED = "Pipeline Cache loaded and validated."
STORED = ["Pipeline Cache stored", "Pipeline Cache stored"]


def test_the_second_process_hits(run: Run, drawing: Scene) -> None:
    """The first process misses and stores twice; the second loads, and its pipelines come from the cache."""
    first, second = run("scenario.json", *CACHING), run("scenario.json", *CACHING)
    assert (first.code, second.code) == (0, 0)
    assert told(first) == [*MISSES, *STORED]
    assert told(second) == [LOADED, *HITS, *STORED]
    assert drawing.output("x", "u4").tolist() == [1, 2, 0, 0]
    assert len(files(drawing)) == 1


def test_a_dry_run_fills_the_cache(run: Run, drawing: Scene) -> None:
    """A dry run makes and keeps pipelines as well."""
    assert told(run("scenario.json", *CACHING, "--dry-run")) == [*MISSES, *STORED]
    assert told(run("scenario.json", *CACHING, "--dry-run")) == [LOADED, *HITS, *STORED]
    assert not list(drawing.folder.glob("*.out.npy"))


def test_quiet(run: Run, drawing: Scene) -> None:
    """--quiet and --log-level leave the messages about the cache out."""
    assert run("scenario.json", *CACHING, "--quiet") == (0, "", "")
    assert told(run("scenario.json", *CACHING, "--log-level", "warning")) == []


def test_a_script_finds_the_lines_of_the_reference_runner(run: Run, drawing: Scene) -> None:
    """The cache is stored when all pipelines are there, before the first dispatch, and again at the end."""
    lines = [
        match.group(1, 2) for match in map(LINE.fullmatch, run("scenario.json", *CACHING).out.splitlines()) if match
    ]
    words = [text.partition(" (")[0] for level, text in lines if level == "INFO"]
    stored, dispatch = "Pipeline Cache stored", "Dispatch compute"
    assert words == [*MISSES, stored, dispatch, dispatch, stored]


def test_clear(run: Run, drawing: Scene) -> None:
    """--clear-pipeline-cache removes the file first, also one that is not there."""
    clear = (*CACHING, "--clear-pipeline-cache")
    assert told(run("scenario.json", *clear)) == ["Pipeline Cache cleared", *MISSES, *STORED]
    assert told(run("scenario.json", *clear)) == ["Pipeline Cache cleared", *MISSES, *STORED]
    assert LOADED in told(run("scenario.json", *CACHING))


def test_scenarios_of_one_name_share_a_file(run: Run, scene: Scene) -> None:
    """In a chosen folder the file has the name of the scenario, and the pipelines of all scenarios of this name."""
    for number, folder in enumerate(("a", "b")):
        (scene.folder / folder).mkdir()
        two_shaders(Scene(scene.folder / folder), 5 + number).write()
    first, second = run("a/scenario.json", *CACHING), run("b/scenario.json", *CACHING)
    assert told(first) == [*MISSES, *STORED]
    assert told(second) == [LOADED, HITS[0], MISSES[1], *STORED]
    assert [path.name for path in files(scene)] == ["scenario.cache"]
    for path in ("a/scenario.json", "b/scenario.json"):
        assert told(run(path, *CACHING, "--fail-on-pipeline-cache-miss")) == [LOADED, *HITS]


def test_each_file_has_all_pipelines_of_its_scenario(run: Run, scene: Scene) -> None:
    """Scenarios that share shaders, run in one process, leave files that are complete for later processes."""
    two_shaders(scene).write("a.json")
    scene.write("b.json")
    assert run("a.json", "b.json", *CACHING, "--output", "out", "--folder-each").code == 0
    for name in ("a.json", "b.json"):
        assert told(run(name, *CACHING, "--fail-on-pipeline-cache-miss")) == [LOADED, *HITS]


def test_fail_on_a_miss(run: Run, drawing: Scene) -> None:
    """Each pipeline that is not in the cache is an error with its place, before anything runs; the file stays."""
    fails = (*CACHING, "--fail-on-pipeline-cache-miss")
    assert run("scenario.json", *CACHING).code == 0
    assert told(run("scenario.json", *fails)) == [LOADED, *HITS]
    before = files(drawing)[0].read_bytes()
    (drawing.folder / "x.out.npy").unlink()
    drawing.file("two.comp", glsl("data[1] += 3;", DATA))
    ended = run("scenario.json", *fails)
    assert ended.code == 16
    place = r"error: scenario\.json:\d+:\d+: /resources/1/shader: "
    assert re.search(place + r"pipeline 'two' is not in the pipeline cache kept/scenario\.cache \[", ended.err)
    assert (ended.err.count("error: "), ended.err.count("ERROR: Pipeline cache miss for pipeline: two")) == (1, 1)
    assert files(drawing)[0].read_bytes() == before
    assert not (drawing.folder / "x.out.npy").exists()


def test_fail_on_a_miss_without_a_cache(run: Run, drawing: Scene) -> None:
    """Without a loaded cache misses are not checked: a warning says so, and the cache is written."""
    ended = run("scenario.json", *CACHING, "--fail-on-pipeline-cache-miss")
    assert (ended.code, told(ended)[0]) == (0, "pipeline cache misses are not checked: no pipeline cache was loaded")
    assert told(ended)[1:] == [*MISSES, *STORED]


def test_a_driver_that_does_not_tell(run: Run, drawing: Scene) -> None:
    """A driver without feedback runs; with --fail-on-pipeline-cache-miss it says VK_PIPELINE_COMPILE_REQUIRED, where it
    can, and is an error that says so where it cannot."""
    unknown = "Pipeline cache hit or miss is unknown for pipeline: "
    old = {"CACHE_LAYER_DOES": "old"}
    without = ("--disable-extension", "VK_EXT_pipeline_creation_feedback", "VK_EXT_pipeline_creation_cache_control")
    for options, environment in (((), {"CACHE_LAYER_DOES": "silent"}), (without, old)):
        ended = run("scenario.json", *CACHING, *options, **environment)
        assert ended.code == 0
        assert [line for line in told(ended) if line.startswith("Pipeline cache")] == [f"{unknown}one", f"{unknown}two"]
    fails = (*CACHING, "--fail-on-pipeline-cache-miss")
    assert told(run("scenario.json", *fails, CACHE_LAYER_DOES="silent")) == [LOADED, *HITS]
    drawing.file("two.comp", glsl("data[1] += 3;", DATA))
    silent = run("scenario.json", *fails, CACHE_LAYER_DOES="silent")
    assert (silent.code, silent.err.count(" is not in the pipeline cache ")) == (16, 1)
    refused = run("scenario.json", *fails, *without, **old)
    assert refused.code == 6
    assert "does not tell pipeline cache hits from misses" in refused.err


def test_feedback_by_an_extension(run: Run, drawing: Scene) -> None:
    """A device of Vulkan 1.2 tells hits by VK_EXT_pipeline_creation_feedback."""
    assert told(run("scenario.json", *CACHING, CACHE_LAYER_DOES="old")) == [*MISSES, *STORED]
    assert told(run("scenario.json", *CACHING, CACHE_LAYER_DOES="old")) == [LOADED, *HITS, *STORED]


def test_a_driver_that_refuses(run: Run, drawing: Scene) -> None:
    """A driver that takes no data of an earlier run gets an empty cache, with a warning."""
    assert run("scenario.json", *CACHING).code == 0
    ended = run("scenario.json", *CACHING, CACHE_LAYER_DOES="refuse")
    assert ended.code == 0
    assert "WARNING: the driver rejects the pipeline cache of an earlier run; the cache starts empty" in ended.out
    assert told(ended)[2:] == [*MISSES, *STORED]


TRAILER = struct.Struct("<8sQI")


def _patched(at: int, value: int) -> Callable[[bytes], bytes]:
    """Another number in the header, and the checksum that goes with it: a file of another driver."""

    def change(content: bytes) -> bytes:
        data = bytearray(content[: -TRAILER.size])
        data[at : at + 4] = struct.pack("<I", value)
        return bytes(data) + TRAILER.pack(b"SRPIPES1", len(data), zlib.crc32(data))

    return change


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda content: b"", "it has 0 bytes, expected at least the 32 bytes of a header"),
        (lambda content: b"\xff" * 4096, "Incorrect pipeline cache header size: 4294967295, expected 32"),
        (lambda content: content[:40], "it was truncated, or not written by this program"),
        (lambda content: content[:33] + b"\xaa" + content[34:], "Incorrect checksum: "),
        (_patched(4, 2), "Incorrect pipeline cache header version: 2, expected 1"),
        (_patched(8, 0x10DE), "Incorrect vendor: 0x10de, expected "),
        (_patched(12, 0x4242), "Incorrect device: 0x4242, expected "),
        (_patched(16, 0x4242), "Incorrect pipeline cache UUID: "),
    ],
)
def test_a_file_that_is_not_to_be_trusted(
    run: Run, drawing: Scene, change: Callable[[bytes], bytes], problem: str
) -> None:
    """Junk, truncated, changed and foreign files are ignored with a warning and replaced; no driver sees them."""
    assert run("scenario.json", *CACHING).code == 0
    [path] = files(drawing)
    content = path.read_bytes()
    path.write_bytes(change(content))
    ended = run("scenario.json", *CACHING, CACHE_LAYER_LOG=str(drawing.folder / "log.txt"))
    assert ended.code == 0
    assert f"WARNING: Pipeline validation: {problem}" in ended.out
    assert "WARNING: Pipeline Cache skipped: failed to validate 'kept/scenario.cache'\n" in ended.out
    assert told(ended)[2:] == [*MISSES, *STORED]
    assert (drawing.folder / "log.txt").read_text().split() == ["0"]
    assert path.read_bytes() == content


def test_what_is_not_a_file(run: Run, drawing: Scene) -> None:
    """A folder, and a file that others may write to, in the place of the file are ignored with a warning."""
    assert run("scenario.json", *CACHING).code == 0
    [path] = files(drawing)
    path.chmod(0o666)
    ended = run("scenario.json", *CACHING)
    assert (ended.code, ended.out.count("other users may write to it")) == (0, 1)
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()
    ended = run("scenario.json", *CACHING)
    assert ended.code == 0
    assert "it is not a regular file" in ended.out or "is a directory" in ended.out
    assert "Pipeline Cache not stored: " in ended.out


def test_concurrent_processes(run: Run, drawing: Scene, cache_layer: dict[str, str], shader_cache: Path) -> None:
    """Processes that use one file at once all succeed, and leave one complete file."""
    environment = {**os.environ, **cache_layer}
    children = [
        subprocess.Popen(
            [*COMMAND, "scenario.json", *CACHING, "--output", f"out{number}"],
            cwd=drawing.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    ended = [(*child.communicate(timeout=300), child.returncode) for child in children]
    for out, errors, code in ended:
        assert (code, errors) == (0, "")
        assert "WARNING" not in out
    assert told(run("scenario.json", *CACHING, "--fail-on-pipeline-cache-miss")) == [LOADED, *HITS]
    assert len(files(drawing)) == 1


LATE = """
import subprocess, sys
from contextlib import contextmanager
from scenario_runner import PipelineCaching, Runner

class Late(PipelineCaching):
    @contextmanager
    def around(self, device, plan):
        with super().around(device, plan):
            subprocess.run([sys.executable, "-m", "scenario_runner", "scenario.json", *sys.argv[1:]], check=True)
            yield

with Runner(pipeline_cache=Late("kept")) as runner:
    prepared = runner.prepare("scenario.json")
    open("two.comp", "w").write(open("other.comp").read())
    prepared.run(write_files=False)
"""


def test_what_another_process_stored_meanwhile(
    run: Run, drawing: Scene, cache_layer: dict[str, str], shader_cache: Path
) -> None:
    """A process that stores after another one keeps the pipelines of both."""
    first, second = drawing.folder / "two.comp", drawing.folder / "other.comp"
    before = first.read_text(encoding="utf-8")
    second.write_text(before.replace("+= 2", "+= 5"), encoding="utf-8")
    environment = {**os.environ, **cache_layer}
    command = [sys.executable, "-c", LATE, *CACHING]
    subprocess.run(command, cwd=drawing.folder, env=environment, check=True, capture_output=True)
    for text in (before, second.read_text(encoding="utf-8")):
        first.write_text(text, encoding="utf-8")
        assert told(run("scenario.json", *CACHING, "--fail-on-pipeline-cache-miss")) == [LOADED, *HITS]


@pytest.mark.parametrize(
    "options, code, message",
    [
        (["--clear-pipeline-cache"], 0, "option --clear-pipeline-cache has no effect without --pipeline-caching"),
        (["--fail-on-pipeline-cache-miss"], 0, "has no effect without --pipeline-caching"),
        (["--pipeline-caching", "--cache-path", "missing"], 4, "missing: no such folder"),
        (["--pipeline-caching", "--cache-path", "scenario.json"], 4, "scenario.json: is not a folder"),
        (
            [*CACHING, "--clear-pipeline-cache", "--fail-on-pipeline-cache-miss"],
            2,
            "--clear-pipeline-cache and --fail-on-pipeline-cache-miss contradict each other",
        ),
    ],
)
def test_options(run: Run, drawing: Scene, options: list[str], code: int, message: str) -> None:
    """Options without an effect are warned about, as the reference ignores them; wrong ones end before the run."""
    ended = run("scenario.json", *options)
    assert ended.code == code
    assert message in ended.err
    assert (drawing.folder / "x.out.npy").exists() == (code == 0)
    assert files(drawing) == []


def test_the_users_cache_folder(run: Run, drawing: Scene, tmp_path: Path) -> None:
    """Without --cache-path the files are in the user's cache folder."""
    environment = {"SCENARIO_RUNNER_CACHE": str(tmp_path / "own")}
    assert told(run("scenario.json", "--pipeline-caching", **environment)) == [*MISSES, *STORED]
    assert told(run("scenario.json", "--pipeline-caching", **environment)) == [LOADED, *HITS, *STORED]
    [path] = files(drawing, "own/pipelines")
    assert path.parent.stat().st_mode & 0o777 == path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"scenario-[0-9a-f]{16}\.cache", path.name)


def test_a_cache_folder_of_others(run: Run, drawing: Scene, tmp_path: Path) -> None:
    """A cache folder that others may write to is not used, with a warning; the run succeeds."""
    (tmp_path / "own").mkdir(mode=0o777)
    (tmp_path / "own").chmod(0o777)
    ended = run("scenario.json", "--pipeline-caching", SCENARIO_RUNNER_CACHE=str(tmp_path / "own"))
    assert ended.code == 0
    assert "other users may write to it" in ended.out
    assert [line for line in told(ended) if line.startswith("Pipeline")] == MISSES
    assert not (tmp_path / "own" / "pipelines").exists()


def test_standard_input(run: Run, drawing: Scene, cache_layer: dict[str, str]) -> None:
    """A scenario that is not in a file is known by its shaders."""
    text = (drawing.folder / "scenario.json").read_text()
    for expected in ([*MISSES, *STORED], [LOADED, *HITS, *STORED]):
        ended = run_program(drawing.folder, "/dev/stdin", *CACHING, env=cache_layer, stdin=text)
        assert told(ended) == expected


def test_python(scene: Scene, shader_cache: Path) -> None:
    """`Runner(pipeline_cache=...)` takes a folder or a `PipelineCaching`, and leaves no object behind."""
    path = two_shaders(scene).write()
    folder = scene.folder / "kept"
    with pytest.raises(MissingFileError):
        Runner(pipeline_cache=folder)
    folder.mkdir()
    caching = PipelineCaching(folder)
    for given in (folder, caching):
        with Runner(pipeline_cache=given) as runner:
            for _ in range(2):
                assert runner.run(path).array("x", "uint32").tolist() == [1, 2, 0, 0]
            assert runner.live_objects["pipeline cache"] == 0
        assert not any(runner.live_objects.values())
    assert caching.creations == []  # the second run makes no pipelines
    with Runner(pipeline_cache=caching) as runner:
        runner.run(path)
    assert [(each.label, each.hit) for each in caching.creations] == [("one", False), ("two", False)]
    assert all(each.duration_ns is not None and each.duration_ns > 0 for each in caching.creations)
    assert len(list(folder.iterdir())) == 1
    if sys.platform != "win32":
        with pytest.raises(FileError):
            Runner(pipeline_cache=path)


@needs(VGF_LIBRARY, "mixed model")
@pytest.mark.parametrize(
    "scenario, labels",
    [("drawing/triangle", None), ("ml/optical_flow", None), ("basics/add", {"add"}), ("mixed model", None)],
)
def test_kinds(checkout: Path, scene: Scene, shader_cache: Path, scenario: str, labels: set[str] | None) -> None:
    """The driver tells of each pipeline of a scenario, of any kind; the validated file is there after a dry run."""
    path = checkout / "scenarios" / scenario / "scenario.json"
    if scenario == "mixed model":
        path = mixed_model(scene).write()
    folder = scene.folder / "kept"
    folder.mkdir()
    caching = PipelineCaching(folder)
    with Runner(pipeline_cache=caching) as runner:
        plan = runner.plan(path)
        runner.run(path, dry_run=True)
        assert runner.live_objects["pipeline cache"] == 0
    pipelines = [*plan.pipelines, *plan.graph_pipelines]
    expected = {each.label for each in pipelines} | {each.fragment.label for each in plan.graphics_pipelines}
    assert {each.label for each in caching.creations} == (labels or expected)
    assert all(each.hit is not None for each in caching.creations)
    assert [path.name for path in folder.iterdir()] == ["scenario.cache"]
