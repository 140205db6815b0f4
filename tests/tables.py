"""Tables of cases beside a test: texts in which each line is one case."""

from pathlib import Path


def cases(module: str, name: str, table: str) -> list[list[str]]:
    """Return the cases of a table in the file ``name`` beside a module: the parts of each line, separated by ``->``.

    ``= TABLE`` begins a table. A line that begins with ``->`` continues the case above. ``#`` begins a comment line.
    """
    text = Path(module).with_name(name).read_text(encoding="utf-8")
    lines = text.partition(f"= {table}\n")[2].partition("\n= ")[0].replace("\n  ->", " ->").splitlines()
    return [[part.strip() for part in line.split("->")] for line in lines if line and line[0] != "#"]
