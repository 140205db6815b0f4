"""Output files that ``validate`` and a run refuse before the run begins."""

import os
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FileError, ScenarioError
from scenario_runner.files.output import marker_path
from scenario_runner.runner import Runner
from scenario_runner.validation import Options, validate_file
from tests.program import Program, files_in
from tests.scenes import Scene, glsl

INCLUDING = glsl("a[gl_WorkGroupID.x] += ONE;", '#include "one"\nlayout(binding = 0) buffer B { uint a[]; };\n')


READ = "the dst 'PATH' of resource 'x' is a file that"


@pytest.fixture
def adding(scene: Scene) -> Scene:
    """Adds 1 to x.npy, with a shader that includes a file; ``dst`` is set by each test."""
    scene.file("one", "#define ONE 1u\n")
    scene.shader("add", INCLUDING, include_dirs=["."])
    scene.buffer("x", numpy.array([1, 2, 3, 4], numpy.uint32), dst="out.npy")
    return scene.dispatch("add", ["x"], [4])


def with_dst(scene: Scene, dst: str) -> Path:
    scene.resources[1]["buffer"]["dst"] = dst
    return scene.write()


@pytest.mark.parametrize(
    "dst, code, message",
    [
        *((dst, 3, READ) for dst in ("add.comp", "one", "x.npy", "scenario.json", "folder/../x.npy")),
        *((dst, 3, READ) for dst in ("soft.npy", "hard.npy")),
        ("o.png", 4, "PATH: has the extension '.png', expected '.npy' for a buffer"),
        ("folder", 4, "PATH: is a folder, expected the name of a file to write"),
        ("fifo.npy", 4, "PATH: is a pipe, a device or a socket, expected the name of a file to write"),
        ("x" * 252 + ".npy", 4, "PATH: cannot be created: file name too long"),
        ("new/" + "x" * 252 + ".npy", 4, "PATH: cannot be created: file name too long"),
        ("x" * 2000 + ".npy", 4, "PATH: cannot be created: file name too long"),
        ("x.npy/o.npy", 4, "PATH: cannot be created: not a directory"),
    ],
)
def test_refused_destinations(program: Program, adding: Scene, dst: str, code: int, message: str) -> None:
    """A dst that the scenario reads, also by a link, or that cannot be written is refused, and every file stays."""
    adding.file("folder/x", b"")
    os.symlink("x.npy", adding.folder / "soft.npy")
    os.link(adding.folder / "x.npy", adding.folder / "hard.npy")
    os.mkfifo(adding.folder / "fifo.npy")
    with_dst(adding, dst)
    path = f"{adding.folder}/{dst}"
    shown = path if len(path) < 1000 else f"{path[:900]}...{path[-97:]}"
    shown = shown.removeprefix(f"{adding.folder}/")
    before = files_in(adding.folder)
    for words in (["validate"], [], []):
        ended = program(*words, "scenario.json", exit_code=code)
        assert f"/resources/1/buffer/dst: {message.replace('PATH', shown)}" in ended.err
        assert ended.err.count("error:") == 1
    assert files_in(adding.folder) == before


def test_a_kept_plan_is_checked_as_well(program: Program, adding: Scene) -> None:
    """A link that was made after the plan was kept is seen."""
    adding.write()
    assert program("scenario.json").code == 0
    (adding.folder / "out.npy").unlink()
    os.link(adding.folder / "x.npy", adding.folder / "out.npy")
    ended = program("scenario.json", exit_code=3)
    assert "scenario.json:" in ended.err
    assert "is a file that the scenario reads" in ended.err


def test_another_output_folder(adding: Scene) -> None:
    """The final path counts: the same dst is right with another output folder."""
    path = with_dst(adding, "x.npy")
    assert validate_file(path).exit_code == 3
    assert validate_file(path, Options(output_dir=str(adding.folder / "out"))).exit_code == 0


