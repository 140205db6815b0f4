"""The content of an output as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.files.output import CreateOutput, OutputFile

if TYPE_CHECKING:
    from scenario_runner.plan.model.resources import ImagePlan
    from scenario_runner.suite.expectations.outputs import Output
    from scenario_runner.viewing.element import Element

# How files hold what NumPy has no type for; there is none that tells float8_e5m2 from the other one.
_DESCR = {"bfloat16": "<V2", "float8_e4m3": "|V1"}


def extension_of(output: Output) -> str:
    """The extension of a file that holds all of an output: ``.npy``, or where that holds too little another one."""
    resource = output.resource
    if resource is None or resource.kind != "image":
        return ".npy"
    from scenario_runner.files.codec import codec_for

    return codec_for("image", resource.format, _levels(resource, output.size_bytes)).extension


def can_hold(path: str, output: Output) -> bool:
    """Whether a file of this name can hold all of an output. Raises FileError where the name is that of no format for
    its kind."""
    from scenario_runner.files.codec import codec_of

    resource = output.resource
    assert resource is not None
    codec = codec_of(path, resource.kind)
    return resource.kind != "image" or codec.holds(resource.format, _levels(resource, output.size_bytes))


def _levels(image: ImagePlan, size_bytes: int) -> int:
    return sum(part.end_bytes <= size_bytes for part in image.parts) // len(image.format.aspects)


def write_output(
    path: str, output: Output, element: Element | None, data: memoryview, create: CreateOutput = OutputFile
) -> None:
    """Write the bytes of an output. A buffer has items of the type of ``element``, by default signed bytes, as the
    file of its ``dst`` has. Raises FileError."""
    from scenario_runner.files.npy import write_npy
    from scenario_runner.run.resource_file import create_resource_file

    resource = output.resource
    assert resource is not None
    if resource.kind == "buffer":
        if element is None:
            write_npy(path, "|i1", (len(data),), [data], create=create)
        else:
            descr = _DESCR.get(element.name, element.dtype)
            write_npy(path, descr, (len(data) // element.size_bytes,), [data], create=create)
        return
    if resource.kind == "image":
        resource = resource._replace(size_bytes=output.size_bytes, mips=_levels(resource, output.size_bytes))
    writer = create_resource_file(path, resource, create)
    try:
        writer.write(data)
    except BaseException as error:
        writer.__exit__(type(error), error, None)
        raise
    writer.__exit__(None, None, None)
