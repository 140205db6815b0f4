"""What is known of every model without an instance of it."""

from __future__ import annotations

from typing import ClassVar

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
