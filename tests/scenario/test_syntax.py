"""The position-tracking pass over JSON text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.scenario.syntax import line_and_column, scan


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
        ('{"a": NaN}', 6, "/a", "NaN is not a number of JSON"),
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
    """What a scenario must not contain is named with its place, and the rest of the text is still read."""
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
