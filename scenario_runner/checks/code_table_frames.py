"""More of the text of `codes`, as in `code_table`: frames and their captures."""

# ruff: noqa: E501

from typing import Final

TABLE: Final = """
SR-FRAME-001 warning duplicate frame id
Two boundaries have the same frame id, or one has the number that another gets by default. The captures of the second one go to the folder `frame_<id>_2`, of the third one to `frame_<id>_3`; a capture tool takes them for one frame.
Give each boundary another `frame_id`, or leave it out everywhere.
JSON Test Description Specification, "Mark boundary"; Vulkan specification, VkFrameBoundaryEXT

SR-RUN-005 error a capture tool is missing, too old or failed
--capture-frame needs RenderDoc, and --gfxr needs gfxreconstruct's layer.
Install what the message names; docs/capture.md tells how.
docs/capture.md
"""
