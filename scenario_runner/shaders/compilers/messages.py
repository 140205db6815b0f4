"""How compilers write their messages: one line each, with a place."""

from __future__ import annotations

from typing import NamedTuple


class MessageStyle(NamedTuple):
    """Regular expressions. ``message`` has the groups file, line, column (may be missing), severity and text; ``noise``
    matches lines that say nothing about the source. After a message may come the line of the source and a line with
    marks below it, where ``echoes``."""

    message: str
    noise: str
    echoes: bool = False


# "ERROR: file:3: text", or "file:3:7:" on request.
GLSLANG_STYLE = MessageStyle(
    r"(?P<severity>ERROR|WARNING): (?P<file>.*?):(?P<line>-?\d+):(?:(?P<column>\d+):)? (?P<text>.*)",
    r"ERROR: \d+ compilation errors\..*|"
    r".*'' : compilation terminated.*|"
    r"SPIR-V is not generated for failed compile or link|Failed to compiled GLSL input to SPIR-V:|"
    r"ERROR: Linking \w+ stage: Missing entry point: Each stage requires one entry point|"
    r"\S*\(\d+\): error at column \d+, HLSL parsing failed\.",
)
# dxc: "file:3:7: error: text"; shaderc: "file:3: error: text".
CLANG_STYLE = MessageStyle(
    r"(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>(?:fatal )?error|warning|note): (?P<text>.*)",
    r"\d+ (?:errors?|warnings?)(?: and \d+ errors?)? generated\.|.*'' : compilation terminated.*",
    echoes=True,
)
