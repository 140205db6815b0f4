"""Results and scenarios in notebooks: their HTML, and a notebook that Jupyter runs."""

import base64
import re
import warnings
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import imageio.v3
import nbformat
import numpy
import pytest
from nbclient import NotebookClient

from scenario_runner import Runner, from_dict
from tests.browser import answer_of, needs_browser
from tests.scenes import Scene, glsl

MOST_BYTES = 100_000
NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"


class Page(HTMLParser):
    """The text, table rows and pictures of a page with only closed elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.rows: list[list[str]] = []
        self.pictures: list[Any] = []
        self.feed(html)
        self.close()
        assert self.open == []
        assert html.isascii()
        assert len(html) <= MOST_BYTES

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            data = str(dict(attrs)["src"]).removeprefix("data:image/png;base64,")
            self.pictures.append(imageio.v3.imread(BytesIO(base64.b64decode(data)), extension=".png"))
        elif tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] == "td":
            self.rows[-1][-1] += data


def page_of(runner: Runner, resources: dict[str, dict[str, Any]], data: dict[str, Any], **arguments: Any) -> Page:
    """The page of a scenario without commands: each resource keeps its content."""
    entries = [
        {kind: {"uid": uid, "shader_access": "readwrite", **keys}}
        for uid, named in resources.items()
        for kind, keys in named.items()
    ]
    scenario = from_dict({"resources": entries, "commands": []})
    return Page(runner.run(scenario, data, **arguments)._repr_html_())


def image(width: int, height: int, format: str = "R8G8B8A8_UNORM") -> dict[str, Any]:
    return {"image": {"dims": [1, width, height, 1], "format": f"VK_FORMAT_{format}"}}


def tensor(dims: list[int], format: str = "R32_SFLOAT") -> dict[str, Any]:
    return {"tensor": {"dims": dims, "format": f"VK_FORMAT_{format}"}}


def test_an_image(runner: Runner) -> None:
    """An image is a picture of its texels, with statistics of each channel; an alpha near zero does not hide it."""
    texels = numpy.arange(4 * 6 * 4, dtype="u1").reshape(4, 6, 4)
    clear = texels * numpy.uint8([1, 1, 1, 0])
    resources = {"x": image(6, 4), "y": image(6, 4), "z": image(6, 4, "R8G8B8A8_UINT")}
    page = page_of(runner, resources, {"x": texels, "y": clear, "z": clear + numpy.uint8([0, 0, 0, 1])})
    assert "x image VK_FORMAT_R8G8B8A8_UNORM, uint8 (4, 6, 4)" in page.text
    assert "6x4; black is 0, white is 255" in page.text
    assert (page.pictures[0] == texels).all()
    assert (page.pictures[1] == texels[..., :3]).all()
    assert page.pictures[2].shape == (4, 6, 3)
    assert page.rows[1] == ["R", "0 4 8 12 16 20 24 28 …", "0", "92", "46", "0", "0"]


def test_a_buffer_of_a_shader(scene: Scene, runner: Runner) -> None:
    """A buffer has the type that all shaders see in it."""
    shader = glsl(
        "b[gl_WorkGroupID.x] = float(a[gl_WorkGroupID.x]) / 2.0;",
        "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n",
    )
    scene.shader("half", shader).buffer("x", numpy.uint32([1, 2])).buffer("y", size=8).dispatch("half", ["x", "y"], [2])
    page = Page(runner.run(scene.write(), outputs=["x", "y"])._repr_html_())
    rows = [row[:3] for row in page.rows if row]
    assert rows == [["uint32", "1 2", "1"], ["float32", "0.5 1", "0.5"]]


def test_a_buffer_and_tensors(runner: Runner) -> None:
    """A buffer that no shader sees is shown as three types; a tensor of two dimensions, or with colours, also as a
    picture."""
    values = numpy.float32([[0, 1, 2], [3, numpy.nan, numpy.inf]])
    colors = numpy.zeros((2, 5, 4, 3), "f4")
    colors[0, :, :, 1] = 1
    resources = {"b": {"buffer": {"size": 6}}, "m": tensor([2, 3]), "c": tensor([2, 5, 4, 3]), "v": tensor([3])}
    data = {"b": numpy.uint8([0, 0, 128, 63, 7, 8]), "m": values, "c": colors, "v": numpy.float32([1, 2, 3])}
    page = page_of(runner, resources, data)
    assert page.rows[1:4] == [
        ["uint8", "0 0 128 63 7 8", "0", "128", "34.3333", "0", "0"],
        ["int32", "1065353216", "1065353216", "1065353216", "1.06535e+09", "0", "0"],
        ["float32", "1", "1", "1", "1", "0", "0"],
    ]
    assert page.rows[5] == ["", "0 1 2 3 nan inf", "0", "3", "1.5", "1", "1"]
    assert page.rows[-1] == ["", "1 2 3", "1", "3", "2", "0", "0"]
    numbers, green = page.pictures
    assert numbers[..., 0].tolist() == [[0, 85, 170], [255, 255, 255]]
    assert numbers[1, 1].tolist() == [255, 0, 255]  # NaN
    assert (green == [0, 255, 0]).all()
    assert "4x5, the first of (2,); " in page.text


def test_large_content_stays_small(runner: Runner) -> None:
    """Noise is shrunk until all pictures have room; of more than 24 arrays the others are counted."""
    noise = numpy.random.default_rng(1).integers(0, 256, (1500, 1100, 4), "u1")
    page = page_of(runner, {"x": image(1100, 1500)}, {"x": noise})
    assert page.pictures[0].shape[:2] == (160, 117)
    assert page.rows[1][1] == " ".join(map(str, noise[0, :8, 0])) + " …"
    small = noise[:300, :300]
    page = page_of(runner, {f"x{at}": image(300, 300) for at in range(30)}, {f"x{at}": small for at in range(30)})
    assert len(page.pictures) >= 20
    assert page.text.endswith("… and 6 more arrays")
    page = page_of(runner, {"x": {"buffer": {"size": 5 << 20}}}, {"x": numpy.ones(5 << 20, "u1")})
    assert page.rows[1] == ["uint8 (1 of 2 values)", "1 1 1 1 1 1 1 1 …", "1", "1", "1", "0", "0"]


@pytest.mark.parametrize(
    "format, text",
    [
        ("BC1_RGB_UNORM_BLOCK", "R0 0 0 0"),
        ("BC4_SNORM_BLOCK", "holds blocks of 'VK_FORMAT_BC4_SNORM_BLOCK', which cannot be shown"),
        ("D32_SFLOAT", "depth"),
        ("E5B9G9R9_UFLOAT_PACK32", "R0 0 0 0"),
        ("R16G16_SINT", "R0 0 0 0"),
    ],
)
def test_formats(runner: Runner, format: str, text: str) -> None:
    """Formats of all sorts are shown; where there is no decoder the page says so."""
    keys = image(4, 4, format)["image"] | {"shader_access": "readonly"}
    scenario = from_dict({"resources": [{"image": {"uid": "x", **keys}}], "commands": []})
    assert text in Page(runner.run(scenario, outputs=["x"])._repr_html_()).text


def test_text_is_text(runner: Runner) -> None:
    """Names with HTML, control characters and other scripts stay text."""
    names = ["<script>alert(1)</script>", "a\"'&\x1b\u202eb", "ü€😀" * 500]
    page = page_of(runner, {name: {"buffer": {"size": 4}} for name in names}, {})
    assert "script" not in page.tags
    assert "<script>alert(1)</script> buffer" in page.text
    assert "a\"'&\\x1b\\u202eb buffer" in page.text
    page = page_of(runner, {f"{at}{names[2]}": {"buffer": {"size": 4}} for at in range(30)}, {})
    assert page.text.count("buffer, int8 (4,)") == 24


def test_a_result_without_arrays(runner: Runner) -> None:
    """An empty result, and one that is only a dry run, are shown too."""
    assert page_of(runner, {}, {}).text == "Result of <scenario>: 0 arrays"
    assert page_of(runner, {"x": tensor([1])}, {}, dry_run=True).text.startswith("Result of <scenario>: ")


def test_times_warnings_and_frames(runner: Runner) -> None:
    """Times, warnings and the captures of frames are shown with the outputs."""
    scenario = from_dict(
        {
            "resources": [{"buffer": {"uid": "x", "size": 4, "shader_access": "readwrite", "colour": "<red>"}}],
            "commands": [{"mark_boundary": {"resources": ["x"], "frame_id": 7}}],
        }
    )
    result = runner.run(scenario, timings=True)
    page = Page(result._repr_html_())
    assert "; host: " in page.text
    assert "warnings:" in page.text
    assert "'colour'" in page.text
    assert "x frame 7 of iteration 0, buffer, int8 (4,)" in page.text
    assert Page(result.frames[0]._repr_html_()).text.startswith("Frame 7 of iteration 0: 1 array")


def test_a_scenario() -> None:
    """A scenario lists its resources and commands with the keys that they have, however many and long they are."""
    shader = {"shader": {"uid": "s", "source": "<b>" * 1000, "type": "GLSL"}}
    buffer = {"buffer": {"uid": "x", "data": numpy.zeros((3, 4), "f4"), "shader_access": "readonly"}}
    dispatch = {"shader_ref": "s", "rangeND": [4], "bindings": [{"set": 0, "id": 1, "resource_ref": "x"}]}
    page = Page(from_dict({"resources": [shader, buffer], "commands": [{"dispatch_compute": dispatch}]})._repr_html_())
    assert [row[:2] for row in page.rows if row] == [["0", "shader"], ["1", "buffer"], ["0", "dispatch_compute"]]
    assert "b" in page.tags
    assert page.rows[1][2].startswith("uid: s, ")
    assert f"source: {'<b>' * 19}<b…" in page.rows[1][2]
    assert "data: float32 (3, 4)" in page.rows[2][2]
    assert "bindings: [{set: 0, id: 1, resource_ref: x}]" in page.rows[-1][2]
    many = [{"buffer": {"uid": f"{at} {'é' * 300}", "size": 4, "shader_access": "readonly"}} for at in range(500)]
    assert re.search(
        r"… and 4\d\d more resources", Page(from_dict({"resources": many, "commands": []})._repr_html_()).text
    )


def test_the_notebook_in_jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook of the documentation runs in Jupyter's kernel, from docs/, and shows a picture and a table."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in notebook.cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter, not ours
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    shown = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    scenario, result, last = map(Page, shown)
    assert [row[1] for row in scenario.rows if row] == ["shader", "image", "buffer", "dispatch_compute"]
    assert result.pictures[0].shape == (48, 64, 4)
    assert (result.pictures[0][..., 0] == numpy.arange(64) * 4).all()
    assert "1 dispatch" in last.text


@needs_browser
def test_in_a_browser(runner: Runner, tmp_path: Path) -> None:
    """A browser draws the pictures, and runs nothing."""
    name = "<img src=x onerror=fail()>"
    picture = {"uid": name, "shader_access": "readwrite"} | image(9, 5)["image"]
    html = runner.run(from_dict({"resources": [{"image": picture}], "commands": []}))._repr_html_()
    script = """
      let failed = false;
      const fail = () => { failed = true; };
      addEventListener("load", () => {
        const pictures = [...document.images].map((image) => [image.naturalWidth, image.naturalHeight, image.width]);
        const line = document.body.innerText.split("\\n")[1];
        const answer = JSON.stringify([pictures, failed, document.querySelectorAll("td").length, line]);
        fetch(`http://127.0.0.1:${location.search.slice(1)}`, { method: "POST", mode: "no-cors", body: answer });
      });"""
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><body><script>{script}</script>{html}</body>")
    title = f"{name} image VK_FORMAT_R8G8B8A8_UNORM, uint8 (5, 9, 4)"
    assert answer_of(page) == [[[9, 5, 128]], False, 28, title]
