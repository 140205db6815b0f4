"""Files about graphs: the memory of sessions, profiles of the emulation layers, statistics of neural accelerators."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from scenario_runner import GraphReportFiles, Runner
from scenario_runner.errors import FileError, MissingFileError, UnsupportedError, UsageError
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.run.graph_reports import operator_times
from tests.gpu.ml_scenes import random, three_graphs
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene

ROW = re.compile(r"\n([0-9A-F]{8}):   ((?:[0-9A-F]{2} ){1,16})")
NEURAL = "VK_ARM_data_graph_neural_accelerator_statistics"


@pytest.fixture
def graphs(scene: Scene) -> Path:
    """Add three graphs, two of them with session memory."""
    return three_graphs(scene)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


def content_of(path: Path) -> bytes:
    """Return the bytes in a dump of session memory, and check its form."""
    text = path.read_text()
    content = bytearray()
    at = 0
    for match in ROW.finditer(text):
        assert match.start() == at
        assert int(match[1], 16) == len(content)
        content += bytes.fromhex(match[2])
        at = match.end()
    assert at == len(text)
    return bytes(content)


@needs(VGF_LIBRARY)
def test_session_memory_and_profiles(graphs: Path, dump: Path, tmp_path: Path, program: Program) -> None:
    """Each session memory and each graph has a file, and the results equal a run without the files."""
    options = ("--session-memory-dump-dir", dump, "--emulation-layer-profiling-dump-dir", dump)
    ended = program(graphs, "--output", "with", *options, exit_code=0)
    reason = "to report their session memory, they use memory that the host can read"
    assert ended.err == f"warning: graphs may run slower: {reason}\n"
    memories = sorted(path.name for path in dump.glob("*.txt"))
    assert memories == ["Graph_Pipeline_0_Session_RAM_0.txt", "Graph_Pipeline_1_Session_RAM_0.txt"]
    for name in memories:
        content = content_of(dump / name)
        assert len(content) % 64 == 0
        assert any(content)
    assert sorted(path.name for path in dump.glob("*.json")) == [f"EmulationLayerPipeline_{n}.json" for n in range(3)]
    for path in dump.glob("*.json"):
        profile = json.loads(path.read_text())
        assert sum(each["dispatch_count"] for each in profile["by_operator"]) == len(profile["samples"]) > 0
    assert program(graphs, "--output", "without").code == 0
    written = [path.relative_to(tmp_path / "with") for path in (tmp_path / "with").rglob("*.npy")]
    assert written
    for path in written:
        assert (tmp_path / "with" / path).read_bytes() == (tmp_path / "without" / path).read_bytes()


@needs(VGF_LIBRARY)
def test_the_times_of_operators_are_shown(graphs: Path, program: Program) -> None:
    """Dispatches and operators have rows with their shares; operators have the shapes of their outputs."""
    ended = program.succeed(graphs, "--output", "out", "--profiling", "--repeat", "2")
    dispatches, operators = ended.out.split("\n", 1)[1].split("  graph ")
    assert sorted(line.split()[:2] for line in dispatches.splitlines()[1:]) == [
        ["0", "dynamic/graph_segment_0"],
        ["1", "conv/graph_segment_0"],
        ["2", "any_size/graph_segment_0"],
    ]
    rows = [line.split() for line in operators.splitlines()[1:]]
    assert [[*row[5:7], row[7]] for row in sorted(rows) if row[4] == "'conv'"] == [
        ["0", "CONV2D", "1x8x8x4"],
        ["1", "CLAMP", "1x8x8x4"],
    ]
    assert sum(float(row[-2]) for row in rows) == pytest.approx(100, abs=0.1 * len(rows))


@needs(VGF_LIBRARY)
def test_operators_have_their_names_in_the_model(scene: Scene, program: Program) -> None:
    """Names of operators come from the locations of the model, if the converter keeps them."""
    type = "tensor<1x3xf32>"
    body = f'%1 = tosa.tanh %x : ({type}) -> {type} loc("first act")\nreturn %1 : {type}'
    scene.file("model.mlir", f"func.func @main(%x: {type}) -> {type} {{\n{body}\n}}\n".encode())
    arguments = ("model.mlir", "-o", "model.vgf", "--converter-option=--emit-debug-info")
    assert program("convert", *arguments).code == 0
    np.save(scene.folder / "x.npy", random([1, 3]))
    ended = program("model.vgf", "--input", "0=x.npy", "--profiling", exit_code=0)
    assert re.search(r"  0  TANH      first act  1x3     +[0-9.]+  100.0 %\n", ended.out)


@needs(VGF_LIBRARY)
def test_operators_that_the_module_does_not_have(checkout: Path) -> None:
    """Operators in a report without a match in the module have no shape."""
    code = read_vgf(checkout / "tests" / "ml" / "fixtures" / "conv.vgf").modules[0].code
    assert isinstance(code, bytes)
    samples = [{"pipeline_index": 0, "operator_name": "CONV2D", "time_ms": time_ms} for time_ms in (1.5, 2.0)]
    (only,) = operator_times("conv", code, json.dumps({"samples": samples}).encode())
    assert only == ("conv", 0, ("CONV2D", "", ()), 3.5)


def test_a_dry_run_measures_nothing(graphs: Path, program: Program) -> None:
    """The options contradict each other."""
    ended = program(graphs, "--profiling", "--dry-run")
    message = "error: --profiling and --dry-run contradict each other\n  help: a dry run runs nothing to measure\n"
    assert (ended.code, ended.out, ended.err) == (2, "", message)


@needs(VGF_LIBRARY)
def test_memory_is_that_of_the_last_run(graphs: Path, dump: Path, shader_cache: Path) -> None:
    """The memory holds the values of the last run, and equal inputs leave equal bytes."""
    with Runner(graph_reports=GraphReportFiles(session_memory_dir=str(dump))) as runner:
        contents = []
        for seed in (1, 2, 1):
            runner.run(graphs, {"conv x": random((1, 8, 8, 2), seed=seed)}, write_files=False)
            contents.append(content_of(dump / "Graph_Pipeline_0_Session_RAM_0.txt"))
    assert contents[0] == contents[2]
    assert contents[0] != contents[1]


def test_optical_flow(checkout: Path, dump: Path, shader_cache: Path) -> None:
    """A session of an optical flow has two memories: k counts files, i the memories of the session. A device whose
    sessions are invisible to the host is refused by name."""
    scenario = checkout / "scenarios" / "ml" / "optical_flow" / "scenario.json"
    with Runner(graph_reports=GraphReportFiles(session_memory_dir=str(dump))) as runner:
        refusal = ""
        try:
            runner.run(scenario, write_files=False)
        except UnsupportedError as error:
            refusal = str(error)
    if refusal:
        assert "has no memory type that the host sees for the session of the optical flow" in refusal
        assert not list(dump.iterdir())
        return
    names = sorted(path.name for path in dump.iterdir())
    assert names == ["Graph_Pipeline_0_Session_RAM_0.txt", "Graph_Pipeline_1_Session_RAM_1.txt"]
    assert all(any(content_of(dump / name)) for name in names)


@needs(VGF_LIBRARY)
def test_a_dry_run_writes_none(graphs: Path, dump: Path, shader_cache: Path) -> None:
    """A dry run makes sessions and writes no file."""
    with Runner(graph_reports=GraphReportFiles(session_memory_dir=str(dump))) as runner:
        runner.run(graphs, dry_run=True)
    assert list(dump.iterdir()) == []


@needs(VGF_LIBRARY)
def test_in_the_sandbox(graphs: Path, dump: Path, shader_cache: Path) -> None:
    """The folders that the user names are allowed in the sandbox."""
    with Runner(sandbox=True, graph_reports=GraphReportFiles(session_memory_dir=str(dump))) as runner:
        runner.run(graphs, write_files=False)
    assert len(list(dump.iterdir())) == 2


@needs(VGF_LIBRARY)
def test_neural_files_need_an_extension(graphs: Path, dump: Path, tmp_path: Path, program: Program) -> None:
    """A device without the extension is refused before anything runs, also for a scenario without graphs."""
    for option in ("--neural-statistics-dump-dir", "--neural-debug-database-dump-dir"):
        ended = program(graphs, "--output", "out", option, dump, exit_code=6)
        assert f"neural statistics and debug databases need the extension {NEURAL}, which '" in ended.err
        assert not (tmp_path / "out").exists()
        assert list(dump.iterdir()) == []
    reports = GraphReportFiles(neural_statistics_dir=str(dump))
    with Runner(graph_reports=reports) as runner, pytest.raises(UnsupportedError, match=NEURAL):
        runner.run({"resources": [], "commands": []})


def test_folders_are_checked_before_the_run(graphs: Path, dump: Path, tmp_path: Path, program: Program) -> None:
    """A folder that does not exist, or is not one, ends with exit code 4; several scenarios are a usage error."""
    (tmp_path / "file").write_text("text")
    for folder, problem in (("missing", "missing: no such folder"), ("file", "file: is not a folder")):
        ended = program(graphs, "--output", "out", "--session-memory-dump-dir", folder)
        assert (ended.code, f"error: {problem}" in ended.err) == (4, True)
    several = program(graphs, graphs, "--output", "out", "--session-memory-dump-dir", dump)
    assert (several.code, "--session-memory-dump-dir takes the files of one scenario" in several.err) == (2, True)
    assert not (tmp_path / "out").exists()
    with pytest.raises(MissingFileError):
        GraphReportFiles(session_memory_dir=str(tmp_path / "missing"))
    with pytest.raises(FileError):
        GraphReportFiles(emulation_profiling_dir=str(tmp_path / "file"))
    with pytest.raises(UsageError, match="mode of neural statistics is 2"):
        GraphReportFiles(neural_statistics_mode=2)


def test_mode_alone(scene: Scene, program: Program) -> None:
    """--neural-statistics-mode alone has no effect, which a warning says; other modes do not exist."""
    empty = scene.write()
    ended = program(empty, "--dry-run", "--neural-statistics-mode", "0", exit_code=0)
    assert "option --neural-statistics-mode has no effect without --neural-statistics-dump-dir" in ended.err
    assert program(empty, "--dry-run", "--neural-statistics-mode", "2").code == 2
