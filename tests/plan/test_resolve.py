"""Plans: contents of records, sources of bytes, and limits of a device."""

import copy
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import SourceFile, lease
from scenario_runner.plan.limits import NAMES
from scenario_runner.plan.plan import Barrier
from scenario_runner.plan.records import Dispatch
from scenario_runner.plan.resolve import resolve
from scenario_runner.plan.sources import ArraySource, FilePart, NpySource, in_memory
from scenario_runner.run.reported_device import read_device
from scenario_runner.scenario import load
from scenario_runner.validation import Options, validate_file
from tests.scenes import Scene, error_of, glsl

TWO = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"


@pytest.fixture(autouse=True)
def _shader_cache(shader_cache: Path) -> None:
    """Shaders are kept for the session."""


def test_plan_of_a_scenario(scene: Scene) -> None:
    """Equal dispatches share a pipeline and descriptors; frames, captures, barriers and outputs follow the file."""
    scene.shader("s", glsl("b[0] = a[0];", TWO)).buffer("x", numpy.zeros(4, numpy.uint32), dst=None)
    scene.buffer("y", size=16).buffer("z", size=16, dst="/absolute/z.npy")
    scene.barrier("m")
    scene.dispatch("s", ["x", "y"], [4, 2]).dispatch("s", ["x", "y"], [7], implicit_barrier=False)
    scene.command("dispatch_barrier", memory_barrier_refs=["m"]).command("dispatch_barrier")
    scene.command("mark_boundary", resources=["y", "z", "y"], frame_id=9).dispatch("s", ["x", "z"])
    plan = resolve(load(scene.write()))
    assert len(plan.pipelines) == 1
    assert len(plan.descriptor_lists) == 2
    first, second = plan.frames
    assert [type(operation) for operation in first.operations] == [Dispatch, Dispatch, Barrier]
    dispatches = [operation for operation in first.operations if isinstance(operation, Dispatch)]
    assert [dispatch.workgroup_count for dispatch in dispatches] == [(4, 2, 1), (7, 1, 1)]
    assert [dispatch.barrier_after for dispatch in dispatches] == [True, False]
    assert (first.frame_id, first.boundary, first.captures) == (9, True, ("y", "z"))
    assert (second.boundary, second.captures, len(second.operations)) == (False, (), 1)
    assert [(output.uid, output.destination) for output in plan.outputs] == [
        ("y", str(scene.folder / "y.out.npy")),
        ("z", "/absolute/z.npy"),
    ]
    assert plan.dispatch_count == 3
    assert plan.resources["x"].source is not None
    assert plan.resources["y"].source is None


def test_everything_wrong_is_reported_together(scene: Scene) -> None:
    """Mistakes in files and sizes are one error with a problem each, in the order of the file, each with its place."""
    scene.buffer("x", numpy.zeros(3, numpy.uint32), size=16).buffer("y", size=16, src="missing.npy")
    scene.resource("raw_data", uid="p", src="also missing.npy").buffer("z", numpy.zeros(4, numpy.uint8))
    path = scene.write()
    error = error_of(ScenarioRunnerError, resolve, load(path))
    pointers = [problem.pointer for problem in error.problems]
    assert pointers == ["/resources/0/buffer/size", "/resources/1/buffer/src", "/resources/2/raw_data/src"]
    assert all(problem.path == str(path) and problem.line for problem in error.problems)
    assert error.exit_code == 4


def test_mistakes_of_dispatches_are_reported_together(scene: Scene) -> None:
    """Mistakes in several commands and shaders are one error."""
    push = "layout(push_constant) uniform P { uvec2 n; } p;\n"
    scene.shader("s", glsl("b[0] = a[0];", TWO)).shader("t", glsl("b[0] = p.n.y;", TWO + push), push_constants_size=4)
    scene.buffer("x", size=16).dispatch("s", ["x"]).dispatch("t", ["x", "x"]).dispatch("s", [])
    error = error_of(ScenarioRunnerError, resolve, load(scene.write()))
    assert {problem.pointer for problem in error.problems} == {
        "/commands/0/dispatch_compute/bindings",
        "/resources/1/shader/push_constants_size",
        "/commands/2/dispatch_compute/bindings",
    }
    assert len(error.problems) == 4  # the last command lacks both bindings


