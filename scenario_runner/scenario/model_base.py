"""What is known of every model without an instance of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class ModelBase(BaseModel):
    """The settings of the models, and what their classes tell about themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True, protected_namespaces=())

    kind: ClassVar[str] = ""
    """The key of such an entry in the JSON; empty for the parts of entries."""

    code_only: ClassVar[frozenset[str]] = frozenset()
    """Fields for scenarios built in code: never accepted from JSON, absent from the JSON Schema."""

    required_in_json: ClassVar[frozenset[str]] = frozenset()
    """Fields that a file must give although code may give a code-only field in their place."""

    retired: ClassVar[Mapping[str, str]] = {}
    """Keys of older dialects that are not supported any more, with what to do instead."""

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema of the model, with what its validators accept beyond the types of its fields."""
        return definition
