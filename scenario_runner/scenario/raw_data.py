"""The raw_data resource."""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from scenario_runner.scenario.entry import Resource
from scenario_runner.scenario.model import RequiredPath, Uid, require_source


class RawData(Resource):
    """Host data for push constants."""

    kind: ClassVar[str] = "raw_data"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    uid: Uid
    src: RequiredPath | None = Field(default=None, description="NumPy file (.npy) with the data.")
    data: Any = Field(default=None, description="The data, in place of src.")

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        return require_source(self, self.src, "data", self.data)
