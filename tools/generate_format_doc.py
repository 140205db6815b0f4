"""Write docs/format.md from the JSON Schema and docs/format_examples.json: ``python tools/generate_format_doc.py``.

What each key means comes from the descriptions of the models' fields, which the schema has. The examples are entries of
one complete scenario, docs/format_examples.json: the first one of each kind.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before a package that is installed

from scenario_runner.scenario import json_schema
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES, Kind
from scenario_runner.scenario.resources import SPELLINGS as VALUES

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "format.md"
EXAMPLES = DOCS / "format_examples.json"

INTRODUCTION = """\
# The JSON format

All keys of a scenario file, generated from the JSON Schema (`scenario-runner schema`) by
`python tools/generate_format_doc.py`. [scenarios.md](scenarios.md) describes how to write a scenario.

- The file is UTF-8 JSON without comments and trailing commas. Errors: a repeated or misspelt key, `null`, a number in
  quotes, and a fraction for an integer. Unknown keys have no effect ([scenarios.md](scenarios.md#dialects)).
- Keys are optional unless marked **required**.
- Paths are absolute or relative to the scenario's folder; a relative `dst` is relative to `--output`, if given.
- A reference is the `uid` of a resource. An empty `src`, `dst` or `push_data_ref` is the same as none.
- The examples are one scenario, [format_examples.json](format_examples.json), with every key.
- Kinds and values may have a [second spelling](#spellings-of-the-dialects) from another dialect.

## The file

An object with these keys:

"""
SPELLINGS = """\
## Spellings of the dialects

The names of a kind, key or value, which may be mixed in one file.

| spelling | also |
|---|---|
"""
_LIMITS = {2**32 - 1: "2^32 - 1", 2**63 - 1: "2^63 - 1", 2**64 - 1: "2^64 - 1", -(2**63): "-2^63"}


def text() -> str:
    """The file as it should be."""
    schema = json_schema()
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    definitions = schema["$defs"]
    page = INTRODUCTION + _table(schema, definitions)
    parts: dict[str, None] = {}
    for title, kinds in (("resources", RESOURCES), ("commands", COMMANDS)):
        page += (
            f"\n## {title.capitalize()}\n\nEach entry of `{title}` is an object with one key, the kind of the entry.\n"
        )
        entries = {_model(kinds[key]): entry for entry in reversed(examples[title]) for key in entry}
        for model, names in _names(kinds).items():
            definition = definitions[model]
            also = "".join(f" Also spelled `{name}`." for name in names[1:])
            page += f"\n### {names[0]}\n\n{definition['description']}{also}\n\n{_table(definition, definitions)}"
            page += f"\n```json\n{_laid_out(entries[model])}\n```\n"
            parts |= dict.fromkeys(_parts(definition, definitions))
    page += "\n## Parts of entries\n"
    for name in parts:
        definition = definitions[name]
        page += f"\n### {name}\n\n{definition['description']}\n\n{_table(_object(definition), definitions)}"
    return f"{page}\n{SPELLINGS}{''.join(_spellings())}"


def _model(kind: Kind) -> str:
    return kind.model.__name__


def _names(kinds: Mapping[str, Kind]) -> dict[str, list[str]]:
    """The models, with the keys that an entry of each may have."""
    names: dict[str, list[str]] = {}
    for key, kind in kinds.items():
        names.setdefault(_model(kind), []).append(key)
    return names


def _parts(definition: Any, definitions: dict[str, Any]) -> Iterator[str]:
    """The names of the definitions that a definition uses, directly or not."""
    if isinstance(definition, dict):
        if "$ref" in definition:
            name = definition["$ref"].rpartition("/")[2]
            yield name
            yield from _parts(definitions[name], definitions)
        definition = list(definition.values())
    if isinstance(definition, list):
        for each in definition:
            yield from _parts(each, definitions)


def _object(definition: dict[str, Any]) -> dict[str, Any]:
    """The form that has keys, of a definition with several forms."""
    return next((each for each in definition.get("anyOf", ()) if "properties" in each), definition)


def _table(definition: dict[str, Any], definitions: dict[str, Any]) -> str:
    required = definition.get("required", ())
    table = "| key | type | default | meaning |\n|---|---|---|---|\n"
    for key, value in definition["properties"].items():
        default = (
            "**required**" if key in required else f"`{json.dumps(value['default'])}`" if "default" in value else ""
        )
        table += f"| `{key}` | {_type(value, definitions)} | {default} | {value['description']} |\n"
    return table


def _type(value: dict[str, Any], definitions: dict[str, Any]) -> str:
    """The type of a value in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if name not in definitions:  # another schema
            return "[expectations](expectations.md)"
        link = f"[{name}](#{name.lower()})"
        others = [_type(each, definitions) for each in definitions[name].get("anyOf", ()) if "properties" not in each]
        return " or ".join([*others, link])
    forms = value.get("anyOf") or value.get("oneOf")
    if forms:
        types = dict.fromkeys(_type(each, definitions) for each in forms if not each.get("deprecated"))
        if "number" in types:
            types.pop("integer", None)
        return " or ".join(types)
    if "enum" in value:
        names = [f"`{each}`" for each in value["enum"] if each not in VALUES]
        return f"{', '.join(names[:-1])} or {names[-1]}"
    if value["type"] == "array" and "items" in value:
        items = "objects" if "oneOf" in value["items"] else _plural(_type(value["items"], definitions))
        least, most = value.get("minItems"), value.get("maxItems")
        count = "" if most is None else f"{most} " if least == most else f"{least} to {most} "
        return f"array of {count}{items}"
    if value["type"] == "integer" and "minimum" in value:
        least, most = value["minimum"], value["maximum"]
        return f"integer, {_LIMITS.get(least, least)} to {_LIMITS.get(most, most)}"
    return str(value["type"])


def _plural(name: str) -> str:
    return re.sub(r"^(integer|number|string)(?=,| or |$)", r"\1s", name).replace("s, ", "s, each ", 1)


def _spellings() -> Iterator[str]:
    for model_names in (*_names(RESOURCES).values(), *_names(COMMANDS).values()):
        for other in model_names[1:]:
            yield f"| `{model_names[0]}` | `{other}` |\n"
    yield "| `id` of a `memory_group` | `uid` |\n"
    for other, ours in VALUES.items():
        yield f"| `{ours}` | `{other}` |\n"


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON in as few lines of 100 characters as its structure allows."""
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= 100:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_laid_out(each, inner)}" for key, each in value.items()]
    else:
        lines = [inner + _laid_out(each, inner) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(lines) + f"\n{indent}{closing}"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
