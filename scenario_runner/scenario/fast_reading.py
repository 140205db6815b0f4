"""The models for entries that follow the format exactly: the fast path for reading, which diagnoses nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.text import Json
from scenario_runner.files.json_text import has_null
from scenario_runner.scenario.entries import built
from scenario_runner.scenario.kinds import Kind


class Entries(NamedTuple):
    """An array's entries: models, kinds as the data spells them, and indices of refused entries.

    A refused entry has the model None and no kind until `diagnosis` reads it.
    """

    models: list[Any]
    keys: list[str]
    refused: list[int]


def read_models(entries: Sequence[Json], kinds: Mapping[str, Kind], *, in_code: bool, may_have_null: bool) -> Entries:
    """Validate an array's entries. ``in_code`` accepts the fields for code; ``may_have_null`` refuses nulls."""
    models: list[Any] = []
    keys: list[str] = []
    refused: list[int] = []
    validators: dict[str, tuple[Callable[[object], object], frozenset[str]]] = {}
    for index, entry in enumerate(entries):
        try:
            ((key, body),) = entry.items()
            known = validators.get(key)
            if known is None:
                model = built(kinds[key].model)
                known = validators[key] = (model.__pydantic_validator__.validate_python, model.code_only)
            validate, code_only = known
            if in_code or type(body.get("src")) is dict:
                body = built(kinds[key].model).completed(body)
            if not in_code and (not code_only.isdisjoint(body) or (may_have_null and has_null(body))):
                raise ValueError
            models.append(validate(body))
            keys.append(key)
        except (ScenarioError, AttributeError, ValueError, KeyError, TypeError):
            models.append(None)
            keys.append("")
            refused.append(index)
    return Entries(models, keys, refused)
