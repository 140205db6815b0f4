"""Write the pages about the JSON format from the JSON Schema: ``python tools/generate_format_doc.py``.

A key's meaning is the description of the model's field, which the schema repeats. The examples come from a
complete scenario, docs/format_examples.json: the first entry of each kind.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before a package that is installed

from scenario_runner.scenario.entries import Model
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES, json_schema
from scenario_runner.scenario.resources import SPELLINGS as VALUES

DOCS = Path(__file__).resolve().parent.parent / "docs"
EXAMPLES = DOCS / "format_examples.json"

RESOURCES_INTRODUCTION = """\
# The JSON format: resources

Look up the keys of the file and of resources here, and those of commands in [command_format.md](command_format.md).
[scenarios.md](scenarios.md) shows how to write a scenario. To see these texts in your editor, set up
[`scenario-runner schema`](editors.md).

- The file is UTF-8 JSON. A repeated key, `null`, a number in quotes and a fraction for an integer are errors. Unknown
  keys have no effect ([more](scenarios.md#dialects)).
- Paths start at the scenario's folder; with `--output`, a relative `dst` starts there.
- `int32`, `uint32`, `int64` and `uint64` are integers that such a type can hold.
- An empty `src`, `dst` or `push_data_ref` counts as absent.
- The examples form one scenario, [format_examples.json](format_examples.json).

## The file

An object with these keys:

"""
COMMANDS_INTRODUCTION = """\
# The JSON format: commands

Look up the keys of commands here. [format.md](format.md) has the rules for all keys, the file and the resources.
[scenarios.md](scenarios.md#commands) shows which command does what.

"""
SPELLINGS = """\
## Spellings of the dialects

You can use both spellings of a kind, key or value, also in the same file.

| spelling | also |
|---|---|
"""
_INTEGERS = {
    (0, 2**32 - 1): "uint32",
    (0, 2**64 - 1): "uint64",
    (-(2**31), 2**31 - 1): "int32",
    (-(2**63), 2**63 - 1): "int64",
}


def pages() -> dict[str, str]:
    """Return each page's text by file name in docs/."""
    schema = json_schema()
    definitions = schema["$defs"]
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    shown: dict[str, str] = {}
    resources = _kinds("resources", RESOURCES, examples, definitions)
    resources += _new_parts("format.md", RESOURCES, definitions, shown) + f"\n{SPELLINGS}{''.join(_spellings())}"
    commands = _kinds("commands", COMMANDS, examples, definitions)
    commands += _new_parts("command_format.md", COMMANDS, definitions, shown)
    texts = {
        "format.md": f"{RESOURCES_INTRODUCTION}{_table(schema, definitions)}\n{resources}",
        "command_format.md": COMMANDS_INTRODUCTION + commands,
    }
    return {name: _linked(text, name, shown) for name, text in texts.items()}


def _kinds(title: str, kinds: Mapping[str, type[Model]], examples: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return the sections for all resources or commands, each with a table and an example."""
    shared, others = _shared_keys([definitions[model] for model in _names(kinds)])
    exceptions = [names[0] for model, names in _names(kinds).items() if definitions[model] in others]
    who = f"All kinds but {' and '.join(exceptions)}" if exceptions else "All kinds"
    page = f"""\
## {title.capitalize()}

Each entry of `{title}` is an object with one key, the kind of the entry. {who} have:

{_table(shared, definitions)}"""
    entries = {kinds[key].__name__: entry for entry in reversed(examples[title]) for key in entry}
    earlier: dict[str, str] = {}
    for model, names in _names(kinds).items():
        definition = definitions[model]
        also = "".join(f" Also spelled `{name}`." for name in names[1:])
        base, own = _without_base(definition, {name: definitions[model] for name, model in earlier.items()})
        own = _without(own, shared["properties"])
        if base:
            also += f" It has the keys of [{base}](#{base}), and:"
        page += f"\n### {names[0]}\n\n{definition['description']}{also}\n\n{_table(own, definitions)}"
        earlier[names[0]] = model
        page += f"\n```json\n{_laid_out(entries[model])}\n```\n"
    return page


def _shared_keys(kinds: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a definition of the keys that most kinds have in the same form, and the kinds without these keys."""
    keys = [item for kind in kinds for item in kind["properties"].items()]
    shared = dict(item for item in keys if keys.count(item) > len(kinds) / 2)
    others = [kind for kind in kinds if not shared.items() <= kind["properties"].items()]
    return {"properties": shared, "required": [key for key in shared if key in kinds[0].get("required", ())]}, others


def _without(definition: dict[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition without these keys."""
    properties = definition["properties"]
    return {**definition, "properties": {key: properties[key] for key in properties if key not in keys}}


def _without_base(definition: dict[str, Any], earlier: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Find an earlier kind with keys that a definition repeats. Return it, and the definition without these keys."""
    keys = definition["properties"]
    for name, base in earlier.items():
        shared = base["properties"]
        if len(shared) >= 4 and shared.items() <= keys.items():
            return name, _without(definition, shared)
    return "", definition


def _new_parts(name: str, kinds: Mapping[str, type[Model]], definitions: dict[str, Any], shown: dict[str, str]) -> str:
    """Return sections for parts that no earlier page has; note in `shown` which page has each."""
    page = "\n## Parts of entries\n"
    for model in _names(kinds):
        for part in _parts(definitions[model], definitions):
            if part not in shown:
                shown[part] = name
                definition = definitions[part]
                page += f"\n### {part}\n\n{definition['description']}\n\n{_table(_object(definition), definitions)}"
    return page


def _linked(text: str, name: str, shown: dict[str, str]) -> str:
    """Let each part's link lead to the page with the part."""
    for part, page in shown.items():
        if page != name:
            text = text.replace(f"(#{part.lower()})", f"({page}#{part.lower()})")
    return text


def _names(kinds: Mapping[str, type[Model]]) -> dict[str, list[str]]:
    """Return the keys that each model's entry may have."""
    names: dict[str, list[str]] = {}
    for key, model in kinds.items():
        names.setdefault(model.__name__, []).append(key)
    return names


def _parts(definition: Any, definitions: dict[str, Any]) -> Iterator[str]:
    """Yield the names of definitions that a definition uses, directly or not."""
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
    """Return the form with keys of a definition with several forms."""
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
    """Return a value's type in words."""
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
        for (lowest, highest), name in _INTEGERS.items():
            if most == highest and least in (lowest, 1):
                return name if least == lowest else f"positive {name}"
        return f"integer, {least} to {most}"
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
    """Return JSON in lines of at most 100 characters where the structure allows."""
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
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
