"""The .npy codec: buffers and tensors, and the first level of images.

An image has the shape [1, height, width, items] or [height, width, items], where items are those of
`scenario_runner.formats.Format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.files.codec import Codec
from scenario_runner.files.npy import NpyWriter, read_header
from scenario_runner.files.npy_header import MAGIC
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error

if TYPE_CHECKING:
    from scenario_runner.files.image_reader import ImageHeader, ImageReader
    from scenario_runner.files.image_writer import ImageWriter
    from scenario_runner.formats import Format


class NpyCodec(Codec):
    """NumPy's arrays: items of a type and a shape."""

    extension = ".npy"
    signature = MAGIC
    resources = frozenset({"buffer", "tensor", "image"})
    is_array = True

    def why_not(self, format: Format) -> str | None:
        return "NumPy has no block-compressed types" if format.numpy_dtype is None else None

    def read_header(self, path: str) -> ImageHeader:
        from scenario_runner.files.image_reader import ImageHeader

        shape = read_header(path).shape
        sides = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
        if len(sides) not in (2, 3):
            raise file_error(path, f"has the shape {shape}, expected (1, height, width, items) of an image")
        return ImageHeader(None, sides[1], sides[0])

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        from scenario_runner.files.npy_image import open_image

        return open_image(path, format, width, height)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        from scenario_runner.files.npy_image import create_image

        return create_image(path, format, width, height, planes, create)

    def is_divisible(self, path: str) -> bool:
        return read_header(path).is_c_order

    def create_array(self, path: str, descr: str, shape: Sequence[int], create: CreateOutput = OutputFile) -> NpyWriter:
        return NpyWriter(path, descr, shape, create=create)
