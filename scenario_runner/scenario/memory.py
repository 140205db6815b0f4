"""memory_group: resources that share one memory object."""

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from scenario_runner.scenario.model import U64, Model, wrong


class MemoryGroup(Model):
    """Resources with the same memory group share one memory object."""

    id: str = Field(
        default="",
        validation_alias=AliasChoices("id", "uid"),
        description="Name of the group. An empty name means no group.",
    )
    offset: U64 = Field(
        default=0,
        description=(
            "First byte of the resource in the shared memory. The device may require a multiple of its alignment, "
            "often 16 to 256."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, given: Any) -> Any:
        if isinstance(given, dict) and "id" in given and "uid" in given:
            if given["id"] != given["uid"]:
                raise wrong(
                    f"'id' and 'uid' both name the group, and differ: {given['id']!r:.80} and {given['uid']!r:.80}"
                )
            return {key: value for key, value in given.items() if key != "uid"}
        return given

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        other = {"type": "string", "description": "Another spelling of `id`, from an older dialect."}
        definition["properties"]["uid"] = other
        return definition


def _none_if_unnamed(group: MemoryGroup | None) -> MemoryGroup | None:
    return group if group is not None and group.id else None


OptionalMemoryGroup = Annotated[MemoryGroup | None, AfterValidator(_none_if_unnamed)]
