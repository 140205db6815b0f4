"""Shader instrumentation and the files of neural accelerators, with layers that bring the extensions."""

import json
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.ml_scenes import mixed_model
from tests.layers import layer_from
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Ended, Program, run_program
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
Run = Callable[..., Ended]
instrumentation_layer = layer_from(
    Path(__file__).with_name("instrumentation_layer.c"), ["VK_ARM_shader_instrumentation", "VK_KHR_maintenance5"]
)


@pytest.fixture
def run(scene: Scene, instrumentation_layer: dict[str, str]) -> Run:
    """``run(*arguments, layer=True, **environment)`` runs the program beside the scenario; the layer writes log.txt."""

    def start(*arguments: str, layer: bool = True, **environment: str) -> Ended:
        given = {**instrumentation_layer, "INSTRUMENTATION_LOG": str(scene.folder / "log.txt")} if layer else {}
        return run_program(scene.folder, *arguments, env={**given, **environment})

    return start


@pytest.fixture
def counting(scene: Scene, shader_cache: Path) -> Scene:
    """Two shaders, three dispatches and two frames."""
    scene.shader("add", glsl("atomicAdd(data[0], 1);", DATA)).shader("sub", glsl("atomicAdd(data[1], 2);", DATA))
    scene.buffer("x", numpy.zeros(4, "uint32"))
    scene.dispatch("add", ["x"], [3, 2, 1]).dispatch("sub", ["x"], [5])
    scene.command("mark_boundary", resources=["x"])
    scene.dispatch("add", ["x"], [7, 1, 2])
    scene.write()
    return scene


def written(scene: Scene) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((scene.folder / "m.json").read_text(encoding="utf-8"))
    return content


def log(scene: Scene) -> Counter[str]:
    """Return the layer's log, after a check of the extension's rules."""
    lines = (scene.folder / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("WRONG")] == []
    return Counter(lines)


OPTION = ("--shader-instrumentation", "m.json")
FOLDERS = ("--output", "out", "--folder-each")  # for scenarios with the same outputs


def test_every_dispatch_is_measured(counting: Scene, run: Run) -> None:
    """The file has the metrics, and the layer's counts for each dispatch and basic block."""
    ended = run("scenario.json", *OPTION)
    assert (ended.code, ended.err) == (0, "")
    content = written(counting)
    assert content["schema"] == 1
    assert content["per_basic_block"] is True
    assert content["metrics"] == [
        {"name": "Workgroups", "description": "workgroups that ran"},
        {"name": "Submissions", "description": "times that the command was submitted"},
    ]
    (run_of_it,) = content["runs"]
    assert run_of_it["scenario"].endswith("scenario.json")
    expected = []
    dispatches = [(0, 0, 0, "add", (3, 2, 1)), (0, 1, 1, "sub", (5, 1, 1)), (1, 0, 3, "add", (7, 1, 2))]
    for frame, result, command, shader, (x, y, z) in dispatches:
        for block, workgroups, submissions in ((0, x * y * z, 1), (1, x, 0)):
            expected.append(
                {
                    "iteration": 0,
                    "frame": frame,
                    "command": command,
                    "shader": shader,
                    "result_index": result,
                    "result_sub_index": 0,
                    "stages": ["compute"],
                    "basic_block": block,
                    "values": {"Workgroups": workgroups, "Submissions": submissions},
                }
            )
    assert run_of_it["results"] == expected
    assert counting.output("x", "uint32").tolist() == [3 * 2 + 7 * 2, 5 * 2, 0, 0]


def test_the_extension_is_used_by_its_rules(counting: Scene, run: Run) -> None:
    """One object a frame is made and destroyed, begun and ended in its command buffer, and cleared when read."""
    assert run("scenario.json", *OPTION).code == 0
    assert log(counting) == {
        "device with instrumentation": 1,
        "instrumented pipeline": 2,
        "create": 2,
        "begin": 2,
        "end": 2,
        "clear": 2,
        "destroy": 2,
    }


def test_repeated_runs_are_told_apart(counting: Scene, run: Run) -> None:
    """Each iteration has results of its own, though the command buffers are recorded once."""
    assert run("scenario.json", "--repeat", "3", *OPTION).code == 0
    results = written(counting)["runs"][0]["results"]
    assert Counter(each["iteration"] for each in results) == {0: 6, 1: 6, 2: 6}
    assert {each["values"]["Submissions"] for each in results if each["basic_block"] == 0} == {1}
    assert (log(counting)["create"], log(counting)["begin"], log(counting)["clear"]) == (2, 2, 6)


