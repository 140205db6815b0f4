"""SPIR-V by what it was made from: the text the compiler saw, how it was called, the compiler's identity."""

from __future__ import annotations

from scenario_runner.content_cache import ContentCache

MAX_ENTRIES = 4096
MAX_TOTAL_BYTES = 256 << 20


class ShaderCache(ContentCache):
    """Compiled modules, in the user's cache folder or under ``root``."""

    def __init__(self, root: str | None = None) -> None:
        super().__init__(root, "shaders", max_entries=MAX_ENTRIES, max_total_bytes=MAX_TOTAL_BYTES)