def test_files_that_are_not_written_are_not_refused(shader_cache: Path, adding: Scene) -> None:
    """Without files to write there is nothing to refuse."""
    path = with_dst(adding, "x.npy")
    with Runner() as runner:
        result = runner.run(path, write_files=False)
        assert result.array("x", "uint32").tolist() == [2, 3, 4, 5]
        with pytest.raises(ScenarioError, match="is a file that the scenario reads"):
            runner.run(path)


def test_names_without_an_extension(program: Program, adding: Scene) -> None:
    """A name that says nothing of the kind of the file is taken."""
    with_dst(adding, "out")
    assert program("scenario.json").code == 0
    with open(adding.folder / "out", "rb") as file:
        assert numpy.load(file).view("u4").tolist() == [2, 3, 4, 5]


def test_a_tensor_is_no_picture(scene: Scene) -> None:
    """Tensors are written as NumPy arrays as well."""
    scene.resource(
        "tensor", uid="t", dims=[2, 2], format="VK_FORMAT_R32_SFLOAT", shader_access="readwrite", dst="t.png"
    )
    (finding,) = validate_file(scene.write()).findings
    assert finding.pointer == "/resources/0/tensor/dst"
    assert "has the extension '.png', expected '.npy'" in finding.message


@pytest.mark.parametrize(
    "one, other, message",
    [
        ("out/a.npy", "out/../out/a.npy", "resources 'x' and 'y' have the same dst "),
        ("a.npy", "link.npy", "resources 'x' and 'y' have the same dst "),
        ("out/a.npy", "out/a.npy/b.npy", "the dst of resource 'y' lies below that of resource 'x', which is a file"),
        ("out/a.npy/c/b.npy", "out/a.npy", "the dst of resource 'x' lies below that of resource 'y', which is a file"),
    ],
)
def test_destinations_against_each_other(scene: Scene, one: str, other: str, message: str) -> None:
    """Two resources cannot be written to one file, however its name is spelled, nor one below the other's file."""
    (scene.folder / "link.npy").symlink_to("a.npy")
    scene.buffer("x", size=4, dst=one).buffer("y", size=4, dst=other)
    path = scene.write()
    (finding,) = validate_file(path).findings
    assert finding.message.startswith(message)
    with Runner() as runner, pytest.raises(ScenarioError, match=message):
        runner.run(path)
    assert sorted(os.listdir(scene.folder)) == ["link.npy", "scenario.json"]


def test_captures_do_not_overwrite_what_is_read(shader_cache: Path, adding: Scene) -> None:
    """A frame that would be written over an input is refused before anything runs."""
    adding.npy("frame_0/x.npy", numpy.array([1, 2, 3, 4], numpy.uint32))
    adding.resources[1]["buffer"]["src"] = "frame_0/x.npy"
    adding.command("mark_boundary", resources=["x"])
    path = adding.write()
    before = files_in(adding.folder)
    with Runner() as runner:
        with pytest.raises(FileError, match="cannot become a frame of 'x', because the scenario reads this"):
            runner.run(path, capture_dir=adding.folder)
        assert files_in(adding.folder) == before
        runner.run(path, capture_dir=adding.folder / "captured")


def test_outputs_of_two_runs(program: Program, scene: Scene) -> None:
    """The marker of a killed run makes validate and the next run say so; a run that ends well removes it."""
    scene.buffer("x", size=4).buffer("y", size=4).write()
    marker = marker_path([str(scene.folder / "x.out.npy"), str(scene.folder / "y.out.npy")])
    assert marker is not None
    Path(marker).touch()
    (finding,) = validate_file(scene.folder / "scenario.json").findings
    assert (finding.code, finding.severity) == ("SR-FILE-005", "warning")
    assert finding.message.startswith("the output files come from two runs: a run was killed while it replaced them")
    ended = program("scenario.json", exit_code=0)
    assert "the output files come from two runs" in ended.err
    assert not os.path.lexists(marker)
    assert program("scenario.json").err == ""
