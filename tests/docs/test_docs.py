"""The pages run as written: blocks of commands and Python, the README, and the table for users of other tools."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import imageio.v3
import pytest
from jsonschema import Draft202012Validator

from scenario_runner.cli.arguments import parser_of
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.scenario import loads
from tests.browser import needs_browser
from tests.left_out import DXC_LIBRARY, VGF_LIBRARY, needs
from tests.program import FORKS, Program, executable
from tests.scenes import ADD, Scene
from tools.report_picture import HEIGHT, PICTURE, SCALE, WIDTH, main

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?:^|\n)`([\w./-]+\.\w+)`[^\n]*\n\n$")
# A call of the program, or of Python, of which a shell would only split the words, and what becomes of its output.
PLAIN = r"""(?:'[^'\n]*'|"[^"$`\\\n]*"|[^'"|&;<>$`*?~#(){}\[\]\\\n])*?"""
CALL = re.compile(rf"(scenario-runner|tools/run|python -c) ({PLAIN})( 2>&1)?((?: ?[|>;].*)?)")
PROGRESS = re.compile(r"^\d+ of \d+ done .*\n", re.MULTILINE)  # of a machine that is slow
TIMEOUT_S = 120


class Step(NamedTuple):
    """A command or program of a page, and the output shown there."""

    line: int
    kind: str
    command: str
    expected: list[str]


def steps_of(page: Path) -> Iterator[Step]:
    """The commands and programs of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        kind, body = match.groups()
        if kind == "python":
            program, _, expected = body.partition("# prints:\n")
            yield Step(line, kind, program, [each.removeprefix("# ") for each in expected.splitlines()])
        elif kind != "console":
            named = NAMED.search(text[: match.start()])
            if named is not None:
                yield Step(line, "file", named[1], body.splitlines())
        else:
            current: Step | None = None
            for offset, each in enumerate(body.splitlines()):
                if each.startswith("$ "):
                    if current is not None:
                        yield current
                    current = Step(line + offset, kind, each[2:], [])
                elif current is not None:
                    current.expected.append(each)
            if current is not None:
                yield current


def pattern_of(expected: list[str]) -> re.Pattern[str]:
    """Return a pattern for the output of a step."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ \t]*\n")
    return re.compile("".join(parts))


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.name)
def page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shader_cache: Path
) -> tuple[Path, Path, dict[str, str]]:
    """A page, a folder to run it in, and the environment to run it with."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(CHECKOUT / "scenarios", folder / "scenarios", ignore=shutil.ignore_patterns("out", "__pycache__"))
    programs = folder / ".bin"
    programs.mkdir()
    for name in ("scenario-runner", "tools/run"):
        program = programs / name if "/" not in name else folder / name
        module = "from scenario_runner.__main__ import console; console()"
        executable(program, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c "{module}" "$@"\n')
    executable(programs / "python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    environment = os.environ | {
        "PATH": os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"]))),
        # What is in the cache is shown by one page alone.
        "SCENARIO_RUNNER_CACHE": str(folder / ".cache" if request.param.name == "caches.md" else shader_cache),
        "COLUMNS": "100",
    }
    return request.param, folder, environment


def output_of(step: Step, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    """Run a command or a program; return its output and its exit code."""
    command, given, printed = step.command, "", ""
    call = CALL.fullmatch(command)
    if step.kind == "python" or call:
        name, words, both, rest = call.groups() if call else ("python -c", shlex.quote(command), None, "")
        is_merged = bool(both) or (step.kind != "python" and not rest.lstrip().startswith(("|", ">")))
        code, out, err = FORKS.run(
            shlex.split(words), folder, environment, "", TIMEOUT_S, merged=is_merged, python=name == "python -c"
        )
        given, printed = out.decode(), err.decode()
        if not rest:
            return given + printed, code
        command = f"{{ cat; (exit {code}); }}{rest}"
    done = subprocess.run(
        ["sh", "-c", f"{{ {command}\n}} 2>&1"],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return printed + done.stdout, done.returncode


@needs(VGF_LIBRARY, "custom_shaders.md", "debugging.md", "expectations.md", "layers.md", "[ml.md", "python.md")
@needs(VGF_LIBRARY, "pytorch.md", "timing.md", "tosa.md", "tosa_rules.md")
@needs(
    DXC_LIBRARY, "cluster.md", "import.md", "journal.md", "pytest_plugin.md", "reports.md", "[shaders.md", "suites.md"
)
def test_page_says_what_happens(page: tuple[Path, Path, dict[str, str]]) -> None:
    """Each command and program of a page prints the output shown in the page."""
    path, folder, environment = page
    for step in steps_of(path):
        if step.kind == "file":
            (folder / step.command).write_text("\n".join(step.expected) + "\n", encoding="utf-8")
            continue
        output, code = output_of(step, folder, environment)
        assert pattern_of(step.expected).fullmatch(PROGRESS.sub("", output)), (
            f"{path.name}:{step.line}: {step.command}\nprinted:\n{output}\nexpected:\n" + "\n".join(step.expected)
        )
        if step.kind == "python":
            assert code == 0, f"{path.name}:{step.line} ended with {code}:\n{output}"


def test_readme_is_short(checkout: Path) -> None:
    """The README has fewer than 120 lines, and its picture is sharp at 830 pixels and smaller than 150 kB."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    assert f"]({PICTURE.relative_to(checkout)})" in text
    assert PICTURE.stat().st_size < 150_000
    assert imageio.v3.improps(PICTURE).shape[:2] == (HEIGHT * SCALE, WIDTH * SCALE)


