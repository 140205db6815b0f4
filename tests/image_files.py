"""Images for tests: files written and read by the front of files/, or damaged, and planes of images."""

from collections.abc import Iterable
from itertools import zip_longest
from os import PathLike

from hypothesis import strategies as st

from scenario_runner.compare.planes import Plane, planes_of
from scenario_runner.files.codec import ImageHeader
from scenario_runner.files.codec_table import codec_of, create_image, open_image
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.vk_formats import Format, format_named
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.records import image_parts


def write_image(path: str | PathLike[str], format: Format, width: int, height: int, planes: Iterable[bytes]) -> None:
    """Write the planes of an image: of each level one for each aspect."""
    planes = list(planes)
    with create_image(path, format, width, height, tuple(map(len, planes))) as writer:
        for plane in planes:
            writer.write(plane)


def write_dds(
    path: str | PathLike[str],
    format: Format,
    width: int,
    height: int,
    levels: Iterable[bytes],
    stencils: Iterable[bytes] = (),
) -> None:
    """Write the levels of an image; of formats with depth and stencil these are the depths."""
    planes = [
        plane
        for depth, stencil in zip_longest(levels, stencils)
        for plane in ((depth,) if len(format.aspects) == 1 else (depth, stencil or bytes(len(depth) // 4)))
    ]
    write_image(path, format, width, height, planes)


def read_image_header(path: str | PathLike[str]) -> ImageHeader:
    """Read the header of an image file."""
    return codec_of(path).read_header(str(path))


def read_texels(path: str | PathLike[str], format: Format) -> bytes:
    """Return the first level of an image file, with the extent from the file."""
    header = read_image_header(path)
    with open_image(path, format, header.width, header.height, header.mip_count) as reader:
        texels = bytearray(reader.level_size_bytes())
        reader.read_into(memoryview(texels))
    return bytes(texels)


def image_planes(format: str, width: int, height: int, mips: int = 1) -> tuple[ImagePlan, tuple[Plane, ...]]:
    """Return the plan of an image, and the planes that comparisons see."""
    found = format_named(format)
    parts = image_parts(found, width, height, mips)
    plan = ImagePlan("i", "", parts[-1].end_bytes, found, width, height, mips, parts)
    return plan, planes_of(plan, plan.size_bytes, ELEMENTS["uint8"])


def mutated(data: st.DataObject, content: bytes, *, places: int | None = None) -> bytes:
    """A file after one to four changes: bytes and words with other values, cut off, inserted or deleted.

    They begin among the first ``places`` bytes.
    """
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(changed), places or len(changed)) - 1))
        action = data.draw(st.sampled_from(["byte", "word", "cut", "insert", "delete"]))
        if action == "byte":
            changed[at] = data.draw(st.integers(0, 255))
        elif action == "word":
            start = at - at % 4
            changed[start : start + 4] = data.draw(st.binary(min_size=4, max_size=4))
        elif action == "cut":
            del changed[max(1, data.draw(st.integers(0, len(changed) - 1))) :]
        elif action == "insert":
            changed[at:at] = data.draw(st.binary(max_size=8))
        elif len(changed) > 1:
            del changed[at]
    return bytes(changed)
