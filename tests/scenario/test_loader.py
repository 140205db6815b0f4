"""Reading JSON: syntax errors with their places, encodings and duplicate keys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.errors import FileError, ScenarioError
from scenario_runner.files.input import MAX_SCENARIO_BYTES
from scenario_runner.files.json_text import MAX_VALUES, line_and_column, scan
from scenario_runner.scenario import load, loads
from tests.effort import calls_of
from tests.scenes import error_of

GOOD = """{
  "resources": [
    {"shader": {"uid": "add", "src": "add.comp", "type": "GLSL"}},
    {"buffer": {"uid": "inBuffer", "size": 40, "shader_access": "readonly"}}
  ],
  "commands": [
    {"dispatch_compute": {
      "shader_ref": "add",
      "rangeND": [10],
      "bindings": [
        {"set": 0, "id": 0, "resource_ref": "inBuffer"}
      ]
    }}
  ]
}
"""


def refused(text, path="test.json"):
    """The problems of a text, as a user reads them."""
    error = error_of(ScenarioError, loads, text, path)
    assert error.exit_code == 3
    return str(error).splitlines()


def test_load(tmp_path):
    """A file gives its resources and commands in their order, and knows its own folder."""
    file = tmp_path / "test.json"
    file.write_text(GOOD)
    scenario = load(file)
    assert [resource.uid for resource in scenario.resources] == ["add", "inBuffer"]
    assert [command.kind for command in scenario.commands] == ["dispatch_compute"]
    assert (scenario.path, scenario.base_dir, scenario.warnings) == (str(file), str(tmp_path), ())


def test_every_encoding_of_text():
    """Text, bytes, a byte order mark and Windows line ends load alike."""
    expected = loads(GOOD)
    for text in (GOOD.encode(), b"\xef\xbb\xbf" + GOOD.encode(), "\ufeff" + GOOD, GOOD.replace("\n", "\r\n")):
        assert loads(text) == expected


def test_schema_key():
    """A file may name its JSON Schema."""
    assert loads(GOOD.replace("{", '{"$schema": "scenario.schema.json", ', 1)) == loads(GOOD)


def test_place_of_a_reference():
    """A wrong reference is reported with file, line, column, pointer, value and a close match."""
    assert refused(GOOD.replace('_ref": "inBuffer', '_ref": "inBufer')) == [
        "test.json:11:45: /commands/0/dispatch_compute/bindings/0/resource_ref: "
        "no resource has the uid 'inBufer' (did you mean 'inBuffer'?)"
    ]


def test_everything_at_once():
    """All problems of a file come together, in its order: shapes, references and contradictions. References to a
    resource that is wrong itself are none."""
    text = (
        GOOD.replace('"size": 40', '"size": 4.5')
        .replace("[10]", '["x"]')
        .replace('"GLSL"', '"GLSL", "stage": "vertex"')
    )
    text = text.replace(
        '  "commands": [\n',
        '  "commands": [\n    {"dispatch_compute": {"shader_ref": "add", "rangeND": [1], "bindings": []}},\n'
        '    {"dispatch_compute": {"shader_ref": "ad", "rangeND": [1], "bindings": []}},\n',
    )
    assert refused(text) == [
        "test.json:4:44: /resources/1/buffer/size: expected an integer, got 4.5",
        "test.json:7:41: /commands/0/dispatch_compute/shader_ref: expected a shader of the stage 'compute', "
        "got 'add' of the stage 'vertex'",
        "test.json:8:41: /commands/1/dispatch_compute/shader_ref: no resource has the uid 'ad' (did you mean 'add'?)",
        "test.json:11:19: /commands/2/dispatch_compute/rangeND/0: expected an integer, got 'x'",
    ]


def test_syntax_error_stands_alone():
    """A syntax error is the only problem that is reported, for nothing else is known yet."""
    text = GOOD.replace('"size": 40', '"size": x').replace('"set": 0', '"set": -1')
    assert refused(text) == ["test.json:4:44: /resources/1/buffer: expected a value, got 'x'"]


def test_faults_and_shapes_together():
    """Duplicate keys and invalid numbers come with the other problems, once each."""
    text = GOOD.replace('"size": 40', '"size": NaN, "size": 4').replace('"set": 0', '"set": Infinity, "lod": null')
    assert refused(text) == [
        "test.json:4:44: /resources/1/buffer/size: NaN is not valid JSON",
        "test.json:4:49: /resources/1/buffer/size: the key 'size' appears twice in one object, first on line 4",
        "test.json:11:17: /commands/0/dispatch_compute/bindings/0/set: Infinity is not valid JSON",
        "test.json:11:34: /commands/0/dispatch_compute/bindings/0/lod: null is not used in scenarios",
    ]


def at(resources="", commands="", more=""):
    """The text of a scenario with these entries, and with more behind them."""
    return f'{{"resources": [{resources}], "commands": [{commands}]{more}}}'


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "1: the file is empty"),
        ("[]", "1: expected an object with the keys 'resources' and 'commands', got an array"),
        ('{"resources": []}', "1: the required key 'commands' is missing"),
        ('{"resources": {}, "commands": []}', "15: /resources: expected an array, got an object"),
        (at(more=', "resorces": []'), "35: /resorces: unknown key 'resorces' (did you mean 'resources'?)"),
        (at(more=', "$schema": 3'), "46: /$schema: expected a string, got 3"),
        (at("{}"), "16: /resources/0: the object is empty: expected one key, the kind of the resource"),
        (
            at('{"buffer": {}, "tensor": {}}'),
            "16: /resources/0: expected one key, the kind of the resource, got 2: 'buffer', 'tensor'",
        ),
        (at('{"bufer": {}}'), "17: /resources/0/bufer: unknown kind of resource: 'bufer' (did you mean 'buffer'?)"),
        (at('{"vgf": {}}'), "17: /resources/0/vgf: unknown kind of resource: 'vgf' (did you mean 'graph'?)"),
        (
            at('{"dispatch_vgf": {}}'),
            "17: /resources/0/dispatch_vgf: 'dispatch_vgf' is a command, it belongs under 'commands'",
        ),
        (
            at("", '{"dispatch": {}}'),
            "33: /commands/0/dispatch: unknown kind of command: 'dispatch' (did you mean 'dispatch_compute'?)",
        ),
        (at('{"buffer": []}'), "27: /resources/0/buffer: expected an object, got an array"),
    ],
)
def test_top_level(text, message):
    """A wrong value outside of the entries has one message."""
    assert refused(text) == [f"test.json:1:{message}"]


@pytest.mark.parametrize(
    "content, message",
    [
        (GOOD.encode("utf-16"), "test.json: the file is UTF-16, expected UTF-8"),
        (GOOD.replace("add.comp", "äöü.comp").encode("latin-1"), "test.json:3:39: the byte 0xe4 is not UTF-8"),
        (b"\0\0", "test.json:1:1: expected an object, got '\\x00'"),
    ],
)
def test_encodings(content, message):
    """A file in another encoding, or no text at all, is refused where it stops being UTF-8."""
    assert refused(content) == [message]


def test_nesting_bomb():
    """A hundred thousand open arrays are one problem, quickly."""
    assert refused('{"resources": ' + "[" * 100_000) == [
        "test.json:1:78: more than 64 arrays and objects are nested in one another"
    ]
    deep = '{"resources": ' + "[" * 500 + "]" * 500 + ', "commands": []}'
    assert refused(deep) == ["test.json:1:78: more than 64 arrays and objects are nested in one another"]


def test_many_faults():
    """A hundred faults are enough, even where the text breaks off after them."""
    lines = refused('{"resources": [' + "null, " * 200)
    assert len(lines) == 100
    assert lines[99] == "test.json:1:610: /resources/99: null is not used in scenarios"


def test_many_problems():
    """The first hundred of very many problems are shown, with a note about the rest."""
    entries = [{"buffer": {"uid": f"b{index}", "size": -1, "shader_access": "readonly"}} for index in range(5_000)]
    lines, calls = calls_of(lambda: refused(json.dumps({"resources": entries, "commands": []})))
    assert len(lines) == 101
    assert lines[-1] == "test.json: only the first 100 problems are shown"
    assert calls < 500 * len(entries)


def test_many_unknown_references():
    """Close matches are looked for as long as they are shown."""
    tree = json.loads(GOOD)
    bindings = [{"set": 0, "id": number, "resource_ref": "inBufer"} for number in range(2000)]
    tree["commands"][0]["dispatch_compute"]["bindings"] = bindings
    lines, calls = calls_of(lambda: refused(json.dumps(tree)))
    assert len(lines) == 101
    assert lines[99].endswith("(did you mean 'inBuffer'?)")
    assert calls < 500 * len(bindings)


def test_file_size():
    """A file beyond the limit is refused before it is parsed."""
    assert refused(b" " * (MAX_SCENARIO_BYTES + 1)) == ["test.json: a scenario of more than 32 MiB is not read"]
    assert refused("[" + "0," * MAX_VALUES) == ["test.json: a scenario of more than 2,000,000 values is not read"]


def test_missing_file(tmp_path):
    """A file that is not there, a folder and a name that cannot be one are file errors."""
    for path, message in (
        (str(tmp_path / "none.json"), f"{tmp_path}/none.json: cannot read the scenario: no such file or directory"),
        (str(tmp_path), f"{tmp_path}: is a folder, expected a scenario"),
        ("a\0b", "a\\x00b: cannot read the scenario: no path can hold a NUL character"),
    ):
        assert str(error_of(FileError, load, path)) == message


def test_ten_thousand_commands():
    """Ten thousand commands cost a few calls each."""
    binding = [{"set": 0, "id": index, "resource_ref": "inBuffer"} for index in range(3)]
    tree = json.loads(GOOD)
    tree["commands"] = [{"dispatch_compute": {"shader_ref": "add", "rangeND": [4, 1, 1], "bindings": binding}}] * 10_000
    text = json.dumps(tree, indent=1)
    scenario, calls = calls_of(lambda: loads(text))
    assert len(scenario.commands) == 10_000
    assert calls < 100 * 10_000


@pytest.mark.parametrize(
    "text, offset, message",
    [
        ("", 0, "the file is empty"),
        ("x", 0, "expected an object, got 'x'"),
        ("{", 1, "the file ends inside the object that begins at 1:1: expected a key in double quotes"),
        ('{"a": 1', 7, "the file ends inside the object that begins at 1:1: expected ',' or '}'"),
        ('\n [1, "b', 6, "the file ends inside a string"),
        ("[1,\n [2", 7, "the file ends inside the array that begins at 2:2: expected ',' or ']'"),
        ('{"a": 1,}', 7, "a ',' before '}' is not allowed"),
        ("[1 2]", 3, "expected ',' or ']', got '2'"),
        ("{'a': 1}", 1, 'expected a key in double quotes, got "\'"'),
        ('{"a" 1}', 5, "expected ':' after the key 'a', got '1'"),
        ('{"a": 1} x', 9, "expected the end of the file, got 'x'"),
        ("[01]", 1, "expected a value, got '01'"),
        ("[.5]", 1, "expected a value, got '.5'"),
        ('["a\nb"]', 1, "the string does not end on its line"),
        ('["a\tb"]', 3, "control character '\\t' in a string"),
        ('["C:\\dir"]', 4, "unknown escape '\\\\d' in a string"),
        ('["\\u12"]', 2, "unknown escape '\\\\u' in a string"),
        ("[1] // one", 4, "expected the end of the file, got a comment ('//')"),
        ("[\n// one\n1]", 2, "expected a value, got a comment ('//')"),
    ],
)
def test_syntax_errors(text, offset, message):
    """The first thing that is not JSON is named, with its place, and nothing else is."""
    (problem,), is_broken = scan(text)
    assert (problem.line, problem.column) == line_and_column(text, offset)
    assert (problem.message, is_broken) == (message, True)


@pytest.mark.parametrize(
    "text, offset, pointer, message",
    [
        ('{"a": [1, null]}', 10, "/a/1", "null is not used in scenarios"),
        ('{"a": NaN}', 6, "/a", "NaN is not valid JSON"),
        ("[1, " + "7" * 5000 + "]", 4, "/1", "a number of 5000 characters is too long"),
        ('["a\\ud83dz"]', 1, "/0", "the string contains half of a surrogate pair, which is not a character"),
        ('{"\\uDC00": 1}', 1, "/\udc00", "the string contains half of a surrogate pair, which is not a character"),
        (
            '{"a": 1,\n "b/~": {"c": 1, "c": 2}}',
            26,
            "/b~1~0/c",
            "the key 'c' appears twice in one object, first on line 2",
        ),
    ],
)
def test_other_faults(text, offset, pointer, message):
    """A forbidden value is named with its place, and the rest of the text is still read."""
    (problem,), is_broken = scan(text)
    assert (problem.line, problem.column) == line_and_column(text, offset)
    assert (problem.pointer, problem.message, is_broken) == (pointer, message, False)


def test_surrogate_pair():
    """A whole surrogate pair is a character like others."""
    assert scan('["\\ud83d\\ude00"]') == ([], False)


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def _resolve(value, pointer):
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step.replace("~1", "/").replace("~0", "~")]
    return value


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_visits(value, ascii, indent):
    """Every value of any JSON text is visited once, at its offset and under its pointer."""
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    visited = []
    problems, _ = scan(text, visit=lambda pointer, key_at, value_at: visited.append((pointer, value_at)))
    assert problems == []
    decode = json.JSONDecoder().raw_decode
    assert len({pointer for pointer, _ in visited}) == len(visited)
    for pointer, at in visited:
        assert decode(text, at)[0] == _resolve(value, pointer)


@given(VALUES, st.data())
def test_agrees_with_json(value, data):
    """The pass calls a text broken exactly where Python's own parser does."""
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 3)))
    text = text[:at] + data.draw(st.text('{}[]",:\\0123456789.eE+-tfn \t\n/u', max_size=4)) + text[end:]
    try:
        json.loads(text)
    except ValueError:
        broken = True
    else:
        broken = False
    assert scan(text)[1] == broken
