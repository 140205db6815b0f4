"""The codes of diagnostics from codes.toml, each with a meaning, a fix and a source."""

import tomllib
from importlib.resources import files
from typing import Final, NamedTuple

from scenario_runner.errors import error_class


class Code(NamedTuple):
    """One kind of diagnostic. ``severity`` is the default, and ``source`` names the section of a specification."""

    code: str
    severity: str
    title: str
    meaning: str
    fix: str
    source: str

    @property
    def exit_code(self) -> int:
        """The exit code when a run ends with this code, or 0 for warnings and notes."""
        return error_class(self.code).exit_code if self.severity == "error" else 0


_TABLE: Final = tomllib.loads((files(__package__) / "codes.toml").read_text(encoding="utf-8"))

# A code's middle part → the family's subject, in documentation order.
FAMILIES: Final[dict[str, str]] = _TABLE.pop("families")

# All codes, in the order of their families.
CODES: Final = {code: Code(code, **texts) for code, texts in _TABLE.items()}