def test_planning_leaves_the_scenario_alone(scene: Scene) -> None:
    """A scenario can be planned again and again: nothing is written back into it."""
    scene.shader("s", glsl("b[0] = a[0];", TWO)).buffer("x", size=16).buffer("y", size=16).dispatch("s", ["x", "y"])
    scenario = load(scene.write())
    before = repr(scenario)
    plans = [resolve(scenario, inputs={"x": bytes(16)} if number else None) for number in range(2)]
    assert repr(scenario) == before
    assert plans[0].resources["x"].source is None
    assert plans[1].resources["x"].source is not None
    assert plans[0].pipelines == plans[1].pipelines


ARRAY = numpy.arange(24, dtype=numpy.int32).reshape(2, 3, 4)

NO_ARRAY = ", expected a NumPy array, an object with __array__ or __dlpack__ (tensors of PyTorch and JAX), or bytes"


def content(source: Any, piece: int | None = None) -> bytes:
    """All bytes of a source, read at once or in pieces."""
    data = bytearray(source.size_bytes)
    view = memoryview(data)
    step = piece or len(data) or 1
    for offset in range(0, len(data), step):
        source.read_into(view[offset : offset + step], offset)
    return bytes(data)


@pytest.mark.parametrize("piece", [None, 1, 7, 16, 95])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_npy_in_pieces(tmp_path: Path, piece: int | None, order: Any, byte_order: str) -> None:
    """A file gives the same bytes whole and in pieces, twice, whatever its byte and memory order."""
    numpy.save(tmp_path / "x.npy", ARRAY.astype(f"{byte_order}i4").copy(order=order))
    source = NpySource(str(tmp_path / "x.npy"))
    for _ in range(2):
        assert content(source, piece) == ARRAY.astype("<i4").tobytes()


def test_npy_that_changes(tmp_path: Path) -> None:
    """A file with another header than when it was planned is a FileError."""
    path = tmp_path / "x.npy"
    numpy.save(path, ARRAY)
    source = NpySource(str(path))
    numpy.save(path, ARRAY.astype(numpy.int64))
    with pytest.raises(FileError, match=r"the file changed while the scenario was running$"):
        content(source)


@pytest.mark.parametrize(
    "data, expected",
    [
        (ARRAY, ARRAY.tobytes()),
        (ARRAY.astype(">i4"), ARRAY.tobytes()),
        (numpy.asfortranarray(ARRAY), ARRAY.tobytes()),
        (ARRAY[:, ::2, ::-1], ARRAY[:, ::2, ::-1].tobytes()),
        (numpy.float16(1.5), b"\x00\x3e"),
        (numpy.zeros((3, 0)), b""),
        (numpy.array([True, False]), b"\x01\x00"),
        (b"abc", b"abc"),
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(ARRAY), ARRAY.tobytes()),
    ],
)
@pytest.mark.parametrize("piece", [None, 5])
def test_arrays(data: Any, expected: bytes, piece: int | None) -> None:
    """An array gives little-endian bytes in C order."""
    assert content(ArraySource(data, "x"), piece) == expected


@pytest.mark.parametrize(
    "data, message",
    [
        ([1, 2], "input 'x' is a list" + NO_ARRAY),
        ("text", "input 'x' is a str" + NO_ARRAY),
        (None, "input 'x' is a NoneType" + NO_ARRAY),
        (numpy.array([object()]), "input 'x' is an array of Python objects, expected numbers"),
    ],
)
def test_what_is_no_array(data: Any, message: str) -> None:
    """Content without plain bytes is a UsageError with the input's name."""
    assert str(error_of(UsageError, ArraySource, data, "x")) == message


LARGE_BYTES = 65 << 20