def test_several_scenarios_share_a_file(counting: Scene, run: Run) -> None:
    """The file has a run for each scenario, in their order."""
    counting.write("other.json")
    assert run("scenario.json", "other.json", *FOLDERS, *OPTION).code == 0
    runs = written(counting)["runs"]
    assert [Path(each["scenario"]).name for each in runs] == ["scenario.json", "other.json"]
    assert [len(each["results"]) for each in runs] == [6, 6]


@pytest.mark.parametrize(
    "lie, code, message",
    [
        ("lost", 11, "vkGetShaderInstrumentationValuesARM failed with VK_ERROR_DEVICE_LOST"),
        ("crash", 12, "second.json: the process was ended by SIGSEGV while reading results back"),
    ],
)
def test_a_failure_keeps_what_was_measured(counting: Scene, run: Run, lie: str, code: int, message: str) -> None:
    """The scenarios before and after one that loses its device, or crashes the driver, are in the file, and nothing of
    an older file."""
    counting.write("second.json")
    counting.write("third.json")
    (counting.folder / "m.json").write_text('{"runs": [1, 2, 3]}')
    ended = run("scenario.json", "second.json", "third.json", *FOLDERS, *OPTION, INSTRUMENTATION_LIES=lie)
    assert ended.code == code
    assert message in ended.err
    runs = written(counting)["runs"]
    assert [Path(each["scenario"]).name for each in runs] == ["scenario.json", "third.json"]
    assert [len(each["results"]) for each in runs] == [6, 6]


def test_a_plain_run_is_not_instrumented(counting: Scene, run: Run) -> None:
    """Without the option the same device is opened without the extension, and nothing is measured."""
    assert run("scenario.json").code == 0
    assert log(counting) == {"device without": 1, "plain pipeline": 2}


def test_a_dry_run_measures_nothing(counting: Scene, run: Run) -> None:
    """A dry run writes the metrics and no results."""
    assert run("scenario.json", "--dry-run", *OPTION).code == 0
    content = written(counting)
    assert (len(content["metrics"]), content["runs"][0]["results"]) == (2, [])


@pytest.mark.parametrize(
    "arguments, environment, lacks",
    [
        ((), {"INSTRUMENTATION_LACKS": "feature"}, "the feature shaderInstrumentation ("),
        ((), {"INSTRUMENTATION_LACKS": "maintenance5"}, "the feature maintenance5 (VkPhysicalDeviceVulkan14Features)"),
        (
            ("--disable-extension", "VK_ARM_shader_instrumentation"),
            {},
            "the extension VK_ARM_shader_instrumentation, which --disable-extension turns off",
        ),
    ],
)
def test_what_is_missing_is_named(
    counting: Scene, run: Run, arguments: tuple[str, ...], environment: dict[str, str], lacks: str
) -> None:
    """A device that lacks a part is refused with that part, and nothing is run or written."""
    ended = run("scenario.json", *OPTION, *arguments, **environment)
    assert ended.code == 6
    assert f" cannot instrument shaders: it lacks {lacks}" in ended.err
    assert not (counting.folder / "m.json").exists()
    assert not (counting.folder / "x.out.npy").exists()


def test_a_device_without_the_extension(counting: Scene, run: Run) -> None:
    """Without the layer, this device lacks the extension, unless its driver has it."""
    ended = run("scenario.json", *OPTION, layer=False)
    assert ended.code == 6
    assert " lacks the extension VK_ARM_shader_instrumentation" in ended.err


@pytest.mark.parametrize(
    "lie, message",
    [
        ("metrics", "describes 3 metrics of shader instrumentation and announces 2"),
        ("blocks", "vkGetShaderInstrumentationValuesARM says that there are 4294967295 metric blocks of 32 bytes each"),
    ],
)
def test_a_driver_that_lies(counting: Scene, run: Run, lie: str, message: str) -> None:
    """Counts that cannot be are one error of the driver, not memory without end."""
    ended = run("scenario.json", *OPTION, INSTRUMENTATION_LIES=lie)
    assert ended.code == 7
    assert message in ended.err
    assert not (counting.folder / "m.json").exists()


def test_a_path_that_is_a_folder(counting: Scene, run: Run) -> None:
    """A file that cannot be written is an error before anything is run."""
    (counting.folder / "m.json").mkdir()
    ended = run("scenario.json", *OPTION)
    assert ended.code == 4
    assert ended.err.startswith("error: m.json: is a folder")
    assert not (counting.folder / "x.out.npy").exists()


