"""Reference pages agree with the program: options, codes, formats and limits."""

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

import scenario_runner
from scenario_runner.doctor import machine_report
from scenario_runner.doctor.machine_report import gather
from scenario_runner.scenario import loads
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES
from scenario_runner.scenario.resources import SPELLINGS
from tests.files.test_dds import dds_bytes
from tests.program import Program
from tests.scenes import Scene, glsl

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scenario_runner"
DEVELOPMENT, DOCTOR, RESOURCE_PAGE, COMMAND_PAGE = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("development", "doctor", "format", "command_format")
)
FORMAT = RESOURCE_PAGE + COMMAND_PAGE
KINDS = {**RESOURCES, **COMMANDS}


def test_named_files_exist() -> None:
    """Every path in the text, of the checkout or of the package, leads to a file or a folder."""
    named = set(
        re.findall(r"`([\w.-]+(?:/[\w.-]*)+|\w+\.py)`", re.sub(r"^```.*?^```", "", DEVELOPMENT, flags=re.M | re.S))
    )
    assert len(named) > 60
    assert {path for path in named if not (ROOT / path).exists() and not (PACKAGE / path).exists()} == set()


def test_named_commands_exist() -> None:
    """Every path of the checkout in the commands leads to something."""
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```", DEVELOPMENT, re.M | re.S))
    named = set(re.findall(r"(?<!\S)((?:tools|tests|scenarios|\.ci)/[\w./*-]+)", commands))
    assert len(named) >= 7
    assert {path for path in named if not list(ROOT.glob(path))} == set()


def test_every_package_is_described() -> None:
    """The tree has a line for each package and each of its rooms."""
    folders = {path.parent for path in PACKAGE.glob("*/**/__init__.py")}
    wanted = {f"{folder.relative_to(PACKAGE).as_posix()}/" for folder in folders if folder.name != "_generated"}
    assert wanted - set(re.findall(r"^\| `([\w/]+/)` \|", DEVELOPMENT, re.M)) == set()


def test_the_code_for_pytorch_is_that_of_the_example() -> None:
    """The functions that docs/pytorch.md shows, which need PyTorch to run, stand in the example's script."""
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    script = (ROOT / "scenarios" / "ml" / "pytorch" / "build.py").read_text(encoding="utf-8")
    functions = re.findall(r"^```py\n(def .*?)^```", page, re.M | re.S)
    assert len(functions) == 4
    assert [function for function in functions if function not in script] == []


def test_the_python_reference_has_every_public_name() -> None:
    """The page that is made of docstrings has each name of the package, and all errors."""
    page = (ROOT / "docs" / "python_reference.md").read_text(encoding="utf-8")
    elsewhere = {"ScenarioRunnerError", "__version__"}  # among the errors; described by its name
    names = re.findall(r"^::: scenario_runner\.(\w+)$", page, re.M)
    assert sorted(names) == sorted({*scenario_runner.__all__, "errors"} - elsewhere)


def documented(title: str) -> dict[str, list[str]]:
    """The keys of the table under a heading, each with the words in backquotes of its description."""
    section = DOCTOR.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M)
    return {key: re.findall(r"`(\w+)`", text) for key, text in rows}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return gather()


def test_every_key_of_the_report_is_documented(report: dict[str, Any]) -> None:
    """The tables have the keys of the report and of a device, in their order; nested objects have the keys named."""
    keys = documented("The report")
    assert list(keys) == list(report)
    for name in ("program", "python", "vgf", "cache", "loader", "driver_start"):
        assert list(report[name]) == [word for word in keys[name] if word in report[name]]
    assert {*report["system"], "path", "accessible"} == set(keys["system"])
    assert set(report["drivers"][0]) == set(keys["drivers"])
    compilers = report["compilers"]
    nested = {*compilers, *compilers["GLSL"][0], *compilers["spirv_val"], "message", "help"}
    assert nested == set(keys["compilers"])
    layers = report["layers"]
    nested = {*layers, *layers["available"][0], *layers["validation"], *layers["ml_emulation"]}
    assert nested | {"path"} == set(keys["layers"])


def test_every_key_of_a_device_is_documented(report: dict[str, Any]) -> None:
    """The table of devices has each key of a device."""
    keys = documented("A device")
    for device in report["devices"]:
        assert set(device) == set(keys)
        assert set(device["ml"]) == set(keys["ml"])
        assert set(device["driver"]) == set(keys["driver"])
        assert set(device["queue_families"][0]) == set(keys["queue_families"])
        assert set(next(iter(device["formats"].values()))) == set(keys["formats"])


def test_every_finding_is_documented() -> None:
    """The list of findings has every id that the source gives one."""
    source = Path(machine_report.__file__).with_name("advice.py").read_text(encoding="utf-8")
    ids = set(re.findall(r'"((?:[a-z]+-)+[a-z]+)"', source))
    ids |= {f"{who}-{what}" for who in ("driver", "layer") for what in ("crash", "hang")}
    ids |= {f"{language}-compiler-unusable" for language in ("glsl", "hlsl")}
    listed = set(re.findall(r"`([a-z-]+)`", DOCTOR.split("### Findings\n", 1)[1]))
    assert listed == ids


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_format_doc", ROOT / "tools" / "generate_format_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(kind: str) -> str:
    """Return the section of the page about a kind, under any of its names."""
    found = [
        text for text in re.split(r"^###? ", FORMAT, flags=re.M) if re.match(rf"{kind}\n|.*Also .*`{kind}`", text, re.S)
    ]
    assert len(found) == 1, kind
    return found[0]


def shared_keys(title: str, name: str) -> str:
    """Return the table of keys that all kinds of a list have, or nothing for a kind without these keys."""
    [(exceptions, table)] = re.findall(
        rf"^## {title}\n.*?All kinds(?: but (.*?))? have:\n(.*?)^###", FORMAT, re.M | re.S
    )
    return "" if name in exceptions.split(" and ") else table


def example(kind: str) -> dict[str, Any]:
    """The entry that the page shows for a kind."""
    [block] = re.findall(r"^```json\n(.*?)^```", section(kind), re.M | re.S)
    entry: dict[str, Any] = json.loads(block)
    return entry


def keys(kind: str) -> set[str]:
    return set(KINDS[kind].fields_by_key())


def test_the_format_pages_are_current(generator: ModuleType) -> None:
    """Generating the pages again changes nothing."""
    assert generator.pages() == {"format.md": RESOURCE_PAGE, "command_format.md": COMMAND_PAGE}


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_kind_is_documented(kind: str) -> None:
    """The page lists each key of a kind, with a type and a meaning, and its example uses each."""
    text = section(kind)
    text += "".join(section(base) for base in re.findall(r"It has the keys of \[(\w+)\]", text))
    [(name, body)] = example(kind).items()
    text += shared_keys("Resources" if kind in RESOURCES else "Commands", name)
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*) \| (.+) \|$", text, re.M)
    assert {row[0] for row in rows} == keys(kind)
    assert all(not re.search("None|null", kind_of_value) for _, kind_of_value, _, _ in rows)
    assert KINDS[name] == KINDS[kind]
    assert body.keys() == keys(kind)


def test_the_examples_of_the_format_are_one_scenario() -> None:
    """The examples of the page, with the resources that they refer to, are a valid scenario without warnings."""
    text = json.loads((ROOT / "docs" / "format_examples.json").read_text(encoding="utf-8"))
    resources = [example(kind) for kind in RESOURCES]
    commands = [example(kind) for kind in COMMANDS]
    shown = {body["uid"] for entry in resources for body in entry.values()}
    resources += [entry for entry in text["resources"] for body in entry.values() if body["uid"] not in shown]
    scenario = loads(json.dumps({"resources": resources, "commands": commands}))
    assert scenario.warnings == ()
    assert len(scenario.commands) == len(COMMANDS)


def test_spellings_are_documented() -> None:
    """Every second spelling of a kind or a value is on the page."""
    spellings = FORMAT.split("## Spellings of the dialects")[1]
    for name, ours in SPELLINGS.items():
        assert f"| `{ours}` | `{name}` |" in spellings
    assert "`$schema`" in FORMAT


PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
# declaration in the shader, what its main does with it
BEYOND = {
    "1d": ("layout(binding = 0, r32f) uniform image1D x;", "imageStore(x, 0, vec4(1));"),
    "3d": ("layout(binding = 0, r32f) uniform image3D x;", "imageStore(x, ivec3(0), vec4(1));"),
    "cube": ("layout(binding = 0, r32f) uniform imageCube x;", "imageStore(x, ivec3(0), vec4(1));"),
    "array": ("layout(binding = 0, r32f) uniform image2DArray x;", "imageStore(x, ivec3(0), vec4(1));"),
    "samples": ("layout(binding = 0) uniform sampler2DMS x;", "r = texelFetch(x, ivec2(0), 0).r;"),
    "shadow": ("layout(binding = 0) uniform sampler2DShadow x;", "r = textureLod(x, vec3(0), 0);"),
    "rays": (
        "#extension GL_EXT_ray_query : require\nlayout(binding = 0) uniform accelerationStructureEXT x;",
        "rayQueryEXT q; rayQueryInitializeEXT(q, x, 0, 255, vec3(0), 0, vec3(1), 1); r = float(rayQueryProceedEXT(q));",
    ),
}
CODES = {
    **dict.fromkeys(("1d", "3d", "cube", "array", "samples"), "SR-IMAGE-001"),
    "shadow": "SR-IMAGE-005",
    "rays": "SR-BIND-008",
    "slices": "SR-IMAGE-006",
    "planes": "SR-JSON-005",
    "stage": "SR-JSON-005",
    "depth": "SR-ATTACH-006",
    "volume": "SR-FILE-010",
    "objects": "SR-FILE-008",
}


def _scenes(folder: Path) -> Iterator[tuple[str, Scene]]:
    for name, (declaration, body) in BEYOND.items():
        scene = Scene(folder).image("x", "R32_SFLOAT", size=(4, 4)).buffer("r", size=4)
        text = glsl(body, f"{declaration}\nlayout(binding = 1) buffer R {{ float r; }};")
        scene.shader(name, text.replace("#version 450", "#version 460"))
        yield name, scene.dispatch(name, ["x", "r"])
    yield "slices", Scene(folder).image("x", "R8_UNORM", dims=[1, 4, 4, 2])
    yield "planes", Scene(folder).image("x", "G8_B8_R8_3PLANE_420_UNORM", size=(4, 4))
    yield "stage", Scene(folder).resource("shader", uid="s", src="3d.comp", stage="geometry")
    scene = Scene(folder).image("x", "D32_SFLOAT", size=(4, 4), color_attachment=True)
    for stage, result in (("vertex", "gl_Position"), ("fragment", "color")):
        out = "layout(location = 0) out vec4 color;" if stage == "fragment" else ""
        text = ["#version 450", out, f"void main() {{ {result} = vec4(0); }}"]
        scene.resource("shader", uid=stage, stage=stage, src={"text": text})
    draw: dict[str, Any] = {"vertex_shader_ref": "vertex", "fragment_shader_ref": "fragment", "bindings": []}
    yield "depth", scene.command("dispatch_fragment", **draw, color_attachment_refs=["x"])
    scene = Scene(folder).image("x", "R8_UNORM", size=(1, 1), src="volume.dds")
    scene.file("volume.dds", dds_bytes(b"a", dimension=4))
    yield "volume", scene
    yield "objects", Scene(folder).raw_data("x", numpy.array([{}], dtype=object))


def _sampler(folder: Path) -> Scene:
    """An image that is filtered as a second one says."""
    scene, linear = Scene(folder), {"min_filter": "LINEAR", "mag_filter": "LINEAR"}
    scene.image("x", "R32_SFLOAT", numpy.array([[0, 1]], "f4"), shader_access="readonly")
    scene.image("filters", "R32_SFLOAT", size=(1, 1), shader_access="readonly", **linear)
    declarations = """layout(binding = 0) uniform texture2D x;
        layout(binding = 1) uniform sampler filters;
        layout(binding = 2) buffer R { float r; };"""
    body = "r = textureLod(sampler2D(x, filters), vec2(0.5), 0).r;"
    scene.buffer("r", size=4).shader("sample", glsl(body, declarations))
    return scene.dispatch("sample", ["x", "filters", "r"])


def test_limits_have_the_codes_of_the_page(tmp_path: Path, program: Program) -> None:
    """Each scenario beyond a limit has the code that the page names, and the page names no other code."""
    for name, scene in _scenes(tmp_path):
        scene.write(f"{name}.json")
    report = json.loads(program("validate", "--format", "json", *(f"{name}.json" for name in CODES)).out)
    codes = {file["file"]: {finding["code"] for finding in file["findings"]} for file in report["files"]}
    assert codes == {f"{name}.json": {code} for name, code in CODES.items()}
    assert set(re.findall(r"SR-[A-Z]+-\d+", PAGE.read_text(encoding="utf-8"))) == set(CODES.values())


def test_a_sampler_of_another_image(tmp_path: Path, program: Program) -> None:
    """Between two texels, 0 and 1, the filters of the second image give the mean."""
    _sampler(tmp_path).write()
    assert program("scenario.json").code == 0
    assert numpy.load(tmp_path / "r.out.npy").view("f4") == pytest.approx([0.5])