def part(path: Path, start: int = 0, size: int | None = None) -> FilePart:
    """A constant in a file, as a plan has it."""
    with SourceFile(path) as file:
        return FilePart(str(path), file.identity, start, file.size_bytes if size is None else size)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of more bytes than are copied."""
    path = tmp_path / "large"
    numpy.arange(LARGE_BYTES // 4, dtype="<u4").tofile(path)
    return path


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    """A file changed after planning is refused, whether longer, shorter or newer."""
    path = tmp_path / "a"
    for change in (lambda: path.write_bytes(bytes(99)), lambda: path.write_bytes(b"x" * 200), lambda: os.utime(path)):
        path.write_bytes(bytes(100))
        time.sleep(0.05)
        constant = part(path)
        change()
        with pytest.raises(FileError, match="the file changed while the scenario was running"), in_memory([constant]):
            pass


def test_nobody_cuts_a_large_file_while_it_is_mapped(large: Path) -> None:
    """Somebody who copies another file over it waits until its bytes are not needed any more."""
    constant = part(large, 4, LARGE_BYTES - 4)
    small = large.with_name("small")
    small.write_bytes(b"small")
    with in_memory([constant]) as (view,):
        copying = subprocess.Popen(["cp", str(small), str(large)])
        while large.stat().st_size == LARGE_BYTES and not _waits(copying.pid):
            time.sleep(0.01)
        assert copying.poll() is None
        assert int(numpy.frombuffer(view, "<u4").sum(dtype="u8")) == sum(range(LARGE_BYTES // 4))
    assert copying.wait(30) == 0
    assert large.read_bytes() == b"small"


def _waits(pid: int) -> bool:
    """Whether a process waits for a lease to be given back."""
    return "lease" in Path(f"/proc/{pid}/wchan").read_text() or "break" in Path(f"/proc/{pid}/wchan").read_text()


def test_a_large_file_without_a_lease_is_copied(large: Path) -> None:
    """A file that another process has open for writing is copied first, so that later writes have no effect."""
    constant = part(large)
    with large.open("r+b") as writing, SourceFile(large) as file:
        with lease(file) as granted:
            assert not granted
        with in_memory([constant]) as (view,):
            writing.truncate(0)
            assert int(numpy.frombuffer(view, "<u4").sum(dtype="u8")) == sum(range(LARGE_BYTES // 4))


NOTHING: dict[str, Any] = {name: 0 for name in NAMES if name.startswith("max")}
# Exactly what the scenario below needs.
ENOUGH = NOTHING | {
    "maxBoundDescriptorSets": 3,
    "maxComputeSharedMemorySize": 4096,
    "maxComputeWorkGroupCount": [10, 20, 30],
    "maxComputeWorkGroupInvocations": 2 * 3 * 4,
    "maxComputeWorkGroupSize": [2, 3, 4],
    "maxImageDimension2D": 7,
    "maxPerStageDescriptorStorageBuffers": 2,
    "maxPerStageDescriptorUniformBuffers": 1,
    "maxPerStageResources": 3,
    "maxPushConstantsSize": 128,
    "maxStorageBufferRange": 1000,
    "maxUniformBufferRange": 500,
}
DECLARED = """
layout(local_size_y = 3, local_size_z = 4) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(set = 0, binding = 1) uniform Uniform { uint first; };
layout(set = 2, binding = 0) buffer More { uint more[]; };
layout(push_constant) uniform Push { uint pushed[32]; };
shared uint table[1024];
"""
BODY = "table[gl_LocalInvocationIndex] = more[0]; barrier(); data[0] = table[1] + first + pushed[31];"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """The doctor's report of this machine, with its first device called "card"."""
    content: dict[str, Any] = json.loads(json.dumps(gather()))
    content["devices"] = content["devices"][:1]
    content["devices"][0]["name"] = "card"
    return content


@pytest.fixture
def limited(scene: Scene, shader_cache: Path) -> Scene:
    """One dispatch that uses a bit of everything."""
    scene.shader("s", glsl(BODY, DECLARED, local_size=2), push_constants_size=128)
    scene.buffer("big", size=1000).buffer("uni", size=500).image("i", "R8G8B8A8_UNORM", size=(5, 7))
    scene.raw_data("pushed", numpy.zeros(32, "u4"))
    bindings = {(0, 0): "big", (0, 1): "uni", (2, 0): "big"}
    return scene.dispatch("s", bindings, [10, 20, 30], push_data_ref="pushed")


def findings(scene: Scene, report: dict[str, Any], limits: dict[str, Any]) -> tuple[Diagnostic, ...]:
    """The findings about the scenario on a device with these limits."""
    report["devices"][0]["limits"] = limits
    path = scene.file("doctor.json", json.dumps(report))
    return validate_file(scene.write(), Options(device=read_device(str(path)))).findings


def test_exactly_enough(limited: Scene, report: dict[str, Any]) -> None:
    """A scenario at the device's limits has no finding, and a report without limits has none either."""
    assert findings(limited, report, ENOUGH) == ()
    assert findings(limited, report, {}) == ()


SHADER = "/resources/0/shader"
COMMAND = "/commands/0/dispatch_compute"