def test_graphs_leave_results_without_a_command(checkout: Path, run: Run, scene: Scene) -> None:
    """A graph may be taken apart into dispatches of its own: results of its frame are not said to be of any command."""
    scenario = checkout / "scenarios" / "ml" / "image_to_graph" / "scenario.json"
    ended = run(str(scenario), "--output", str(scene.folder / "out"), *OPTION)
    assert (ended.code, ended.err) == (0, "")
    results = written(scene)["runs"][0]["results"]
    assert results
    assert {(each["command"], each["shader"]) for each in results} == {(None, None)}
    assert log(scene)["begin"] == log(scene)["end"] > 0


def test_doctor_reports_the_metrics(run: Run) -> None:
    """doctor says of each device whether it has the extension, and with which metrics."""
    (device, *_) = json.loads(run("doctor", "--json").out)["devices"]
    assert device["shader_instrumentation"] == {
        "supported": True,
        "per_basic_block": True,
        "metrics": [
            {"name": "Workgroups", "description": "workgroups that ran"},
            {"name": "Submissions", "description": "times that the command was submitted"},
        ],
        "problem": None,
    }
    assert "2 metrics for each basic block: Workgroups, Submissions" in " ".join(run("doctor").out.split())
    (device, *_) = json.loads(run("doctor", "--json", INSTRUMENTATION_LIES="metrics").out)["devices"]
    assert device["shader_instrumentation"]["supported"] is False
    assert "describes 3 metrics" in device["shader_instrumentation"]["problem"]


def test_in_python(counting: Scene, instrumentation_layer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runner takes the path of the file; results come back as without it."""
    for name, value in instrumentation_layer.items():
        monkeypatch.setenv(name, value)
    with Runner(shader_instrumentation=counting.folder / "m.json") as runner:
        result = runner.run(counting.folder / "scenario.json", write_files=False)
    assert numpy.asarray(result["x"]).view("uint32").ravel().tolist() == [3 * 2 + 7 * 2, 5 * 2, 0, 0]
    assert len(written(counting)["runs"][0]["results"]) == 6
    assert not any(runner.live_objects.values())


EXTENSION = "VK_ARM_data_graph_neural_accelerator_statistics"
STATISTICS = "--neural-statistics-dump-dir"
DATABASES = "--neural-debug-database-dump-dir"


neural_layer = layer_from(Path(__file__).with_name("neural_layer.c"), [EXTENSION])


@pytest.fixture
def environment(neural_layer: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "dump").mkdir()
    return {**neural_layer, "NEURAL_LOG": str(tmp_path / "log.txt")}


@pytest.mark.parametrize("mode", [None, 0, 1])
@needs(VGF_LIBRARY)
def test_statistics(
    program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str], mode: int | None
) -> None:
    """Each graph has a file with the accelerator's data for the chosen mode, 1 by default."""
    options = () if mode is None else ("--neural-statistics-mode", str(mode))
    program.succeed(mixed_model(scene).write(), "--output", "out", STATISTICS, "dump", *options, env=environment)
    wanted = 1 if mode is None else mode
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == [f"Graph_Pipeline_{number}_Statistics_{wanted}.bin" for number in range(2)]
    for name in names:
        content = (tmp_path / "dump" / name).read_bytes()
        assert len(content) == 256
        magic, written_mode, dispatches, submissions = struct.unpack_from("<4I", content)
        assert (magic, written_mode, dispatches) == (0x54415453, wanted + 1, 1)
        assert submissions >= 1
    log = (tmp_path / "log.txt").read_text().splitlines()
    assert [line for line in log if line.startswith("WRONG")] == []
    assert log[-1] == "device with statistics"


@needs(VGF_LIBRARY)
def test_debug_databases(program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str]) -> None:
    """Each graph has a file with its database, byte for byte; statistics are not asked for."""
    program.succeed(mixed_model(scene).write(), "--output", "out", DATABASES, "dump", env=environment)
    files = sorted((tmp_path / "dump").iterdir())
    assert [path.name for path in files] == [f"Graph_Pipeline_{number}_Debug_Database.bin" for number in range(2)]
    assert [path.read_bytes() for path in files] == [b"DEBUG\0DATABASE"] * 2


@needs(VGF_LIBRARY)
def test_a_disabled_extension(program: Program, scene: Scene, tmp_path: Path, environment: dict[str, str]) -> None:
    """--disable-extension makes the run one that is refused, with the reason."""
    ended = program(mixed_model(scene).write(), STATISTICS, "dump", "--disable-extension", EXTENSION, env=environment)
    assert ended.code == 6
    assert "which --disable-extension turns off" in ended.err
    assert list((tmp_path / "dump").iterdir()) == []