def test_links_of_readme_lead_somewhere(checkout: Path) -> None:
    """Each link of the README leads to a file or folder of the checkout, and each anchor to a heading."""
    links = re.findall(r"\]\(([^)#]+)(?:#([\w-]+))?\)", (checkout / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 40
    for path, anchor in links:
        assert (checkout / path).exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (checkout / path).read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, path


@needs_browser
@pytest.mark.heavy
def test_the_picture_shows_a_difference(tmp_path: Path) -> None:
    """The picture, made again, has the size of README's, a light page, and the blue of a ring."""
    main(tmp_path / "report.png")
    pixels = imageio.v3.imread(tmp_path / "report.png", mode="RGB").astype(int)
    assert pixels.shape == (HEIGHT * SCALE, WIDTH * SCALE, 3)
    assert (pixels.min(axis=2) > 240).mean() > 0.6
    assert (abs(pixels - (51, 153, 255)).max(axis=2) < 8).mean() > 0.01


PAGE = (CHECKOUT / "docs" / "coming_from.md").read_text(encoding="utf-8")
OURS = [row.rpartition(" | ")[2] for row in re.findall(r"^\| (?!---).*(?= \|$)", PAGE, re.MULTILINE)]
SPANS = [span for cell in OURS for span in re.findall(r"`([^`]+)`", cell)]
COMMANDS = sorted({span for span in SPANS if span.startswith(("scenario-runner ", "-"))})
SNIPPETS = sorted({span for span in SPANS if re.match(r'\{ |"\w+": ', span)})
PLACEHOLDERS = {"DIR", "FILE", "M", "N", "RE", "S", "SEED"}
EXPECTATIONS = Draft202012Validator(
    json.loads((CHECKOUT / "schemas" / "expectations.schema.json").read_text(encoding="utf-8"))
)


def is_accepted(name: str, arguments: list[str]) -> bool:
    try:
        parser_of(name).parse_args(arguments)
    except ScenarioRunnerError:
        return False
    return True


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_accepted(command: str) -> None:
    """A parser accepts each whole command, and the parser of `run` or `test` accepts each option."""
    words = ["1" if word in PLACEHOLDERS else word for word in shlex.split(command)]
    if words[0] == "scenario-runner":
        name, *arguments = words[1:]
        assert is_accepted(name, arguments) if name.isalpha() else is_accepted("run", words[1:])
    else:
        values: tuple[list[str], ...] = ([], ["1"], ["on"])
        assert any(is_accepted(name, ["a", *words, *value]) for name in ("run", "test") for value in values)


def is_valid(change: dict[str, Any]) -> bool:
    """Tell whether an object, or some keys of one, have a place in a scenario or in expectations."""
    buffer: dict[str, Any] = {"uid": "b", "shader_access": "readwrite", "size": 4}
    unsized = {key: value for key, value in buffer.items() if key != "size"}
    image = {"uid": "i", "format": "VK_FORMAT_R8_UNORM", "dims": [1, 4, 4, 1], "shader_access": "readonly"}
    shader = {"uid": "s", "src": "s.comp"}
    dispatch: dict[str, Any] = {"shader_ref": "s", "rangeND": [1], "bindings": []}
    resources: list[dict[str, Any]] = [{"buffer": buffer}, {"image": image}, {"shader": shader}]
    (key,) = change if len(change) == 1 else ("",)
    if key in ("buffer", "shader"):
        return _loads([change], [])
    changed = (
        ([{"buffer": {**buffer, **change}}], []),
        ([{"buffer": {**unsized, "src": change}}], []),
        ([{"image": {**image, **change}}], []),
        ([{"shader": {**shader, **change}}], []),
        (resources, [{"dispatch_compute": {**dispatch, **change}}]),
        (resources, [{"dispatch_compute": {**dispatch, "bindings": [change]}}]),
    )
    output = {"values": [1], **change}
    expected = (change, {"outputs": change}, {"outputs": {"b": output}})
    return any(_loads(*parts) for parts in changed) or any(EXPECTATIONS.is_valid(part) for part in expected)


def _loads(resources: list[dict[str, Any]], commands: list[dict[str, Any]]) -> bool:
    try:
        return not loads(json.dumps({"resources": resources, "commands": commands})).warnings
    except ScenarioRunnerError:
        return False


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_json_is_valid(snippet: str) -> None:
    """Without a warning; a key that does not exist is noticed."""
    change = json.loads(snippet if snippet.startswith("{") else f"{{{snippet}}}")
    assert is_valid(change)
    assert not is_valid({f"{key}_": value for key, value in change.items()} if "b" not in change else {"b": {"x": 1}})


def test_files_for_arms_runner(tmp_path: Path, program: Program) -> None:
    """Oddities of the format are warnings, values that another program would convert are errors, "" is no path."""

    def scene(name: str, **keys: Any) -> None:
        one = Scene(tmp_path).shader("add", ADD).buffer("b", size=16).dispatch("add", ["b"])
        image = {"mips": True} if name == "mips" else {}
        one.image("i", "R8_UNORM", size=(4, 4), **image)
        if name == "dimensions":
            one.commands[0]["dispatch_compute"]["rangeND"] = [1, 1, 1, 1]
        if name == "layout":
            one.barrier("barrier", "i", layouts=("tensor_aliasing", "general"))
            one.command("dispatch_barrier", image_barrier_refs=["barrier"])
        one.resources[1]["buffer"].update(keys)
        one.write(f"{name}.json")

    for name in ("mips", "dimensions", "layout"):
        scene(name)
    scene("fraction", size=16.0)
    for name, size in (("part", 10.7), ("negative", -1), ("boolean", True)):
        scene(name, size=size)
    scene("no_file", src="none.npy")
    scene("empty", src="", dst="")
    names = ("mips", "dimensions", "layout", "fraction", "part", "negative", "boolean", "no_file", "empty")
    report = json.loads(program("validate", "--format", "json", *(f"{name}.json" for name in names)).out)
    assert [[finding["severity"] for finding in file["findings"]] for file in report["files"]] == [
        *[["warning"]] * 4,
        *[["error"]] * 4,
        [],
    ]
