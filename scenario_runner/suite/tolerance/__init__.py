"""Compare outputs: element by element, or by metrics of all elements."""

from __future__ import annotations