@pytest.mark.parametrize(
    "code, name, limit, pointer, words",
    [
        ("SR-LIMIT-001", "maxComputeWorkGroupSize[2]", 3, SHADER, "shader 's' has a workgroup of 4 along z"),
        ("SR-LIMIT-002", "maxComputeWorkGroupInvocations", 23, SHADER, "shader 's' has 24 invocations a workgroup"),
        ("SR-LIMIT-003", "maxComputeWorkGroupCount[1]", 19, f"{COMMAND}/rangeND", "20 workgroups along y"),
        ("SR-LIMIT-004", "maxComputeSharedMemorySize", 4095, SHADER, "shader 's' has 4096 bytes of shared memory"),
        ("SR-LIMIT-005", "maxBoundDescriptorSets", 2, SHADER, "shader 's' uses descriptor set 2"),
        ("SR-LIMIT-006", "maxPerStageDescriptorStorageBuffers", 1, SHADER, "shader 's' uses 2 storage buffers"),
        ("SR-LIMIT-006", "maxPerStageResources", 2, SHADER, "shader 's' uses 3 resources"),
        ("SR-LIMIT-007", "maxPushConstantsSize", 124, f"{SHADER}/push_constants_size", "push_constants_size is 128"),
        (
            "SR-LIMIT-008",
            "maxUniformBufferRange",
            499,
            "/resources/2/buffer/size",
            "buffer 'uni' of 500 bytes is bound as a uniform buffer",
        ),
        # drivers work beyond it as a rule
        (
            "SR-LIMIT-008",
            "maxStorageBufferRange",
            999,
            "/resources/1/buffer/size",
            "buffer 'big' of 1000 bytes is bound as a storage buffer",
        ),
        ("SR-LIMIT-009", "maxImageDimension2D", 6, "/resources/3/image/dims", "image 'i' has 5 x 7 texels"),
    ],
)
def test_one_too_little(
    limited: Scene, report: dict[str, Any], code: str, name: str, limit: int, pointer: str, words: str
) -> None:
    """A scenario beyond a limit has one finding with the limit's name, both numbers and the place."""
    member, _, axis = name.removesuffix("]").partition("[")
    limits = dict(ENOUGH)
    if axis:
        limits[member] = [limit if str(number) == axis else most for number, most in enumerate(ENOUGH[member])]
    else:
        limits[member] = limit
    (finding,) = findings(limited, report, limits)
    assert (finding.code, finding.pointer) == (code, pointer)
    assert finding.message == f"{words}; {name} of 'card' is {limit}"
    assert finding.severity == ("warning" if name == "maxStorageBufferRange" else "error")


def test_misaligned_members_of_a_group(limited: Scene, report: dict[str, Any]) -> None:
    """An offset must suit storage and uniform buffers."""
    limited.buffer("x", size=64, memory_group={"id": "g"}).buffer("y", size=64, memory_group={"id": "g", "offset": 64})
    limits = {"minStorageBufferOffsetAlignment": 32, "minUniformBufferOffsetAlignment": 256}
    (finding,) = findings(limited, report, ENOUGH | limits)
    assert (finding.code, finding.pointer) == ("SR-LIMIT-012", "/resources/6/buffer/memory_group/offset")
    assert finding.message == (
        "memory group 'g' places 'y' at offset 64, which is not a multiple of the alignment 256 that 'card' needs"
    )


def test_all_at_once(limited: Scene, report: dict[str, Any]) -> None:
    """All exceeded limits are reported together."""
    nothing = {name: [0] * 3 if isinstance(ENOUGH[name], list) else 0 for name in NOTHING}
    assert len(findings(limited, report, nothing)) == 16  # three axes twice, and ten limits of one number


@pytest.mark.parametrize("scope, has_workgroup_scope", [(3, False), (2, False), (2, True)])
def test_cooperative_matrices(report: dict[str, Any], tmp_path: Path, scope: int, has_workgroup_scope: bool) -> None:
    """The combinations in a report are compared with the shaders' matrices."""
    components = ["float16", "float16", "float32", "float32"]
    row = {"sizes": [16, 16, 16], "components": components, "scope": scope, "saturating": False}
    report = copy.deepcopy(report)
    device = report["devices"][0]
    assert device["cooperative_matrices"] is None or "VK_KHR_cooperative_matrix" in device["extensions"]
    device["cooperative_matrices"] = [row | {"invocations": 0, "is_flexible": False}]
    features = {"cooperativeMatrixWorkgroupScope": has_workgroup_scope}
    device["features"] |= {"VkPhysicalDeviceCooperativeMatrix2FeaturesNV": features}
    (tmp_path / "doctor.json").write_text(json.dumps(report))
    matrices = Path(__file__).resolve().parents[2] / "scenarios" / "shader_features" / "cooperative_matrix"
    options = Options(device=read_device(str(tmp_path / "doctor.json")))
    messages = [finding.message for finding in validate_file(matrices / "scenario.json", options).findings]
    lacking = [each for each in messages if "needs cooperative matrices that 'card' lacks: A of 16 x 16" in each]
    assert len(lacking) == (scope == 2), messages
    assert all(("supports none" in each) != has_workgroup_scope for each in lacking)
